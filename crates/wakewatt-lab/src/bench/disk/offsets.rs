//! Where the next read goes: always at a multiple of the block, never past the last whole block.
//!
//! Random order is a seeded permutation: each pass over the span visits every block exactly once, as fio's random map
//! does, so no block is read again (from some cache below) before all others were. The permutation is a Feistel network
//! of four rounds on the smallest even number of bits that holds the span, walked until it lands inside (Black &
//! Rogaway, "Ciphers with Arbitrary Finite Domains", 2002): no memory, some ten nanoseconds.

use wakewatt_core::samples::disk::DiskAccess;
use wakewatt_core::stats::random::Random;

const ROUNDS: usize = 4;

/// An endless row of offsets.
#[derive(Clone, Debug)]
pub(crate) struct Offsets {
    access: DiskAccess,
    block_bytes: u64,
    n_blocks: u64,
    /// Half the permutation's bits.
    half_bits: u32,
    keys: [u64; ROUNDS],
    random: Random,
    next: u64,
}

impl Offsets {
    /// Over the whole blocks of a span, which holds at least one. `share` (of `n_shares`) says which of several threads
    /// this is for: each has its own order, and sequential ones begin in different parts.
    pub(crate) fn new(
        access: DiskAccess,
        span_bytes: u64,
        block_bytes: u64,
        seed: u64,
        (share, n_shares): (u32, u32),
    ) -> Offsets {
        let n_blocks = (span_bytes / block_bytes.max(1)).max(1);
        let bits = 64 - (n_blocks - 1).leading_zeros();
        let mut random = Random::new(seed ^ (u64::from(share) << 40));
        let next = match access {
            DiskAccess::Random => 0,
            DiskAccess::Sequential => n_blocks / u64::from(n_shares.max(1)) * u64::from(share),
        };
        let keys = std::array::from_fn(|_| random.bits());
        Offsets { access, block_bytes, n_blocks, half_bits: bits.div_ceil(2).max(1), keys, random, next }
    }

    /// The next one, in bytes.
    pub(crate) fn next_bytes(&mut self) -> u64 {
        if self.next >= self.n_blocks {
            self.next = 0;
            self.keys = std::array::from_fn(|_| self.random.bits());
        }
        let block = match self.access {
            DiskAccess::Sequential => self.next,
            DiskAccess::Random => self.permuted(self.next),
        };
        self.next += 1;
        block * self.block_bytes
    }

    /// At most four walks on average: the domain is under four times the span.
    fn permuted(&self, index: u64) -> u64 {
        let mut at = index;
        loop {
            at = self.round_trip(at);
            if at < self.n_blocks {
                return at;
            }
        }
    }

    fn round_trip(&self, at: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (at >> self.half_bits, at & mask);
        for key in self.keys {
            let mut mixed = (right ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            mixed ^= mixed >> 32;
            mixed = mixed.wrapping_mul(0xd6e8_feb8_6659_fd93);
            (left, right) = (right, left ^ ((mixed >> 31) & mask));
        }
        left << self.half_bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(access: DiskAccess, span: u64, seed: u64, share: (u32, u32), n: usize) -> Vec<u64> {
        let mut offsets = Offsets::new(access, span, 4096, seed, share);
        (0..n).map(|_| offsets.next_bytes()).collect()
    }

    #[test]
    fn random_is_aligned_covers_each_pass_once_and_is_seeded() {
        // Whole powers of two, odd numbers, one block, a rest that is no whole block.
        for n_blocks in [1u64, 2, 3, 7, 64, 1000, 4097] {
            let span = n_blocks * 4096 + 4095;
            let n = usize::try_from(n_blocks).unwrap();
            let twice = take(DiskAccess::Random, span, 5, (0, 1), 2 * n);
            for pass in twice.chunks(n) {
                let mut sorted = pass.to_vec();
                sorted.sort_unstable();
                assert_eq!(sorted, (0..n_blocks).map(|b| b * 4096).collect::<Vec<_>>(), "{n_blocks} blocks");
            }
            if n_blocks > 100 {
                assert_ne!(twice[..n], twice[n..], "the second pass has another order");
            }
        }
        let of = |seed, share| take(DiskAccess::Random, 1 << 30, seed, share, 50);
        assert_eq!(of(1, (0, 1)), of(1, (0, 1)));
        assert_ne!(of(1, (0, 1)), of(2, (0, 1)));
        assert_ne!(of(1, (0, 2)), of(1, (1, 2)));
        let spread = of(9, (0, 1)).iter().filter(|at| **at < 1 << 29).count();
        assert!((10..40).contains(&spread), "{spread} of 50 in the lower half");
    }

    #[test]
    fn sequential_goes_round_from_its_own_start() {
        assert_eq!(take(DiskAccess::Sequential, 3 * 4096, 1, (0, 1), 4), [0, 4096, 8192, 0]);
        assert_eq!(take(DiskAccess::Sequential, 4 * 4096, 1, (1, 2), 3), [8192, 12288, 0]);
    }
}

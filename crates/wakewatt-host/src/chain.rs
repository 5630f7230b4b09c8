//! A ring of pointers in memory: each load needs the one before, so the time per step is the latency of a load.
//!
//! What google/multichase and lmbench's lat_mem_rd do. The order is the caller's (a random one defeats the
//! prefetchers); here it is written as addresses, because an index would add an addition to every step, which is a
//! fifth of an L1 hit. The ring keeps its place, so that one sample does not begin in what the last one left in the cache.

use crate::pages::{LINE_BYTES, Pages};
use std::ptr::NonNull;

/// Steps per turn of the inner loop.
const UNROLL: u64 = 16;

/// A ring through a region, and the place reached.
#[derive(Debug)]
pub struct Chain<'a> {
    at: NonNull<u8>,
    n: u64,
    _region: std::marker::PhantomData<&'a mut Pages>,
}

// SAFETY: it borrows its region exclusively, and the region may be sent.
unsafe impl Send for Chain<'_> {}

impl Chain<'_> {
    /// Writes the ring: `order` holds line numbers of the region, each at most once. None if one of them is outside,
    /// or there is none.
    pub fn write<'a>(pages: &'a mut Pages, order: &[u32]) -> Option<Chain<'a>> {
        let n_lines = pages.len_bytes() / LINE_BYTES;
        if order.iter().any(|line| *line as usize >= n_lines) {
            return None;
        }
        let start = pages.start();
        // SAFETY: every line number was checked against the length of the region, which starts at `start`.
        let address = |line: u32| unsafe { start.add(line as usize * LINE_BYTES) };
        let first = address(*order.first()?);
        for (at, line) in order.iter().enumerate() {
            let next = order.get(at + 1).map_or(first, |next| address(*next));
            // SAFETY: inside the region by the check above, aligned to 64; the region is borrowed exclusively.
            unsafe { address(*line).cast::<NonNull<u8>>().write(next) };
        }
        Some(Chain { at: first, n: order.len() as u64, _region: std::marker::PhantomData })
    }

    /// Elements of the ring.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Follows at least this many pointers, in whole turns of the loop; says how many. No call, no clock, no allocation.
    pub fn walk(&mut self, n_steps: u64) -> u64 {
        let turns = n_steps.div_ceil(UNROLL);
        let mut at = self.at;
        for _ in 0..turns {
            // Written out, so that the loop's own instructions do not show at 1 ns per step.
            macro_rules! step {
                ($($_n:literal)*) => { $({
                    let _: u8 = $_n;
                    // SAFETY: `at` is an element of the ring, written by `write`, which closed it: what it holds is
                    // again an element. The region lives and nobody else may write to it while it is borrowed here.
                    at = unsafe { at.cast::<NonNull<u8>>().read() };
                })* };
            }
            step!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        }
        // The place is kept in self and compared by nobody, so the loop must not be thought useless.
        self.at = std::hint::black_box(at);
        turns * UNROLL
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pages::PageRequest;

    #[test]
    fn a_walk_goes_round() {
        let mut pages = Pages::map(1 << 16, PageRequest::Base, None).unwrap();
        assert!(Chain::write(&mut pages, &[]).is_none());
        assert!(Chain::write(&mut pages, &[0, 1024]).is_none(), "outside");
        let order: Vec<u32> = (0..32).map(|i| (i * 7) % 32).collect();
        let mut chain = Chain::write(&mut pages, &order).unwrap();
        let start = chain.at;
        assert_eq!((chain.walk(1), chain.n()), (16, 32));
        assert_ne!(chain.at, start);
        assert_eq!(chain.walk(16), 16);
        assert_eq!(chain.at, start, "32 steps through a ring of 32");
    }
}

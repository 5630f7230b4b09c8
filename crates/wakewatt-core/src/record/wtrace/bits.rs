//! Numbers of any width, packed bit after bit: the lowest bit of a byte first.

/// Packs.
#[derive(Debug, Default)]
pub(super) struct BitWriter {
    bytes: Vec<u8>,
    waiting: u128,
    n_waiting: u32,
}

impl BitWriter {
    /// The lowest `n_bits` (at most 64) of a value.
    pub(super) fn put(&mut self, value: u64, n_bits: u32) {
        let mask = (1u128 << n_bits) - 1;
        self.waiting |= (u128::from(value) & mask) << self.n_waiting;
        self.n_waiting += n_bits;
        while self.n_waiting >= 8 {
            self.bytes.push((self.waiting & 0xff) as u8);
            self.waiting >>= 8;
            self.n_waiting -= 8;
        }
    }

    /// What was packed; the last byte is filled with zeros.
    pub(super) fn end(mut self) -> Vec<u8> {
        if self.n_waiting > 0 {
            self.bytes.push((self.waiting & 0xff) as u8);
        }
        self.bytes
    }
}

/// Unpacks.
#[derive(Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    waiting: u128,
    n_waiting: u32,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> BitReader<'a> {
        BitReader { bytes, waiting: 0, n_waiting: 0 }
    }

    /// So many bits (at most 64); none behind the end.
    pub(super) fn take(&mut self, n_bits: u32) -> Option<u64> {
        while self.n_waiting < n_bits {
            let (byte, rest) = self.bytes.split_first()?;
            self.waiting |= u128::from(*byte) << self.n_waiting;
            self.n_waiting += 8;
            self.bytes = rest;
        }
        let value = self.waiting & ((1u128 << n_bits) - 1);
        self.waiting >>= n_bits;
        self.n_waiting -= n_bits;
        u64::try_from(value).ok()
    }

    /// Is nothing left but zeros?
    pub(super) fn is_at_end(&self) -> bool {
        self.waiting == 0 && self.bytes.iter().all(|byte| *byte == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_put_is_taken(all in prop::collection::vec((any::<u64>(), 0u32..=64), 0..50)) {
            let mut writer = BitWriter::default();
            all.iter().for_each(|(value, n)| writer.put(*value, *n));
            let bytes = writer.end();
            let mut reader = BitReader::new(&bytes);
            for (value, n) in all {
                let mask = if n == 64 { u64::MAX } else { (1 << n) - 1 };
                prop_assert_eq!(reader.take(n), Some(value & mask));
            }
            prop_assert!(reader.is_at_end());
        }
    }

    #[test]
    fn nothing_is_behind_the_end() {
        assert_eq!(BitReader::new(&[0xff]).take(9), None);
        assert!(BitReader::new(&[0]).is_at_end() && !BitReader::new(&[0, 4]).is_at_end());
    }
}

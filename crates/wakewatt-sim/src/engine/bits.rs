//! A set of CPUs as bits: the next member after a place is found a word at a time.

/// A set of numbers below its size.
#[derive(Clone, Debug)]
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// Without members, for numbers below `n`.
    pub(super) fn of(n: usize) -> Bits {
        Bits { words: vec![0; n.div_ceil(64)] }
    }

    #[inline]
    pub(super) fn insert(&mut self, i: usize) {
        self.words[i / 64] |= 1 << (i % 64);
    }

    #[inline]
    pub(super) fn remove(&mut self, i: usize) {
        self.words[i / 64] &= !(1 << (i % 64));
    }

    #[inline]
    pub(super) fn has(&self, i: usize) -> bool {
        self.words[i / 64] >> (i % 64) & 1 == 1
    }

    /// The first member from `low` on, below `high`.
    #[inline]
    pub(super) fn first_in(&self, low: usize, high: usize) -> Option<usize> {
        if low >= high {
            return None;
        }
        let mut word = low / 64;
        let mut bits = self.words.get(word)? & (u64::MAX << (low % 64));
        loop {
            if bits != 0 {
                let found = word * 64 + bits.trailing_zeros() as usize;
                return (found < high).then_some(found);
            }
            word += 1;
            if word * 64 >= high {
                return None;
            }
            bits = *self.words.get(word)?;
        }
    }

    /// The first member after `start` within [low, high), going round.
    #[inline]
    pub(super) fn after(&self, start: usize, low: usize, high: usize) -> Option<usize> {
        let next = (start + 1).clamp(low, high);
        self.first_in(next, high).or_else(|| self.first_in(low, next))
    }

    /// The same, of those that `fits`.
    pub(super) fn after_that(
        &self,
        start: usize,
        low: usize,
        high: usize,
        fits: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut at = (start + 1).clamp(low, high);
        let turn = at;
        while let Some(found) = self.first_in(at, high) {
            if fits(found) {
                return Some(found);
            }
            at = found + 1;
        }
        at = low;
        while let Some(found) = self.first_in(at, turn) {
            if fits(found) {
                return Some(found);
            }
            at = found + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_in_turn() {
        let mut bits = Bits::of(200);
        [3, 70, 130, 199].into_iter().for_each(|i| bits.insert(i));
        assert_eq!(
            [bits.after(0, 0, 200), bits.after(3, 0, 200), bits.after(199, 0, 200)],
            [Some(3), Some(70), Some(3)]
        );
        assert_eq!((bits.after(70, 64, 128), bits.after(70, 71, 128), bits.first_in(131, 199)), (Some(70), None, None));
        assert_eq!(bits.after_that(3, 0, 200, |i| i != 70), Some(130));
        assert_eq!(bits.after_that(3, 0, 200, |i| i > 500), None);
        bits.remove(70);
        assert!(!bits.has(70) && bits.has(130) && Bits::of(0).after(0, 0, 0).is_none());
    }
}

//! Menu's typical interval: if the last eight sleeps resemble each other, the next will resemble them too.
//!
//! Devices that interrupt at a steady rate are not in any timer. So menu keeps the last eight sleeps in microseconds and asks
//! whether their spread is small: standard deviation below a sixth of the mean, or below 20 us. If not, the outlier is dropped
//! and the question asked again, as long as six are left. Where nothing is typical it says so with the largest
//! number there is. Arithmetic is the kernel's, wrapping included.

use super::form::Typical;

/// How many sleeps are remembered.
const N: usize = 8;
/// Nothing is typical; also what a refused entry is remembered as.
pub(super) const NONE_US: u32 = u32::MAX;

/// The last eight sleeps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Intervals {
    us: [u32; N],
    next: usize,
}

/// Sum, sum of squares, extremes and number of those looked at.
struct Looked {
    k: u32,
    sum: u64,
    min: u32,
    max: u32,
}

/// Division by a number of samples: by a constant the processor multiplies.
#[inline]
fn divided(sum: u64, k: u32) -> u64 {
    match k {
        8 => sum / 8,
        7 => sum / 7,
        6 => sum / 6,
        5 => sum / 5,
        4 => sum / 4,
        3 => sum / 3,
        2 => sum / 2,
        _ => sum,
    }
}

/// Small spread: six times the standard deviation below the mean (of six samples at least), or 20 us.
#[inline]
fn is_typical(mean: u64, variance: u64, k: u32) -> bool {
    (mean.wrapping_mul(mean) > variance.saturating_mul(36) && 4 * k >= 24) || variance <= 400
}

impl Intervals {
    #[inline]
    pub(super) fn push(&mut self, us: u32) {
        self.us[self.next % N] = us;
        self.next = (self.next + 1) % N;
    }

    /// The typical interval in microseconds. `cap_us` is the timer's estimate, for the form that looks at it.
    #[inline]
    pub(super) fn typical(&self, form: Typical, longest_of_four: bool, cap_us: u32) -> u32 {
        match form {
            Typical::TwoSided => self.two_sided(longest_of_four),
            Typical::DownwardCapped => self.downward(longest_of_four, Some(cap_us)),
            Typical::Downward => self.downward(longest_of_four, None),
        }
    }

    #[inline]
    fn look(&self, wanted: impl Fn(u32) -> bool) -> Looked {
        let mut looked = Looked { k: 0, sum: 0, min: u32::MAX, max: 0 };
        for &us in &self.us {
            if wanted(us) {
                looked.k += 1;
                looked.sum += u64::from(us);
                looked.min = looked.min.min(us);
                looked.max = looked.max.max(us);
            }
        }
        looked
    }

    fn downward(&self, longest_of_four: bool, cap_us: Option<u32>) -> u32 {
        let mut limit = i32::MAX.unsigned_abs();
        loop {
            let s = self.look(|us| us <= limit);
            let is_hopeless = match cap_us {
                Some(cap) => s.min >= cap,
                None => s.max == 0,
            };
            if s.k == 0 || is_hopeless {
                return NONE_US;
            }
            let mean = divided(s.sum, s.k);
            let apart = |us: u32| u64::from(us).abs_diff(mean);
            let squares = self.us.iter().filter(|us| **us <= limit).map(|us| apart(*us).wrapping_mul(apart(*us)));
            let variance = divided(squares.fold(0u64, u64::wrapping_add), s.k);
            if is_typical(mean, variance, s.k) {
                return cut(mean);
            }
            if 4 * s.k <= 24 {
                return if longest_of_four && s.k >= 4 { s.max } else { NONE_US };
            }
            // Every copy of the maximum goes; a maximum of zero would have been typical.
            limit = s.max.saturating_sub(1);
        }
    }

    fn two_sided(&self, longest_of_four: bool) -> u32 {
        let (mut above, mut below) = (-1i64, i64::from(u32::MAX));
        loop {
            let within = |us: u32| i64::from(us) > above && i64::from(us) < below;
            let s = self.look(within);
            if s.k == 0 || s.max == 0 {
                return NONE_US;
            }
            let mean = divided(s.sum, s.k);
            let squares =
                self.us.iter().filter(|us| within(**us)).map(|us| u64::from(*us).wrapping_mul(u64::from(*us)));
            let variance = divided(squares.fold(0u64, u64::wrapping_add), s.k).wrapping_sub(mean.wrapping_mul(mean));
            if is_typical(mean, variance, s.k) {
                return cut(mean);
            }
            if 4 * s.k <= 24 {
                return if longest_of_four && s.k >= 4 { s.max } else { NONE_US };
            }
            if mean - u64::from(s.min) > u64::from(s.max) - mean {
                above = i64::from(s.min);
            } else {
                below = i64::from(s.max);
            }
        }
    }
}

/// A mean of numbers of 32 bits has 32 bits.
#[inline]
fn cut(mean: u64) -> u32 {
    u32::try_from(mean).unwrap_or(NONE_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(us: [u32; N]) -> Intervals {
        Intervals { us, next: 0 }
    }

    #[test]
    fn outliers_are_dropped_until_six_are_left() {
        let steady = of([100, 102, 98, 101, 99, 100, 5000, 9000]);
        assert_eq!(steady.typical(Typical::DownwardCapped, false, 10_000), 100);
        let unsteady = of([100, 3000, 98, 4000, 99, 100, 5000, 9000]);
        assert_eq!(unsteady.typical(Typical::DownwardCapped, false, 10_000), NONE_US);
        assert_eq!(unsteady.typical(Typical::DownwardCapped, true, 10_000), 4000);
        assert_eq!(unsteady.typical(Typical::TwoSided, false, 0), NONE_US);
        let both_ends = of([10, 100, 102, 98, 101, 99, 100, 5000]);
        assert_eq!(both_ends.typical(Typical::DownwardCapped, false, 10_000), NONE_US);
        assert_eq!(both_ends.typical(Typical::DownwardCapped, true, 10_000), 101);
        assert_eq!(both_ends.typical(Typical::TwoSided, false, 0), 100);
    }

    #[test]
    fn a_fresh_cpu_has_slept_for_nothing() {
        let mut fresh = Intervals::default();
        assert_eq!(fresh.typical(Typical::DownwardCapped, false, 10), 0);
        assert_eq!(fresh.typical(Typical::Downward, false, 10), NONE_US);
        fresh.push(7);
        assert_eq!(fresh.typical(Typical::Downward, false, 10), 0);
        // Nothing below the timer's estimate of nothing.
        assert_eq!(fresh.typical(Typical::DownwardCapped, false, 0), NONE_US);
    }

    #[test]
    fn refused_entries_are_no_sleeps() {
        let refused = of([NONE_US, 500, 500, 500, 500, 500, 500, NONE_US]);
        for form in [Typical::DownwardCapped, Typical::Downward, Typical::TwoSided] {
            assert_eq!(refused.typical(form, false, 10_000), 500, "{form:?}");
        }
        assert_eq!(of([NONE_US; N]).typical(Typical::TwoSided, false, 0), NONE_US);
    }
}

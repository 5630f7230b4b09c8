//! Menu's typical interval: if the last eight sleeps resemble each other, the next will resemble them too.
//!
//! Devices that interrupt at a steady rate are not in any timer. So menu keeps the last eight sleeps in microseconds and asks
//! whether their spread is small: standard deviation below a sixth of the mean, or below 20 us. If not, the outlier is dropped
//! and the question asked again, as long as six are left. Where nothing is typical it says so with the largest
//! number there is. Arithmetic is the kernel's, wrapping included.

use super::form::Typical;

/// How many sleeps are remembered.
const N: usize = 8;
/// The same, as it is counted.
const ALL: u32 = 8;
/// And as the place of the next is kept.
const EIGHT: u8 = 8;
/// Nothing is typical; also what a refused entry is remembered as.
pub(super) const NONE_US: u32 = u32::MAX;

/// The longest that the downward forms look at.
const LONGEST_US: u32 = i32::MAX.unsigned_abs();

/// The last eight sleeps, with the sums over those that are not too long kept as they come and go.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Intervals {
    us: [u32; N],
    next: u8,
    n_longer: u8,
    sum: u64,
    squares: u64,
}

/// What is known of the sleeps still looked at. Sums wrap where the kernel's do.
#[derive(Clone, Copy)]
struct Looked {
    k: u32,
    sum: u64,
    squares: u64,
    min: u32,
    max: u32,
}

/// From here on squares of two-sided forms can wrap, and the kernel's own order of operations decides.
const WIDE_US: u32 = 1 << 29;

/// One over k, in 64 bits after the point and rounded up: exact for sums of eight numbers of 32 bits.
const ONE_OVER: [u64; N + 1] = {
    let mut table = [0; N + 1];
    let mut k = 2;
    while k <= N {
        table[k] = u64::MAX / (k as u64) + 1;
        k += 1;
    }
    table
};

impl Looked {
    #[inline]
    fn mean(&self) -> u64 {
        match self.k {
            0 | 1 => self.sum,
            k => ((u128::from(self.sum) * u128::from(ONE_OVER[k as usize])) >> 64) as u64,
        }
    }

    /// Small spread: the mean above six standard deviations (of six samples at least), or 20 us. `squares` is the sum of
    /// squared distances; comparing products spares the divisions: `n / k < b` is `n < b * k`.
    #[inline]
    fn is_typical(&self, mean: u64, squares: u64) -> bool {
        let k = u64::from(self.k);
        squares < 401 * k || (self.k >= 6 && squares < (mean * mean).div_ceil(36) * k)
    }

    /// Squared distances from the mean as it is cut to whole numbers: a sum that fits whatever wrapped on the way.
    #[inline]
    fn apart(&self, mean: u64) -> u64 {
        let k = u64::from(self.k);
        let twice = mean.wrapping_mul(self.sum).wrapping_mul(2);
        self.squares.wrapping_sub(twice).wrapping_add(k.wrapping_mul(mean).wrapping_mul(mean))
    }

    /// So many copies of a length less.
    #[inline]
    fn without(&mut self, n: u32, us: u32) {
        let wide = u64::from(us);
        self.k -= n;
        self.sum -= u64::from(n) * wide;
        self.squares = self.squares.wrapping_sub(u64::from(n).wrapping_mul(wide * wide));
    }

    /// Variance of the two-sided form, as the kernel computes it.
    fn wide_variance(&self, mean: u64) -> u64 {
        (self.squares / u64::from(self.k)).wrapping_sub(mean.wrapping_mul(mean))
    }
}

impl Intervals {
    #[inline]
    pub(super) fn push(&mut self, us: u32) {
        let old = std::mem::replace(&mut self.us[usize::from(self.next) % N], us);
        self.next = (self.next + 1) % EIGHT;
        let looked_at = |us: u32| if us <= LONGEST_US { u64::from(us) } else { 0 };
        let (came, went) = (looked_at(us), looked_at(old));
        self.n_longer = self.n_longer + u8::from(us > LONGEST_US) - u8::from(old > LONGEST_US);
        self.sum = self.sum + came - went;
        self.squares = self.squares.wrapping_add(came * came).wrapping_sub(went * went);
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

    /// All sleeps up to a length, from the sums that are kept where they are the same.
    #[inline]
    fn look(&self, most_us: u32) -> Looked {
        if self.n_longer > 0 {
            return self.look_at_each(most_us);
        }
        let (mut min, mut max) = (u32::MAX, 0);
        for &us in &self.us {
            min = min.min(us);
            max = max.max(us);
        }
        Looked { k: ALL, sum: self.sum, squares: self.squares, min, max }
    }

    #[cold]
    fn look_at_each(&self, most_us: u32) -> Looked {
        let mut looked = Looked { k: 0, sum: 0, squares: 0, min: u32::MAX, max: 0 };
        for &us in &self.us {
            if us <= most_us {
                let wide = u64::from(us);
                looked.k += 1;
                looked.sum += wide;
                looked.squares = looked.squares.wrapping_add(wide * wide);
                looked.min = looked.min.min(us);
                looked.max = looked.max.max(us);
            }
        }
        looked
    }

    /// Every copy of the longest is dropped, and the next below is the longest. What was dropped at the other end is shorter still.
    #[inline]
    fn drop_longest(&self, s: &mut Looked) {
        let (longest, mut n, mut max) = (s.max, 0, 0);
        for &us in &self.us {
            n += u32::from(us == longest);
            max = max.max(if us < longest { us } else { 0 });
        }
        s.without(n, longest);
        s.max = max;
    }

    /// The same at the other end.
    #[inline]
    fn drop_shortest(&self, s: &mut Looked) {
        let (shortest, mut n, mut min) = (s.min, 0, u32::MAX);
        for &us in &self.us {
            n += u32::from(us == shortest);
            min = min.min(if us > shortest { us } else { u32::MAX });
        }
        s.without(n, shortest);
        s.min = min;
    }

    fn downward(&self, longest_of_four: bool, cap_us: Option<u32>) -> u32 {
        let mut s = self.look(LONGEST_US);
        // The shortest stays until all are gone, so this need not be asked again.
        if s.k == 0 || cap_us.is_some_and(|cap| s.min >= cap) {
            return NONE_US;
        }
        loop {
            if cap_us.is_none() && s.max == 0 {
                return NONE_US;
            }
            let mean = s.mean();
            if s.is_typical(mean, s.apart(mean)) {
                return cut(mean);
            }
            if 4 * s.k <= 24 {
                return if longest_of_four && s.k >= 4 { s.max } else { NONE_US };
            }
            self.drop_longest(&mut s);
        }
    }

    fn two_sided(&self, longest_of_four: bool) -> u32 {
        let mut s = self.look(u32::MAX - 1);
        loop {
            if s.k == 0 || s.max == 0 {
                return NONE_US;
            }
            let mean = s.mean();
            let is_typical = if s.max < WIDE_US {
                // The quotient is rounded before the mean's square is taken off.
                let k = u64::from(s.k);
                let bound = |variance: u64| s.squares < (mean * mean + variance) * k;
                bound(401) || (s.k >= 6 && bound((mean * mean).div_ceil(36)))
            } else {
                let variance = s.wide_variance(mean);
                variance <= 400 || (s.k >= 6 && mean.wrapping_mul(mean) > variance.saturating_mul(36))
            };
            if is_typical {
                return cut(mean);
            }
            if 4 * s.k <= 24 {
                return if longest_of_four && s.k >= 4 { s.max } else { NONE_US };
            }
            if mean - u64::from(s.min) > u64::from(s.max) - mean {
                self.drop_shortest(&mut s);
            } else {
                self.drop_longest(&mut s);
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
        let mut all = Intervals::default();
        // Others were there before, and have gone.
        [u32::MAX, 7, 1 << 31, 0, 90, u32::MAX, 5, 1 << 20].into_iter().chain(us).for_each(|us| all.push(us));
        all
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

    /// The rule as it is told, divisions and all: what the fast one must equal.
    fn told(us: [u32; N], form: Typical, longest_of_four: bool, cap_us: u32) -> u32 {
        let is_two_sided = form == Typical::TwoSided;
        let (mut above, mut below) = (-1i64, if is_two_sided { i64::from(u32::MAX) } else { 1 << 31 });
        loop {
            let s: Vec<u64> =
                us.iter().filter(|v| i64::from(**v) > above && i64::from(**v) < below).map(|v| u64::from(*v)).collect();
            let (Some(&min), Some(&max)) = (s.iter().min(), s.iter().max()) else { return NONE_US };
            if form == Typical::DownwardCapped && min >= u64::from(cap_us)
                || form != Typical::DownwardCapped && max == 0
            {
                return NONE_US;
            }
            let k = s.len() as u64;
            let mean = s.iter().sum::<u64>() / k;
            let variance = if is_two_sided {
                let squares = s.iter().fold(0u64, |sum, v| sum.wrapping_add(v.wrapping_mul(*v)));
                (squares / k).wrapping_sub(mean.wrapping_mul(mean))
            } else {
                let squares = s.iter().fold(0u64, |sum, v| sum.wrapping_add(v.abs_diff(mean).pow(2)));
                squares / k
            };
            if (mean.wrapping_mul(mean) > variance.saturating_mul(36) && 4 * k >= 24) || variance <= 400 {
                return cut(mean);
            }
            if 4 * k <= 24 {
                return if longest_of_four && k >= 4 { cut(max) } else { NONE_US };
            }
            if is_two_sided && mean - min > max - mean {
                above = min as i64;
            } else {
                below = max as i64;
            }
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn it_is_the_rule_as_told(
            us in proptest::array::uniform8(proptest::prop_oneof![
                4 => 0u32..200, 4 => 90u32..110, 6 => proptest::prelude::Just(0), 2 => 0u32..100_000, 2 => proptest::prelude::any::<u32>(),
                1 => proptest::sample::select(&[0, u32::MAX, u32::MAX - 1, 1 << 31, (1 << 31) - 1, WIDE_US, WIDE_US - 1][..]),
            ]),
            cap in proptest::prop_oneof![0u32..200, proptest::prelude::any::<u32>()],
            longest in proptest::prelude::any::<bool>(),
        ) {
            for form in [Typical::DownwardCapped, Typical::Downward, Typical::TwoSided] {
                proptest::prop_assert_eq!(of(us).typical(form, longest, cap), told(us, form, longest, cap), "{:?}", form);
            }
        }
    }
}

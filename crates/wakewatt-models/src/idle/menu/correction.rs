//! Menu's correction: how much of the time to the next timer a CPU really slept, kept apart by how far the timer was.
//!
//! The next timer is an upper bound, and devices end most sleeps earlier. So menu keeps a running ratio per magnitude of that bound
//! (10 us, 100 us, ... 100 ms), and in older kernels once more for CPUs whose tasks wait for I/O. A ratio of one is
//! 8192: 1024 times the weight of eight sleeps.

/// A ratio of one, in one sleep.
const RESOLUTION: u16 = 1024;
/// A sleep counts for one eighth.
const DECAY: u16 = 8;
/// A ratio of one.
const ONE: u16 = 8192;
/// Timer distances from which the next bucket begins, in nanoseconds.
const EDGES_NS: [u64; 5] = [10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
/// Buckets of a CPU whose tasks wait for I/O stand behind the others.
const WITH_IOWAIT: u8 = 6;

/// Which ratio is meant: below twice six.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bucket(u8);

/// The ratio of a timer's distance.
pub(super) fn bucket(timer_ns: u64, is_iowaiting: bool) -> Bucket {
    let beyond: u8 = EDGES_NS.iter().map(|edge| u8::from(*edge <= timer_ns)).sum();
    Bucket(beyond + if is_iowaiting { WITH_IOWAIT } else { 0 })
}

/// The ratios: none ever exceeds one, so 16 bits hold what the kernel keeps in 32.
#[derive(Clone, Copy, Debug)]
pub(super) struct Correction {
    ratio: [u16; 12],
}

impl Default for Correction {
    fn default() -> Correction {
        Correction { ratio: [ONE; 12] }
    }
}

impl Correction {
    /// A sleep of so much of the time to a timer; units are the caller's. Sleeps longer than `as_good_as_whole` count as perfect.
    #[inline]
    pub(super) fn learn(&mut self, bucket: Bucket, slept: u64, timer: u64, as_good_as_whole: u64) {
        let Some(ratio) = self.ratio.get_mut(usize::from(bucket.0)) else { return };
        let whole = u64::from(RESOLUTION);
        let share = if timer > 0 && slept < as_good_as_whole { whole * slept / timer } else { whole };
        // Nobody sleeps longer than to the timer: a share is at most one.
        *ratio = *ratio - *ratio / DECAY + u16::try_from(share).map_or(RESOLUTION, |s| s.min(RESOLUTION));
    }

    /// The timer's distance in whole microseconds, corrected and cut to 32 bits. `per_us` is how many of the caller's units are one.
    #[inline]
    pub(super) fn estimate_us<const PER_US: u64>(&self, bucket: Bucket, timer: u64) -> u32 {
        let whole = u64::from(ONE) * PER_US;
        let ratio = u64::from(self.ratio.get(usize::from(bucket.0)).copied().unwrap_or(ONE));
        // Cut on purpose: what the kernel keeps of it.
        #[allow(clippy::cast_possible_truncation)]
        let cut = (timer.wrapping_mul(ratio).wrapping_add(whole / 2) / whole) as u32;
        cut
    }

    #[cfg(test)]
    pub(super) fn ratio(&self, bucket: u8) -> u16 {
        self.ratio[usize::from(bucket)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_powers_of_ten() {
        for (ns, expected) in [(0, 0), (9_999, 0), (10_000, 1), (999_999, 2), (10_000_000, 4), (100_000_000, 5)] {
            assert_eq!((bucket(ns, false), bucket(ns, true)), (Bucket(expected), Bucket(expected + 6)), "{ns}");
        }
        assert_eq!(bucket(u64::MAX, false), Bucket(5));
    }

    #[test]
    fn a_sleep_moves_its_ratio_by_an_eighth() {
        let mut c = Correction::default();
        c.learn(Bucket(4), 900_000, 10_000_000, 50_000_000);
        assert_eq!(c.ratio(4), 7260);
        assert_eq!(c.estimate_us::<1000>(Bucket(4), 10_000_000), 8862);
        c.learn(Bucket(5), 45_000_000, 200_000_000, 50_000_000);
        assert_eq!(c.ratio(5), 7398);
        // Sleeping to no timer at all, or long enough, is perfect; nothing of forever is nothing.
        c.learn(Bucket(3), 0, 0, 50_000_000);
        c.learn(Bucket(2), 60_000_000, 90_000_000, 50_000_000);
        assert_eq!((c.ratio(3), c.ratio(2)), (8192, 8192));
        c.learn(Bucket(1), 1_000, i64::MAX.unsigned_abs(), 50_000_000);
        assert_eq!(c.ratio(1), 7168);
    }

    #[test]
    fn no_timer_wraps_as_it_does_in_the_kernel() {
        // 2^63 - 1 times 8192 is 2^76 - 8192, of which 64 bits keep -8192: by hand.
        let expected = 0u64.wrapping_sub(8192).wrapping_add(4_096_000) / 8_192_000;
        assert_eq!(u64::from(Correction::default().estimate_us::<1000>(Bucket(5), i64::MAX.unsigned_abs())), expected);
    }
}

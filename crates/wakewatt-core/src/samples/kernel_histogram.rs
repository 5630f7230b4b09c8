//! The log-linear histogram that the eBPF programs count in, read back.
//!
//! Unit 16 ns, eight steps per doubling: a bucket is at most 12.5 % wide, 240 of them reach 34 s, and one takes 984 bytes,
//! so one per CPU, idle state and wake class is affordable on 512 CPUs. The rule is written twice, here and in C
//! (`probes/src/shared/hist.h`); a test of the probes crate compares them. Counts only grow, so a window is the
//! difference of two readings. The largest value cannot be had for a window, only since the start.

use crate::covers::Covers;
use crate::distribution::{Bucket, Distribution, QUANTILES, Quantile};

/// Buckets of one histogram.
pub const N_BUCKETS: usize = 240;
const UNIT_SHIFT: u32 = 4;

/// The bucket a value falls into.
pub fn bucket_of(ns: u64) -> usize {
    let units = ns >> UNIT_SHIFT;
    if units > 0x7fff_ffff {
        return N_BUCKETS - 1;
    }
    if units < 8 {
        return usize::try_from(units).unwrap_or(0);
    }
    let step = units.ilog2() - 3;
    usize::try_from(u64::from(step << 3) + (units >> step)).unwrap_or(N_BUCKETS - 1)
}

/// The values a bucket holds: from the first, to just below the second.
pub fn edges_ns(bucket: usize) -> (u64, u64) {
    let first = |bucket: usize| -> u64 {
        let bucket = bucket as u64;
        if bucket < 16 {
            return bucket << UNIT_SHIFT;
        }
        let step = (bucket >> 3) - 1;
        ((bucket & 7) + 8) << (step + u64::from(UNIT_SHIFT))
    };
    (first(bucket), first(bucket + 1))
}

/// Counted values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelHistogram {
    /// Values.
    pub n: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// The largest since counting began.
    pub max_ns: u64,
    /// Values per bucket; empty when there are none.
    pub buckets: Vec<u64>,
}

impl KernelHistogram {
    /// Counts one value, as the kernel side does.
    pub fn add(&mut self, ns: u64) {
        self.buckets.resize(N_BUCKETS, 0);
        self.n += 1;
        // A recording may claim any duration.
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        self.buckets[bucket_of(ns)] += 1;
    }

    /// Adds another one's counts.
    pub fn merge(&mut self, other: &KernelHistogram) {
        if other.n == 0 {
            return;
        }
        self.buckets.resize(N_BUCKETS, 0);
        self.n += other.n;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
    }

    /// What came since an earlier reading. The maximum is bounded by the highest bucket that grew.
    pub fn since(&self, earlier: &KernelHistogram) -> KernelHistogram {
        let before = |i: usize| earlier.buckets.get(i).copied().unwrap_or(0);
        let buckets: Vec<u64> = self.buckets.iter().enumerate().map(|(i, n)| n.saturating_sub(before(i))).collect();
        let top = buckets.iter().rposition(|n| *n > 0);
        KernelHistogram {
            n: self.n.saturating_sub(earlier.n),
            sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns),
            max_ns: top.map_or(0, |i| edges_ns(i).1.min(self.max_ns)),
            buckets,
        }
    }

    /// Mean; none without values.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum_ns as f64 / self.n as f64)
    }

    /// The value of a rank (0 = smallest), interpolated inside its bucket.
    fn at_rank_ns(&self, rank: f64) -> u64 {
        let rank = rank.clamp(0.0, (self.n.max(1) - 1) as f64);
        let mut below = 0u64;
        for (i, &n) in self.buckets.iter().enumerate().filter(|(_, n)| **n > 0) {
            if rank < (below + n) as f64 {
                let (low, high) = edges_ns(i);
                let share = (rank - below as f64 + 0.5) / n as f64;
                let value = low as f64 + (high - low) as f64 * share.min(1.0);
                // Positive and below 2^36.
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
                return (value as u64).min(self.max_ns.max(low));
            }
            below += n;
        }
        self.max_ns
    }

    /// As a distribution: quantiles are interpolated in their bucket, and their interval is at least that bucket.
    pub fn distribution(&self) -> Distribution {
        if self.n == 0 {
            return Distribution::default();
        }
        let n = self.n as f64;
        let quantiles = QUANTILES
            .iter()
            .filter(|q| n * (1.0 - **q) >= 10.0 || (**q <= 0.5 && self.n >= 10))
            .map(|&q| {
                let half = 1.96 * (n * q * (1.0 - q)).sqrt();
                let value_ns = self.at_rank_ns(n * q);
                let (bucket_low_ns, bucket_high_ns) = edges_ns(bucket_of(value_ns));
                Quantile {
                    q,
                    value_ns,
                    covers: Covers::Window,
                    design_effect: None,
                    low_ns: self.at_rank_ns(n * q - half).min(bucket_low_ns),
                    high_ns: self.at_rank_ns(n * q + half + 1.0).max(bucket_high_ns.min(self.max_ns)).max(value_ns),
                }
            })
            .collect();
        let used = || self.buckets.iter().enumerate().filter(|(_, n)| **n > 0);
        Distribution {
            n: self.n,
            min_ns: used().next().map_or(0, |(i, _)| edges_ns(i).0),
            mean_ns: self.sum_ns as f64 / n,
            max_ns: self.max_ns,
            censored: None,
            quantiles,
            buckets: used().map(|(i, &n)| Bucket { upto_ns: edges_ns(i).1, n }).collect(),
            tenths: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_contiguous_narrow_and_hold_what_they_say() {
        for bucket in 0..N_BUCKETS - 8 {
            let (low, high) = edges_ns(bucket);
            assert_eq!((bucket_of(low), bucket_of(high - 1)), (bucket, bucket), "{bucket}: {low}..{high}");
            assert!(bucket < 8 || (high - low) * 8 <= low, "{bucket} is wider than 12.5 %");
        }
        assert_eq!(bucket_of(u64::MAX), N_BUCKETS - 1);
    }

    #[test]
    fn quantiles_lie_within_an_eighth_of_the_true_ones() {
        let mut hist = KernelHistogram::default();
        (1..=10_000u64).for_each(|i| hist.add(i * 100));
        let d = hist.distribution();
        for (q, want) in [(0.5, 500_000.0), (0.9, 900_000.0), (0.99, 990_000.0)] {
            let got = d.quantile(q).unwrap();
            assert!((got.value_ns as f64 / want - 1.0).abs() < 0.02, "{q}: {}", got.value_ns);
            assert!(got.low_ns <= got.value_ns && got.value_ns <= got.high_ns && got.high_ns <= d.max_ns);
        }
        assert_eq!((d.n, d.max_ns), (10_000, 1_000_000));
        assert!((d.mean_ns - 500_050.0).abs() < 1.0);
        assert_eq!(KernelHistogram::default().distribution(), Distribution::default());
    }

    #[test]
    fn a_window_is_the_difference_of_two_readings() {
        let mut early = KernelHistogram::default();
        early.add(5_000_000);
        let mut late = early.clone();
        late.add(1_000);
        late.add(2_000);
        let window = late.since(&early);
        assert_eq!((window.n, window.sum_ns), (2, 3_000));
        assert!(window.max_ns < 2_300, "the old maximum is not this window's: {}", window.max_ns);
        let mut both = window.clone();
        both.merge(&early);
        assert_eq!((both.n, both.sum_ns, both.buckets), (late.n, late.sum_ns, late.buckets));
        let mut empty = KernelHistogram::default();
        empty.merge(&KernelHistogram::default());
        assert_eq!(empty, KernelHistogram::default());
    }
}

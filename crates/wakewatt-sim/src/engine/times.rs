//! How long requests took, counted in the buckets of the histogram that it becomes.
//!
//! The histogram of the house (three digits, HDR) looks after its bounds, its least and its greatest at every number; a simulation puts in one for each request, and
//! that was a sixteenth of its time. Here a number is shifted to its bucket and counted, and at the end all buckets go into a histogram at once.

use hdrhistogram::Histogram;
use wakewatt_core::distribution::histogram;

/// Halves of buckets: with three digits 2048 equal steps from a power of two to the next but one.
const HALF: usize = 1024;
const BITS: u32 = 11;
/// Longest that it tells apart: the end of the octave that an hour lies in. What is longer counts as an hour.
const MOST_NS: u64 = (1 << 42) - 1;
const HOUR_NS: u64 = 3_600_000_000_000;

/// Counts by bucket; of half the width that a count may need, since how near they lie is what a number costs.
pub(super) struct Times {
    n: Vec<u32>,
    /// What a bucket held when it was full.
    before: Histogram<u64>,
}

fn bucket(ns: u64) -> usize {
    let ns = if ns > MOST_NS { HOUR_NS } else { ns.max(1) };
    let shift = (u64::BITS - BITS).saturating_sub((ns | (2 * HALF as u64 - 1)).leading_zeros());
    #[allow(clippy::cast_possible_truncation)] // Below 2048.
    let step = (ns >> shift) as usize;
    shift as usize * HALF + step
}

/// The least number of a bucket.
fn least_ns(bucket: usize) -> u64 {
    let shift = (bucket / HALF).saturating_sub(1);
    ((bucket - shift * HALF) as u64) << shift
}

impl Times {
    pub(super) fn new() -> Times {
        Times { n: vec![0; bucket(MOST_NS) + 1], before: histogram() }
    }

    #[inline]
    pub(super) fn record(&mut self, ns: u64) {
        let n = &mut self.n[bucket(ns)];
        *n += 1;
        if *n == u32::MAX {
            self.put_by(ns);
        }
    }

    #[cold]
    fn put_by(&mut self, ns: u64) {
        let n = std::mem::take(&mut self.n[bucket(ns)]);
        self.before.saturating_record_n(ns.max(1), u64::from(n));
    }

    /// The same as a histogram.
    pub(super) fn histogram(&self) -> Histogram<u64> {
        let mut all = self.before.clone();
        for (at, n) in self.n.iter().enumerate().filter(|(_, n)| **n > 0) {
            all.saturating_record_n(least_ns(at), u64::from(*n));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::stats::random::Random;

    #[test]
    fn a_full_bucket_is_put_by() {
        let mut times = Times::new();
        times.n[bucket(5000)] = u32::MAX - 2;
        (0..3).for_each(|_| times.record(5000));
        assert_eq!((times.n[bucket(5000)], times.histogram().len()), (1, u64::from(u32::MAX) + 1));
    }

    #[test]
    fn it_is_the_histogram_that_recording_one_by_one_gives() {
        let (mut random, mut times, mut one_by_one) = (Random::new(5), Times::new(), histogram());
        let edges =
            [0, 1, 2, 1023, 1024, 2047, 2048, 2049, 4095, 4096, HOUR_NS, MOST_NS - 1, MOST_NS, MOST_NS + 1, u64::MAX];
        let drawn = (0..200_000).map(|_| random.bits() >> (random.below(60) + 4));
        for ns in edges.into_iter().chain(drawn) {
            times.record(ns);
            one_by_one.saturating_record(ns.max(1));
        }
        let all = times.histogram();
        assert_eq!((all.len(), all.min(), all.max()), (one_by_one.len(), one_by_one.min(), one_by_one.max()));
        let rows = |h: &Histogram<u64>| {
            h.iter_recorded().map(|v| (v.value_iterated_to(), v.count_at_value())).collect::<Vec<_>>()
        };
        assert_eq!(rows(&all), rows(&one_by_one));
        (0..bucket(MOST_NS)).for_each(|at| assert_eq!(bucket(least_ns(at).max(1)), at.max(1)));
    }
}

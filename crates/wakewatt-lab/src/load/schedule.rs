//! When transactions are to start: a Poisson process, drawn from a seed, on absolute times.
//!
//! `t[k+1] = t[k] + Exp(rate)`. Even pacing would let the idle governor predict every sleep; independent users come in
//! bursts. The plan knows nothing of what has been done, so it cannot be moved by it. Every thread has a stream of its own:
//! Poisson streams add up to one, so so many threads at their shares of a rate are the whole rate. The same seed gives the
//! same arrivals, which is how two settings are compared under the same load (common random numbers, docs/methods/load.md).

use wakewatt_core::stats::random::Random;

/// Planned starts, in CLOCK_MONOTONIC nanoseconds, without end.
#[derive(Clone, Debug)]
pub struct Schedule {
    random: Random,
    mean_gap_ns: f64,
    start_at_ns: u64,
    // Since the start; 2^53 ns are 104 days, to the nanosecond.
    since_ns: f64,
}

impl Schedule {
    /// From a moment on; without a rate nothing is planned.
    pub fn new(seed: u64, per_s: f64, start_at_ns: u64) -> Schedule {
        let mean_gap_ns = if per_s > 0.0 && per_s.is_finite() { 1e9 / per_s } else { f64::INFINITY };
        Schedule { random: Random::new(seed), mean_gap_ns, start_at_ns, since_ns: 0.0 }
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        // 1 - unit() lies in (0, 1]: its logarithm is finite.
        self.since_ns += -(1.0 - self.random.unit()).ln() * self.mean_gap_ns;
        // No rate, or more than a hundred days: the end. Also 0 times infinity.
        if self.since_ns.is_nan() || self.since_ns >= 9e15 {
            return None;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let since_ns = self.since_ns as u64;
        self.start_at_ns.checked_add(since_ns)
    }
}

/// The seed of one thread's stream at one level. The level's number is in it, so that two levels are not the same arrivals
/// stretched.
pub fn stream_seed(seed: u64, level: u64, thread: u64) -> u64 {
    let mixed = Random::new(seed ^ level.wrapping_mul(0x9e37_79b9_7f4a_7c15)).bits();
    Random::new(mixed ^ thread.wrapping_mul(0xd1b5_4a32_d192_ed03)).bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(seed: u64, n: usize) -> Vec<f64> {
        let times: Vec<u64> = Schedule::new(seed, 1000.0, 5_000).take(n + 1).collect();
        times.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e6).collect()
    }

    fn correlation(a: &[f64], b: &[f64]) -> f64 {
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let (ma, mb) = (mean(a), mean(b));
        let product: f64 = a.iter().zip(b).map(|(x, y)| (x - ma) * (y - mb)).sum();
        let square = |v: &[f64], m: f64| v.iter().map(|x| (x - m).powi(2)).sum::<f64>();
        product / (square(a, ma) * square(b, mb)).sqrt()
    }

    #[test]
    fn gaps_are_exponential_with_the_rate_asked_for() {
        let gaps = gaps(1, 40_000);
        let n = gaps.len() as f64;
        let mean = gaps.iter().sum::<f64>() / n;
        assert!((mean - 1.0).abs() < 4.0 / n.sqrt(), "mean {mean}");
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / n;
        assert!((variance - 1.0).abs() < 0.06, "variance {variance}: exponential gaps have the square of their mean");
        let beyond = gaps.iter().filter(|g| **g > 3.0).count() as f64 / n;
        assert!((beyond - (-3.0f64).exp()).abs() < 0.005, "{beyond} of the gaps are longer than three means");
    }

    #[test]
    fn counts_of_equal_stretches_have_the_variance_of_a_poisson_process() {
        let mut counts = vec![0f64; 2000];
        for at_ns in Schedule::new(3, 20_000.0, 0) {
            match counts.get_mut(usize::try_from(at_ns / 1_000_000).unwrap()) {
                Some(count) => *count += 1.0,
                None => break,
            }
        }
        let mean = counts.iter().sum::<f64>() / counts.len() as f64;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / counts.len() as f64;
        assert!((variance / mean - 1.0).abs() < 0.13, "variance over mean {}", variance / mean);
    }

    #[test]
    fn neighbours_and_threads_know_nothing_of_each_other() {
        let (one, two) = (gaps(stream_seed(7, 1, 0), 20_000), gaps(stream_seed(7, 1, 1), 20_000));
        let bound = 4.0 / (20_000f64).sqrt();
        assert!(correlation(&one, &two).abs() < bound);
        assert!(correlation(&one[1..], &one[..one.len() - 1]).abs() < bound);
        assert!(correlation(&one, &gaps(stream_seed(7, 2, 0), 20_000)).abs() < bound, "levels");
    }

    #[test]
    fn the_same_seed_is_the_same_plan_and_no_rate_is_none() {
        let plan = |seed| Schedule::new(seed, 50.0, 100).take(100).collect::<Vec<_>>();
        assert_eq!(plan(9), plan(9));
        assert_ne!(plan(9), plan(10));
        assert!(plan(9).windows(2).all(|w| w[0] <= w[1]) && plan(9)[0] >= 100);
        assert_eq!(Schedule::new(1, 0.0, 0).next(), None);
        assert_eq!(Schedule::new(1, f64::NAN, 0).next(), None);
        assert_eq!(Schedule::new(1, 1e-9, 0).take(9).count(), 0);
        assert_eq!(Schedule::new(1, 1.0, u64::MAX).take(9).count(), 0);
    }
}

//! The pauses of a schedule: all alike, or random so that nobody can learn them.
//!
//! A fixed pause of 1 ms is one length of sleep. An idle governor that looks at the last few sleeps foresees the next one
//! exactly, and a probe that asks so measures a machine that only such probes meet. Independent requests come at
//! exponential pauses: how long a sleep goes on cannot be told from how long it has lasted. Two things keep the
//! measurement sound. A pause has at least a fifth of the mean, because a waker that is itself late by a wake-up would miss
//! the shortest, and more of them the deeper the machine sleeps. And it has at most eight times the mean (one of 15,000
//! would be longer), so that a stop is obeyed. The mean stays what was asked for.

use wakewatt_core::samples::waker::Pauses;
use wakewatt_core::stats::random::Random;

/// The least pause is the mean over this.
const LEAST_PART: u64 = 5;
/// The longest is so many means.
const MOST: u64 = 8;

/// The pauses of one schedule, without end.
#[derive(Debug)]
pub(crate) struct Gaps {
    mean_ns: u64,
    random: Option<Random>,
}

impl Gaps {
    pub(crate) fn new(mean_ns: u64, pauses: Pauses) -> Gaps {
        let random = match pauses {
            Pauses::Fixed => None,
            Pauses::Exponential { seed } => Some(Random::new(seed)),
        };
        Gaps { mean_ns, random }
    }

    pub(crate) fn next_ns(&mut self) -> u64 {
        let Some(random) = &mut self.random else { return self.mean_ns };
        let least_ns = self.mean_ns / LEAST_PART;
        // 1 - unit() lies in (0, 1]: its logarithm is finite.
        let rest = -(1.0 - random.unit()).ln() * (self.mean_ns - least_ns) as f64;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not negative, and `as` saturates
        let rest_ns = rest as u64;
        least_ns.saturating_add(rest_ns).min(self.mean_ns.saturating_mul(MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(mean_ns: u64, seed: u64, n: usize) -> Vec<u64> {
        let mut gaps = Gaps::new(mean_ns, Pauses::Exponential { seed });
        (0..n).map(|_| gaps.next_ns()).collect()
    }

    #[test]
    fn random_pauses_have_the_mean_the_least_and_the_tail_of_an_exponential() {
        let all = drawn(1_000_000, 3, 40_000);
        let n = all.len() as f64;
        let mean = all.iter().sum::<u64>() as f64 / n;
        assert!((mean / 1e6 - 1.0).abs() < 4.0 * 0.8 / n.sqrt(), "{mean}");
        assert!(all.iter().all(|g| (200_000..=8_000_000).contains(g)));
        // The share beyond 200 us + t is exp(-t / 800 us), wherever one looks: nothing is learnt by waiting.
        for t_us in [200u64, 800, 2400] {
            let beyond = all.iter().filter(|g| **g > (200 + t_us) * 1000).count() as f64 / n;
            let told = (-(t_us as f64) / 800.0).exp();
            assert!((beyond - told).abs() < 4.0 * (told * (1.0 - told) / n).sqrt(), "{t_us}: {beyond} of {told}");
        }
    }

    #[test]
    fn fixed_pauses_are_what_was_asked_for() {
        let mut gaps = Gaps::new(7, Pauses::Fixed);
        assert_eq!([gaps.next_ns(), gaps.next_ns()], [7, 7]);
    }

    proptest! {
        #[test]
        fn the_same_seed_is_the_same_sequence_within_its_bounds(seed in any::<u64>(), mean_ns in 0u64..200_000_000) {
            let all = drawn(mean_ns, seed, 50);
            prop_assert_eq!(&all, &drawn(mean_ns, seed, 50));
            prop_assert!(all.iter().all(|g| (mean_ns / 5..=mean_ns * 8).contains(g)));
        }
    }
}

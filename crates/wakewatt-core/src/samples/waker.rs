//! The waking side of a cross-CPU wake-up: when it was to ring, how late it rang, and what it never rang.
//!
//! The latency of a wake-up counts from the moment the waker really rang. Two things are then outside it and belong beside
//! it: how late the ring came after its plan (the waker sleeps too), and which planned wake-ups have no sample at all, because
//! the waker was late by a whole pause or the sleeper had not gone to sleep. What is lost is not lost at random: a machine
//! that keeps the waker away is slow for the sleeper too. So two arms of a round may be compared only where they lost alike.

use serde::{Deserialize, Serialize};

/// Two arms whose lost shares differ by more than this are not compared. Lost samples may have lain at one end of the
/// distribution: two points of a hundred move the rank of the median by one, which is what 1500 samples leave open anyway.
pub const LOSS_DIFFERENCE: f64 = 0.02;

/// How the pauses before wake-ups are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pauses {
    /// All alike: what a periodic load has, and what an idle governor can learn.
    #[default]
    Fixed,
    /// A fifth of the mean, and an exponentially distributed rest: how long the pause goes on cannot be told from how long it
    /// has lasted. The same seed gives the same pauses.
    Exponential {
        /// Seed of the sequence.
        seed: u64,
    },
}

/// How the waker kept its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Waker {
    /// Wake-ups planned in the counted time.
    pub n_planned: u64,
    /// Planned and never rung: the waker was still late when they were due.
    pub n_missed: u64,
    /// Rung, and the sleeper had not gone to sleep: no wake-up, so no sample.
    pub n_not_asleep: u64,
    /// How late it rang after the plan: median; none with too few.
    pub late_p50_ns: Option<u64>,
    /// How late it rang after the plan: 99th percentile; none with too few.
    pub late_p99_ns: Option<u64>,
}

impl Waker {
    /// The share of the planned wake-ups that have no sample, 0 to 1; none where nothing was planned.
    pub fn lost_ratio(&self) -> Option<f64> {
        let n_lost = self.n_missed.saturating_add(self.n_not_asleep);
        (self.n_planned > 0).then(|| n_lost as f64 / self.n_planned as f64)
    }

    /// Did the two lose so differently that their samples cannot be compared?
    pub fn differs(&self, other: &Waker) -> bool {
        let pair = self.lost_ratio().zip(other.lost_ratio());
        pair.is_some_and(|(a, b)| (a - b).abs() > LOSS_DIFFERENCE)
    }

    /// Of several stretches: counts added; of the quantiles of lateness the middle one.
    pub fn together<'a>(all: impl IntoIterator<Item = &'a Waker>) -> Option<Waker> {
        let all: Vec<&Waker> = all.into_iter().collect();
        let sum = |of: fn(&Waker) -> u64| all.iter().fold(0u64, |sum, w| sum.saturating_add(of(w)));
        let middle = |of: fn(&Waker) -> Option<u64>| {
            let mut known: Vec<u64> = all.iter().filter_map(|w| of(w)).collect();
            known.sort_unstable();
            known.get(known.len().checked_sub(1)? / 2).copied()
        };
        (!all.is_empty()).then(|| Waker {
            n_planned: sum(|w| w.n_planned),
            n_missed: sum(|w| w.n_missed),
            n_not_asleep: sum(|w| w.n_not_asleep),
            late_p50_ns: middle(|w| w.late_p50_ns),
            late_p99_ns: middle(|w| w.late_p99_ns),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn waker(n_planned: u64, n_missed: u64) -> Waker {
        Waker { n_planned, n_missed, ..Waker::default() }
    }

    #[test]
    fn what_was_lost_is_a_share_of_the_plan_and_arms_that_lost_alike_may_be_compared() {
        assert_eq!(Waker { n_not_asleep: 10, ..waker(200, 10) }.lost_ratio(), Some(0.1));
        assert_eq!(waker(0, 0).lost_ratio(), None);
        assert!(waker(1000, 111).differs(&waker(1000, 27)), "11.1 % and 2.7 %");
        assert!(!waker(1000, 40).differs(&waker(1000, 27)) && !waker(0, 0).differs(&waker(10, 9)));
    }

    #[test]
    fn stretches_add_up_and_their_lateness_is_the_middle_one() {
        let late = |ns: Option<u64>| Waker { late_p50_ns: ns, ..waker(10, 1) };
        let all = Waker::together(&[late(Some(9)), late(None), late(Some(1)), late(Some(5))]).unwrap();
        assert_eq!((all.n_planned, all.n_missed, all.late_p50_ns, all.late_p99_ns), (40, 4, Some(5), None));
        assert_eq!(Waker::together([]), None);
    }

    proptest! {
        #[test]
        fn differing_is_mutual_and_nothing_differs_from_itself(a in (1u64..5000, 0u64..5000), b in (1u64..5000, 0u64..5000)) {
            let (a, b) = (waker(a.0, a.1.min(a.0)), waker(b.0, b.1.min(b.0)));
            prop_assert_eq!(a.differs(&b), b.differs(&a));
            prop_assert!(!a.differs(&a) && a.lost_ratio().is_some_and(|r| (0.0..=1.0).contains(&r)));
        }
    }
}

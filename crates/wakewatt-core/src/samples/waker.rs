//! The waking side of a cross-CPU wake-up: when it was to ring, how late it rang, and what it never rang.
//!
//! The latency of a wake-up counts from the moment the waker really rang. Two things are then outside it and belong beside
//! it: how late the ring came after its plan (the waker sleeps too), and which planned wake-ups have no sample at all, because
//! the waker was late by a whole pause or the sleeper had not gone to sleep. Wake-ups are not missed at random: what delays
//! the waker delays the sleeper too. A missed one is therefore censored: a quantile counts it as longer than any sample.

use serde::{Deserialize, Serialize};

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

    fn waker(n_planned: u64, n_missed: u64) -> Waker {
        Waker { n_planned, n_missed, ..Waker::default() }
    }

    #[test]
    fn what_was_lost_is_a_share_of_the_plan() {
        assert_eq!(Waker { n_not_asleep: 10, ..waker(200, 10) }.lost_ratio(), Some(0.1));
        assert_eq!(waker(0, 0).lost_ratio(), None);
    }

    #[test]
    fn stretches_add_up_and_their_lateness_is_the_middle_one() {
        let late = |ns: Option<u64>| Waker { late_p50_ns: ns, ..waker(10, 1) };
        let all = Waker::together(&[late(Some(9)), late(None), late(Some(1)), late(Some(5))]).unwrap();
        assert_eq!((all.n_planned, all.n_missed, all.late_p50_ns, all.late_p99_ns), (40, 4, Some(5), None));
        assert_eq!(Waker::together([]), None);
    }
}

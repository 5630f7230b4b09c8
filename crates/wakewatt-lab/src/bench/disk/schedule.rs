//! When the next read starts: at once (closed loop), or at planned times with random gaps (open loop).
//!
//! Gaps are exponential, so starts come as independent requests do (a Poisson process), and neither the idle governor
//! nor the disk can learn a period. The plan is never moved: a start that comes late is counted from its plan.

use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::stats::random::Random;
use wakewatt_host::{clock, sleep};

/// Longer waits are slept in parts, so that a stop is obeyed; the last part is never shorter than one of these.
const PART_NS: u64 = 100_000_000;

/// The starts of one thread or ring.
#[derive(Clone, Debug)]
pub(crate) enum ReadSchedule {
    /// Each read follows the one before.
    Closed,
    /// Planned.
    Open {
        /// The next planned start.
        next_at_ns: u64,
        /// Mean gap.
        mean_gap_ns: f64,
        /// Draws the gaps.
        random: Random,
    },
}

impl ReadSchedule {
    /// `per_s` none for the closed loop; otherwise the first start is one gap after `now_ns`.
    pub(crate) fn new(per_s: Option<f64>, seed: u64, now_ns: u64) -> ReadSchedule {
        let Some(per_s) = per_s else { return ReadSchedule::Closed };
        let mut plan = ReadSchedule::Open { next_at_ns: now_ns, mean_gap_ns: 1e9 / per_s, random: Random::new(seed) };
        plan.advance();
        plan
    }

    /// The next planned start; none: at once.
    pub(crate) fn next_at_ns(&self) -> Option<u64> {
        match self {
            ReadSchedule::Closed => None,
            ReadSchedule::Open { next_at_ns, .. } => Some(*next_at_ns),
        }
    }

    /// That start was taken.
    pub(crate) fn advance(&mut self) {
        if let ReadSchedule::Open { next_at_ns, mean_gap_ns, random } = self {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not negative; a float cast saturates
            let gap_ns = (-(1.0 - random.unit()).ln() * *mean_gap_ns) as u64;
            *next_at_ns = next_at_ns.saturating_add(gap_ns.max(1));
        }
    }

    /// Planned starts that were not taken before the end.
    pub(crate) fn n_left_before(&mut self, end_at_ns: u64) -> u64 {
        let mut n = 0;
        while self.next_at_ns().is_some_and(|at| at < end_at_ns) {
            self.advance();
            n += 1;
        }
        n
    }
}

/// Sleeps until then; earlier when told to stop, or when a signal comes.
pub(crate) fn sleep_towards(at_ns: u64, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let now_ns = clock::monotonic_ns();
        let is_last = at_ns < now_ns + 2 * PART_NS;
        let _ = sleep::sleep_until(if is_last { at_ns } else { now_ns + PART_NS });
        if is_last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_kept_and_the_plan_does_not_move() {
        let second = 1_000_000_000;
        let mut plan = ReadSchedule::new(Some(500.0), 3, 7 * second);
        assert!(plan.next_at_ns().unwrap() > 7 * second);
        let n = plan.n_left_before(107 * second);
        // 50 000 starts, sigma = 224.
        assert!((49_000..51_000).contains(&n), "{n}");
        assert_eq!(plan.n_left_before(107 * second), 0, "already past");
        let mut again = ReadSchedule::new(Some(500.0), 3, 7 * second);
        assert_eq!(again.n_left_before(107 * second), n, "seeded");
        let stop = AtomicBool::new(true);
        sleep_towards(clock::monotonic_ns() + 3600 * second, &stop);
        assert!(ReadSchedule::new(None, 1, 5).next_at_ns().is_none());
    }

    #[test]
    fn gaps_are_exponential() {
        let mut plan = ReadSchedule::new(Some(1000.0), 1, 0);
        let mut n_short = 0;
        for _ in 0..10_000 {
            let before = plan.next_at_ns().unwrap();
            plan.advance();
            n_short += u32::from(plan.next_at_ns().unwrap() - before < 693_147);
        }
        assert!((4_800..5_200).contains(&n_short), "half are below ln 2 of the mean: {n_short}");
    }
}

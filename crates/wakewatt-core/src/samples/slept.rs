//! Did the CPU that was woken sleep before, did it idle at all, and how deep?
//!
//! An arm may allow idle states that a busy CPU never enters, and then its wake-ups say nothing about sleep. The idle
//! counters of the CPU that was woken, divided by the wake-ups, tell: one entry per wake-up where it always slept. A headline on
//! sleep needs half of them, the same rule as for the cost of one state ([`super::state_cost::MIN_ENTERED_RATIO`]). What the
//! counters of other CPUs did is not asked: the one that wakes sleeps as well.

use super::IdleDelta;
use super::experiment::{Block, ExperimentRun};
use super::state_cost::MIN_ENTERED_RATIO;

/// The kernel's own name for spinning in the idle loop.
const POLL_STATE: &str = "POLL";

/// Entries of the woken CPU into idle states, beside its wake-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entries {
    /// Into any state, polling included.
    any: u64,
    /// Into states that sleep.
    slept: u64,
    /// Into states deeper than the shallowest that sleeps.
    deep: u64,
    woken: u64,
}

impl Entries {
    fn of(block: &Block) -> Option<Entries> {
        let woken = block.woken.filter(|woken| woken.n > 0)?;
        let delta: &IdleDelta = block.idle.iter().find(|d| d.cpu == woken.cpu)?;
        let sleeping = || delta.states.iter().filter(|s| s.name != POLL_STATE);
        let shallowest = sleeping().map(|s| s.index).min();
        let sum = |n: &mut dyn Iterator<Item = u64>| n.fold(0, u64::saturating_add);
        Some(Entries {
            any: sum(&mut delta.states.iter().map(|s| s.n_usage)),
            slept: sum(&mut sleeping().map(|s| s.n_usage)),
            deep: sum(&mut sleeping().filter(|s| Some(s.index) > shallowest).map(|s| s.n_usage)),
            woken: woken.n,
        })
    }

    fn and(self, other: Entries) -> Entries {
        Entries {
            any: self.any.saturating_add(other.any),
            slept: self.slept.saturating_add(other.slept),
            deep: self.deep.saturating_add(other.deep),
            woken: self.woken.saturating_add(other.woken),
        }
    }

    /// Of all idle entries or of the wake-ups, whichever are more.
    fn share(self, n: u64) -> f64 {
        n as f64 / self.any.max(self.woken).max(1) as f64
    }
}

impl Block {
    /// Entries into any idle state per wake-up of the woken CPU: below 1 it was often busy when somebody woke it.
    pub fn idles_per_wake(&self) -> Option<f64> {
        Entries::of(self).map(|e| e.any as f64 / e.woken as f64)
    }

    /// Entries into sleeping states per wake-up of the woken CPU.
    pub fn sleeps_per_wake(&self) -> Option<f64> {
        Entries::of(self).map(|e| e.slept as f64 / e.woken as f64)
    }
}

impl ExperimentRun {
    fn entries(&self, arm: &str) -> Option<Entries> {
        self.counted(arm).filter_map(Entries::of).reduce(Entries::and)
    }

    /// Before which share of the wake-ups of this arm the CPU slept; none where nobody counted.
    pub fn slept_ratio(&self, arm: &str) -> Option<f64> {
        self.entries(arm).map(|e| e.share(e.slept))
    }

    /// Steal of the woken CPU per wake-up of this arm, in nanoseconds: what the hypervisor adds by running the CPU late.
    /// None where it was not counted, or amounts to fewer than five ticks of 10 ms.
    pub fn steal_per_wake_ns(&self, arm: &str) -> Option<f64> {
        const LEAST_NS: u64 = 50_000_000;
        let counted = || self.counted(arm).filter_map(|b| b.woken.and_then(|w| Some((w.steal_ns?, w.n))));
        let (steal_ns, n) = counted().fold((0u64, 0u64), |(s, n), (steal, woken)| (s + steal, n + woken));
        (steal_ns >= LEAST_NS && n > 0).then(|| steal_ns as f64 / n as f64)
    }

    /// Did the woken CPU sleep before at least half of the wake-ups of this arm, by its idle counters?
    pub fn is_asleep_in(&self, arm: &str) -> bool {
        self.slept_ratio(arm).is_some_and(|ratio| ratio >= MIN_ENTERED_RATIO)
    }

    /// The same, and deeper than in its shallowest sleeping state.
    pub fn is_deep_in(&self, arm: &str) -> bool {
        self.entries(arm).is_some_and(|e| e.share(e.deep) >= MIN_ENTERED_RATIO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::StateDelta;
    use crate::samples::woken::Woken;

    fn block(entries: [(&str, u64); 3], n: u64) -> Block {
        let state = |(index, (name, n_usage)): (u32, (&str, u64))| StateDelta {
            index,
            name: name.into(),
            n_usage,
            time_ns: n_usage,
        };
        let states = (0..).zip(entries).map(state).collect();
        let other = IdleDelta { cpu: 0, states: vec![state((1, ("C1", 1_000_000)))] };
        Block {
            arm: "found".into(),
            woken: Some(Woken::new(1, n)),
            idle: vec![other, IdleDelta { cpu: 1, states }],
            ..Block::default()
        }
    }

    fn run(blocks: Vec<Block>) -> ExperimentRun {
        ExperimentRun { blocks, ..ExperimentRun::default() }
    }

    #[test]
    fn half_of_the_wake_ups_must_have_come_to_a_sleeping_cpu() {
        let rare = run(vec![block([("POLL", 0), ("C1", 20), ("C6", 0)], 1500)]);
        assert!(!rare.is_asleep_in("found"), "20 entries for 1500 wake-ups");
        assert!(rare.slept_ratio("found").is_some_and(|ratio| (ratio - 20.0 / 1500.0).abs() < 1e-9));
        let polled = run(vec![block([("POLL", 5000), ("C1", 1000), ("C6", 0)], 1500)]);
        assert!(!polled.is_asleep_in("found"), "it mostly polled");
        assert!(polled.blocks[0].idles_per_wake().is_some_and(|ratio| ratio >= 4.0), "and was no busy CPU");
        let asleep = run(vec![block([("POLL", 0), ("C1", 1300), ("C6", 200)], 1500)]);
        assert!(asleep.is_asleep_in("found") && !asleep.is_deep_in("found"));
        assert!(run(vec![block([("POLL", 0), ("C1", 300), ("C6", 1200)], 1500)]).is_deep_in("found"));
        assert!(!asleep.is_asleep_in("poll"), "no block of that arm");
        let untold = Block { woken: None, ..asleep.blocks[0].clone() };
        assert_eq!((untold.sleeps_per_wake(), run(vec![untold]).slept_ratio("found")), (None, None));
    }
}

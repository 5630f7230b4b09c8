//! What an effect of an experiment on sleep compares: two kinds of sleep are not sleep and none.
//!
//! The arms of the idle and the disk experiment have stable ids, made here and read here. Sleep is only spoken of where the
//! idle counters of the baseline's blocks saw some: a CPU that spins as it was found does not sleep, whatever the arm is
//! called. Not here: how large an effect may be called (`stated`).

use super::experiment::{Effect, ExperimentRun};

/// The arm in which latency limits leave only the shallowest sleeping state.
pub const SHALLOW: &str = "shallow";
/// The arm in which CPUs spin.
pub const POLL: &str = "poll";
/// The arm in which limits of single CPUs are taken off.
pub const LIFTED: &str = "lifted";

/// What the machine as it was found is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// With no sleep: what sleep costs.
    NoSleep,
    /// With shallow sleep: what its depth costs.
    ShallowSleep,
    /// Without the limits of single CPUs: what these cost or save.
    LimitsLifted,
    /// With something that is no matter of sleep.
    Other,
}

impl Effect {
    /// What is compared, by the arm that was held.
    pub fn compared(&self) -> Compared {
        match self.arm.as_str() {
            POLL => Compared::NoSleep,
            SHALLOW => Compared::ShallowSleep,
            LIFTED => Compared::LimitsLifted,
            _ => Compared::Other,
        }
    }
}

impl ExperimentRun {
    /// Did CPUs sleep in the blocks of this arm, by their idle counters?
    pub fn is_asleep_in(&self, arm: &str) -> bool {
        let states = self.counted(arm).flat_map(|b| &b.idle).flat_map(|d| &d.states);
        states.into_iter().any(|s| s.name != "POLL" && s.n_usage > 0 && s.time_ns > 0)
    }

    /// Who makes the baseline of this effect slower, as the subject of a sentence with "make".
    pub(super) fn who(&self, effect: &Effect) -> &'static str {
        let is_asleep = self.is_asleep_in(&effect.baseline);
        match effect.compared() {
            Compared::NoSleep if is_asleep => "Sleeping CPUs",
            Compared::ShallowSleep if is_asleep => "CPUs in deep sleep",
            Compared::LimitsLifted => "The latency limits found on single CPUs",
            Compared::NoSleep | Compared::ShallowSleep | Compared::Other => "CPUs as found",
        }
    }
}

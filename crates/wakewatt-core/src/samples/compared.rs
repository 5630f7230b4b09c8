//! What an effect of an experiment on sleep compares: two kinds of sleep are not sleep and none.
//!
//! The arms of the idle and the disk experiment have stable ids, made here and read here. Sleep is only spoken of where the
//! idle counters of the baseline's blocks saw some: a CPU that spins as it was found does not sleep, whatever the arm is
//! called. Not here: how large an effect may be called (`stated`).

use super::experiment::{Effect, ExperimentRun};
use wakewatt_words::{say, word};

/// `2 %`; a small share is not rounded to nothing.
fn share(ratio: f64) -> String {
    match ratio * 100.0 {
        0.0 => word!("none").into(),
        small if small < 1.0 => word!("less than 1 %").into(),
        percent => format!("{percent:.0} %"),
    }
}

/// The name of the baseline's second measurement in a round.
pub const AGAIN: &str = "baseline again";
/// The arm in which latency limits leave only the shallowest sleeping state.
pub const SHALLOW: &str = "shallow";
/// The arm in which CPUs spin.
pub const POLL: &str = "poll";
/// The arm in which limits of single CPUs are taken off.
pub const LIFTED: &str = "lifted";

/// What the machine as it was found is compared with, in the order in which the claims are tested (`stats::sequence`): what is
/// farthest from the machine as found comes first. Limits that hold all CPUs awake would hide everything after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compared {
    /// Without the limits of single CPUs: what these cost or save.
    LimitsLifted,
    /// With no sleep: what sleep costs.
    NoSleep,
    /// With shallow sleep: what its depth costs.
    ShallowSleep,
    /// With something that is no matter of sleep.
    Other,
}

impl Compared {
    /// By the id of the arm.
    pub fn with(arm: &str) -> Compared {
        match arm {
            POLL => Compared::NoSleep,
            SHALLOW => Compared::ShallowSleep,
            LIFTED => Compared::LimitsLifted,
            _ => Compared::Other,
        }
    }
}

impl Effect {
    /// What is compared, by the arm that was held.
    pub fn compared(&self) -> Compared {
        Compared::with(&self.arm)
    }
}

impl ExperimentRun {
    /// Who makes the baseline of this effect slower, as the subject of a sentence with "make".
    pub(super) fn who(&self, effect: &Effect) -> String {
        let baseline = &effect.baseline;
        let allowed = || match self.slept_ratio(baseline) {
            Some(ratio) => say!("CPUs as found, which slept before {} of the wake-ups,", share(ratio)),
            None => word!("CPUs as found").into(),
        };
        match effect.compared() {
            Compared::NoSleep if self.is_asleep_in(baseline) => word!("Sleeping CPUs").into(),
            Compared::ShallowSleep if self.is_deep_in(baseline) => word!("CPUs in deep sleep").into(),
            Compared::LimitsLifted => word!("The latency limits found on single CPUs").into(),
            Compared::NoSleep => allowed(),
            Compared::ShallowSleep | Compared::Other => word!("CPUs as found").into(),
        }
    }
}

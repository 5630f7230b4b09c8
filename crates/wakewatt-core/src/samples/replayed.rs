//! Recorded idle time beside what it would have been under another setting: what `replay` says, as documents and run files keep it.
//!
//! Made by the crate of the governors' models. Nothing in it was measured but the recording: what is predicted is a model's, and the first
//! sentence says how far it may be trusted. Two replays, or a replay and a measured run, are compared by their states' shares of idle time.

use super::Label;
use crate::distribution::Distribution;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where the cost of leaving a state is from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExitBasis {
    /// It spins: there is nothing to leave.
    Polling,
    /// From the exit latency that driver or firmware claims.
    #[default]
    Claimed,
    /// Measured by `measure idle`.
    Measured,
}

impl fmt::Display for ExitBasis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ExitBasis::Polling => "polls",
            ExitBasis::Claimed => "claimed",
            ExitBasis::Measured => "measured",
        })
    }
}

/// The recording that was replayed, and the machine it is of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recording {
    /// Random name of the boot it was made in; none where the recording does not say.
    pub boot: Option<String>,
    /// `uname -r` of the recorded machine.
    pub kernel: String,
    /// Its architecture: x86_64, aarch64.
    pub arch: String,
    /// Its cpuidle driver; none without one.
    pub driver: Option<String>,
    /// How many CPUs were recorded.
    pub n_cpus: u32,
    /// When the recording began, in seconds since 1970.
    pub created_at_s: u64,
}

/// Recorded idle time beside what it would have been.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replayed {
    /// How far the rest may be trusted, in a sentence.
    pub trust: String,
    /// May it be trusted? At least 95 % of decisions were identical, and at least 95 % of the recorded stays were
    /// followed; none where too few decisions could be compared.
    pub is_trusted: Option<bool>,
    /// How much of the recording the predictions rest on.
    #[serde(default)]
    pub followed: Followed,
    /// Which inputs that was told from: `exact`, the governor's own arguments, or `rebuilt`, from the tick's structure and events.
    #[serde(default)]
    pub inputs: String,
    /// The same comparison from rebuilt inputs, where the recording also holds exact ones; none where it does not.
    #[serde(default)]
    pub rebuilt: Option<RebuiltShare>,
    /// Share of decisions in which the model of the recorded policy decided as the kernel did, 0 to 1; none where none could be compared.
    pub identical_ratio: Option<f64>,
    /// How many decisions were compared.
    pub n_compared: u64,
    /// Of those, identical.
    pub n_identical: u64,
    /// Stays that only filled the models' memory.
    pub n_warm_up: u64,
    /// Stays without an input that the recorded governor needs.
    pub n_without_inputs: u64,
    /// What was replayed.
    pub recording: Recording,
    /// What was asked otherwise, as it was given; empty for nothing.
    pub setting: String,
    /// What the predicted numbers are worth: always modelled.
    pub label: Option<Label>,
    /// What decided, by idle table: as recorded, then as asked.
    pub policies: Vec<[PolicyTold; 2]>,
    /// All CPUs, as recorded.
    pub recorded: Side,
    /// All CPUs, as predicted under what is asked.
    pub predicted: Side,
    /// All CPUs, as predicted under the recorded policy (of an upgrade, under the old kernel): how far it is from what was recorded is the
    /// method's own error.
    pub recorded_again: Side,
    /// How long was recorded, in nanoseconds; none where the recording does not say.
    pub window_ns: Option<u64>,
    /// Share of that time in which the CPUs seen were idle, 0 to 1.
    pub idle_ratio: Option<f64>,
    /// Idle periods that were not followed: inputs missing, or longer than any machine has.
    pub n_left_out: u64,
    /// CPU by CPU.
    pub cpus: Vec<CpuReplay>,
    /// What the figures rest on, and what is left out.
    pub remarks: Vec<String>,
}

/// How much of a recording predictions rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Followed {
    /// Recorded stays of idle periods that were followed to their end.
    pub n_followed: u64,
    /// All recorded stays. Not followed are those without an input, after a change of settings, and of CPUs without an
    /// idle table.
    pub n_recorded: u64,
}

impl Followed {
    /// The least share that allows a verdict.
    pub const LEAST_RATIO: f64 = 0.95;

    /// The share followed, 0 to 1; 0 where nothing was recorded.
    pub fn ratio(self) -> f64 {
        self.n_followed as f64 / self.n_recorded.max(1) as f64
    }

    /// Enough for a verdict?
    pub fn is_enough(self) -> bool {
        self.ratio() >= Followed::LEAST_RATIO
    }
}

/// How far decisions are told from what was rebuilt of the governor's inputs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RebuiltShare {
    /// Share of decisions that were identical, 0 to 1; none where none could be compared.
    pub identical_ratio: Option<f64>,
    /// How many decisions were compared.
    pub n_compared: u64,
    /// Of those, identical.
    pub n_identical: u64,
    /// Stays without an input that the recorded governor needs.
    pub n_without_inputs: u64,
}

/// What decides on the CPUs of an idle table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyTold {
    /// Name of the idle governor, as the kernel calls it.
    pub governor: String,
    /// Release whose rules apply; `6.1.y` for the last of a series.
    pub kernel: String,
    /// Which form of the governor that is.
    pub model: String,
    /// How that is known: checked, inferred, assumed.
    pub basis: String,
    /// Latency limit in nanoseconds; none where there is none.
    pub latency_limit_ns: Option<u64>,
    /// Names of the idle states that may be chosen.
    pub states: Vec<String>,
}

/// Idle time of one CPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuReplay {
    /// Number of the CPU.
    pub cpu: u32,
    /// Share of its decisions that were identical, 0 to 1; none where none could be compared.
    pub identical_ratio: Option<f64>,
    /// Number of its idle table among the policies.
    pub table: usize,
    /// Idle time of this CPU as it was recorded.
    pub recorded: Side,
    /// Idle time of this CPU as predicted under what is asked.
    pub predicted: Side,
}

/// What idle time came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Side {
    /// By idle state, shallow first.
    pub states: Vec<StateTold>,
    /// What wake-ups paid for leaving the state that they found: as measured, else half of the exit latency that is claimed.
    pub wake_cost: Distribution,
    /// Energy of the CPUs while idle, in microjoules, by a model that was never calibrated here: half to twice.
    pub modelled_energy_uj: f64,
}

/// One idle state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateTold {
    /// Name of the idle state.
    pub state: String,
    /// How many stays.
    pub n: u64,
    /// Time in it, in nanoseconds.
    pub time_ns: u64,
    /// Share of idle time, 0 to 1.
    pub time_ratio: f64,
    /// Stays shorter than its residency.
    pub n_above: u64,
    /// Stays long enough for a deeper one.
    pub n_below: u64,
    /// Wake-ups out of it: ended by something other than the tick or the limit of polling.
    pub n_wakes: u64,
    /// What leaving it is taken to cost, in nanoseconds; over CPUs with different idle tables, that of the longest table.
    pub exit_ns: u64,
    /// The same at worst, in nanoseconds.
    pub worst_exit_ns: u64,
    /// Where both are from.
    pub exit_basis: ExitBasis,
}

/// The setting that is none, looked up where it is shown.
pub(crate) const AS_RECORDED: &str = "as recorded";

impl Replayed {
    /// The setting in words, for a heading.
    pub fn setting_words(&self) -> &str {
        if self.setting.is_empty() { AS_RECORDED } else { &self.setting }
    }
}

impl Side {
    /// States that wake-ups left, here or on the other side, and whose exit latency is a claim.
    pub fn claimed_with<'a>(&'a self, other: &'a Side) -> Vec<&'a str> {
        let is_claimed = |s: &StateTold| s.n_wakes > 0 && s.exit_ns > 0 && s.exit_basis == ExitBasis::Claimed;
        let mut names = self.names(other);
        names.retain(|name| [self, other].iter().any(|side| side.state(name).is_some_and(is_claimed)));
        names
    }

    /// A state by its name.
    pub fn state(&self, name: &str) -> Option<&StateTold> {
        self.states.iter().find(|s| s.state == name)
    }

    /// Names of the states of both sides, in their order: the first side's, then what only the other has.
    pub fn names<'a>(&'a self, other: &'a Side) -> Vec<&'a str> {
        let mut names: Vec<&str> = self.states.iter().map(|s| s.state.as_str()).collect();
        names.extend(other.states.iter().map(|s| s.state.as_str()).filter(|name| self.state(name).is_none()));
        names
    }
}

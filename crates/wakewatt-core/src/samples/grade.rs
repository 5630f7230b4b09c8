//! How far do the surroundings of an experiment allow to believe it?
//!
//! - **Clean**: the machine was quiet.
//! - **Loaded**: in at least half of the measurements others had CPU time (steal above 0.5 %, other processes above 5 %), or
//!   the CPU was awake when it was woken (fewer than 0.9 idle entries per wake-up), or steal differs between variants. Random
//!   order spreads this over the variants, so direction and size stand, for this run. A CPU that was awake dilutes a cost of
//!   idle states, so there the size is "at least".
//! - **Refused**: the current settings, measured twice, differ by about as much as the variants do. Then something else
//!   moves the metric in an unknown direction, and no size is reported.
//!
//! Steal is no foreign part of a wake-up in a guest: the hypervisor's halt exit is what an application pays for idling
//! there. Not here: how it is graded (`grading`), discarded measurements (`rejection`), how sizes are stated (`stated`).

use super::taken::Taken;
use crate::units::p_value as shown_p;
use serde::{Deserialize, Serialize};
use wakewatt_words::{say, word};

/// From good to bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// The machine was quiet.
    #[default]
    Clean,
    /// Direction and size stand, for a machine under this load.
    Loaded,
    /// Its size is not reported.
    Refused,
}

impl Grade {
    /// For tables.
    pub fn word(self) -> &'static str {
        match self {
            Grade::Clean => word!("clean"),
            Grade::Loaded => word!("loaded"),
            Grade::Refused => word!("size not reported"),
        }
    }
}

/// What speaks against it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Flaw {
    /// The hypervisor or other processes had CPU time: shares of the measured CPUs', over the whole run.
    Busy(Taken),
    /// The CPU was awake when it was woken.
    Awake {
        /// Blocks with fewer than 0.9 idle entries per wake-up.
        n_awake: usize,
        /// Blocks in which both were counted.
        n_blocks: usize,
        /// The least idle entries per wake-up of a block.
        least_ratio: f64,
    },
    /// The hypervisor took more under one arm than under the other.
    StealDiffers {
        /// Id of the other arm.
        arm: String,
        /// Share of the CPUs' time with the baseline.
        baseline_ratio: f64,
        /// The same with the other arm.
        arm_ratio: f64,
        /// Of the paired test, by itself.
        p_value: f64,
        /// Rounds that were paired.
        n_pairs: usize,
    },
    /// The baseline, measured twice per round, differs from itself.
    Unstable {
        /// By this factor, in the primary metric.
        ratio: f64,
        /// Of the paired test.
        p_value: f64,
    },
}

impl Flaw {
    pub(super) fn grade(&self) -> Grade {
        match self {
            Flaw::Busy(_) | Flaw::Awake { .. } | Flaw::StealDiffers { .. } => Grade::Loaded,
            Flaw::Unstable { .. } => Grade::Refused,
        }
    }

    /// As a clause.
    pub fn words(&self) -> String {
        let percent = |ratio: f64| format!("{:.1} %", ratio * 100.0);
        match self {
            Flaw::Busy(Taken { steal_ratio, foreign_ratio }) => {
                let steal = percent(*steal_ratio);
                match foreign_ratio {
                    Some(others) => say!("other processes {}, steal {steal}", percent(*others)),
                    None => say!("steal {steal}"),
                }
            }
            Flaw::Awake { n_awake, n_blocks, least_ratio } => say!(
                "the CPU was often awake when it was woken, in {n_awake} of {n_blocks} measurements (down to {least_ratio:.2} \
                 idle entries per wake-up)"
            ),
            Flaw::StealDiffers { arm, baseline_ratio, arm_ratio, p_value, n_pairs } => say!(
                "steal {} with current settings and {} with {arm} (p {}, {n_pairs} rounds)",
                percent(*baseline_ratio),
                percent(*arm_ratio),
                shown_p(*p_value)
            ),
            Flaw::Unstable { ratio, p_value } => say!(
                "current settings, measured twice in a round, differ by a factor of {ratio:.2} (p {})",
                shown_p(*p_value)
            ),
        }
    }
}

/// A grade with its reasons.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Graded {
    /// The worst that the flaws allow.
    pub grade: Grade,
    /// What speaks against it; none where it is clean.
    pub because: Vec<Flaw>,
}

impl Graded {
    /// Was the CPU so often awake that a cost of idle states is diluted?
    pub fn is_diluted(&self) -> bool {
        self.because.iter().any(|flaw| matches!(flaw, Flaw::Awake { .. }))
    }

    /// The reasons, as clauses.
    pub fn reasons(&self) -> String {
        self.because.iter().map(Flaw::words).collect::<Vec<_>>().join("; ")
    }
}

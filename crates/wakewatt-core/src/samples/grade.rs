//! How far do the surroundings of an experiment allow to believe it?
//!
//! - **Clean**: what was measured is the setting's.
//! - **Loaded**: in at least half of the blocks others had CPU time (steal above 0.5 %, other processes above 5 %), or the CPU
//!   was awake when it was woken (fewer than 0.9 idle entries per wake-up). Random order spreads this over the arms, so the
//!   direction stands; it is the effect of that hour, and no remedy is sold for it.
//! - **Refused**: others had more than 30 % in at least half of the blocks, or the hypervisor took more under one arm than
//!   under the other. Then the effect is mostly theirs, and its size is not told.
//!
//! The last one asks the unadjusted test: who guards a claim need not prove the objection. Not here: how it is graded (`grading`), blocks that
//! do not count at all (`rejection`), and how sizes are said (`stated`).

use crate::units::p_value as shown_p;
use serde::{Deserialize, Serialize};
use wakewatt_words::{say, word};

/// More of the CPUs' time than this, by the hypervisor and others together, and the effect is mostly theirs.
pub const MOST_TAKEN_RATIO: f64 = 0.3;

/// From good to bad.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// What was measured is the setting's.
    #[default]
    Clean,
    /// An effect of that hour: its direction stands, its size is that of a machine with others on it.
    Loaded,
    /// Its size is not told.
    Refused,
}

impl Grade {
    /// For tables.
    pub fn word(self) -> &'static str {
        match self {
            Grade::Clean => word!("clean"),
            Grade::Loaded => word!("loaded"),
            Grade::Refused => word!("size refused"),
        }
    }
}

/// What speaks against it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Flaw {
    /// The hypervisor or other processes had CPU time.
    Busy {
        /// Blocks in which they had.
        n_disturbed: usize,
        /// Blocks in which it was counted.
        n_blocks: usize,
        /// The most that the hypervisor took in a block, of the CPUs' time.
        most_steal_ratio: f64,
        /// The most that other processes used in a block.
        most_foreign_ratio: f64,
    },
    /// The CPU was awake when it was woken.
    Awake {
        /// Blocks with fewer than 0.9 idle entries per wake-up.
        n_awake: usize,
        /// Blocks in which both were counted.
        n_blocks: usize,
        /// The least idle entries per wake-up of a block.
        least_ratio: f64,
    },
    /// Hypervisor and other processes together had more than 30 %.
    Overrun {
        /// Blocks in which they had.
        n_overrun: usize,
        /// Blocks in which it was counted.
        n_blocks: usize,
    },
    /// The hypervisor took more under one arm than under the other.
    StealDiffers {
        /// Id of the other arm.
        arm: String,
        /// Share of the CPUs' time with the baseline; the middle of its blocks.
        baseline_ratio: f64,
        /// The same with the other arm.
        arm_ratio: f64,
        /// Of the paired test, by itself.
        p_value: f64,
        /// Rounds that were paired.
        n_pairs: usize,
    },
}

impl Flaw {
    pub(super) fn grade(&self) -> Grade {
        match self {
            Flaw::Busy { .. } | Flaw::Awake { .. } => Grade::Loaded,
            Flaw::Overrun { .. } | Flaw::StealDiffers { .. } => Grade::Refused,
        }
    }

    /// As a clause.
    pub fn words(&self) -> String {
        let percent = |ratio: f64| format!("{:.1} %", ratio * 100.0);
        match self {
            Flaw::Busy { n_disturbed, n_blocks, most_steal_ratio, most_foreign_ratio } => say!(
                "in {n_disturbed} of {n_blocks} blocks others had CPU time (the hypervisor up to {}, other processes up to {})",
                percent(*most_steal_ratio),
                percent(*most_foreign_ratio)
            ),
            Flaw::Awake { n_awake, n_blocks, least_ratio } => say!(
                "in {n_awake} of {n_blocks} blocks the CPU was often awake when it was woken (down to {least_ratio:.2} idle \
                 entries per wake-up)"
            ),
            Flaw::Overrun { n_overrun, n_blocks } => say!(
                "in {n_overrun} of {n_blocks} blocks the hypervisor and others had more than {} of the CPUs' time",
                percent(MOST_TAKEN_RATIO)
            ),
            Flaw::StealDiffers { arm, baseline_ratio, arm_ratio, p_value, n_pairs } => say!(
                "the hypervisor took {} as found and {} with {arm} (p {}, {n_pairs} rounds), so part of the effect \
                 is its doing",
                percent(*baseline_ratio),
                percent(*arm_ratio),
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
    /// The reasons, as clauses.
    pub fn reasons(&self) -> String {
        self.because.iter().map(Flaw::words).collect::<Vec<_>>().join("; ")
    }
}

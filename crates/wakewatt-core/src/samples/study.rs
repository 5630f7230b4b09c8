//! A study: an experiment over settings with its question, what was skipped, what each comparison allows to say, and how
//! noisy the host itself was.
//!
//! `ExperimentRun` holds the blocks; this holds what follows from them for several arms at once. A/A pairs (the baseline
//! held twice in some rounds) show what this host calls a difference where there is none. "No harm" is a claim of its own
//! and never the absence of a finding.

use super::experiment::{Effect, ExperimentRun};
use super::load::LoadRun;
use super::rejection::Rejection;
use crate::covers::Covers;
use serde::{Deserialize, Serialize};

/// An arm or workload that did not take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Skipped {
    /// What was left out: "arm k4-ondemand".
    pub what: String,
    /// Why it was left out.
    pub why: String,
}

/// One arm against the baseline in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Difference, interval and adjusted test.
    pub effect: Effect,
    /// Of the claim that they differ by less than the margin, adjusted; both sides.
    pub equivalence_p: f64,
    /// Of the claim that the arm is not worse by more than the margin.
    pub no_harm_p: f64,
    /// Is it shown that the arm is not worse by more than the margin?
    pub is_no_harm: bool,
    /// The smallest ratio above 1 that so many rounds find four times in five; none where no difference could be proven.
    pub detectable_ratio: Option<f64>,
    /// Of the primary metric: 95 % interval of the ratio that holds at every round at once, so also where a run ends between
    /// its looks; all arms together. None where it is still open on either side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub any_time: Option<AnyTime>,
}

/// An interval that whoever looks at any moment may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnyTime {
    /// Lower end of the ratio baseline / arm.
    pub ratio_low: f64,
    /// Upper end of the ratio baseline / arm.
    pub ratio_high: f64,
    /// What it covers: these rounds, joined as if they were of one run.
    #[serde(default = "Covers::run")]
    pub covers: Covers,
}

/// What this host calls a difference where there is none, in one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AaNoise {
    /// Id of the metric.
    pub metric: String,
    /// Rounds that held the baseline twice.
    pub n_pairs: usize,
    /// The baseline over itself, held twice per round: estimate of the ratio.
    pub ratio: f64,
    /// Lower end of the 95 % interval of that ratio.
    pub ratio_low: f64,
    /// Upper end of the interval of that ratio.
    pub ratio_high: f64,
    /// What that interval covers.
    #[serde(default = "Covers::run")]
    pub covers: Covers,
    /// Exact signed-rank test of that ratio, not adjusted.
    pub p_value: f64,
    /// One block varies by this much: 0.08 is 8 %.
    pub block_noise_ratio: Option<f64>,
}

/// A declared look.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeclaredLook {
    /// After so many counted rounds.
    pub n_rounds: usize,
    /// Its share of the 5 %.
    pub level: f64,
}

/// Blocks that did not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rejected {
    /// Id of the arm.
    pub arm: String,
    /// Why, as the first of them said it.
    pub why: Rejection,
    /// How many of its blocks did not count for this reason.
    pub n: usize,
}

/// Where it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StudyHost {
    /// Tells machines apart and names none: `host-3fa9c2d1`, from a keyed hash of the machine id.
    pub name: String,
    /// Release of the kernel, as `uname -r`.
    pub kernel: String,
    /// CPU model, and how many run.
    pub cpus: String,
}

/// What follows from the blocks, and what must be known with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conclusions {
    /// Name of the plan.
    pub name: String,
    /// The question the plan asks.
    pub question: String,
    /// The machine it ran on.
    pub host: StudyHost,
    /// Looks, declared before it ran.
    pub looks: Vec<DeclaredLook>,
    /// 1.05: differences within 5 % do not matter.
    pub margin_ratio: f64,
    /// The error rate of the look that judges the run: intervals are at 1 less this, and hold together over all looks.
    pub level: f64,
    /// May verdicts be read? Not between two looks, while it may still go on.
    pub is_final: bool,
    /// One plain sentence per arm but the baseline, in the order of the arms.
    pub sentences: Vec<String>,
    /// Every comparison, primary metric first.
    pub comparisons: Vec<Comparison>,
    /// What the host calls a difference where there is none: the baseline held twice.
    pub noise: Vec<AaNoise>,
    /// What did not take part.
    pub skipped: Vec<Skipped>,
    /// Blocks that did not count.
    pub rejected: Vec<Rejected>,
    /// What a reader should know before believing it, in sentences.
    pub remarks: Vec<String>,
    /// Where its blocks are kept.
    pub run_dir: Option<String>,
}

impl Conclusions {
    /// The sentence on an arm: they are in the order of the run's arms, without the baseline.
    pub fn sentence_on(&self, run: &ExperimentRun, arm: &str) -> Option<&str> {
        let at = run.arms.iter().skip(1).position(|a| a.id == arm)?;
        self.sentences.get(at).map(String::as_str)
    }
}

/// The whole document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Study {
    /// What follows from the blocks.
    #[serde(flatten)]
    pub conclusions: Conclusions,
    /// Arms, blocks and effects: what the conclusions rest on.
    pub run: ExperimentRun,
    /// Where its workloads are loads: each arm's middle round, level by level, for drawing. What is proved stands above.
    #[serde(default)]
    pub loads: Vec<LoadRun>,
}

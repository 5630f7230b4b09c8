//! The record of an experiment: arms, blocks in the order they ran, effects with their intervals, and what was restored.
//!
//! The unit is the block (one setting held while measuring), never the single sample: samples within a block are
//! correlated, and pooling them proves anything (docs/methods/statistics.md).

use super::disturbance::Disturbance;
use super::ended::Ended;
use super::grade::Graded;
use super::rejection::Rejection;
use super::side_effect::SideEffect;
use super::tail::TailTest;
use super::taken::Taken;
use super::waker::Waker;
use super::watts_by::WattsBy;
use super::woken::Woken;
use super::{IdleDelta, Window, titles};
use crate::covers::Covers;
use crate::distribution::Distribution;
use serde::{Deserialize, Serialize};
use wakewatt_words::{say, told};

/// One setting under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Arm {
    /// Short, stable: `default`, `poll`, `c1`.
    pub id: String,
    /// For people: "current settings", "idle states disabled (polling)".
    pub title: String,
    /// What is written, in words with paths.
    pub settings: Vec<String>,
}

/// What the values of a metric are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Latency or CPU time.
    #[default]
    Nanoseconds,
    /// Requests, transactions, reads per second.
    PerSecond,
    /// Power, in microwatts.
    Microwatts,
    /// Work per energy: operations per joule, which is operations per second and watt.
    PerJoule,
    /// Whatever the user's own benchmark prints.
    Number,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Less is better: latency, watts.
    #[default]
    Lower,
    /// Throughput, work per watt.
    Higher,
}

/// What is compared. The first metric of an experiment is the primary one, declared before it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Metric {
    /// Stable id: `wakeup.eventfd.p50`.
    pub id: String,
    /// For people: "cross-CPU wake-up, median".
    pub title: String,
    /// What its values are in.
    #[serde(default)]
    pub unit: Unit,
    /// Which way is better.
    #[serde(default)]
    pub better: Better,
    /// Differences up to this, in nanoseconds, are the clock's: two CPUs' clocks agree no better. None where one clock does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_bound_ns: Option<u64>,
}

impl Metric {
    /// A latency: nanoseconds, lower is better.
    pub fn latency(id: impl Into<String>, title: impl Into<String>) -> Metric {
        Metric {
            id: id.into(),
            title: title.into(),
            unit: Unit::Nanoseconds,
            better: Better::Lower,
            clock_bound_ns: None,
        }
    }

    /// A rate: per second, higher is better.
    pub fn rate(id: impl Into<String>, title: impl Into<String>) -> Metric {
        Metric {
            id: id.into(),
            title: title.into(),
            unit: Unit::PerSecond,
            better: Better::Higher,
            clock_bound_ns: None,
        }
    }

    /// In front of its values: "median cross-CPU wake-up".
    pub fn named(&self) -> String {
        const STATISTICS: [&str; 4] = ["median", "mean", "p99", "99th percentile"];
        match self.title.rsplit_once(", ") {
            Some((what, statistic)) if STATISTICS.contains(&statistic) => {
                say!("{statistic} {what}", statistic = told(statistic), what = titles::shown(what))
            }
            _ => self.shown(),
        }
    }

    /// As part of a sentence: "the median cross-CPU wake-up".
    pub fn phrase(&self) -> String {
        let is_statistic = |word: &str| word == "median" || word == "mean" || word.starts_with("p9");
        match self.title.rsplit_once(", ") {
            Some((what, statistic)) if is_statistic(statistic) => {
                say!("the {statistic} {what}", statistic = told(statistic), what = titles::shown(what))
            }
            _ => self.shown(),
        }
    }
    /// Its title for people, in the language in force.
    pub fn shown(&self) -> String {
        titles::shown(&self.title)
    }
    /// Is it a latency as somebody waits for it, and not CPU time that something costs?
    pub fn is_latency(&self) -> bool {
        self.unit == Unit::Nanoseconds && !self.id.ends_with(".cpu") && !self.id.ends_with(".system")
    }

    /// Watts: lower is better.
    pub fn power(id: impl Into<String>, title: impl Into<String>) -> Metric {
        Metric {
            id: id.into(),
            title: title.into(),
            unit: Unit::Microwatts,
            better: Better::Lower,
            clock_bound_ns: None,
        }
    }
}

/// One arm held for a while.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Block {
    /// Which group of blocks (one block per arm each) it belongs to.
    pub round: usize,
    /// Id of the arm that was held.
    pub arm: String,
    /// From when to when it was measured, without the warm-up.
    pub window: Window,
    /// One per metric, in its unit and in the order of the metrics; none where the block did not yield it.
    pub values: Vec<Option<f64>>,
    /// What may have spoiled it: steal, foreign load, throttling.
    pub disturbances: Vec<Disturbance>,
    /// What others had of the measured CPUs' time; none where nobody counted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
    /// How the waker kept its plan, where wake-ups by another CPU are measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waker: Option<Waker>,
    /// Why it does not count, if so: e.g. the idle counters contradict the setting.
    #[serde(rename = "is_rejected")]
    pub rejected: Option<Rejection>,
    /// What the idle counters of the measured CPUs did meanwhile.
    pub idle: Vec<IdleDelta>,
    /// Which CPU was woken how often; none where nobody counted, or nobody was woken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub woken: Option<Woken>,
    /// Mean clock of the measured CPUs while they ran, in kHz (APERF, MPERF); none where it cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_khz: Option<u64>,
    /// The hottest processor sensor after the block, in milli-degrees Celsius; none where there is no such sensor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_mc: Option<i64>,
}

/// Does it matter what ran before? One arm against the baseline, by which of the two came first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CarryOver {
    /// Id of the arm.
    pub arm: String,
    /// The ratio baseline / arm of the primary metric where the baseline came first, over that where it came second; 1 where the
    /// order does nothing.
    pub ratio: f64,
    /// Of the claim that the order does nothing (rank sum).
    pub p_value: f64,
    /// Rounds it rests on.
    pub n_rounds: usize,
}

/// What the numbers allow to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The interval excludes 1: the baseline's value is higher. Whether that is good is the metric's to say.
    Higher,
    /// The interval excludes 1: the baseline's value is lower.
    Lower,
    /// The interval lies within ±5 % of 1: no effect worth a change.
    NoDifference,
    /// Neither: the experiment could not decide.
    Undecided,
}

impl Verdict {
    /// Of the reciprocal.
    pub fn inverted(self) -> Verdict {
        match self {
            Verdict::Higher => Verdict::Lower,
            Verdict::Lower => Verdict::Higher,
            Verdict::NoDifference | Verdict::Undecided => self,
        }
    }
}

/// Baseline arm over other arm, paired by round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effect {
    /// Id of the metric.
    pub metric: String,
    /// The arm in the numerator.
    pub baseline: String,
    /// The arm in the denominator.
    pub arm: String,
    /// Hodges-Lehmann estimate of the paired ratio baseline / arm.
    pub ratio: f64,
    /// Interval over rounds (Walsh averages), at the level of the look that judged the run: 95 % over all looks together.
    pub ratio_low: f64,
    /// Upper end of the ratio's interval.
    pub ratio_high: f64,
    /// Hodges-Lehmann estimate over rounds of baseline minus arm, in the metric's unit.
    pub difference: f64,
    /// Its interval, at the same level.
    pub difference_low: f64,
    /// Upper end of the difference's interval, in the metric's unit.
    pub difference_high: f64,
    /// How often such an interval holds the true ratio, as a share, by this look alone: ranks come in steps, so it is the next
    /// above what was asked for, or below it where the rounds are too few. None in files of versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Wilcoxon's signed rank, exact, on the log ratios. The primary metric's knows of all looks (stage-wise); secondary
    /// metrics are Holm-adjusted.
    pub p_value: f64,
    /// What the look that ended the run showed by itself; none where nothing was looked at before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_look: Option<AtLook>,
    /// What its intervals cover: the run, whose rounds they are over.
    #[serde(default = "Covers::run")]
    pub covers: Covers,
    /// Rounds in which both blocks counted.
    pub n_pairs: usize,
    /// What may be said: differs, does not, or undecided.
    pub verdict: Verdict,
}

/// Estimate and p-value of one look, as if it had been the only one. Whoever stops at the first proof stops when chance
/// was with the effect, so these say too much; `ratio` and `p_value` beside them do not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AtLook {
    /// Hodges-Lehmann estimate of the ratio.
    pub ratio: f64,
    /// P-value of this look alone.
    pub p_value: f64,
}

impl Effect {
    /// The interval that may stand beside the verdict. None where nothing is decided and the interval excludes 1 all the same: the
    /// rounds are too few for its level, the run was cut short, or clocks may have made the difference.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let is_open = self.verdict == Verdict::Undecided && (self.ratio_low > 1.0 || self.ratio_high < 1.0);
        (!is_open).then_some((self.ratio_low, self.ratio_high))
    }

    /// The same the other way round: how many times the baseline's value the arm's is.
    pub fn inverted(&self) -> Effect {
        Effect {
            metric: self.metric.clone(),
            baseline: self.arm.clone(),
            arm: self.baseline.clone(),
            ratio: 1.0 / self.ratio,
            ratio_low: 1.0 / self.ratio_high,
            ratio_high: 1.0 / self.ratio_low,
            // Never -0.
            difference: 0.0 - self.difference,
            difference_low: 0.0 - self.difference_high,
            difference_high: 0.0 - self.difference_low,
            confidence: self.confidence,
            p_value: self.p_value,
            covers: self.covers,
            at_look: self.at_look.map(|at| AtLook { ratio: 1.0 / at.ratio, ..at }),
            n_pairs: self.n_pairs,
            verdict: self.verdict.inverted(),
        }
    }
}

/// A whole experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExperimentRun {
    /// Arms; the first is the baseline (the machine as it was found).
    pub arms: Vec<Arm>,
    /// Metrics; the first is primary.
    pub metrics: Vec<Metric>,
    /// Blocks in the order they ran.
    pub blocks: Vec<Block>,
    /// Effects, primary metric first.
    pub effects: Vec<Effect>,
    /// What came before: the effect of the order on the primary metric, arm by arm; empty where too few rounds tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carry_over: Vec<CarryOver>,
    /// Whether the arms leave the tail of the primary metric as it is, in the order in which they were tested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<TailTest>,
    /// The meter behind its watts; none where it has none, and in files of versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watts: Option<WattsBy>,
    /// What the arms changed beside what was compared: steal, clock, temperature, sleep; each with a test of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side_effects: Vec<SideEffect>,
    /// How far the surroundings allow to believe it, with the reasons; none in files of versions that did not say.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "known_grade")]
    pub grade: Option<Graded>,
    /// Per arm and metric: all counted samples pooled, to draw (never to test).
    pub pooled: Vec<PooledArm>,
    /// Seed of the order.
    pub seed: u64,
    /// Discarded warm-up before each block.
    pub warmup_ns: u64,
    /// Why it ended: interval narrow enough, budget spent, interrupted.
    #[serde(rename = "stopped_because")]
    pub ended: Ended,
    /// Settings before and after, path and value: equal when all was put back.
    pub before: Vec<(String, String)>,
    /// The same settings read again after the run: path and text, as in `before`.
    pub after: Vec<(String, String)>,
}

/// A grade with flaws of an earlier version is derived again from the measurements.
fn known_grade<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Graded>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// Pooled samples of one arm for one metric's source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PooledArm {
    /// Id of the arm.
    pub arm: String,
    /// What was measured: `wakeup.eventfd`, `network.udp`.
    pub what: String,
    /// Name of the latency for people.
    pub title: String,
    /// All samples of the arm.
    pub latency: Distribution,
}

impl ExperimentRun {
    /// Everything back as it was?
    pub fn is_restored(&self) -> bool {
        self.before == self.after
    }
    /// The effect on the primary metric against the first other arm.
    pub fn primary(&self) -> Option<&Effect> {
        let primary = self.metrics.first()?;
        self.effects.iter().find(|e| e.metric == primary.id)
    }
}

//! One effect over all sessions: each by itself, and together.

use crate::compare::ratio;
use crate::covers::Covers;
use crate::samples::experiment::{ExperimentRun, Metric, Verdict};
use crate::samples::study::AnyTime;
use crate::stats::any_time;
use crate::stats::paired::{Judge, log_ratios};
use crate::stats::sessions::{self, Joined, LEVEL, Session};
use serde::Serialize;

/// Above this share the sessions themselves differ more than their rounds explain.
const DOMINANT: f64 = 0.5;

/// The effect in one session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionEffect {
    /// Name of the run file.
    pub name: String,
    /// Baseline over arm in this session, over all of its rounds.
    pub ratio: f64,
    /// Lower end of the interval over its rounds.
    pub ratio_low: f64,
    /// Upper end of that interval.
    pub ratio_high: f64,
    /// What that interval covers.
    pub covers: Covers,
    /// Rounds in which both blocks counted.
    pub n_rounds: usize,
    /// Their windows' values, baseline and arm, in the metric's unit.
    pub rounds: Vec<(f64, f64)>,
}

/// One arm against the baseline in one metric, over all sessions.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JoinedEffect {
    /// What is compared.
    pub metric: Metric,
    /// Is it the metric that the plan decides by?
    pub is_primary: bool,
    /// Id of the baseline.
    pub baseline: String,
    /// Id of the arm.
    pub arm: String,
    /// Baseline over arm: the mean of the sessions' ratios (of the hosts', where there are several), by their logarithms.
    pub ratio: f64,
    /// Lower end of the 95 % interval over sessions (hosts), Student's t.
    pub ratio_low: Option<f64>,
    /// Upper end of that interval.
    pub ratio_high: Option<f64>,
    /// What that interval covers: this machine, or these machines.
    pub covers: Covers,
    /// How sessions (hosts) and rounds (sessions) scatter.
    pub scatter: Joined,
    /// All rounds behind one another, as of one run; it may be looked at after each session. Covers these sessions only. None
    /// where it is still open.
    pub any_time: Option<AnyTime>,
    /// By the interval over sessions.
    pub verdict: Verdict,
    /// Each session by itself.
    pub sessions: Vec<SessionEffect>,
}

impl JoinedEffect {
    /// Is most of the scatter between the sessions?
    pub fn is_between_dominant(&self) -> bool {
        self.scatter.between_share.is_some_and(|share| share > DOMINANT)
    }
}

/// A run, and where it belongs.
pub(super) struct Placed<'a> {
    /// Number of its host.
    pub(super) host: usize,
    /// Name of its run file.
    pub(super) name: &'a str,
    /// When it was, by the wall clock; none where the file does not say.
    pub(super) at_ns: Option<u64>,
    /// The experiment.
    pub(super) run: &'a ExperimentRun,
}

/// Has it a round with the baseline and another arm?
pub(super) fn has_rounds(run: &ExperimentRun) -> bool {
    let others = run.arms.iter().skip(1);
    others.into_iter().any(|arm| !log_ratios(&run.pairs(0, &arm.id)).is_empty())
}

/// Every metric that all have, against every arm.
pub(super) fn effects(runs: &[Placed<'_>]) -> Vec<JoinedEffect> {
    let Some(Placed { run: first, .. }) = runs.first() else { return Vec::new() };
    let arms: Vec<&str> = first.arms.iter().skip(1).map(|arm| arm.id.as_str()).collect();
    let metrics = first.metrics.iter().enumerate();
    metrics.flat_map(|(at, metric)| arms.iter().filter_map(move |arm| one(runs, (at, metric), arm, first))).collect()
}

fn one(runs: &[Placed<'_>], (at, metric): (usize, &Metric), arm: &str, first: &ExperimentRun) -> Option<JoinedEffect> {
    let baseline = first.arms.first()?.id.clone();
    let (mut each, mut rounds, mut of_hosts, mut times) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for Placed { host, name, at_ns, run } in runs {
        let Some(place) = run.metrics.iter().position(|m| m.id == metric.id) else { continue };
        let pairs = run.pairs(place, arm);
        let Some(effect) = Judge::default().effect(&metric.id, &baseline, arm, &pairs) else { continue };
        each.push(SessionEffect {
            name: (*name).into(),
            ratio: effect.ratio,
            ratio_low: effect.ratio_low,
            ratio_high: effect.ratio_high,
            covers: effect.covers,
            n_rounds: effect.n_pairs,
            rounds: pairs.clone(),
        });
        rounds.push(log_ratios(&pairs));
        times.push(*at_ns);
        of_hosts.push((*host, effect.ratio.ln()));
    }
    let mut hosts: Vec<usize> = of_hosts.iter().map(|(host, _)| *host).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let of_host = |(at, host): (u64, &usize)| Session {
        windows: of_hosts.iter().filter(|(h, _)| h == host).map(|(_, ln)| *ln).collect(),
        // Hosts do not resemble each other because they were measured at the same time.
        at_ns: Some(at * sessions::APART_NS),
    };
    let (units, covers) = match hosts.len() {
        0 | 1 => (
            rounds.iter().cloned().zip(times).map(|(windows, at_ns)| Session { windows, at_ns }).collect(),
            Covers::Machine,
        ),
        _ => ((0..).zip(&hosts).map(of_host).collect::<Vec<_>>(), Covers::Machines),
    };
    let scatter = sessions::join(&units)?;
    let ends = scatter.low_ln.zip(scatter.high_ln).map(|(low, high)| (low.exp(), high.exp()));
    let together = any_time::interval(&rounds.concat(), LEVEL);
    let is_closed = together.low.is_finite() && together.high.is_finite();
    Some(JoinedEffect {
        metric: metric.clone(),
        is_primary: at == 0,
        baseline,
        arm: arm.into(),
        ratio: scatter.centre_ln.exp(),
        ratio_low: ends.map(|(low, _)| low),
        ratio_high: ends.map(|(_, high)| high),
        covers,
        scatter,
        any_time: is_closed.then(|| AnyTime {
            ratio_low: together.low.exp(),
            ratio_high: together.high.exp(),
            covers: Covers::Run,
        }),
        verdict: ends.map_or(Verdict::Undecided, ratio::verdict),
        sessions: each,
    })
}

//! Two experiments with the same arms: does turning the same setting do the same on both?
//!
//! Each experiment compares its arms on one machine in random order, so a machine that is simply slower, or an hour that
//! was busier, cancels inside it. The ratio of the two effects (a ratio of ratios) is therefore the one number of an
//! unpaired comparison that is about the setting. What is left confounded is everything that changes how strong the effect
//! is: hardware, kernel, the other settings.

use super::ratio;
use crate::covers::Covers;
use crate::evidence::Evidence;
use crate::samples::Samples;
use crate::samples::experiment::{Effect, ExperimentRun, Verdict};
use crate::samples::titles;
use crate::stats::paired::{log_ratios, median};
use crate::stats::sessions::{self, Session};
use serde::Serialize;
use wakewatt_words::{say, word};

/// One metric under one arm in both experiments.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectDifference {
    /// Id of the metric.
    pub metric: String,
    /// Name of the metric for people.
    pub title: String,
    /// The arm compared with.
    pub baseline: String,
    /// Id of the arm whose effect is compared.
    pub arm: String,
    /// Baseline over arm in the first run.
    pub a_ratio: f64,
    /// The effect in the second run, as a ratio.
    pub b_ratio: f64,
    /// The second over the first.
    pub ratio: f64,
    /// Lower end of the 95 % interval of the second effect over the first; none with fewer than four rounds on a side.
    pub ratio_low: Option<f64>,
    /// Upper end of that interval.
    pub ratio_high: Option<f64>,
    /// What that interval covers: two runs, or the machines where there are several runs on a side.
    pub covers: Option<Covers>,
    /// Two-sided, of the test that the interval is made from; over rounds, or over sessions where there are several.
    pub p_value: Option<f64>,
    /// Rounds in the first and in the second.
    pub n_rounds: [usize; 2],
    /// `higher`: the effect is larger in the second run.
    pub verdict: Verdict,
    /// The difference in a sentence.
    pub sentence: String,
}

/// All pairs of effects with the same metric and the same arms; several runs on a side are sessions of the same.
pub fn of(a: &[Evidence], b: &[Evidence]) -> Vec<EffectDifference> {
    let (all_a, all_b) = (sessions(a), sessions(b));
    let Some(first) = all_a.first() else { return Vec::new() };
    let is_same = |x: &ExperimentRun, y: &ExperimentRun| arms(x) == arms(y) && primary(x) == primary(y);
    let both = first.iter().flat_map(|(of, x)| {
        // The idle experiment and that of disk reads are one of a kind, whichever arms each host allowed.
        let is_like = |(other, y): &&(Of, &ExperimentRun)| other == of && (*of != Of::Settings || is_same(x, y));
        let like = |all: &[Vec<(Of, &ExperimentRun)>]| -> Vec<ExperimentRun> {
            all.iter().filter_map(|run| run.iter().find(is_like).map(|(_, y)| (*y).clone())).collect()
        };
        let (in_a, in_b) = (like(&all_a), like(&all_b));
        x.effects.iter().filter_map(|effect| one(&in_a, &in_b, effect)).collect::<Vec<_>>()
    });
    both.collect()
}

fn sessions(side: &[Evidence]) -> Vec<Vec<(Of, &ExperimentRun)>> {
    side.iter().map(|evidence| experiments(&evidence.samples)).collect()
}

/// What an experiment was about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Idle,
    Disk,
    Settings,
}

/// Every experiment of a run; a kind of sample that is new is asked here whether it is one.
fn experiments(samples: &Samples) -> Vec<(Of, &ExperimentRun)> {
    let Samples {
        experiment,
        disk_experiment,
        experiments,
        wakeups: _,
        network: _,
        memory: _,
        cores: _,
        disk: _,
        icmp: _,
        speed: _,
        idle_states: _,
        work: _,
        trace: _,
        conclusions: _,
        load: _,
        energy: _,
        timelines: _,
        replays: _,
    } = samples;
    let one = experiment.iter().map(|run| (Of::Idle, run));
    one.chain(disk_experiment.iter().map(|run| (Of::Disk, run)))
        .chain(experiments.iter().map(|run| (Of::Settings, run)))
        .collect()
}

fn primary(run: &ExperimentRun) -> Option<&str> {
    run.metrics.first().map(|m| m.id.as_str())
}

fn arms(run: &ExperimentRun) -> Vec<&str> {
    run.arms.iter().map(|arm| arm.id.as_str()).collect()
}

/// The same effect in the runs of one side: the middle of the runs' ratios, and the rounds of each.
fn effect_in(side: &[ExperimentRun], like: &Effect) -> (Option<f64>, Vec<Session>) {
    let is_same = |e: &&Effect| e.metric == like.metric && e.baseline == like.baseline && e.arm == like.arm;
    let found = || side.iter().filter_map(|run| Some((run, run.effects.iter().find(is_same)?)));
    let logs: Vec<f64> = found().map(|(_, effect)| effect.ratio.ln()).collect();
    let session = |(run, effect): (&ExperimentRun, &Effect)| Session {
        windows: log_ratios(&run.pairs_of(effect)),
        at_ns: run.blocks.first().map(|b| b.window.start_at_ns),
    };
    let rounds = found().map(session).collect();
    ((!logs.is_empty()).then(|| median(&logs).exp()), rounds)
}

fn one(a: &[ExperimentRun], b: &[ExperimentRun], like: &Effect) -> Option<EffectDifference> {
    let ((a_ratio, of_a), (b_ratio, of_b)) = (effect_in(a, like), effect_in(b, like));
    let (a_ratio, b_ratio, first) = (a_ratio?, b_ratio?, a.first()?);
    let shift = sessions::shift(&of_a, &of_b, sessions::ROUNDS);
    let ratio = shift.map_or(b_ratio / a_ratio, |s| s.shift.exp());
    let (ratio_low, ratio_high) = (shift.map(|s| s.low.exp()), shift.map(|s| s.high.exp()));
    let numbers = [Some(ratio), ratio_low, ratio_high];
    if !numbers.iter().flatten().all(|r| r.is_finite() && *r > 0.0) {
        return None;
    }
    let interval = shift.map(|s| (s.low.exp(), s.high.exp()));
    let verdict = interval.map_or(Verdict::Undecided, |(low, high)| ratio::verdict(low, high));
    let title = first.metrics.iter().find(|m| m.id == like.metric).map_or(like.metric.clone(), |m| m.title.clone());
    let says = match verdict {
        Verdict::Higher => word!("the setting matters more in B"),
        Verdict::Lower => word!("the setting matters less in B"),
        Verdict::NoDifference => word!("the setting matters the same in both"),
        Verdict::Undecided => word!("whether it matters the same in both is undecided"),
    };
    let sentence = say!(
        "{}: \"{}\" is {} times \"{}\" in A and {} times in B; {says} (ratio of ratios {}, {})",
        titles::shown(&title),
        like.baseline,
        ratio::show(a_ratio),
        like.arm,
        ratio::show(b_ratio),
        ratio::show(ratio),
        interval.zip(shift).map_or(word!("too few rounds for an interval").into(), |((low, high), s)| ratio::interval(
            low, high, s.covers
        ))
    );
    let n_rounds = [&of_a, &of_b].map(|side| side.iter().map(|s| s.windows.len()).sum());
    Some(EffectDifference {
        metric: like.metric.clone(),
        title,
        baseline: like.baseline.clone(),
        arm: like.arm.clone(),
        a_ratio,
        b_ratio,
        ratio,
        ratio_low,
        ratio_high,
        covers: shift.map(|s| s.covers),
        p_value: shift.map(|s| s.p_value),
        n_rounds,
        verdict,
        sentence,
    })
}

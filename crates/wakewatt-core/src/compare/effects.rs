//! Two experiments with the same arms: does turning the same setting do the same on both?
//!
//! Each experiment compares its arms on one machine in random order, so a machine that is simply slower, or an hour that
//! was busier, cancels inside it. The ratio of the two effects (a ratio of ratios) is therefore the one number of an
//! unpaired comparison that is about the setting. What is left confounded is everything that changes how strong the effect
//! is: hardware, kernel, the other settings.

use super::ratio::{self, Page};
use crate::covers::Covers;
use crate::evidence::Evidence;
use crate::samples::Samples;
use crate::samples::experiment::{Effect, ExperimentRun, Verdict};
use crate::samples::titles;
use crate::stats::paired::{log_ratios, median};
use crate::stats::sessions::{self, Session, Shift};
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
    /// Lower end of the 95 % interval of the second effect over the first, adjusted for all comparisons of the page; none with fewer than
    /// four rounds on a side.
    pub ratio_low: Option<f64>,
    /// Upper end of that interval.
    pub ratio_high: Option<f64>,
    /// What that interval covers: two runs; where there are several on a side the machines, or their hours only.
    pub covers: Option<Covers>,
    /// The error rate of that interval: 0.05 for a page of one comparison, less where more are adjusted together.
    pub interval_level: Option<f64>,
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
pub(super) fn of(a: &[Evidence], b: &[Evidence]) -> Vec<Draft> {
    let (all_a, all_b) = (sessions(a), sessions(b));
    let Some((_, first)) = all_a.first() else { return Vec::new() };
    let is_same = |x: &ExperimentRun, y: &ExperimentRun| arms(x) == arms(y) && primary(x) == primary(y);
    let both = first.iter().flat_map(|(of, x)| {
        // The idle experiment and that of disk reads are one of a kind, whichever arms each host allowed.
        let is_like = |(other, y): &&(Of, &ExperimentRun)| other == of && (*of != Of::Settings || is_same(x, y));
        let like = |all: &[Experiments<'_>]| -> Vec<Timed> {
            all.iter()
                .filter_map(|(at_ns, run)| run.iter().find(is_like).map(|(_, y)| (*at_ns, (*y).clone())))
                .collect()
        };
        let (in_a, in_b) = (like(&all_a), like(&all_b));
        x.effects.iter().filter_map(|effect| one(&in_a, &in_b, effect)).collect::<Vec<_>>()
    });
    both.collect()
}

/// An experiment, and when its run began.
type Timed = (Option<u64>, ExperimentRun);
/// All of a run, and when it began.
type Experiments<'a> = (Option<u64>, Vec<(Of, &'a ExperimentRun)>);

fn sessions(side: &[Evidence]) -> Vec<Experiments<'_>> {
    side.iter().map(|evidence| (evidence.begun_at_ns(), experiments(&evidence.samples))).collect()
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
fn effect_in(side: &[Timed], like: &Effect) -> (Option<f64>, Vec<Session>) {
    let is_same = |e: &&Effect| e.metric == like.metric && e.baseline == like.baseline && e.arm == like.arm;
    let found = || side.iter().filter_map(|(at_ns, run)| Some((*at_ns, run, run.effects.iter().find(is_same)?)));
    let logs: Vec<f64> = found().map(|(.., effect)| effect.ratio.ln()).collect();
    let session = |(at_ns, run, effect): (Option<u64>, &ExperimentRun, &Effect)| Session {
        windows: log_ratios(&run.pairs_of(effect)),
        at_ns,
    };
    let rounds = found().map(session).collect();
    ((!logs.is_empty()).then(|| median(&logs).exp()), rounds)
}

/// An effect in both experiments, before it is judged beside everything else of the page.
pub(super) struct Draft {
    metric: String,
    title: String,
    baseline: String,
    arm: String,
    a_ratio: f64,
    b_ratio: f64,
    n_rounds: [usize; 2],
    /// None with too few rounds.
    pub(super) shift: Option<Shift>,
}

fn one(a: &[Timed], b: &[Timed], like: &Effect) -> Option<Draft> {
    let ((a_ratio, of_a), (b_ratio, of_b)) = (effect_in(a, like), effect_in(b, like));
    let (a_ratio, b_ratio, (_, first)) = (a_ratio?, b_ratio?, a.first()?);
    let shift = sessions::shift(&of_a, &of_b, sessions::ROUNDS);
    // Both effects and their ratio are one estimate.
    let (a_ratio, b_ratio) = shift.map_or((a_ratio, b_ratio), |s| (s.from.exp(), s.to.exp()));
    let title = first.metrics.iter().find(|m| m.id == like.metric).map_or(like.metric.clone(), |m| m.title.clone());
    Some(Draft {
        metric: like.metric.clone(),
        title,
        baseline: like.baseline.clone(),
        arm: like.arm.clone(),
        a_ratio,
        b_ratio,
        n_rounds: [&of_a, &of_b].map(|side| side.iter().map(|s| s.windows.len()).sum()),
        shift,
    })
}

impl Draft {
    /// Judged at the page's level; none where a number is none.
    pub(super) fn told(self, page: Page) -> Option<EffectDifference> {
        let Draft { metric, title, baseline, arm, a_ratio, b_ratio, n_rounds, shift } = self;
        let ratio = b_ratio / a_ratio;
        let judged = shift.map(|s| page.judge(s));
        let (interval, page) = (judged.map(|(_, ends, _)| ends), judged.map_or(page, |(.., page)| page));
        let (ratio_low, ratio_high) = (interval.map(|(low, _)| low), interval.map(|(_, high)| high));
        if !ratio.is_finite() || ratio <= 0.0 {
            return None;
        }
        let verdict = judged.map_or(Verdict::Undecided, |(verdict, ..)| verdict);
        let says = match verdict {
            Verdict::Higher => word!("the setting matters more in B"),
            Verdict::Lower => word!("the setting matters less in B"),
            Verdict::NoDifference => word!("the setting matters the same in both"),
            Verdict::Undecided => word!("whether it matters the same in both is undecided"),
        };
        let sentence = say!(
            "{}: \"{}\" is {} times \"{}\" in A and {} times in B; {says} (ratio of ratios {}, {})",
            titles::shown(&title),
            baseline,
            ratio::show(a_ratio),
            arm,
            ratio::show(b_ratio),
            ratio::show(ratio),
            interval.zip(shift).map_or(word!("too few rounds for an interval").into(), |(ends, s)| ratio::interval(
                ends, page, s.covers
            ))
        );
        Some(EffectDifference {
            metric,
            title,
            baseline,
            arm,
            a_ratio,
            b_ratio,
            ratio,
            ratio_low,
            ratio_high,
            covers: shift.map(|s| s.covers),
            interval_level: shift.map(|_| page.level),
            p_value: shift.map(|s| s.p_value),
            n_rounds,
            verdict,
            sentence,
        })
    }
}

//! Two experiments with the same arms: does turning the same setting do the same on both?
//!
//! Each experiment compares its arms on one machine in random order, so a machine that is simply slower, or an hour that
//! was busier, cancels inside it. The ratio of the two effects (a ratio of ratios) is therefore the one number of an
//! unpaired comparison that is about the setting. What is left confounded is everything that changes how strong the effect
//! is: hardware, kernel, the other settings.

use super::ratio;
use crate::evidence::Evidence;
use crate::samples::Samples;
use crate::samples::experiment::{Effect, ExperimentRun, Verdict};
use crate::stats::paired::log_ratios;
use crate::stats::unpaired;
use serde::Serialize;

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
    /// Lower end of the 95 % interval of the second effect over the first.
    pub ratio_low: f64,
    /// Upper end of that interval.
    pub ratio_high: f64,
    /// Permutation test over rounds; none where the rounds are too few and the interval comes from the two effects' own.
    pub p_value: Option<f64>,
    /// Rounds in the first and in the second.
    pub n_rounds: [usize; 2],
    /// `higher`: the effect is larger in the second run.
    pub verdict: Verdict,
    /// The difference in a sentence.
    pub sentence: String,
}

/// All pairs of effects with the same metric and the same arms.
pub fn of(a: &Evidence, b: &Evidence) -> Vec<EffectDifference> {
    let (in_a, in_b) = (experiments(&a.samples), experiments(&b.samples));
    let is_same = |x: &ExperimentRun, y: &ExperimentRun| arms(x) == arms(y) && primary(x) == primary(y);
    let both = in_a.into_iter().filter_map(|(of, x)| {
        // The idle experiment and that of disk reads are one of a kind, whichever arms each host allowed.
        let one_of_a_kind = |y: &ExperimentRun| of != Of::Settings || is_same(x, y);
        in_b.iter().find(|(other, y)| *other == of && one_of_a_kind(y)).map(|(_, y)| (x, *y))
    });
    both.flat_map(|(a, b)| a.effects.iter().filter_map(|effect| one(a, b, effect)).collect::<Vec<_>>()).collect()
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

fn one(a: &ExperimentRun, b: &ExperimentRun, in_a: &Effect) -> Option<EffectDifference> {
    let is_same = |e: &&Effect| e.metric == in_a.metric && e.baseline == in_a.baseline && e.arm == in_a.arm;
    let in_b = b.effects.iter().find(is_same)?;
    let rounds = |run: &ExperimentRun, effect| log_ratios(&run.pairs_of(effect));
    let (of_a, of_b) = (rounds(a, in_a), rounds(b, in_b));
    let (shift, low, high, p_value) = match unpaired::shift(&of_a, &of_b, a.seed ^ b.seed) {
        Some(s) => (s.shift, s.low, s.high, Some(s.p_value)),
        None => {
            // The half widths of the two intervals, as errors that do not know of each other.
            let half = |e: &Effect| (e.ratio_high.ln() - e.ratio_low.ln()) / 2.0;
            let (shift, half) = (in_b.ratio.ln() - in_a.ratio.ln(), half(in_a).hypot(half(in_b)));
            (shift, shift - half, shift + half, None)
        }
    };
    let (ratio, ratio_low, ratio_high) = (shift.exp(), low.exp(), high.exp());
    if ![ratio, ratio_low, ratio_high].iter().all(|r| r.is_finite() && *r > 0.0) {
        return None;
    }
    let verdict = ratio::verdict(ratio_low, ratio_high, p_value);
    let title = a.metrics.iter().find(|m| m.id == in_a.metric).map_or(in_a.metric.clone(), |m| m.title.clone());
    let says = match verdict {
        Verdict::Higher => "the setting matters more in B",
        Verdict::Lower => "the setting matters less in B",
        Verdict::NoDifference => "the setting matters the same in both",
        Verdict::Undecided => "whether it matters the same in both is undecided",
    };
    let sentence = format!(
        "{title}: \"{}\" is {} times \"{}\" in A and {} times in B; {says} (ratio of ratios {}, {})",
        in_a.baseline,
        ratio::show(in_a.ratio),
        in_a.arm,
        ratio::show(in_b.ratio),
        ratio::show(ratio),
        ratio::interval(ratio_low, ratio_high)
    );
    Some(EffectDifference {
        metric: in_a.metric.clone(),
        title,
        baseline: in_a.baseline.clone(),
        arm: in_a.arm.clone(),
        a_ratio: in_a.ratio,
        b_ratio: in_b.ratio,
        ratio,
        ratio_low,
        ratio_high,
        p_value,
        n_rounds: [of_a.len(), of_b.len()],
        verdict,
        sentence,
    })
}

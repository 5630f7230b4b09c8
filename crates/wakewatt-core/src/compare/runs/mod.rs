//! Two recorded runs: what they measured differently, and what may and may not be said about why.
//!
//! Nothing pairs two runs: machine, time, kernel and settings differ together. So the numbers get the same words as an
//! experiment's (higher, lower, no difference, undecided), always about the runs and never about a setting; settings are
//! named as suspects ([`super::suspects`]). Three strengths, said with each number:
//! - several windows on each side (rounds, repetitions): shift with bootstrap and permutation test ([`unpaired`]);
//! - one window (or two, three): the interval of its samples, which says how well that window was measured and not how the machine varies;
//! - both runs hold an experiment with the same arms: the effects are compared ([`super::effects`]).
//!
//! Case K3 is the model: "service time grew by a steady 30 us; residency moved from C1 to C6" after a kernel upgrade. A
//! change counts as steady where all of the middle of the distribution moved by about the same: what a longer exit does,
//! and a slower disk does not.

use super::effects::{self, EffectDifference};
use super::quantities::{self, Measure, Quantity};
use super::ratio;
use super::residency::{self, Residency};
use super::suspects::{self, Suspect};
use super::{Comparison, compare};
use crate::evidence::Evidence;
use crate::samples::experiment::{Better, Verdict};
use crate::samples::load::LoadRun;
use crate::stats::unpaired;
use serde::Serialize;

/// Of a number's own permutation test and bootstrap; fixed, so that a comparison can be repeated.
const SEED: u64 = 1;
/// A steady change moves every quartile by the same, within this share of it.
const STEADY_RATIO: f64 = 0.35;

/// How well a difference is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Several windows on each side.
    Windows,
    /// The samples of one window on each side, or of two or three from the lowest end to the highest.
    FewWindows,
    /// Single numbers, of which nobody knows how they scatter.
    NoInterval,
}

/// One quantity that both runs measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleDifference {
    /// Id of the quantity, see [`Quantity::id`].
    pub id: String,
    /// wakeup, network, disk, memory, load …
    pub kind: String,
    /// Name of the quantity for people.
    pub title: String,
    /// What the numbers are in.
    pub measure: Measure,
    /// Which way is better.
    pub better: Better,
    /// In the first run.
    pub a: f64,
    /// The value in the second run, in the quantity's unit.
    pub b: f64,
    /// The second over the first.
    pub ratio: f64,
    /// 95 % interval; none where there is only a number.
    pub ratio_low: Option<f64>,
    /// Upper end of the ratio's interval; none where there is no interval.
    pub ratio_high: Option<f64>,
    /// Second minus first, in the quantity's unit.
    pub difference: f64,
    /// Did the whole middle of the distribution move by the same? None where it is not known or nothing moved.
    pub is_steady: Option<bool>,
    /// Permutation test, where there are windows.
    pub p_value: Option<f64>,
    /// How well it is known.
    pub basis: Basis,
    /// Windows in the first and in the second.
    pub n_windows: [usize; 2],
    /// `higher`: the second run's value is higher. About the runs, not about a setting.
    pub verdict: Verdict,
    /// The difference in a sentence.
    pub sentence: String,
}

/// What differs between two runs, measured quantity by quantity.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunComparison {
    /// What stands out, first things first.
    pub summary: Vec<String>,
    /// Every quantity that both measured.
    pub samples: Vec<SampleDifference>,
    /// Experiments with the same arms.
    pub effects: Vec<EffectDifference>,
    /// Idle time by state.
    pub residency: Vec<Residency>,
    /// What differs and could explain it.
    pub suspects: Vec<Suspect>,
    /// What must not be concluded, and what would tell.
    pub cannot_conclude: Vec<String>,
    /// Quantities that only one of them measured.
    pub n_only_one: usize,
}

/// Compares two runs: facts and samples.
pub fn compare_runs(a: &Evidence, b: &Evidence) -> Comparison {
    let mut comparison = compare(&[a.facts.clone(), b.facts.clone()]);
    let (of_a, of_b) = (quantities::of(a), quantities::of(b));
    let pair = |x: &Quantity| Some(difference(x, of_b.iter().find(|y| y.id == x.id)?));
    let samples: Vec<SampleDifference> = of_a.iter().filter_map(pair).collect();
    let effects = effects::of(a, b);
    let residency = residency::of(a, b);
    let suspects = suspects::of(a, b, &comparison);
    let n_only_one = of_a.len() + of_b.len() - 2 * samples.len();
    let runs = RunComparison {
        summary: summary(&samples, &effects, &residency, &suspects),
        cannot_conclude: cannot_conclude(a, b, &samples, &effects),
        samples,
        effects,
        residency,
        suspects,
        n_only_one,
    };
    comparison.runs = Some(Box::new(runs));
    comparison
}

/// One quantity of both runs.
fn difference(a: &Quantity, b: &Quantity) -> SampleDifference {
    let logs = |q: &Quantity| q.windows.iter().map(|v| v.ln()).collect::<Vec<f64>>();
    let (mut ratio, mut low, mut high, mut p_value) = (b.value / a.value, None, None, None);
    let mut basis = Basis::NoInterval;
    if let Some(shift) = unpaired::shift(&logs(a), &logs(b), SEED) {
        basis = Basis::Windows;
        ratio = shift.shift.exp();
        (low, high, p_value) = (Some(shift.low.exp()), Some(shift.high.exp()), Some(shift.p_value));
    } else if let (Some(a_low), Some(a_high), Some(b_low), Some(b_high)) = (a.low, a.high, b.low, b.high) {
        basis = Basis::FewWindows;
        // Both ends at once: wider than needed, on purpose.
        (low, high) = (Some(b_low / a_high.max(1.0)), Some(b_high / a_low.max(1.0)));
    }
    let verdict = low.zip(high).map_or(Verdict::Undecided, |(low, high)| ratio::verdict(low, high, p_value));
    let is_moved = matches!(verdict, Verdict::Higher | Verdict::Lower);
    let is_steady = a.shape_ns.zip(b.shape_ns).filter(|_| is_moved).map(|(a, b)| is_steady(&a, &b));
    let mut found = SampleDifference {
        id: a.id.clone(),
        kind: a.kind.clone(),
        title: a.title.clone(),
        measure: a.measure,
        better: a.better,
        a: a.value,
        b: b.value,
        ratio,
        ratio_low: low,
        ratio_high: high,
        difference: b.value - a.value,
        is_steady,
        p_value,
        basis,
        n_windows: [a.windows.len(), b.windows.len()],
        verdict,
        sentence: String::new(),
    };
    found.sentence = sentence(&found);
    found
}

fn is_steady(a: &[f64; 5], b: &[f64; 5]) -> bool {
    let moves: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
    let (low, high) = moves.iter().fold((f64::MAX, f64::MIN), |(l, h), m| (l.min(*m), h.max(*m)));
    moves[2] != 0.0 && high - low <= STEADY_RATIO * moves[2].abs()
}

/// A difference of two rounded numbers has no third digit.
fn two_digits(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return value;
    }
    let step = 10f64.powf(value.log10().floor() - 1.0);
    (value / step).round() * step
}

fn sentence(d: &SampleDifference) -> String {
    let (a, b) = (d.measure.show(d.a), d.measure.show(d.b));
    let interval = match d.ratio_low.zip(d.ratio_high) {
        Some((low, high)) => {
            format!("; B is {} times A, {}", ratio::show(d.ratio), ratio::interval(low, high))
        }
        None => format!("; B is {} times A, without an interval", ratio::show(d.ratio)),
    };
    // In an open loop the latency counts from the plan, which is more than the service time.
    let is_service = d.kind == "disk" && (d.id.contains(".closed") || d.id.contains(".service"));
    let name = if is_service { "service time" } else { "it" };
    let size = d.measure.show(two_digits(d.difference.abs()));
    let says = match (d.verdict, d.is_steady) {
        (Verdict::Higher, Some(true)) => format!("{name} grew by a steady {size}"),
        (Verdict::Lower, Some(true)) => format!("{name} shrank by a steady {size}"),
        (Verdict::Higher, _) => format!("higher in B by {size}"),
        (Verdict::Lower, _) => format!("lower in B by {size}"),
        (Verdict::NoDifference, _) => "no difference worth a word".into(),
        (Verdict::Undecided, _) => "undecided".into(),
    };
    let how = match d.basis {
        Basis::Windows => format!("{} and {} windows", d.n_windows[0], d.n_windows[1]),
        Basis::FewWindows if d.n_windows == [1, 1] => "one window each".into(),
        Basis::FewWindows => {
            format!("{} and {} windows, all of their intervals together", d.n_windows[0], d.n_windows[1])
        }
        Basis::NoInterval if d.n_windows == [1, 1] => "one number each".into(),
        Basis::NoInterval => format!("{} and {} windows, too few for an interval", d.n_windows[0], d.n_windows[1]),
    };
    format!("{}: {says} ({a} in A, {b} in B{interval}; {how})", d.title)
}

/// What a reader should see first: medians that moved, each with its p99 left out, then where the idle time went.
fn summary(
    samples: &[SampleDifference],
    effects: &[EffectDifference],
    residency: &[Residency],
    suspects: &[Suspect],
) -> Vec<String> {
    let is_moved = |verdict| matches!(verdict, Verdict::Higher | Verdict::Lower);
    let mut moved: Vec<&SampleDifference> =
        samples.iter().filter(|d| is_moved(d.verdict) && !d.id.ends_with(".p99")).collect();
    moved.sort_by(|x, y| y.ratio.ln().abs().total_cmp(&x.ratio.ln().abs()));
    let mut lines: Vec<String> = moved.iter().take(5).map(|d| d.sentence.clone()).collect();
    lines.extend(effects.iter().filter(|e| is_moved(e.verdict)).take(3).map(|e| e.sentence.clone()));
    // Since boot is said only where nothing better is.
    let better = residency.iter().filter(|r| r.when != "since boot");
    let mut shifts: Vec<&Residency> = better.filter(|r| r.moved.is_some()).collect();
    if shifts.is_empty() {
        shifts = residency.iter().filter(|r| r.moved.is_some()).collect();
    }
    lines.extend(shifts.iter().filter_map(|r| Some(format!("{}, {}", r.when, r.moved.as_ref()?))));
    if !moved.is_empty() {
        lines.extend(suspects.first().map(|s| format!("first suspect: {}", s.line())));
    }
    lines
}

fn cannot_conclude(
    a: &Evidence,
    b: &Evidence,
    samples: &[SampleDifference],
    effects: &[EffectDifference],
) -> Vec<String> {
    let mut lines: Vec<String> = other_work(a, b).into_iter().collect();
    if samples.is_empty() && effects.is_empty() {
        lines.push(
            "No quantity was measured in both runs with the same parameters, so nothing measured can be compared."
                .into(),
        );
        return lines;
    }
    let model = |e: &Evidence| (e.facts.topology.processor().map(ToString::to_string), e.facts.cpus.running().count());
    let machine = if model(a) == model(b) { "machine (the same model)" } else { "machine (different models)" };
    let version = |e: &Evidence| e.facts.kernel.release.get().cloned();
    let kernel = match (version(a), version(b)) {
        (Some(a), Some(b)) if a == b => "time (the kernel release is the same)".to_string(),
        (Some(a), Some(b)) => format!("time and kernel ({a} and {b})"),
        _ => "time and kernel".to_string(),
    };
    lines.push(format!(
        "The runs are not paired: {machine}, {kernel} and every setting differ together, so no number above is the effect \
         of one setting. To know one, turn it on one machine: wakewatt doctor, or wakewatt measure disk --experiment."
    ));
    if samples.iter().any(|d| d.basis == Basis::FewWindows) {
        lines.push(
            "Numbers from one window each, or few: the interval says how well they were measured, not how the machine \
             varies from window to window. Nothing about settings follows; repeat each run a few times."
                .into(),
        );
    }
    if samples.iter().any(|d| d.basis == Basis::NoInterval) {
        lines.push("Numbers without an interval: larger or smaller is all that can be said, and not for sure.".into());
    }
    if !effects.is_empty() {
        lines.push(
            "A ratio of ratios is free of what makes one machine slower as a whole, but not of what makes a setting matter \
             more: hardware, kernel, the other settings."
                .into(),
        );
    }
    lines
}

/// Loads of one title whose transactions are not the same work.
fn other_work(a: &Evidence, b: &Evidence) -> Option<String> {
    let other = |x: &&LoadRun| {
        let same = b.samples.load.iter().filter(|y| y.kind == x.kind && y.title == x.title);
        let theirs: Vec<u64> = same.filter_map(|y| y.work_units).collect();
        let ours = x.work_units?;
        (!theirs.is_empty() && !theirs.contains(&ours)).then(|| (ours, theirs[0]))
    };
    let (title, (ours, theirs)) = a.samples.load.iter().find_map(|x| Some((&x.title, other(&x)?)))?;
    Some(format!(
        "\"{title}\": a transaction is {ours} units of work in A and {theirs} in B, because each run found out by its own clock \
         what takes so long, so neither rates nor watts are compared. Repeat one with --work {ours}."
    ))
}

#[cfg(test)]
mod tests;

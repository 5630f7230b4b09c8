//! Recorded runs on two sides: what they measured differently, and what may and may not be said about why.
//!
//! Nothing pairs two runs: machine, time, kernel and settings differ together. So the numbers get the same words as an
//! experiment's (higher, lower, no difference, undecided), always about the runs and never about a setting; settings are
//! named as suspects ([`super::suspects`]). How much may be said, with each number ([`sessions`]):
//! - several runs on a side: the run is the unit, and the interval covers the machines;
//! - four windows and more on each side (rounds, repetitions): the interval is over windows, which are taken to resemble each
//!   other, and covers these two runs;
//! - several runs on a side that did not take turns: the interval covers the hours they were measured in;
//! - fewer windows: undecided, whatever the numbers. How well one window was measured says nothing of the next one: of
//!   quiet pairs of the same setting half were once called different by it.
//!
//! A page compares many quantities at once, so verdict and interval of each are adjusted: of what a page calls different at most 5 % is not,
//! in the mean over pages ([`crate::stats::discoveries`]). Both values and the ratio are one estimate.
//!
//! Both may hold an experiment with the same arms: the effects are compared ([`super::effects`]).
//!
//! Case K3 is the model: "service time grew by a steady 30 us; residency moved from C1 to C6" after a kernel upgrade. A
//! change counts as steady where all of the middle of the distribution moved by about the same: what a longer exit does,
//! and a slower disk does not.

mod cautions;
mod sentence;

use super::effects::{self, EffectDifference};
use super::measure::{Aspect, Measure};
use super::quantities::{self, Quantity, WindowInterval};
use super::ratio::Page;
use super::residency::{self, Residency};
use super::suspects::{self, Suspect};
use super::{Comparison, compare};
use crate::arrange::Arrange as _;
use crate::covers::Covers;
use crate::evidence::Evidence;
use crate::samples::experiment::{Better, Verdict};
use crate::stats::paired::median;
use crate::stats::sessions::{self, MIN_WINDOWS, Session, Shift};
use serde::Serialize;
use wakewatt_words::{say, told};

/// A steady change moves every quartile by the same, within this share of it.
const STEADY_RATIO: f64 = 0.35;

/// How well a difference is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Several runs on a side: between them lies what a machine does from hour to hour.
    Sessions,
    /// Four windows and more in the one run of each side.
    Windows,
    /// Too few windows to say how they vary.
    FewWindows,
}

/// Why nothing is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Undecided {
    /// Fewer than four windows on a side: no difference can be told from what the quantity does by itself.
    FewWindows,
    /// The interval holds 1, and more than 5 % beside it.
    WideInterval,
}

/// What would decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// The same load several times in one run: `load … --repeat 4`.
    RepeatLoad,
    /// Several runs on each side, compared together: `compare A1 A2 A3 --against B1 B2 B3`.
    RepeatRuns,
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
    /// What it is about: latency, rate, CPU time, power …
    pub aspect: Aspect,
    /// Which way is better.
    pub better: Better,
    /// On the first side: the geometric mean of its windows, or of its runs where there are several; the median where there are too few
    /// windows for an interval.
    pub a: f64,
    /// The value on the second side, by the same estimator.
    pub b: f64,
    /// Where the first side is one window: how well that window is known.
    pub a_window: Option<WindowInterval>,
    /// Where the second side is one window: how well that window is known.
    pub b_window: Option<WindowInterval>,
    /// The second over the first.
    pub ratio: f64,
    /// 95 % interval, adjusted for all comparisons of the page unless there is no difference; none where there are too few windows.
    pub ratio_low: Option<f64>,
    /// Upper end of the ratio's interval; none where there is no interval.
    pub ratio_high: Option<f64>,
    /// What the ratio's interval covers: the two runs; where there are several on a side the machines, or their hours only.
    pub covers: Option<Covers>,
    /// The error rate of the ratio's interval: 0.05 for a page of one comparison, less where more are adjusted together.
    pub interval_level: Option<f64>,
    /// Second minus first, in the quantity's unit.
    pub difference: f64,
    /// Did the whole middle of the distribution move by the same? None where it is not known or nothing moved.
    pub is_steady: Option<bool>,
    /// Two-sided, of the t that the interval is made with, by itself: it is called different where this is at most `interval_level`. None
    /// where there is no interval.
    pub p_value: Option<f64>,
    /// Degrees of freedom of that t.
    pub freedom: Option<f64>,
    /// Standard error of the logarithm of the ratio; none where there is no interval.
    pub error_ln: Option<f64>,
    /// How well it is known.
    pub basis: Basis,
    /// Windows on the first side and on the second, of all runs.
    pub n_windows: [usize; 2],
    /// Runs with this quantity on the first side and on the second.
    pub n_runs: [usize; 2],
    /// `higher`: the second run's value is higher. About the runs, not about a setting.
    pub verdict: Verdict,
    /// Why nothing is decided; none where something is.
    pub undecided_because: Option<Undecided>,
    /// What would decide it; none where something is decided.
    pub decided_by: Option<Decider>,
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
    /// Those that the second side lacks, or has in fewer of its runs: a level may have broken a rule there, and be missing because it was bad.
    pub lost: Vec<Lost>,
}

/// A quantity that the second side lacks in all or some of its runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lost {
    /// The quantity's id.
    pub id: String,
    /// Its name for people.
    pub title: String,
    /// What it is about.
    pub aspect: Aspect,
}

/// Compares two sides, one run or several of each: facts of the first ones, and samples of all.
pub fn compare_runs(a: &[Evidence], b: &[Evidence]) -> Comparison {
    let (Some(first_a), Some(first_b)) = (a.first(), b.first()) else { return compare(&[]) };
    let mut comparison = compare(&[first_a.facts.clone(), first_b.facts.clone()]);
    let (of_a, of_b) = (Side::of(a), Side::of(b));
    let both = of_a.iter().filter_map(|x| Some((x, of_b.iter().find(|y| y.first.id == x.first.id)?)));
    let shift = |x: &Side, y: &Side| sessions::shift(&x.sessions, &y.sessions, sessions::NEIGHBOURS);
    let pairs: Vec<(&Side, &Side, Option<Shift>)> = both.map(|(x, y)| (x, y, shift(x, y))).collect();
    let drafts = effects::of(a, b);
    let p_values = pairs.iter().filter_map(|(.., shift)| *shift).chain(drafts.iter().filter_map(|d| d.shift));
    let page = Page::of(&p_values.map(|shift| shift.p_value).collect::<Vec<_>>());
    let samples: Vec<SampleDifference> = pairs.iter().map(|(x, y, shift)| difference(x, y, *shift, page)).collect();
    let effects: Vec<EffectDifference> = drafts.into_iter().filter_map(|draft| draft.told(page)).collect();
    let residency = residency::of(first_a, first_b);
    let suspects = suspects::of(first_a, first_b, &comparison);
    let n_only_one = of_a.len() + of_b.len() - 2 * samples.len();
    // In a smaller share of its runs than on the first side counts as lost, too: those that are left are the good ones.
    let share = |side: &Side, runs: &[Evidence]| side.sessions.len() as f64 / runs.len() as f64;
    let is_lost = |x: &&Side| {
        of_b.iter().find(|y| y.first.id == x.first.id).is_none_or(|y| share(y, b) + f64::EPSILON < share(x, a))
    };
    let lost = |x: &Side| Lost { id: x.first.id.clone(), title: x.first.title.clone(), aspect: x.first.aspect };
    let runs = RunComparison {
        lost: of_a.iter().filter(is_lost).map(lost).collect(),
        summary: summary(&samples, &effects, &residency, &suspects),
        cannot_conclude: cautions::of(first_a, first_b, &samples, &effects),
        samples,
        effects,
        residency,
        suspects,
        n_only_one,
    };
    comparison.runs = Some(Box::new(runs));
    comparison
}

/// A quantity, and when its run began.
type Timed = (Quantity, Option<u64>);

/// One quantity in the runs of one side.
struct Side {
    /// As the first run with it has it.
    first: Quantity,
    /// The windows, run by run.
    sessions: Vec<Session>,
    /// The middle of the runs' values.
    value: f64,
}

impl Side {
    fn of(runs: &[Evidence]) -> Vec<Side> {
        let mut all: Vec<(Quantity, Vec<Timed>)> = Vec::new();
        for run in runs {
            let at_ns = run.begun_at_ns();
            for quantity in quantities::of(run) {
                match all.iter_mut().find(|(first, _)| first.id == quantity.id) {
                    Some((_, known)) => known.push((quantity, at_ns)),
                    None => all.push((quantity.clone(), vec![(quantity, at_ns)])),
                }
            }
        }
        let session = |(quantity, at_ns): &Timed| Session {
            windows: quantity.windows.iter().map(|v| v.ln()).collect(),
            at_ns: *at_ns,
        };
        let side = |(first, known): (Quantity, Vec<Timed>)| {
            let values: Vec<f64> = known.iter().map(|(q, _)| q.value).collect();
            Side { sessions: known.iter().map(session).collect(), value: median(&values), first }
        };
        all.into_iter().map(side).collect()
    }

    fn n_windows(&self) -> usize {
        self.sessions.iter().map(|s| s.windows.len()).sum()
    }

    /// Of several runs the interval of one window would be of none in particular.
    fn window(&self) -> Option<WindowInterval> {
        self.first.interval.filter(|_| self.n_windows() == 1)
    }
}

/// One quantity of both sides.
fn difference(a: &Side, b: &Side, shift: Option<Shift>, page: Page) -> SampleDifference {
    let judged = shift.map(|s| page.judge(s));
    let verdict = judged.map_or(Verdict::Undecided, |(verdict, ..)| verdict);
    let (interval, page) = (judged.map(|(_, ends, _)| ends), judged.map_or(page, |(.., page)| page));
    let n_windows = [a.n_windows(), b.n_windows()];
    let n_runs = [a.sessions.len(), b.sessions.len()];
    let basis = match shift.map(|s| s.covers) {
        None => Basis::FewWindows,
        Some(Covers::Window | Covers::Run) => Basis::Windows,
        Some(Covers::Hours | Covers::Machine | Covers::Machines) => Basis::Sessions,
    };
    let is_undecided = verdict == Verdict::Undecided;
    let why = if n_windows.iter().any(|n| *n < MIN_WINDOWS) { Undecided::FewWindows } else { Undecided::WideInterval };
    let decider = match (a.first.kind.as_str(), basis) {
        ("load", Basis::FewWindows) => Decider::RepeatLoad,
        _ => Decider::RepeatRuns,
    };
    // Values and ratio are one estimate: whoever divides one by the other finds what is printed.
    let (value_a, value_b) = shift.map_or((a.value, b.value), |s| (s.from.exp(), s.to.exp()));
    let is_moved = matches!(verdict, Verdict::Higher | Verdict::Lower);
    let shapes = a.first.shape_ns.zip(b.first.shape_ns).filter(|_| is_moved);
    let mut found = SampleDifference {
        id: a.first.id.clone(),
        kind: a.first.kind.clone(),
        title: a.first.title.clone(),
        measure: a.first.measure,
        aspect: if b.first.aspect == Aspect::Modelled { Aspect::Modelled } else { a.first.aspect },
        better: a.first.better,
        a: value_a,
        b: value_b,
        a_window: a.window(),
        b_window: b.window(),
        ratio: value_b / value_a,
        ratio_low: interval.map(|(low, _)| low),
        ratio_high: interval.map(|(_, high)| high),
        covers: shift.map(|s| s.covers),
        interval_level: shift.map(|_| page.level),
        difference: value_b - value_a,
        is_steady: shapes.map(|(a, b)| is_steady(&a, &b)),
        p_value: shift.map(|s| s.p_value),
        freedom: shift.map(|s| s.freedom),
        error_ln: shift.map(|s| s.error),
        basis,
        n_windows,
        n_runs,
        verdict,
        undecided_because: is_undecided.then_some(why),
        decided_by: is_undecided.then_some(decider),
        sentence: String::new(),
    };
    found.sentence = sentence::of(&found, page);
    found
}

fn is_steady(a: &[f64; 5], b: &[f64; 5]) -> bool {
    let moves: Vec<f64> = a.iter().zip(b).map(|(a, b)| b - a).collect();
    let (low, high) = moves.iter().fold((f64::MAX, f64::MIN), |(l, h), m| (l.min(*m), h.max(*m)));
    moves[2] != 0.0 && high - low <= STEADY_RATIO * moves[2].abs()
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
    moved.arrange_by(|x, y| y.ratio.ln().abs().total_cmp(&x.ratio.ln().abs()));
    let is_few = |d: &SampleDifference| d.undecided_because == Some(Undecided::FewWindows);
    let mut lines: Vec<String> = moved.iter().take(5).map(|d| d.sentence.clone()).collect();
    lines.extend(effects.iter().filter(|e| is_moved(e.verdict)).take(3).map(|e| e.sentence.clone()));
    if !samples.is_empty() && samples.iter().all(is_few) {
        lines.push(say!("nothing measured is called different: fewer than {MIN_WINDOWS} windows on a side"));
    }
    // Since boot is said only where nothing better is.
    let better = residency.iter().filter(|r| r.when != residency::SINCE_BOOT);
    let mut shifts: Vec<&Residency> = better.filter(|r| r.moved.is_some()).collect();
    if shifts.is_empty() {
        shifts = residency.iter().filter(|r| r.moved.is_some()).collect();
    }
    lines.extend(shifts.iter().filter_map(|r| Some(say!("{}, {moved}", told(&r.when), moved = r.moved.as_ref()?))));
    if !moved.is_empty() {
        lines.extend(suspects.first().map(|s| say!("first suspect: {}", s.line())));
    }
    lines
}

#[cfg(test)]
mod tests;

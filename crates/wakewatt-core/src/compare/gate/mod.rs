//! A gate for pipelines: is the second side worse than allowed, beyond doubt?
//!
//! A pipeline that fails by chance is switched off, so a rule fails only where the whole 95 % interval lies beyond what it
//! allows; where the interval holds the limit, or there is none, it is unsure, and that fails only where `unsure` is a rule,
//! too. A gate looks at many quantities at once, and of forty one would stand out by luck: the one-sided p-values are adjusted
//! together (Holm 1979), so of gates between sides that do not differ at most one in forty fails, however much they look at, where
//! several runs of each side took turns. Of one run on each side it holds for these two runs: where runs of the same differ by
//! themselves more gates fail, which the gate then says (`docs/methods/gate-compare.md` counts them). Who wants more power looks at less
//! (`latency@p99:10%`). A rule that finds nothing to look at is no rule that holds: the gate
//! has not passed.
//!
//! `docs/methods/gate-ci.md` has the arithmetic and what was tried.

mod rule;

pub(crate) use rule::words;
pub use rule::{Rule, Worse};

use super::ratio;
use super::runs::{Decider, RunComparison, SampleDifference};
use crate::covers::Covers;
use crate::samples::experiment::Better;
use crate::samples::titles;
use crate::stats::normal::{student_point, student_tail};
use crate::stats::paired::holm;
use crate::stats::sessions::{LEVEL, MIN_WINDOWS};
use crate::units::three_digits;
use serde::Serialize;
use wakewatt_words::{say, word};

/// How a quantity stands to a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// At most as much worse as is allowed, beyond doubt.
    Holds,
    /// Worse than allowed, beyond doubt.
    Worse,
    /// Too few windows to say how they vary.
    NoInterval,
    /// The interval holds the limit.
    WideInterval,
    /// By itself it would be worse; among so many that are looked at it may be chance.
    MayBeChance,
}

impl Standing {
    /// Is it one of the three ways not to know?
    pub fn is_unsure(self) -> bool {
        !matches!(self, Standing::Holds | Standing::Worse)
    }
}

/// One quantity under one rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// The rule, as it was written.
    pub rule: String,
    /// Id of the quantity.
    pub id: String,
    /// Name of the quantity for people.
    pub title: String,
    /// How it stands.
    pub standing: Standing,
    /// Does the gate fail because of it?
    pub fails: bool,
    /// How much worse the second side is: 0.05 for 5 %, below 0 where it is better.
    pub worse_ratio: f64,
    /// Lower end of the 95 % interval of that.
    pub worse_low_ratio: Option<f64>,
    /// Upper end of that interval.
    pub worse_high_ratio: Option<f64>,
    /// What that interval covers.
    pub covers: Option<Covers>,
    /// One-sided, that it is not worse than allowed; adjusted for everything the gate looks at.
    pub p_value: Option<f64>,
    /// In a sentence.
    pub sentence: String,
}

/// How a gate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum GateEnd {
    /// Nothing is worse than allowed as far as can be told, and every rule had something to look at.
    Passed,
    /// A rule failed.
    Failed,
    /// No rule failed, and one had nothing to look at.
    NothingToJudge,
}

/// What a gate came to.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gate {
    /// How it ended.
    pub end: GateEnd,
    /// In a sentence.
    pub sentence: String,
    /// Every quantity under every rule that looks at it; what fails first.
    pub checks: Vec<Check>,
    /// What rules could not look at: no quantity of both sides, or one that the second side lacks.
    pub without_quantity: Vec<String>,
}

/// Judges what was measured on both sides.
pub fn judge(rules: &[Rule], runs: &RunComparison) -> Gate {
    let is_unsure_wrong = rules.contains(&Rule::Unsure);
    let mut looked: Vec<(&Rule, &Worse, &SampleDifference)> = Vec::new();
    let mut without_quantity = Vec::new();
    for rule in rules {
        let Rule::Worse(worse) = rule else { continue };
        let n_before = looked.len();
        let of_rule = runs.samples.iter().filter(|d| worse.is_about(d.aspect, &d.id, &d.title));
        looked.extend(of_rule.map(|d| (rule, worse, d)));
        if looked.len() == n_before {
            without_quantity.push(say!("{rule}: no {} was measured on both sides", worse.subject()));
        }
        let lost = runs.lost.iter().filter(|l| worse.is_about(l.aspect, &l.id, &l.title));
        without_quantity
            .extend(lost.map(|l| say!("{rule}: {} is missing in runs of the second side", titles::shown(&l.title))));
    }
    let known: Vec<Option<Known>> = looked.iter().map(|(_, worse, d)| Known::of(d, worse.allowed_ratio)).collect();
    let mut adjusted = holm(&known.iter().flatten().map(|k| k.p_value).collect::<Vec<_>>()).into_iter();
    let mut checks = Vec::new();
    for ((rule, worse, d), known) in looked.iter().zip(known) {
        let p_value = known.as_ref().and_then(|_| adjusted.next());
        let standing = standing(known.as_ref(), p_value, worse.allowed_ratio);
        checks.push(check(rule, d, known.as_ref(), p_value, standing, is_unsure_wrong));
    }
    checks.sort_by_key(|c| (!c.fails, c.standing == Standing::Holds));
    let end = match checks.iter().any(|c| c.fails) {
        true => GateEnd::Failed,
        false if without_quantity.is_empty() && !checks.is_empty() => GateEnd::Passed,
        false => GateEnd::NothingToJudge,
    };
    let mut sentence = sentence(end, &checks, &without_quantity);
    let worse: Vec<Covers> = checks.iter().filter(|c| c.standing == Standing::Worse).filter_map(|c| c.covers).collect();
    if let Some(narrow) = worse.into_iter().min().filter(|covers| *covers < Covers::Machine) {
        sentence = say!("{sentence} {}", scope(narrow));
    }
    Gate { end, sentence, checks, without_quantity }
}

/// What a failure says less than "the machines" of.
fn scope(covers: Covers) -> &'static str {
    match covers {
        Covers::Hours => word!(
            "This holds for the hours of these runs: the sides did not take turns, so drift of the machine may have failed it."
        ),
        _ => word!(
            "This holds for these two runs: others of the same two sides may differ by more. Give three runs of each side, taken in turns."
        ),
    }
}

/// How much worse, as logarithms, and how sure.
struct Known {
    low: f64,
    high: f64,
    p_value: f64,
}

impl Known {
    fn of(d: &SampleDifference, allowed_ratio: f64) -> Option<Known> {
        // The page's intervals are adjusted for the page; a gate adjusts for what it looks at.
        let (error, freedom, worse) = (d.error_ln?, d.freedom?, worse_ln(d, d.ratio));
        let half = student_point(LEVEL / 2.0, freedom) * error;
        let (low, high, beyond) = (worse - half, worse + half, worse - (1.0 + allowed_ratio).ln());
        let p_value = match error > 0.0 {
            true => student_tail(beyond / error, freedom),
            // Windows that are all the same vary by nothing.
            false => f64::from(beyond <= 0.0),
        };
        Some(Known { low, high, p_value })
    }
}

/// The logarithm of a ratio, above 0 where the second side is worse.
fn worse_ln(d: &SampleDifference, ratio: f64) -> f64 {
    match d.better {
        Better::Lower => ratio.ln(),
        Better::Higher => -ratio.ln(),
    }
}

fn standing(known: Option<&Known>, p_value: Option<f64>, allowed_ratio: f64) -> Standing {
    let (Some(known), Some(p_value)) = (known, p_value) else { return Standing::NoInterval };
    let limit = (1.0 + allowed_ratio).ln();
    if p_value <= LEVEL / 2.0 && known.low > limit {
        Standing::Worse
    } else if known.low > limit {
        Standing::MayBeChance
    } else if known.high <= limit {
        Standing::Holds
    } else {
        Standing::WideInterval
    }
}

fn check(
    rule: &Rule,
    d: &SampleDifference,
    known: Option<&Known>,
    p_value: Option<f64>,
    standing: Standing,
    is_unsure_wrong: bool,
) -> Check {
    let share = |ln: f64| ln.exp() - 1.0;
    let between = known.map(|k| (share(k.low), share(k.high)));
    let how = between.map_or(String::new(), |(low, high)| say!("{} to {}", percent(low), percent(high)));
    let says = match standing {
        Standing::Worse => say!("worse beyond doubt, {how}"),
        Standing::Holds => say!("holds, {how}"),
        Standing::WideInterval => say!("cannot tell, {how}; {}", would_decide(d)),
        Standing::MayBeChance => {
            say!("cannot tell, {how}: worse by itself, but of so many that are looked at one may be so by chance")
        }
        Standing::NoInterval => {
            say!("cannot tell with fewer than {MIN_WINDOWS} windows on a side; {}", would_decide(d))
        }
    };
    let covers = d.covers.map_or(String::new(), |covers| say!(", covers {covers}", covers = ratio::both(covers)));
    let sentence = say!(
        "{}: {says} ({} in A, {} in B; {} and {} windows in {} and {} runs{covers}; rule {rule})",
        titles::shown(&d.title),
        d.measure.show(d.a),
        d.measure.show(d.b),
        d.n_windows[0],
        d.n_windows[1],
        d.n_runs[0],
        d.n_runs[1],
    );
    Check {
        rule: rule.to_string(),
        id: d.id.clone(),
        title: d.title.clone(),
        standing,
        fails: standing == Standing::Worse || (is_unsure_wrong && standing.is_unsure()),
        worse_ratio: share(worse_ln(d, d.ratio)),
        worse_low_ratio: between.map(|(low, _)| low),
        worse_high_ratio: between.map(|(_, high)| high),
        covers: d.covers,
        p_value,
        sentence,
    }
}

fn would_decide(d: &SampleDifference) -> &'static str {
    match d.decided_by {
        Some(Decider::RepeatLoad) => word!("load --repeat 4 on each side would tell"),
        _ => word!("more runs on each side would tell"),
    }
}

/// `7 % worse`, `3 % better`.
fn percent(worse: f64) -> String {
    let shown = three_digits(worse.abs() * 100.0);
    if worse < 0.0 { say!("{shown} % better") } else { say!("{shown} % worse") }
}

fn sentence(end: GateEnd, checks: &[Check], without_quantity: &[String]) -> String {
    let n = |is: &dyn Fn(&Check) -> bool| checks.iter().filter(|c| is(c)).count();
    let counts = say!(
        "{} looked at: {} worse than allowed, {} unsure, {} within it",
        checks.len(),
        n(&|c| c.standing == Standing::Worse),
        n(&|c| c.standing.is_unsure()),
        n(&|c| c.standing == Standing::Holds),
    );
    match end {
        GateEnd::Failed => say!("The gate failed ({counts})."),
        // Not knowing is not holding, and the first line says so.
        GateEnd::Passed if checks.iter().all(|c| c.standing.is_unsure()) => {
            say!("The gate passed because nothing can be told ({counts}); --fail-on unsure would fail.")
        }
        GateEnd::Passed => say!("The gate passed ({counts})."),
        GateEnd::NothingToJudge if without_quantity.is_empty() => {
            word!("The gate has no rule that looks at a quantity; add one such as slower:5%.").into()
        }
        GateEnd::NothingToJudge => say!("The gate has nothing to judge: {}.", without_quantity.join("; ")),
    }
}

#[cfg(test)]
mod tests;

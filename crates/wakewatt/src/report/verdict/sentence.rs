//! The sentence on one comparison, and how sure it is: the answer, both medians, the ratio and its interval, in that order.
//!
//! How large the effect may be called is core's (`samples::stated`); here it is put beside its numbers.

use super::super::words::{clauses, ended, median, p_value, percent, plural, ratio, ratio_interval, value_rough};
use super::NO_DIFFERENCE;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::compared::Compared;
use wakewatt_core::samples::experiment::{Effect, ExperimentRun, Metric, Verdict as Word};
use wakewatt_core::samples::titles;
use wakewatt_core::units::rough_ns;
use wakewatt_words::{say, word};

/// `median cross-CPU wake-up 34 us with current settings, 3.0 us with idle states disabled (11.4x, 95 % CI 11.0–11.9)`.
fn numbers(run: &ExperimentRun, effect: &Effect) -> String {
    let metric = run.metrics.iter().find(|m| m.id == effect.metric);
    let of_arm = |arm: &str| {
        let at = run.metric_at(&effect.metric)?;
        Some(value_rough(metric?.unit, median(run.values(arm, at).map(|(_, value)| value))?))
    };
    let name = metric.map_or(effect.metric.clone(), Metric::named);
    let (a, b) = (arm(run, &effect.baseline), arm(run, &effect.arm));
    let medians = match (of_arm(&effect.baseline), of_arm(&effect.arm)) {
        (Some(with_a), Some(with_b)) => say!("{name} {with_a} with {a}, {with_b} with {b}"),
        _ => say!("{name} with {a} and with {b}"),
    };
    format!("{medians} ({})", size(run, effect))
}

/// Where an idle state precedes fewer of the wake-ups, it is not what their median shows.
const HARDLY_ENTERED: f64 = 0.1;

/// `11.4x, 95 % CI 11.0–11.9`.
fn size(run: &ExperimentRun, effect: &Effect) -> String {
    let interval = ratio_interval(effect.ratio_low, effect.ratio_high);
    match run.is_sized() {
        true => say!("{}x, 95 % CI {interval}", run.stated_ratio(effect).say(ratio)),
        false => say!("effect size not reported: {}", run.graded().reasons()),
    }
}

/// The baseline is slower.
pub(super) fn slower(run: &ExperimentRun, effect: &Effect) -> String {
    let numbers = numbers(run, effect);
    match effect.compared() {
        Compared::NoSleep if run.is_asleep_in(&effect.baseline) => {
            say!("Idle states cost latency here: {numbers}")
        }
        Compared::NoSleep => match run.slept_ratio(&effect.baseline) {
            // So few entries cannot make a median.
            Some(slept) if slept < HARDLY_ENTERED => say!(
                "Idle states are not the cost here, they preceded only {} of the wake-ups: {numbers}",
                percent(slept)
            ),
            Some(slept) => say!(
                "Idle states cost latency here, although the CPU was idle before only {} of the wake-ups: {numbers}",
                percent(slept)
            ),
            None => say!("Current settings are slower: {numbers}"),
        },
        Compared::ShallowSleep if run.is_deep_in(&effect.baseline) => {
            say!("Deep idle states cost latency here: {numbers}")
        }
        Compared::LimitsLifted => say!("Latency limits on single CPUs cost latency here: {numbers}"),
        Compared::ShallowSleep | Compared::Other => say!("Current settings are slower: {numbers}"),
    }
}

/// The baseline is faster.
pub(super) fn faster(run: &ExperimentRun, effect: &Effect) -> String {
    say!("The change makes it worse here: {}", numbers(run, effect))
}

/// They are as good as equal.
pub(super) fn no_difference(run: &ExperimentRun, effect: &Effect) -> String {
    let most = effect.ratio_high.max(1.0 / effect.ratio_low) - 1.0;
    say!("No difference larger than {}: {}", percent(most), numbers(run, effect))
}

/// None was found, and the machine was not steady enough to exclude one.
pub(super) fn not_told(run: &ExperimentRun, effect: &Effect) -> String {
    say!("Not decided, the machine was not steady enough: {}", numbers(run, effect))
}

/// Neither is shown, and what would decide.
pub(super) fn undecided(run: &ExperimentRun, effect: &Effect) -> String {
    // Very few rounds can agree so well that the interval excludes 1 and chance is still not excluded.
    let is_apart = effect.interval().is_none();
    let rounds = plural(effect.n_pairs, "round");
    let mut text = match is_apart {
        true => {
            let name = run.metrics.iter().find(|m| m.id == effect.metric).map_or(String::new(), Metric::named);
            say!("Not decided, {rounds} are too few: {name}, {}x so far", ratio(effect.ratio))
        }
        false => say!("Not decided after {rounds}: {}", numbers(run, effect)),
    };
    if let Some(n) = rounds_to_decide(effect).filter(|_| !is_apart) {
        text += &say!("; about {n} rounds would decide it at this scatter");
    }
    text
}

/// What a guest pays when its CPU goes idle, behind the sentence on a cost of idle states.
pub(super) fn in_guest(run: &ExperimentRun, effect: &Effect) -> String {
    match run.steal_per_wake_ns(&effect.baseline) {
        Some(ns) => say!(
            "In this guest that includes the hypervisor's halt exit, which applications pay too; steal of the woken CPU: {} per wake-up.",
            rough_ns(ns)
        ),
        None => {
            word!("In this guest that includes the hypervisor's halt exit, which applications pay too.").to_string()
        }
    }
}

/// Interval width shrinks with the square root of the rounds: how many until it excludes 1, or lies within ±5 %?
fn rounds_to_decide(effect: &Effect) -> Option<u64> {
    let half = (effect.ratio_high.ln() - effect.ratio_low.ln()) / 2.0;
    let distance = effect.ratio.ln().abs();
    let needed = distance.max(NO_DIFFERENCE.ln() - distance);
    let n = effect.n_pairs as f64 * (half / needed).powi(2) * 1.1;
    if !n.is_finite() || n <= effect.n_pairs as f64 || n > 100_000.0 {
        return None;
    }
    // Rounded up to one significant digit and a half: it is a forecast.
    let step = 10f64.powf(n.log10().floor()) / 2.0;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 100 000")]
    let rounded = ((n / step).ceil() * step) as u64;
    Some(rounded)
}

/// Another latency of the same comparison that decidedly points the other way, the same source's tail first.
pub(super) fn reversal(run: &ExperimentRun, primary: &Effect) -> Option<String> {
    let opposite = primary.verdict.inverted();
    if opposite == primary.verdict {
        return None;
    }
    let source = |id: &str| id.rsplit_once('.').map(|(what, _)| what.to_string());
    let mut against: Vec<&Effect> = run
        .effects
        .iter()
        .filter(|e| e.verdict == opposite && e.baseline == primary.baseline && e.arm == primary.arm)
        .filter(|e| run.metrics.iter().any(|m| m.id == e.metric && m.is_latency()))
        .collect();
    against.arrange_by_key(|e| source(&e.metric) != source(&primary.metric));
    let effect = against.first()?;
    // From the slower arm.
    let effect = if opposite == Word::Lower { effect.inverted() } else { (*effect).clone() };
    let name = run.metrics.iter().find(|m| m.id == effect.metric).map_or(effect.metric.clone(), Metric::named);
    Some(say!("{name} is worse with {} ({})", arm(run, &effect.baseline), size(run, &effect)))
}

/// Why to believe it: how many rounds agree, what chance would give, what was discarded.
pub(super) fn how_sure(run: &ExperimentRun, effect: &Effect) -> String {
    let pairs = run.pairs_of(effect);
    let same = pairs.iter().filter(|(a, b)| (a > b) == (effect.ratio > 1.0)).count();
    let mut parts = Vec::new();
    if !pairs.is_empty() {
        parts.push(say!("{same} of {} agree", plural(pairs.len(), "round")));
    }
    let p = p_value(effect.p_value);
    parts.push(match effect.at_look {
        Some(_) => say!("p {p} (signed-rank test, adjusted for interim analyses)"),
        None => say!("p {p} (signed-rank test)"),
    });
    parts.push(word!("variants in random order in every round").into());
    parts.push(say!("{} of {} measurements discarded", run.n_rejected(), run.blocks.len()));
    parts.push(say!("the interval {}", effect.covers.scope()));
    ended(&clauses(&parts))
}

fn arm(run: &ExperimentRun, id: &str) -> String {
    match Compared::with(id) {
        Compared::NoSleep => word!("idle disabled").into(),
        _ => run.arms.iter().find(|a| a.id == id).map_or(id.to_string(), |a| titles::shown(&a.title)),
    }
}

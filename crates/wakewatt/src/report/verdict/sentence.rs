//! The sentence on one comparison, and how sure it is: direction, size, interval, rounds, both values.
//!
//! How large the effect may be called is core's (`samples::stated`); here it is put beside its numbers.

use super::super::words::{
    clauses, ended, median, ns_rough, p_value, percent, plural, ratio, ratio_interval, sentence_case,
};
use super::NO_DIFFERENCE;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::compared::Compared;
use wakewatt_core::samples::experiment::{Effect, ExperimentRun, Metric, Verdict as Word};
use wakewatt_words::{say, word};

/// `interval 4.6–5.9 at 95 % over all looks, covers this run, 10 rounds, 34 us against 6.5 us`; without any size where that is refused.
fn numbers(run: &ExperimentRun, effect: &Effect) -> String {
    let rounds = plural(effect.n_pairs, "round");
    if !run.is_sized() {
        return say!("its size is refused, {rounds}");
    }
    let mut text =
        say!("interval {} at {}, {rounds}", ratio_interval(effect.ratio_low, effect.ratio_high), effect.sureness());
    let metric = run.metric_at(&effect.metric);
    let of_arm = |arm: &str| median(run.values(arm, metric?).map(|(_, value)| value));
    if let (Some(a), Some(b)) = (of_arm(&effect.baseline), of_arm(&effect.arm)) {
        text += &say!(", {} against {}", ns_rough(a), ns_rough(b));
    }
    text
}

/// How many times as long.
fn times(run: &ExperimentRun, effect: &Effect) -> String {
    run.stated_ratio(effect).say(ratio)
}

/// The baseline is slower.
pub(super) fn slower(run: &ExperimentRun, effect: &Effect) -> String {
    let numbers = numbers(run, effect);
    let is_of_sleep = effect.compared() == Compared::NoSleep;
    if is_of_sleep && run.is_asleep_in(&effect.baseline) && effect.metric.starts_with("wakeup.") {
        return say!("{} ({numbers}); idle states cost latency here", run.slower(effect, word!("a wake-up")));
    }
    let times = times(run, effect);
    let awake = run.slept_ratio(&effect.baseline).filter(|_| is_of_sleep);
    if let Some(slept) = awake.filter(|_| !run.is_asleep_in(&effect.baseline)) {
        return say!(
            "With idle states allowed, which were entered before {} of the wake-ups, {} takes {times} times as long as with {} \
             ({numbers}); that is no cost of sleep",
            percent(slept),
            metric(run, &effect.metric),
            arm(run, &effect.arm)
        );
    }
    let mut text = say!(
        "{} takes {times} times as long with {} as with {} ({numbers})",
        sentence_case(&metric(run, &effect.metric)),
        arm(run, &effect.baseline),
        arm(run, &effect.arm)
    );
    if let (Some(a), Some(b)) = (slept_in(run, &effect.baseline), slept_in(run, &effect.arm)) {
        if a != b {
            text += &say!(": its CPUs idled in {a} in the first and in {b} in the second");
        }
    }
    text
}

/// The baseline is faster.
pub(super) fn faster(run: &ExperimentRun, effect: &Effect) -> String {
    say!(
        "{} is shorter with {} than with {}: {} times as long ({}), so the change that was tried makes it worse here",
        sentence_case(&metric(run, &effect.metric)),
        arm(run, &effect.baseline),
        arm(run, &effect.arm),
        times(run, effect),
        numbers(run, effect)
    )
}

/// They are as good as equal.
pub(super) fn no_difference(run: &ExperimentRun, effect: &Effect) -> String {
    say!(
        "No difference worth a change: {} is {} times as long with {} as with {} ({}), within 5 % of equal",
        metric(run, &effect.metric),
        ratio(effect.ratio),
        arm(run, &effect.baseline),
        arm(run, &effect.arm),
        numbers(run, effect)
    )
}

/// None was found, which an hour that allows no size does not allow to say.
pub(super) fn not_told(run: &ExperimentRun, effect: &Effect) -> String {
    say!(
        "Undecided: no difference in {} was found between {} and {}, and this hour does not allow to say that there is none",
        metric(run, &effect.metric),
        arm(run, &effect.baseline),
        arm(run, &effect.arm)
    )
}

/// Neither is shown, and what would decide.
pub(super) fn undecided(run: &ExperimentRun, effect: &Effect) -> String {
    // Very few rounds can agree so well that the interval excludes 1 and chance is still not excluded.
    let is_apart = effect.ratio_low > 1.0 || effect.ratio_high < 1.0;
    let what = if is_apart {
        word!("but too few rounds counted to tell it from chance among the comparisons made")
    } else {
        word!("which allows both no effect and one worth a change")
    };
    let mut text = say!(
        "Undecided: {} is {} times as long with {} as with {} ({}), {what}",
        metric(run, &effect.metric),
        ratio(effect.ratio),
        arm(run, &effect.baseline),
        arm(run, &effect.arm),
        numbers(run, effect)
    );
    if let Some(n) = rounds_to_decide(effect).filter(|_| !is_apart) {
        text += &say!("; about {n} rounds would decide it if the scatter stays as it was");
    }
    text
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
    Some(say!(
        "{} goes the other way, {} times as long with {} ({})",
        metric(run, &effect.metric),
        times(run, &effect),
        arm(run, &effect.baseline),
        match run.is_sized() {
            true => say!(
                "interval {}, by itself, covers {}",
                ratio_interval(effect.ratio_low, effect.ratio_high),
                effect.covers
            ),
            false => word!("its size is refused").into(),
        }
    ))
}

/// Why to believe it: how many rounds agree, what chance would give, what was thrown away.
pub(super) fn how_sure(run: &ExperimentRun, effect: &Effect) -> String {
    let pairs = run.pairs_of(effect);
    let same = pairs.iter().filter(|(a, b)| (a > b) == (effect.ratio > 1.0)).count();
    let mut parts = Vec::new();
    if !pairs.is_empty() {
        parts.push(if same == pairs.len() && pairs.len() > 1 {
            say!("All {} rounds point the same way", pairs.len())
        } else {
            say!("{same} of {} point the same way", plural(pairs.len(), "round"))
        });
    }
    parts.push(say!(
        "if the setting made no difference, chance would give a result this far out with probability {} (exact signed-rank test)",
        p_value(effect.p_value)
    ));
    parts.push(word!("the order of the arms was drawn at random in every round").into());
    let rejected = run.n_rejected();
    let disturbed = run.blocks.iter().filter(|b| b.rejected.is_none() && !b.disturbances.is_empty()).count();
    parts.push(match (rejected, disturbed) {
        (0, 0) => word!("no block was disturbed or thrown away").to_string(),
        (r, d) => say!("{} of {} blocks thrown away, {d} disturbed but kept", r, run.blocks.len()),
    });
    ended(&clauses(&parts))
}

/// The state that took at least 95 % of an arm's idle entries, by the kernel's counters.
fn slept_in(run: &ExperimentRun, arm: &str) -> Option<String> {
    let mut entries: Vec<(&str, u64)> = Vec::new();
    let blocks = run.counted(arm);
    for state in blocks.flat_map(|b| &b.idle).flat_map(|d| &d.states) {
        match entries.iter_mut().find(|(name, _)| *name == state.name) {
            Some((_, n)) => *n = n.saturating_add(state.n_usage),
            None => entries.push((&state.name, state.n_usage)),
        }
    }
    let all: u64 = entries.iter().map(|(_, n)| n).sum();
    let (name, most) = entries.into_iter().max_by_key(|(_, n)| *n)?;
    (all > 0 && most as f64 >= 0.95 * all as f64).then(|| name.to_string())
}

/// The metric in a sentence: "cross-CPU wake-up, p99" becomes "the p99 cross-CPU wake-up".
fn metric(run: &ExperimentRun, id: &str) -> String {
    run.metrics.iter().find(|m| m.id == id).map_or(id.to_string(), Metric::phrase)
}

fn arm(run: &ExperimentRun, id: &str) -> String {
    let title = run.arms.iter().find(|a| a.id == id).map_or(id, |a| a.title.as_str());
    format!("“{title}”")
}

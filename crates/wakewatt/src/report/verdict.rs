//! The verdict: one plain sentence for a reader who does not believe it.
//!
//! It says only what the primary comparison, declared before the run, allows: the ratio, its interval (at the level of the
//! look that ended the run, so that it holds at 95 % over all looks), the number of rounds, both values. "No difference" is claimed only when the interval lies within ±5 %; when the interval is too
//! wide the sentence says undecided and what would decide; without an experiment it says that nothing was proved. When
//! another metric of the same comparison points the other way (in virtual machines a polling CPU is often preempted, so
//! its tail is worse), the same sentence says so: a faster median with a slower p99 is not a win. Where doctor turned two
//! settings the one with more at stake comes first, and a second sentence says what the other showed.

use super::words::{median, ns_rough, percent, plural, ratio, ratio_interval, sentence_case};
use super::{busy, study_verdict};
use wakewatt_core::choice::{self, Subject};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::compared::Compared;
use wakewatt_core::samples::ended::How;
use wakewatt_core::samples::experiment::{Block, Effect, ExperimentRun, Metric, Verdict as Word};
use wakewatt_core::samples::not_done::Step;
use wakewatt_core::samples::rejection::Rejection;

/// Within this of 1 an effect is not worth a change; the same bound as `samples::experiment::Verdict`.
const NO_DIFFERENCE: f64 = 1.05;

/// What kind of answer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The machine as it was found is slower than the other arm.
    Slower,
    /// The machine as it was found is faster.
    Faster,
    /// No difference worth a change.
    NoDifference,
    /// The experiment could not decide.
    Undecided,
    /// An experiment over several settings shows that some of them differ.
    Shown,
    /// No experiment ran.
    NoExperiment,
}

impl Kind {
    /// One or two words, for a label.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Slower => "costs latency",
            Kind::Faster => "does not cost latency",
            Kind::NoDifference => "no difference",
            Kind::Undecided => "undecided",
            Kind::Shown => "a difference is shown",
            Kind::NoExperiment => "not proved",
        }
    }
}

/// The sentence and what stands beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What kind of answer.
    pub kind: Kind,
    /// One sentence.
    pub sentence: String,
    /// Why to believe it, or what would decide.
    pub how_sure: String,
    /// The machine was busy: what is to be thought of the numbers, and what to do.
    pub busy: Option<String>,
    /// What must be known with it: settings not put back, blocks thrown away.
    pub warnings: Vec<String>,
}

/// Why no round was complete decides what to do about it.
fn what_would_help(run: &ExperimentRun) -> &'static str {
    let is_busy = |b: &Block| matches!(b.rejected, Some(Rejection::Busy { .. }));
    if run.ended.how == How::Interrupted {
        "it was interrupted: run it again and let it end"
    } else if run.blocks.iter().any(is_busy) {
        "other work kept the CPUs busy: run it again when the machine is quieter"
    } else {
        "run it again with a larger time budget"
    }
}

/// What doctor turned: idle states, the governor, or both, and then first what has most at stake.
pub(super) fn turned(evidence: &Evidence) -> Vec<&ExperimentRun> {
    let (idle, frequency) = (evidence.samples.experiment.as_ref(), choice::frequency_run(evidence));
    let is_frequency_first = || choice::experiments(evidence).first().is_some_and(|c| c.subject == Subject::Frequency);
    let both = if frequency.is_some() && is_frequency_first() { [frequency, idle] } else { [idle, frequency] };
    both.into_iter().flatten().collect()
}

/// The verdict on this evidence.
pub fn of(evidence: &Evidence) -> Verdict {
    let mut verdict = of_turned(evidence);
    verdict.busy = busy::line(evidence, &turned(evidence));
    verdict
}

fn of_turned(evidence: &Evidence) -> Verdict {
    let runs = turned(evidence);
    let Some((run, others)) = runs.split_first() else {
        return without_experiment(evidence);
    };
    if let (Some(conclusions), Some(planned)) = (&evidence.samples.conclusions, &evidence.samples.experiment) {
        return study_verdict::of(planned, conclusions, warnings(planned));
    }
    let mut verdict = of_run(run);
    for other in others.iter().map(|run| of_run(run)) {
        verdict.sentence += &format!(" Turned as well: {}", other.sentence);
        verdict.warnings.extend(other.warnings);
    }
    verdict
}

fn of_run(run: &ExperimentRun) -> Verdict {
    let warnings = warnings(run);
    let Some(effect) = run.primary().filter(|e| e.n_pairs > 0 && e.ratio.is_finite() && e.ratio > 0.0) else {
        return Verdict {
            kind: Kind::Undecided,
            sentence: format!(
                "Undecided: the experiment ended ({}) before one round was complete in both arms.",
                run.ended
            ),
            how_sure: format!("Nothing can be said from this run; {}.", what_would_help(run)),
            busy: None,
            warnings,
        };
    };
    let (kind, core) = match effect.verdict {
        Word::Higher => (Kind::Slower, slower(run, effect)),
        Word::Lower => (Kind::Faster, faster(run, effect)),
        Word::NoDifference => (Kind::NoDifference, no_difference(run, effect)),
        Word::Undecided => (Kind::Undecided, undecided(run, effect)),
    };
    let sentence = match reversal(run, effect) {
        Some(but) => format!("{core}; but {but}."),
        None => format!("{core}."),
    };
    let mut how_sure = how_sure(run, effect);
    if matches!(kind, Kind::Slower | Kind::Faster) && run.is_busy() {
        how_sure += " On a busy machine the effect is stated by the near end of its interval.";
    }
    Verdict { kind, sentence, how_sure, busy: None, warnings }
}

/// `interval 4.6–5.9 at 95 % over all looks, 10 rounds, 34 us against 6.5 us`.
fn numbers(run: &ExperimentRun, effect: &Effect) -> String {
    let mut text = format!(
        "interval {} at 95 % over all looks, {}",
        ratio_interval(effect.ratio_low, effect.ratio_high),
        plural(effect.n_pairs, "round")
    );
    let metric = run.metric_at(&effect.metric);
    let of_arm = |arm: &str| median(run.values(arm, metric?).map(|(_, value)| value));
    if let (Some(a), Some(b)) = (of_arm(&effect.baseline), of_arm(&effect.arm)) {
        text += &format!(", {} against {}", ns_rough(a), ns_rough(b));
    }
    text
}

/// How many times as long.
fn times(run: &ExperimentRun, effect: &Effect) -> String {
    run.stated_ratio(effect).say(ratio)
}

fn slower(run: &ExperimentRun, effect: &Effect) -> String {
    let numbers = numbers(run, effect);
    let is_asleep = effect.compared() == Compared::NoSleep && run.is_asleep_in(&effect.baseline);
    if is_asleep && effect.metric.starts_with("wakeup.") {
        return format!("{} ({numbers}); idle states cost latency here", run.slower(effect, "a wake-up"));
    }
    let times = times(run, effect);
    let mut text = format!(
        "{} takes {times} times as long with {} as with {} ({numbers})",
        sentence_case(&metric(run, &effect.metric)),
        arm(run, &effect.baseline),
        arm(run, &effect.arm)
    );
    if let (Some(a), Some(b)) = (slept_in(run, &effect.baseline), slept_in(run, &effect.arm)) {
        if a != b {
            text += &format!(": its CPUs idled in {a} in the first and in {b} in the second");
        }
    }
    text
}

fn faster(run: &ExperimentRun, effect: &Effect) -> String {
    format!(
        "{} is shorter with {} than with {}: {} times as long ({}), so the change that was tried makes it worse here",
        sentence_case(&metric(run, &effect.metric)),
        arm(run, &effect.baseline),
        arm(run, &effect.arm),
        times(run, effect),
        numbers(run, effect)
    )
}

fn no_difference(run: &ExperimentRun, effect: &Effect) -> String {
    format!(
        "No difference worth a change: {} is {} times as long with {} as with {} ({}), within 5 % of equal",
        metric(run, &effect.metric),
        ratio(effect.ratio),
        arm(run, &effect.baseline),
        arm(run, &effect.arm),
        numbers(run, effect)
    )
}

fn undecided(run: &ExperimentRun, effect: &Effect) -> String {
    // Very few rounds can agree so well that the interval excludes 1 and chance is still not excluded.
    let is_apart = effect.ratio_low > 1.0 || effect.ratio_high < 1.0;
    let what = if is_apart {
        "but too few rounds counted to tell it from chance"
    } else {
        "which allows both no effect and one worth a change"
    };
    let mut text = format!(
        "Undecided: {} is {} times as long with {} as with {} ({}), {what}",
        metric(run, &effect.metric),
        ratio(effect.ratio),
        arm(run, &effect.baseline),
        arm(run, &effect.arm),
        numbers(run, effect)
    );
    if let Some(n) = rounds_to_decide(effect).filter(|_| !is_apart) {
        text += &format!("; about {n} rounds would decide it if the scatter stays as it was");
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
fn reversal(run: &ExperimentRun, primary: &Effect) -> Option<String> {
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
    against.sort_by_key(|e| source(&e.metric) != source(&primary.metric));
    let effect = against.first()?;
    // From the slower arm.
    let effect = if opposite == Word::Lower { effect.inverted() } else { (*effect).clone() };
    Some(format!(
        "{} goes the other way, {} times as long with {} (interval {} at 95 % over all looks)",
        metric(run, &effect.metric),
        times(run, &effect),
        arm(run, &effect.baseline),
        ratio_interval(effect.ratio_low, effect.ratio_high)
    ))
}

fn how_sure(run: &ExperimentRun, effect: &Effect) -> String {
    let pairs = run.pairs_of(effect);
    let same = pairs.iter().filter(|(a, b)| (a > b) == (effect.ratio > 1.0)).count();
    let mut parts = Vec::new();
    if !pairs.is_empty() {
        parts.push(if same == pairs.len() && pairs.len() > 1 {
            format!("All {} rounds point the same way", pairs.len())
        } else {
            format!("{same} of {} point the same way", plural(pairs.len(), "round"))
        });
    }
    parts.push(format!(
        "if the setting made no difference, chance would give a result this far out with probability {} (exact sign-flip test)",
        super::words::p_value(effect.p_value)
    ));
    parts.push("the order of the arms was drawn at random in every round".into());
    let rejected = run.n_rejected();
    let disturbed = run.blocks.iter().filter(|b| b.rejected.is_none() && !b.disturbances.is_empty()).count();
    parts.push(match (rejected, disturbed) {
        (0, 0) => "no block was disturbed or thrown away".to_string(),
        (r, d) => format!("{} of {} blocks thrown away, {d} disturbed but kept", r, run.blocks.len()),
    });
    parts.join("; ") + "."
}

fn warnings(run: &ExperimentRun) -> Vec<String> {
    let mut warnings = Vec::new();
    if !run.is_restored() {
        warnings.push(
            "Not everything was put back: the settings after the experiment differ from those before it; see “What was changed”."
                .to_string(),
        );
    }
    let rejected = run.n_rejected();
    if rejected * 4 > run.blocks.len() {
        let share = percent(rejected as f64 / run.blocks.len() as f64);
        warnings.push(format!("{share} of the blocks were thrown away; the reasons stand in the block table."));
    }
    warnings
}

fn without_experiment(evidence: &Evidence) -> Verdict {
    let not_done = evidence.not_done.iter().find(|n| n.step == Step::Experiment);
    let why = not_done.map_or("it was not asked for".to_string(), |n| n.why.to_string());
    let as_found = evidence.samples.wakeups.iter().find_map(|s| Some((s, s.latency.p50_ns()?)));
    let sentence = match as_found {
        Some((sample, p50_ns)) => format!(
            "Nothing was proved: no experiment ran ({why}); as found, a {} wake-up takes {} at the median ({} samples), and how much of that is due to idle states this run cannot say.",
            sample.kind.word(),
            ns_rough(p50_ns as f64),
            super::words::count(sample.latency.n)
        ),
        None => format!(
            "Nothing was proved: no experiment ran ({why}), so what follows rests on what the machine says about itself."
        ),
    };
    Verdict {
        kind: Kind::NoExperiment,
        sentence,
        how_sure: "Only an experiment that changes the setting and puts it back can tell what the setting costs."
            .into(),
        busy: None,
        warnings: Vec::new(),
    }
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

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use wakewatt_core::samples::busy::{QuietWait, WaitEnd};
    use wakewatt_core::samples::taken::Taken;

    #[test]
    fn the_effect_is_said_with_its_interval_rounds_and_both_values() {
        let verdict = sample::two_arms().verdict();
        assert_eq!(verdict.kind, Kind::Slower);
        let s = &verdict.sentence;
        for part in [
            "Sleeping CPUs make a wake-up 5.",
            " times slower: ",
            " us each (interval 4.",
            "at 95 % over all looks, 10 rounds",
            "us against 6.",
            " us); idle states",
        ] {
            assert!(s.contains(part), "{part}: {s}");
        }
        assert!(verdict.how_sure.contains("All 10 rounds"), "{}", verdict.how_sure);
        assert!(s.ends_with('.') && s.matches(". ").count() == 0, "one sentence: {s}");
    }

    #[test]
    fn a_cpu_that_never_slept_is_not_called_sleeping() {
        let mut report = sample::two_arms();
        report.evidence.samples.experiment.iter_mut().flat_map(|e| &mut e.blocks).for_each(|b| b.idle.clear());
        assert!(!report.verdict().sentence.contains("sleeping"));
    }

    #[test]
    fn a_tail_that_goes_the_other_way_is_in_the_same_sentence() {
        let s = sample::tail_reversed().verdict().sentence;
        assert!(s.contains("; but ") && s.contains("p99") && s.contains("goes the other way"), "{s}");
    }

    #[test]
    fn undecided_says_what_would_decide() {
        let verdict = sample::undecided().verdict();
        assert_eq!(verdict.kind, Kind::Undecided);
        assert!(verdict.sentence.contains("rounds would decide"), "{}", verdict.sentence);
    }

    #[test]
    fn without_an_experiment_nothing_is_claimed() {
        let verdict = sample::read_only().verdict();
        assert_eq!(verdict.kind, Kind::NoExperiment);
        assert!(verdict.sentence.contains("Nothing was proved") && verdict.sentence.contains("needs root"));
        assert_eq!(of(&Evidence::default()).kind, Kind::NoExperiment);
    }

    #[test]
    fn no_difference_faster_and_empty_runs_have_their_own_words() {
        let mut report = sample::two_arms();
        let set = |report: &mut super::super::Report, word: Word, ratio: f64| {
            let effect = &mut report.evidence.samples.experiment.as_mut().unwrap().effects[0];
            (effect.verdict, effect.ratio, effect.ratio_low, effect.ratio_high) =
                (word, ratio, ratio * 0.98, ratio * 1.02);
        };
        set(&mut report, Word::NoDifference, 1.01);
        assert!(report.verdict().sentence.contains("within 5 % of equal"));
        set(&mut report, Word::Lower, 0.8);
        assert!(report.verdict().sentence.contains("makes it worse here"));
        report.evidence.samples.experiment.as_mut().unwrap().effects.clear();
        assert!(report.verdict().sentence.starts_with("Undecided: the experiment ended"));
    }

    #[test]
    fn what_turning_the_governor_showed_is_the_sentence() {
        let mut report = sample::governor();
        let verdict = report.verdict();
        assert_eq!(verdict.kind, Kind::Slower);
        for part in ["“governor as found”", "“governor performance”", "times as long", "10 rounds"] {
            assert!(verdict.sentence.contains(part), "{part}: {}", verdict.sentence);
        }
        assert!(!verdict.sentence.contains("Nothing was proved"));
        let set = |report: &mut super::super::Report, word: Word| {
            report.evidence.samples.experiments[0].effects[0].verdict = word;
            report.verdict()
        };
        assert_eq!(set(&mut report, Word::Undecided).kind, Kind::Undecided);
        assert!(set(&mut report, Word::Undecided).sentence.starts_with("Undecided: "));
        assert!(set(&mut report, Word::NoDifference).sentence.starts_with("No difference worth a change: "));
        // Both were turned.
        report.evidence.samples.experiment = sample::two_arms().evidence.samples.experiment;
        let sentence = report.verdict().sentence;
        assert!(
            sentence.starts_with("Sleeping CPUs make a wake-up") && sentence.contains(" Turned as well: No diff"),
            "{sentence}"
        );
        report.evidence.samples.experiments[0].after[0].1 = "powersave".into();
        assert!(report.verdict().warnings[0].contains("Not everything was put back"));
    }

    #[test]
    fn a_busy_machine_is_told_under_the_verdict_and_the_effect_is_a_bound() {
        let quiet = sample::two_arms().verdict();
        assert_eq!(quiet.busy, None);
        assert!(!quiet.sentence.contains("at least"), "{}", quiet.sentence);
        let mut report = sample::two_arms();
        let run = report.evidence.samples.experiment.as_mut().unwrap();
        run.blocks.iter_mut().for_each(|b| b.taken = Some(Taken { steal_ratio: 0.3, foreign_ratio: Some(0.12) }));
        let n = run.blocks.len();
        let low = ratio(run.effects[0].ratio_low);
        let verdict = report.verdict();
        assert!(verdict.sentence.contains(&format!("at least {low} times slower: at least ")), "{}", verdict.sentence);
        assert!(verdict.how_sure.contains("near end of its interval"), "{}", verdict.how_sure);
        let line = verdict.busy.unwrap();
        for part in
            [&format!("{n} of {n} blocks were disturbed") as &str, "took up to 30 %", "up to 12 %", "--wait-quiet"]
        {
            assert!(line.contains(part), "{part}: {line}");
        }
        // Directly under the sentence in every format, and a field of its own in JSON.
        let text = report.to_text(crate::report::text::Style::default());
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace("! ", "");
        let (text, html, markdown) = (flat(&text), flat(&report.to_html().unwrap()), flat(&report.to_markdown()));
        for (name, text) in [("text", text), ("html", html), ("markdown", markdown)] {
            let (at, sure) = (text.find("The machine was busy: "), text.find("chance would give").unwrap());
            assert!(at.is_some_and(|at| at < sure), "{name}");
        }
        assert!(report.to_text(crate::report::text::Style::default()).lines().all(|l| l.chars().count() <= 80));
    }

    #[test]
    fn one_busy_run_is_told_and_a_bound_only_where_one_is_stated() {
        let taken = Some(Taken { steal_ratio: 0.3, foreign_ratio: None });
        // A short busy run beside a long quiet one.
        let mut report = sample::two_arms();
        let mut quiet = report.evidence.samples.experiment.clone().unwrap();
        let busy = report.evidence.samples.experiment.as_mut().unwrap();
        busy.blocks.iter_mut().for_each(|b| b.taken = taken);
        quiet.blocks.iter_mut().for_each(|b| b.taken = Some(Taken::default()));
        quiet.blocks = [quiet.blocks.clone(), quiet.blocks.clone()].concat();
        let line = super::busy::line(&report.evidence, &[&quiet, report.evidence.samples.experiment.as_ref().unwrap()]);
        assert!(line.is_some_and(|line| line.contains("The machine was busy") && !line.contains("near end")));
        // No bound is stated of what is undecided, and a study has no option to wait with.
        let mut report = sample::undecided();
        report.evidence.samples.experiment.as_mut().unwrap().blocks.iter_mut().for_each(|b| b.taken = taken);
        assert!(!report.verdict().how_sure.contains("near end"));
        report.evidence.samples.conclusions = Some(Default::default());
        let line = report.verdict().busy.unwrap();
        assert!(line.contains("busy") && !line.contains("--wait-quiet") && !line.contains("near end"), "{line}");
    }

    #[test]
    fn waiting_in_vain_is_told_also_where_nothing_was_turned() {
        let mut report = sample::read_only();
        let wait = |end| {
            let last = Some(Taken { steal_ratio: 0.0, foreign_ratio: Some(0.4) });
            Some(QuietWait { end, waited_ns: 600_000_000_000, n_looks: 600, n_quiet: 12, last })
        };
        report.evidence.quiet_wait = wait(WaitEnd::Quiet);
        assert_eq!(report.verdict().busy, None);
        report.evidence.quiet_wait = wait(WaitEnd::GaveUp);
        let line = report.verdict().busy.unwrap();
        assert!(line.contains("12 of 600 looks") && line.contains("40 %") && line.contains("quieter hour"), "{line}");
    }

    #[test]
    fn settings_left_behind_are_warned_of() {
        let mut report = sample::two_arms();
        report.evidence.samples.experiment.as_mut().unwrap().after[0].1 = "n/a".into();
        assert!(report.verdict().warnings[0].contains("Not everything was put back"));
    }
}

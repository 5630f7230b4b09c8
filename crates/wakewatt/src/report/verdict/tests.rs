//! What the sentence says of every kind of run, and what it must not say.

use super::super::sample;
use super::super::words::ratio;
use super::*;
use wakewatt_core::rules::{self, Answer, Finding, Ruling, Weight};
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
        "at 95 % over all looks, covers this run, 10 rounds",
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
    assert_eq!(of(&Evidence::default(), &[]).kind, Kind::NoExperiment);
}

#[test]
fn a_host_that_was_only_looked_at_has_its_top_finding_named() {
    let finding = |weight, title: &str| Finding {
        id: "rule.x".into(),
        title: title.into(),
        weight,
        cost: rules::Cost::unknown("x"),
        confidence: rules::Confidence::High,
        evidence: Vec::new(),
        remedy: String::new(),
        plan: None,
        price: String::new(),
        verify: String::new(),
    };
    let ruling = |rule: &str, weight, title: &str| Ruling {
        rule: rule.into(),
        question: String::new(),
        answer: Answer::Yes(Box::new(finding(weight, title))),
    };
    let sleep = ruling("rule.deep-idle-vs-latency", Weight::Risk, "CPUs 0-1 may sleep in C6");
    let slow = ruling("rule.dimm-below-rated", Weight::Risk, "The DIMMs run slow");
    let note = ruling("rule.snc-nps", Weight::Note, "Two nodes");
    let said = |rulings: &[Ruling]| of(&Evidence::default(), rulings).sentence;
    assert!(said(&[sleep.clone(), slow, note.clone()]).ends_with("about itself: first of all, the DIMMs run slow."));
    let stock = said(&[sleep, note.clone()]);
    assert!(
        stock.ends_with("Nothing to mend is seen; where latency rules, first of all: CPUs 0-1 may sleep in C6."),
        "{stock}"
    );
    assert!(
        said(std::slice::from_ref(&note)).ends_with("about itself. Nothing to mend is seen; worth a look: two nodes.")
    );
    assert!(said(&[]).ends_with("about itself. Nothing to mend is seen."));
    let open = Ruling {
        rule: "rule.epb".into(),
        question: String::new(),
        answer: Answer::CannotTell { because: String::new(), try_this: String::new().into() },
    };
    let hardly = said(&[note, open.clone(), open]);
    assert!(
        hardly.ends_with(
            "Nothing to mend is seen in the 1 of 3 questions that could be answered; worth a look: two nodes."
        ),
        "{hardly}"
    );
}

#[test]
fn no_difference_faster_and_empty_runs_have_their_own_words() {
    let mut report = sample::two_arms();
    let set = |report: &mut super::super::Report, word: Word, ratio: f64| {
        let effect = &mut report.evidence.samples.experiment.as_mut().unwrap().effects[0];
        (effect.verdict, effect.ratio, effect.ratio_low, effect.ratio_high) = (word, ratio, ratio * 0.98, ratio * 1.02);
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
    run.blocks.iter_mut().for_each(|b| b.taken = Some(Taken { steal_ratio: 0.1, foreign_ratio: Some(0.12) }));
    let n = run.blocks.len();
    let low = ratio(run.effects[0].ratio_low);
    let verdict = report.verdict();
    assert!(verdict.sentence.contains(&format!("at least {low} times slower: at least ")), "{}", verdict.sentence);
    assert!(verdict.how_sure.contains("near end of its interval"), "{}", verdict.how_sure);
    let line = verdict.busy.unwrap();
    for part in [
        &format!("in {n} of {n} blocks others had CPU time") as &str,
        "hypervisor up to 10.0 %",
        "up to 12.0 %",
        "--wait-quiet",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    // Directly under the sentence in every format, and a field of its own in JSON.
    let text = report.to_text(crate::report::text::Style::default());
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace("! ", "");
    let (text, html, markdown) = (flat(&text), flat(&report.to_html().unwrap()), flat(&report.to_markdown()));
    for (name, text) in [("text", text), ("html", html), ("markdown", markdown)] {
        let (at, sure) = (text.find("An effect of that hour: "), text.find("chance would give").unwrap());
        assert!(at.is_some_and(|at| at < sure), "{name}");
    }
    assert!(report.to_text(crate::report::text::Style::default()).lines().all(|l| l.chars().count() <= 80));
}

#[test]
fn a_refused_size_is_in_no_sentence_and_no_difference_is_not_said_then() {
    let mut report = sample::two_arms();
    let run = report.evidence.samples.experiment.as_mut().unwrap();
    run.blocks.iter_mut().for_each(|b| b.taken = Some(Taken { steal_ratio: 0.2, foreign_ratio: Some(0.2) }));
    let verdict = report.verdict();
    assert!(verdict.sentence.starts_with("Sleeping CPUs make a wake-up slower (its size is refused, 10 rounds)"));
    assert!(!verdict.sentence.contains("interval"), "{}", verdict.sentence);
    let line = verdict.busy.unwrap();
    assert!(line.starts_with("No size is told: ") && line.contains("more than 30.0 % of the CPUs' time"), "{line}");
    report.evidence.samples.experiment.as_mut().unwrap().effects[0].verdict = Word::NoDifference;
    let verdict = report.verdict();
    assert_eq!(verdict.kind, Kind::Undecided);
    assert!(verdict.sentence.contains("does not allow to say that there is none"), "{}", verdict.sentence);
}

#[test]
fn idle_states_that_were_hardly_entered_are_not_what_was_compared() {
    let mut report = sample::two_arms();
    let run = report.evidence.samples.experiment.as_mut().unwrap();
    let baseline = run.arms[0].id.clone();
    let states =
        run.blocks.iter_mut().filter(|b| b.arm == baseline).flat_map(|b| &mut b.idle).flat_map(|d| &mut d.states);
    states.filter(|s| s.name != "POLL").for_each(|s| s.n_usage = 20);
    let verdict = report.verdict();
    let s = verdict.sentence;
    // A CPU that is awake at its wake-ups was kept so by somebody, which the grade says.
    assert!(s.starts_with("With idle states allowed, which were entered before 1.0 % of the wake-ups"), "{s}");
    assert!(s.contains("no cost of sleep") && !s.contains("Sleeping"), "{s}");
    assert!(verdict.busy.unwrap().contains("was often awake when it was woken"));
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
    assert!(line.is_some_and(|line| line.contains("An effect of that hour") && !line.contains("near end")));
    // No bound is stated of what is undecided, and a study has no option to wait with.
    let mut report = sample::undecided();
    report.evidence.samples.experiment.as_mut().unwrap().blocks.iter_mut().for_each(|b| b.taken = taken);
    assert!(!report.verdict().how_sure.contains("near end"));
    report.evidence.samples.conclusions = Some(Default::default());
    let line = report.verdict().busy.unwrap();
    assert!(
        line.contains("others had CPU time") && !line.contains("--wait-quiet") && !line.contains("near end"),
        "{line}"
    );
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

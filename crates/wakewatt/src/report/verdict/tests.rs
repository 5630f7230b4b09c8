//! What the sentence says of every kind of run, and what it must not say.

use super::super::sample;
use super::*;
use wakewatt_core::fact::Fact;
use wakewatt_core::rules::{self, Answer, Finding, Ruling, Weight};
use wakewatt_core::samples::busy::{QuietWait, WaitEnd};
use wakewatt_core::samples::grade::{Flaw, Grade, Graded};
use wakewatt_core::samples::not_done::NotDone;
use wakewatt_core::samples::rejection::Rejection;
use wakewatt_core::samples::taken::Taken;

#[test]
fn the_first_sentence_answers_with_both_medians_the_ratio_and_its_interval() {
    let verdict = sample::two_arms().verdict();
    assert_eq!(verdict.kind, Kind::Slower);
    let s = &verdict.sentence;
    let parts = [
        "Idle states cost latency here: median cross-CPU wake-up 3",
        " us with idle states as they were, 6.",
        " us with idle disabled (5.",
        "x, 95 % CI 4.",
    ];
    assert!(parts.iter().all(|part| s.contains(part)), "{s}");
    assert!(s.ends_with(").") && s.split(' ').count() <= 28, "{s}");
    let sure = &verdict.how_sure;
    for part in
        ["10 of 10 rounds agree", "signed-rank test", "0 of 20 measurements discarded", "holds for this run only"]
    {
        assert!(sure.contains(part), "{part}: {sure}");
    }
}

#[test]
fn in_a_guest_the_sentence_says_what_is_the_hypervisors() {
    let mut report = sample::two_arms();
    report.evidence.facts.virt.has_hypervisor_flag = Fact::Known(true);
    let s = report.verdict().sentence;
    assert!(s.ends_with("that includes the hypervisor's halt exit, which applications pay too."), "{s}");
    let blocks = &mut report.evidence.samples.experiment.as_mut().unwrap().blocks;
    let woken = blocks.iter_mut().filter(|b| b.arm == "default").filter_map(|b| b.woken.as_mut());
    woken.for_each(|woken| woken.steal_ns = Some(20_000_000));
    let s = report.verdict().sentence;
    assert!(s.ends_with("which applications pay too; steal of the woken CPU: 10 us per wake-up."), "{s}");
}

#[test]
fn a_machine_that_was_never_idle_is_said_to_be_too_busy_first() {
    let mut report = sample::two_arms();
    let run = report.evidence.samples.experiment.as_mut().unwrap();
    run.blocks.iter_mut().for_each(|b| {
        b.rejected = Some(Rejection::Busy { percent: 99 });
        b.taken = Some(Taken { steal_ratio: 0.23, foreign_ratio: Some(0.58) });
    });
    let busy = "Not decided: this machine was too busy to measure (other processes 58 %, steal 23 %). \
                Retry when idle: wakewatt doctor --wait-quiet 10min";
    assert_eq!(report.verdict().sentence, busy);
    // The same where doctor saw it before it measured anything.
    let mut evidence = Evidence::default();
    let why = Why::TooBusy(TooBusy { others: 58, steal: 23 });
    evidence.not_done.push(NotDone::new(Step::Experiment, why));
    assert_eq!(of(&evidence, &[]).sentence, busy);
}

#[test]
fn a_cpu_that_never_slept_is_not_called_sleeping() {
    let mut report = sample::two_arms();
    report.evidence.samples.experiment.iter_mut().flat_map(|e| &mut e.blocks).for_each(|b| b.idle.clear());
    assert!(report.verdict().sentence.starts_with("Current settings are slower: "));
}

#[test]
fn a_tail_that_goes_the_other_way_is_in_the_same_sentence() {
    let s = sample::tail_reversed().verdict().sentence;
    assert!(s.contains("; but p99 cross-CPU wake-up is worse with idle disabled ("), "{s}");
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
    assert!(report.verdict().sentence.starts_with("No difference larger than 3.0 %: median cross-CPU wake-up "));
    set(&mut report, Word::Lower, 0.8);
    assert!(report.verdict().sentence.starts_with("The change makes it worse here: "));
}

/// A run without a comparison says which of its rounds there were: it never calls complete rounds incomplete.
#[test]
fn rounds_without_a_comparison_are_counted_and_not_denied() {
    let with = |change: &dyn Fn(&mut ExperimentRun)| {
        let mut report = sample::two_arms();
        let run = report.evidence.samples.experiment.as_mut().unwrap();
        run.effects.clear();
        run.ended = wakewatt_core::samples::ended::Ended::enough("the time budget was spent after 6 rounds");
        change(run);
        report.verdict().sentence
    };
    let lost = with(&|run| run.blocks.iter_mut().for_each(|b| b.values = vec![None; b.values.len()]));
    assert!(
        lost.starts_with("Not decided: 0 of 10 rounds gave median cross-CPU wake-up under both variants")
            && lost.contains("6 rounds"),
        "{lost}"
    );
    let one =
        with(&|run| run.blocks.iter_mut().filter(|b| b.round > 0).for_each(|b| b.values = vec![None; b.values.len()]));
    assert!(one.starts_with("Not decided: 1 of 10 rounds gave "), "{one}");
    let discarded = with(&|run| {
        run.blocks.iter_mut().for_each(|b| b.rejected = Some(Rejection::Said("the setting did not hold".into())));
    });
    assert!(
        discarded.starts_with("Not decided: every round had a measurement that was discarded (the setting"),
        "{discarded}"
    );
    let half = with(&|run| run.blocks.truncate(1));
    assert!(half.starts_with("Not decided: no round was complete ("), "{half}");
    for sentence in [lost, one, discarded] {
        assert!(!sentence.contains("complete"), "{sentence}");
    }
}

/// Nothing is drawn of what was discarded, and no chart is empty.
#[test]
fn a_run_of_discarded_measurements_has_no_chart() {
    let mut report = sample::two_arms();
    let drawn = |report: &super::super::Report| report.to_html().unwrap().matches("<svg").count();
    let before = drawn(&report);
    let run = report.evidence.samples.experiment.as_mut().unwrap();
    run.blocks.iter_mut().for_each(|b| b.rejected = Some(Rejection::Said("the setting did not hold".into())));
    (run.effects, run.pooled) = (Vec::new(), Vec::new());
    let html = report.to_html().unwrap();
    assert!(drawn(&report) < before);
    for title in ["Every measurement: ", "<h3>Effects"] {
        assert!(!html.contains(title), "{title}");
    }
}

/// No text, page or table has an interval that excludes 1 beside "undecided".
#[test]
fn an_interval_beside_undecided_never_excludes_one() {
    let mut report = sample::two_arms();
    let run = report.evidence.samples.experiment.as_mut().unwrap();
    for effect in &mut run.effects {
        (effect.verdict, effect.ratio, effect.ratio_low, effect.ratio_high) = (Word::Undecided, 1.77, 1.61, 1.93);
    }
    let (html, text, markdown) =
        (report.to_html().unwrap(), report.to_text(crate::report::text::Style::default()), report.to_markdown());
    for (name, page) in [("html", html), ("text", text), ("markdown", markdown)] {
        for shown in ["1.61", "1.93"] {
            assert!(!page.contains(shown), "{name}: {shown}");
        }
        assert!(page.contains("1.77"), "{name}: the estimate itself is said");
    }
}

#[test]
fn what_turning_the_governor_showed_is_the_sentence() {
    let mut report = sample::governor();
    let verdict = report.verdict();
    assert_eq!(verdict.kind, Kind::Slower);
    for part in ["Current settings are slower: ", "with governor as found", "with governor performance (", "95 % CI"] {
        assert!(verdict.sentence.contains(part), "{part}: {}", verdict.sentence);
    }
    assert!(!verdict.sentence.contains("Nothing was proved"));
    let set = |report: &mut super::super::Report, word: Word| {
        report.evidence.samples.experiments[0].effects[0].verdict = word;
        report.verdict()
    };
    assert_eq!(set(&mut report, Word::Undecided).kind, Kind::Undecided);
    assert!(set(&mut report, Word::Undecided).sentence.starts_with("Not decided"));
    assert!(set(&mut report, Word::NoDifference).sentence.starts_with("No difference larger than "));
    // Both were turned.
    report.evidence.samples.experiment = sample::two_arms().evidence.samples.experiment;
    let sentence = report.verdict().sentence;
    assert!(
        sentence.starts_with("Idle states cost latency here") && sentence.contains(" Also tested: No diff"),
        "{sentence}"
    );
    report.evidence.samples.experiments[0].after[0].1 = "powersave".into();
    assert!(report.verdict().warnings[0].contains("Not everything was restored"));
}

#[test]
fn other_load_is_reported_under_the_verdict_and_leaves_the_size() {
    let quiet = sample::two_arms().verdict();
    assert_eq!(quiet.busy, None);
    let mut report = sample::two_arms();
    let run = report.evidence.samples.experiment.as_mut().unwrap();
    run.blocks.iter_mut().for_each(|b| b.taken = Some(Taken { steal_ratio: 0.1, foreign_ratio: Some(0.12) }));
    let verdict = report.verdict();
    assert_eq!(verdict.sentence, quiet.sentence);
    let line = verdict.busy.unwrap();
    assert_eq!(
        line,
        "Measured beside other load: other processes 12.0 %, steal 10.0 %. The effect is that of this load; without it: \
         wakewatt doctor --wait-quiet 10min"
    );
    // Directly under the sentence in every format, and a field of its own in JSON.
    let text = report.to_text(crate::report::text::Style::default());
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").replace("! ", "");
    let (text, html, markdown) = (flat(&text), flat(&report.to_html().unwrap()), flat(&report.to_markdown()));
    for (name, text) in [("text", text), ("html", html), ("markdown", markdown)] {
        let (at, sure) = (text.find("Measured beside other load: "), text.find("rounds agree").unwrap());
        assert!(at.is_some_and(|at| at < sure), "{name}");
    }
    assert!(report.to_text(crate::report::text::Style::default()).lines().all(|l| l.chars().count() <= 80));
}

#[test]
fn a_size_that_is_not_reported_is_in_no_sentence_and_no_difference_is_not_said_then() {
    let mut report = sample::two_arms();
    let run = report.evidence.samples.experiment.as_mut().unwrap();
    let because = vec![Flaw::Unstable { ratio: 1.4, p_value: 0.004 }];
    run.grade = Some(Graded { grade: Grade::Refused, because });
    let verdict = report.verdict();
    let s = &verdict.sentence;
    assert!(s.contains("(effect size not reported: current settings, measured twice in a round, differ"), "{s}");
    assert!(!s.contains("CI"), "{s}");
    report.evidence.samples.experiment.as_mut().unwrap().effects[0].verdict = Word::NoDifference;
    let verdict = report.verdict();
    assert_eq!(verdict.kind, Kind::Undecided);
    assert!(verdict.sentence.starts_with("Not decided, the machine was not steady enough"), "{}", verdict.sentence);
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
    // A CPU that is awake at its wake-ups was kept so by other work, which the grade says.
    assert!(s.starts_with("Idle states are not the cost here, they preceded only 1.0 % of the wake-ups"), "{s}");
    assert!(verdict.busy.unwrap().contains("was often awake when it was woken"));
    // Nearly half of them are enough to make a median, and nothing but the idle setting was changed.
    let run = report.evidence.samples.experiment.as_mut().unwrap();
    let idle = run.blocks.iter_mut().filter(|b| b.arm == baseline).flat_map(|b| &mut b.idle);
    idle.flat_map(|d| &mut d.states).filter(|s| s.name != "POLL").for_each(|s| s.n_usage = 900);
    let s = report.verdict().sentence;
    assert!(s.starts_with("Idle states cost latency here, although the CPU was idle before only 45 %"), "{s}");
}

#[test]
fn an_experiment_over_settings_has_no_option_to_wait_with() {
    let mut report = sample::undecided();
    let taken = Some(Taken { steal_ratio: 0.3, foreign_ratio: None });
    report.evidence.samples.experiment.as_mut().unwrap().blocks.iter_mut().for_each(|b| b.taken = taken);
    assert!(report.verdict().busy.unwrap().contains("--wait-quiet"));
    report.evidence.samples.conclusions = Some(Default::default());
    let line = report.verdict().busy.unwrap();
    assert!(line.contains("steal 30.0 %") && !line.contains("--wait-quiet"), "{line}");
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
    assert!(report.verdict().warnings[0].contains("Not everything was restored"));
}

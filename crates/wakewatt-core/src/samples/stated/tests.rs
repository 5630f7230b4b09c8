//! Sizes on a quiet machine, beside other load, and where none is reported.

use super::*;
use crate::samples::compared::{LIFTED, POLL, SHALLOW};
use crate::samples::experiment::Block;
use crate::samples::grade::{Flaw, Graded};
use crate::samples::taken::Taken;
use crate::samples::woken::Woken;
use crate::samples::{IdleDelta, StateDelta, Window};

fn effect(arm: &str) -> Effect {
    Effect {
        covers: crate::covers::Covers::Run,
        metric: "wakeup.eventfd.p50".into(),
        baseline: "found".into(),
        arm: arm.into(),
        ratio: 3.1,
        ratio_low: 1.06,
        ratio_high: 5.2,
        difference: 19_900.0,
        difference_low: 600.0,
        difference_high: 41_000.0,
        confidence: None,
        p_value: 0.008,
        at_look: None,
        n_pairs: 8,
        verdict: Verdict::Higher,
    }
}

/// With so much steal, and so many idle entries for nine wake-ups.
fn run(steal_ratio: f64, n_usage: u64) -> ExperimentRun {
    let state =
        |(index, name, n_usage): (u32, &str, u64)| StateDelta { index, name: name.into(), n_usage, time_ns: n_usage };
    let block = Block {
        round: 0,
        arm: "found".into(),
        window: Window::default(),
        values: vec![],
        taken: Some(Taken { steal_ratio, foreign_ratio: None }),
        idle: vec![IdleDelta { cpu: 0, states: [(1, "C1", 0), (2, "C6", n_usage)].map(state).to_vec() }],
        woken: Some(Woken::new(0, 9)),
        ..Block::default()
    };
    ExperimentRun { blocks: vec![block], ..ExperimentRun::default() }
}

#[test]
fn a_busy_machine_states_the_same_size_and_a_cpu_that_was_often_awake_a_bound() {
    let up = effect(POLL);
    for steal_ratio in [0.0, 0.3] {
        let run = run(steal_ratio, 9);
        assert_eq!(run.stated_ratio(&up), Stated::Value(3.1));
        assert!(run.in_us(&up, "per read").starts_with("19.9us per read (0.6us to 41us"));
        assert!(run.in_numbers(&up).starts_with("3.1 times (1.06 to 5.2"));
    }
    let diluted = run(0.3, 6);
    // The near end: the estimate may be too large.
    assert_eq!(diluted.stated_ratio(&up), Stated::AtLeast(1.06));
    assert_eq!(diluted.as_slower(&up), "at least 1.06 times slower: at least 600 ns each");
    let (down, other) = (up.inverted(), Effect { arm: "governor".into(), ..up.clone() });
    assert_eq!(diluted.stated_ratio(&down), Stated::Value(1.0 / 3.1), "being awake hides a cost and makes no gain");
    assert_eq!(diluted.stated_ratio(&other), Stated::Value(3.1), "and is nothing to a governor");
    let open = Effect { verdict: Verdict::Undecided, ratio_low: 0.9, ..up };
    assert!(diluted.in_numbers(&open).starts_with("3.1 times (0.9 to 5.2"));
    // Beside "undecided" no interval that excludes 1.
    let apart = Effect { ratio_low: 1.06, ..open };
    assert!(diluted.in_numbers(&apart).starts_with("3.1 times (no interval"), "{}", diluted.in_numbers(&apart));
    assert!(diluted.in_us(&apart, "per read").contains("(no interval"), "{}", diluted.in_us(&apart, "per read"));
}

#[test]
fn a_refused_size_is_reported_nowhere() {
    let unstable = Flaw::Unstable { ratio: 1.4, p_value: 0.001 };
    let grade = Some(Graded { grade: Grade::Refused, because: vec![unstable] });
    let refused = ExperimentRun { grade, ..run(0.0, 9) };
    let up = effect(POLL);
    assert_eq!(refused.in_numbers(&up), "an unknown number of times (effect size not reported, 8 rounds)");
    assert_eq!(refused.in_us(&up, "per read"), "a time of unknown length per read (effect size not reported)");
    assert_eq!(refused.as_share(&up), "an unknown share");
    assert!(!refused.is_sized() && run(0.4, 9).is_sized());
    assert_eq!(run(0.0, 9).stated_ratio(&Effect { ratio: f64::INFINITY, ..up }), Stated::Open);
}

#[test]
fn who_is_slow_is_what_was_compared_and_what_the_counters_saw() {
    let who = |n_usage, arm| run(0.0, n_usage).who(&effect(arm));
    assert_eq!([POLL, SHALLOW].map(|arm| who(9, arm)), ["Sleeping CPUs", "CPUs in deep sleep"]);
    let awake = "CPUs as found, which slept before none of the wake-ups,";
    assert_eq!([POLL, SHALLOW].map(|arm| who(0, arm)), [awake, "CPUs as found"], "nobody slept");
    assert_eq!(who(9, LIFTED), "The latency limits found on single CPUs");
    assert_eq!(who(9, "C1"), "CPUs as found");
}

//! Sizes on a quiet and on a busy machine, and where an interval bounds nothing.

use super::*;
use crate::samples::compared::{LIFTED, POLL, SHALLOW};
use crate::samples::experiment::Block;
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
        woken: Some(Woken { cpu: 0, n: 9 }),
        ..Block::default()
    };
    ExperimentRun { blocks: vec![block], ..ExperimentRun::default() }
}

#[test]
fn a_busy_machine_states_the_near_end_everywhere() {
    let (quiet, busy) = (run(0.0, 9), run(0.3, 9));
    let up = effect(POLL);
    assert_eq!(quiet.slower(&up, "a wake-up"), "Sleeping CPUs make a wake-up 3.1 times slower: 20 us each");
    assert_eq!(
        busy.slower(&up, "a wake-up"),
        "Sleeping CPUs make a wake-up at least 1.06 times slower: at least 600 ns each"
    );
    assert_eq!(
        quiet.in_us(&up, "per read"),
        "19.9us per read (interval 0.6us to 41us, 95 % over all looks, covers this run)"
    );
    assert!(busy.in_us(&up, "per read").starts_with("at least 0.6us per read (interval 0.6us to 41us"));
    assert!(busy.in_numbers(&up).starts_with("at least 1.06 times (interval 1.06 to 5.2"));
    let down = up.inverted();
    assert!(busy.in_numbers(&down).starts_with("at most 0.94 times"), "{}", busy.in_numbers(&down));
    assert_eq!(busy.stated_difference(&down), Stated::AtMost(-600.0));
    let open = Effect { verdict: Verdict::Undecided, ratio_low: 0.9, ..up };
    assert!(busy.in_numbers(&open).starts_with("3.1 times (interval 0.9 to 5.2"));
}

#[test]
fn a_refused_size_is_told_nowhere() {
    let refused = run(0.4, 9);
    let up = effect(POLL);
    assert_eq!(refused.slower(&up, "a wake-up"), "Sleeping CPUs make a wake-up slower");
    assert_eq!(refused.in_numbers(&up), "an unknown number of times (its size is refused, 8 rounds)");
    assert_eq!(refused.in_us(&up, "per read"), "a time of unknown length per read (its size is refused)");
    assert_eq!(refused.as_share(&up), "an unknown share");
    assert!(!refused.is_sized() && run(0.1, 9).is_sized());
}

#[test]
fn an_end_beyond_no_effect_bounds_nothing() {
    let busy = run(0.3, 9);
    let up = Effect { difference_low: -3_000.0, ..effect(POLL) };
    assert_eq!(busy.stated_difference(&up), Stated::Open);
    assert_eq!(busy.as_slower(&up), "at least 1.06 times slower");
    assert!(busy.in_us(&up, "per read").starts_with("a time of unknown length per read (interval -3us"));
    for low in [0.9, 0.0, -1.0, f64::NAN, f64::NEG_INFINITY] {
        let wide = Effect { ratio_low: low, difference_low: 0.0, ..effect(POLL) };
        assert_eq!(busy.as_slower(&wide), "slower", "{low}");
        assert!(busy.in_numbers(&wide).starts_with("an unknown number of times"), "{low}");
    }
    let odd = Effect { difference: -2_000.0, ..effect(POLL) };
    assert_eq!(run(0.0, 9).as_slower(&odd), "3.1 times slower", "the middle difference goes the other way");
    assert_eq!(run(0.0, 9).stated_ratio(&Effect { ratio: f64::INFINITY, ..odd }), Stated::Open);
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

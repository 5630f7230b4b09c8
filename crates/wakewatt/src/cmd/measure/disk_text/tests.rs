//! What is said of each arm, both ways: what was compared is named.

use super::*;
use wakewatt_core::samples::compared::{LIFTED, POLL, SHALLOW};
use wakewatt_core::samples::experiment::Block;
use wakewatt_core::samples::taken::Taken;
use wakewatt_core::samples::woken::Woken;
use wakewatt_core::samples::{IdleDelta, StateDelta, Window};

fn said(arm: &str, verdict: Verdict, steal_ratio: f64) -> String {
    let effect = Effect {
        covers: wakewatt_core::covers::Covers::Run,
        metric: "disk.psync.p50".into(),
        baseline: "found".into(),
        arm: arm.into(),
        ratio: 2.0,
        ratio_low: 1.8,
        ratio_high: 2.2,
        difference: 40_000.0,
        difference_low: 35_000.0,
        difference_high: 45_000.0,
        confidence: None,
        p_value: 0.008,
        at_look: None,
        n_pairs: 8,
        verdict: Verdict::Higher,
    };
    let state = |(index, name, n_usage): (u32, &str, u64)| StateDelta { index, name: name.into(), n_usage, time_ns: 1 };
    let block = Block {
        round: 0,
        arm: "found".into(),
        window: Window::default(),
        values: Vec::new(),
        taken: Some(Taken { steal_ratio, foreign_ratio: None }),
        idle: vec![IdleDelta { cpu: 0, states: [(1, "C1", 0), (2, "C6", 1)].map(state).to_vec() }],
        woken: Some(Woken::new(0, 1)),
        ..Block::default()
    };
    let run = ExperimentRun { blocks: vec![block], ..ExperimentRun::default() };
    let effect = if verdict == Verdict::Lower { Effect { arm: arm.into(), ..effect.inverted() } } else { effect };
    sentence(&run, &Effect { verdict, ..effect })
}

#[test]
fn what_costs_is_what_was_compared() {
    assert_eq!(
        said(SHALLOW, Verdict::Higher, 0.0),
        "CPUs in deep sleep make a read 2.0 times slower: 40 us each, 50 % (95 % CI 44 to 55, holds for this run only) of it: disk.psync.p50 takes 2 times \
         (1.8 to 2.2, 95 % CI, holds for this run only, 8 rounds) as long as with shallow."
    );
    assert!(
        said(POLL, Verdict::Higher, 0.0).starts_with("Sleeping CPUs make a read 2.0 times slower: 40 us each, 50 %")
    );
    let lifted = said(LIFTED, Verdict::Higher, 0.0);
    assert!(lifted.starts_with("The latency limits found on single CPUs make a read 2.0 times slower"), "{lifted}");
}

#[test]
fn what_does_not_cost_is_not_sleep_where_both_slept() {
    assert!(said(POLL, Verdict::Lower, 0.0).starts_with("Sleep does not cost: disk.psync.p50 takes 0.5 times ("));
    let deep = said(SHALLOW, Verdict::Lower, 0.0);
    assert!(deep.starts_with("Deep sleep costs no more than shallow sleep: "), "{deep}");
    let lifted = said(LIFTED, Verdict::Lower, 0.0);
    assert!(lifted.starts_with("The latency limits found on single CPUs make reads faster: "), "{lifted}");
    assert!(said("C1", Verdict::Lower, 0.0).starts_with("What was tried makes reads slower: "));
}

#[test]
fn beside_other_load_the_size_stands() {
    assert_eq!(said(POLL, Verdict::Higher, 0.2), said(POLL, Verdict::Higher, 0.0));
    assert!(said(POLL, Verdict::Undecided, 0.2).starts_with("Undecided: disk.psync.p50 takes 2 times ("));
}

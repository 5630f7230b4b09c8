//! A machine whose numbers are known gives them back, and its other setting is foretold.

use super::*;
use crate::server::{IdleGovernor, IdleState};
use crate::span::Span;

/// Loads of a simulated machine with these numbers, under a setting, by other random numbers than the fit uses.
fn measured(inputs: &Inputs, kind: Kind, arm: &str, truth: Numbers, set: &[String]) -> Loads {
    let bare = Loads { kind, arm: Some(arm.into()), title: arm.into(), levels: Vec::new() };
    let level = |share: f64| {
        let per_s = share * 2.0 / (truth.work_ns * 1e-9);
        let mut level = Loaded {
            name: format!("{} %", share * 100.0),
            per_s,
            took: Took::default(),
            n_cpus: 2,
            service: None,
            broken: None,
        };
        let mut server = model::server(inputs, &bare, &level, &truth).with(set).unwrap();
        server.run.seed = 77;
        level.took = model::took(&server, 1).unwrap();
        level
    };
    let levels = [0.2, 0.5, 0.7].map(level).to_vec();
    Loads { levels, ..bare }
}

fn inputs() -> Inputs {
    let exit = |state: &str, ns| Exit {
        state: state.into(),
        ns,
        is_measured: true,
        after: Vec::new(),
        after_ipi: Vec::new(),
        busy: Vec::new(),
        send_ns: None,
    };
    Inputs {
        states: vec![IdleState::poll(), IdleState::claimed("C6", Span::us(133), Span::us(600))],
        exits: vec![exit("POLL", 0), exit("C6", 60_000)],
        governor: IdleGovernor::Menu,
        kernel: Some("6.18.2".into()),
        loads: Vec::new(),
        remarks: Vec::new(),
    }
}

fn under(name: &str, set: &[&str]) -> Under {
    Under { name: name.into(), set: set.iter().map(ToString::to_string).collect() }
}

#[test]
fn known_numbers_come_back_and_the_other_setting_is_foretold_both_ways() {
    let truth = Numbers { work_ns: 200_000.0, per_sleep_ns: 6_000.0, elsewhere_ns: 30_000.0, own_ns: 20_000.0 };
    let mut inputs = inputs();
    let (found, poll) = (under("found", &[]), under("poll", &["machine.idle.max_latency=0us"]));
    for arm in [&found, &poll] {
        let loads = measured(&inputs, Kind::Steps, &arm.name, truth, &arm.set);
        inputs.loads.push(loads);
    }
    let differ =
        |i: usize| inputs.loads[0].levels[i].took.p50_ns.unwrap() / inputs.loads[1].levels[i].took.p50_ns.unwrap();
    assert!(differ(0) > 1.1, "sleep must cost something here: {}", differ(0));
    for (on, other) in [(&found, &poll), (&poll, &found)] {
        let fit = fit(&inputs, on, other, 1).unwrap();
        let load = &fit.loads[0];
        assert!(load.rms_ratio < 0.03, "{load:?}");
        assert_eq!((fit.is_checked, fit.stands_alone()), (true, None));
        assert!((load.numbers.work_ns / truth.work_ns - 1.0).abs() < 0.08, "{:?}", load.numbers);
        assert!(load.worst_ratio.unwrap().abs() < 0.06, "{load:?}");
    }
}

#[test]
fn what_was_not_measured_is_said() {
    let mut inputs = inputs();
    let truth = Numbers { work_ns: 200_000.0, per_sleep_ns: 6_000.0, elsewhere_ns: 30_000.0, own_ns: 20_000.0 };
    inputs.loads.push(measured(&inputs, Kind::Steps, "found", truth, &[]));
    let why = fit(&inputs, &under("tuned", &[]), &under("poll", &[]), 1).unwrap_err().to_string();
    assert!(why.contains("`tuned`; there are `found`"), "{why}");
    let fit = fit(&inputs, &under("found", &[]), &under("poll", &["machine.idle.max_latency=0us"]), 1).unwrap();
    let alone = fit.stands_alone().unwrap();
    assert!(!fit.is_checked && alone.contains("its prediction stands alone"), "{alone}");
    assert_eq!((fit.loads[0].worst_ratio, fit.loads[0].predicted.len()), (None, 3));
    let field = super::fit(&inputs, &under("found", &["machine.idle.colour=red"]), &under("poll", &[]), 1);
    assert!(matches!(field, Err(FitError::Model(_))));
}

//! A machine whose numbers are known gives them back, and its other setting is foretold.

use super::*;
use crate::server::{IdleGovernor, IdleState};
use crate::span::Span;

/// Loads of a simulated machine with these numbers, under a setting, by other random numbers than the fit uses.
fn measured(inputs: &Inputs, kind: Kind, arm: &str, truth: Numbers, set: &[String]) -> Loads {
    measured_at(&[0.2, 0.5, 0.7], inputs, kind, arm, truth, set)
}

/// The same at these parts of what two CPUs can do.
fn measured_at(shares: &[f64], inputs: &Inputs, kind: Kind, arm: &str, truth: Numbers, set: &[String]) -> Loads {
    let bare = Loads { kind, arm: Some(arm.into()), title: arm.into(), levels: Vec::new() };
    let level = |share: f64| {
        let per_s = share * 2.0 / (truth.work_ns * 1e-9);
        let mut level = Loaded {
            name: format!("{} %", share * 100.0),
            per_s,
            took: Took::default(),
            doubt: Doubt::default(),
            n_cpus: 2,
            service: None,
            broken: None,
        };
        let mut server = model::server(&Subject::of(inputs, &bare), &level, &truth).with(set).unwrap();
        server.run.seed = 77;
        level.took = model::took(&server, 1).unwrap();
        level
    };
    let levels = shares.iter().copied().map(level).collect();
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
        busy_ipi: Vec::new(),
        own_ratio: None,
        cold_trip: Vec::new(),
        cold_table: Vec::new(),
        send_ns: None,
    };
    Inputs {
        states: vec![IdleState::poll(), IdleState::claimed("C6", Span::us(133), Span::us(600))],
        exits: vec![exit("POLL", 0), exit("C6", 60_000)],
        governor: IdleGovernor::Menu,
        halt_poll_ns: None,
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
    let truth =
        Numbers { work_ns: 200_000.0, per_sleep_ns: 6_000.0, elsewhere_ns: 30_000.0, own_ns: 20_000.0, sooner: None };
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
        assert_eq!((fit.is_checked, fit.stands_alone(), load.numbers.sooner), (true, None, None));
        assert_eq!((load.hits.n, load.hits.n_within), (6, 6));
        assert!((load.numbers.work_ns / truth.work_ns - 1.0).abs() < 0.08, "{:?}", load.numbers);
        assert!(load.worst_ratio.unwrap().abs() < 0.06, "{load:?}");
    }
}

#[test]
fn what_was_not_measured_is_said() {
    let mut inputs = inputs();
    let truth =
        Numbers { work_ns: 200_000.0, per_sleep_ns: 6_000.0, elsewhere_ns: 30_000.0, own_ns: 20_000.0, sooner: None };
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

#[test]
fn haltpoll_in_the_model_spins_as_long_as_the_facts_say() {
    use wakewatt_core::evidence::Evidence;
    use wakewatt_core::facts::Snapshot;
    use wakewatt_core::source::Tree;
    let inputs = |most: &str| {
        let idle = "/sys/devices/system/cpu/cpu0/cpuidle";
        let tree = format!(
            "//- /sys/devices/system/cpu/online\n0\n//- /sys/devices/system/cpu/cpuidle/current_governor\nhaltpoll\n\
             //- {idle}/state0/name\nPOLL\n//- {idle}/state1/name\nhaltpoll idle\n{most}"
        );
        let facts = Snapshot::read(&Tree::from_text(&tree), |_| true);
        Inputs::of(&[Evidence { facts, ..Evidence::default() }]).unwrap()
    };
    let truth = Numbers { work_ns: 200_000.0, per_sleep_ns: 0.0, elsewhere_ns: 0.0, own_ns: 0.0, sooner: None };
    let halt_poll = |inputs: &Inputs| {
        let loads = measured_at(&[0.5], inputs, Kind::Steps, "found", truth, &[]);
        model::server(&Subject::of(inputs, &loads), &loads.levels[0], &truth).machine[0].idle.halt_poll
    };
    let never = inputs("//- /sys/module/haltpoll/parameters/guest_halt_poll_ns\n0\n");
    assert_eq!(halt_poll(&never), Some(Span(0)));
    let unsaid = inputs("");
    assert_eq!(halt_poll(&unsaid), None);
    let is_said = |inputs: &Inputs| inputs.remarks.iter().any(|remark| remark.contains("how long haltpoll spins"));
    assert!(is_said(&unsaid) && !is_said(&never));
}

#[test]
fn what_cold_work_adds_is_found_in_loads_that_never_sleep_and_is_foretold() {
    let truth = Numbers {
        work_ns: 200_000.0,
        per_sleep_ns: 90_000.0,
        elsewhere_ns: 30_000.0,
        own_ns: 20_000.0,
        sooner: Some(1.0),
    };
    let mut inputs = inputs();
    let rows = |ns: [u64; 3]| {
        let after = |(asleep_ns, ns)| ExitAfter { asleep_ns, ns };
        [100_000, 1_000_000, 10_000_000].into_iter().zip(ns).map(after).collect::<Vec<_>>()
    };
    // Asleep a CPU grows cold sooner than while it polls.
    inputs.exits[0].cold_table = rows([1_000, 30_000, 50_000]);
    inputs.exits[1].cold_table = rows([4_000, 45_000, 60_000]);
    // While it polls it keeps its ticks.
    (inputs.exits[0].own_ratio, inputs.exits[1].own_ratio) = (Some(0.006), Some(0.002));
    let (found, poll) = (under("found", &[]), under("poll", &["machine.idle.max_latency=0us"]));
    for arm in [&found, &poll] {
        let loads = measured(&inputs, Kind::Steps, &arm.name, truth, &arm.set);
        inputs.loads.push(loads);
    }
    // The rows do something: without them a CPU that polls is neither slower after a pause nor busier.
    let polling = inputs.loads[1].levels[0].took;
    let mut without = inputs.clone();
    for exit in &mut without.exits {
        (exit.cold_table, exit.own_ratio) = (Vec::new(), None);
    }
    let bare = measured(&without, Kind::Steps, "poll", truth, &poll.set).levels[0].took;
    assert!(
        polling.p50_ns > bare.p50_ns.map(|ns| ns + 3_000.0) && polling.cpu_ns > bare.cpu_ns,
        "{polling:?} {bare:?}"
    );
    for (on, other) in [(&found, &poll), (&poll, &found)] {
        let worst = |inputs: &Inputs| fit(inputs, on, other, 1).unwrap().loads[0].worst_ratio.unwrap().abs();
        let load = &fit(&inputs, on, other, 1).unwrap().loads[0];
        // These pauses are short beside the time to grow cold: they tell the product of the two, and the expectation which is which.
        let sooner = load.numbers.sooner.unwrap();
        assert!((load.numbers.per_sleep_ns * sooner / truth.per_sleep_ns - 1.0).abs() < 0.15, "{load:?}");
        assert!((0.7..1.4).contains(&sooner), "{load:?}");
        assert!(load.rms_ratio < 0.03 && load.worst_ratio.unwrap().abs() < 0.05, "{load:?}");
        assert!(worst(&without) > worst(&inputs), "{} {}", worst(&without), worst(&inputs));
    }
}

#[test]
fn a_prediction_has_the_doubt_of_the_level_that_it_begins_at_and_of_the_one_it_is_held_against() {
    let truth =
        Numbers { work_ns: 200_000.0, per_sleep_ns: 6_000.0, elsewhere_ns: 30_000.0, own_ns: 20_000.0, sooner: None };
    let mut inputs = inputs();
    let (found, poll) = (under("found", &[]), under("poll", &["machine.idle.max_latency=0us"]));
    for (arm, ratio) in [(&found, 0.1), (&poll, 0.2)] {
        let mut loads = measured(&inputs, Kind::Steps, &arm.name, truth, &arm.set);
        for level in &mut loads.levels {
            level.doubt.p50_ns = level.took.p50_ns.map(|ns| [ns * (1.0 - ratio), ns * (1.0 + ratio)]);
        }
        inputs.loads.push(loads);
    }
    let fit = fit(&inputs, &found, &poll, 1).unwrap();
    let load = &fit.loads[0];
    for (fitted, predicted) in load.fitted.iter().zip(&load.predicted) {
        let width = |ends: Option<[f64; 2]>| ends.map(|[low, high]| (high - low).round());
        assert_eq!(width(predicted.modelled_doubt.p50_ns), width(fitted.doubt.p50_ns), "moved, not stretched");
        let [low, high] = predicted.modelled_doubt.p50_ns.unwrap();
        assert!(low < predicted.modelled.p50_ns.unwrap() && predicted.modelled.p50_ns.unwrap() < high);
        // 20 % of one and some 10 of the other are some 22 together, of logarithms: more upwards.
        let [low, high] = predicted.offs()[0].range.unwrap();
        let off = predicted.p50_off().unwrap();
        assert!((0.17..0.22).contains(&(off - low)) && (0.24..0.3).contains(&(high - off)), "{low} {off} {high}");
        assert_eq!((predicted.offs()[1].range, predicted.modelled_doubt.cpu_ns), (None, None));
    }
    let hits = load.hits;
    assert_eq!((hits.n, hits.n_within + hits.n_unsure + hits.n_missed + hits.n_further), (6, 6));
    // Nobody measured it: nothing is counted, and what a prediction begins at is in doubt all the same.
    inputs.loads.pop();
    let alone = &super::fit(&inputs, &found, &poll, 1).unwrap().loads[0];
    assert_eq!(alone.hits, Hits::default());
    assert!(alone.predicted.iter().all(|b| b.modelled_doubt.p50_ns.is_some() && b.offs()[0].range.is_none()));
}

#[test]
fn work_that_grows_cold_sooner_than_the_piece_is_told_from_work_that_does_not() {
    let mut inputs = inputs();
    let rows = |soon_ns: f64| {
        let after = |asleep_ns: u64| ExitAfter {
            asleep_ns,
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // At most 200 us.
            ns: (-200_000.0 * (-(asleep_ns as f64) / soon_ns).exp_m1()) as u64,
        };
        [300_000, 1_000_000, 4_000_000, 12_000_000, 25_000_000].map(after).to_vec()
    };
    (inputs.exits[0].cold_table, inputs.exits[1].cold_table) = (rows(4e6), rows(2e6));
    (inputs.exits[0].own_ratio, inputs.exits[1].own_ratio) = (Some(0.002), Some(0.002));
    let sooner = |times: f64| {
        let numbers = Numbers {
            work_ns: 200_000.0,
            per_sleep_ns: 200_000.0,
            elsewhere_ns: 30_000.0,
            own_ns: 20_000.0,
            sooner: Some(times),
        };
        let (found, poll) = (under("found", &[]), under("poll", &["machine.idle.max_latency=0us"]));
        let mut inputs = inputs.clone();
        for arm in [&found, &poll] {
            let loads = measured_at(&[0.01, 0.2, 0.7], &inputs, Kind::Steps, &arm.name, numbers, &arm.set);
            inputs.loads.push(loads);
        }
        let fit = fit(&inputs, &found, &poll, 1).unwrap();
        let load = &fit.loads[0];
        assert!(load.rms_ratio < 0.03 && load.worst_ratio.unwrap().abs() < 0.08, "{load:?}");
        load.numbers.sooner.unwrap()
    };
    // What is expected holds the second back.
    let (alike, much) = (sooner(1.0), sooner(4.0));
    assert!((0.8..1.25).contains(&alike) && (2.0..4.5).contains(&much), "{alike} {much}");
}

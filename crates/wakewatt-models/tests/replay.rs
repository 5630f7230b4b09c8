//! A recording of a real kernel, replayed: the model decides as that kernel did, and other policies do what they should.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use wakewatt_core::record::wtrace::{Header, Item, Reader};
use wakewatt_models::replay::{Change, Replay, Replayed, Side};

fn replayed(changes: &[&str], corrections: &[&str]) -> Replayed {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/traces/vm-haltpoll-6.18.wtrace");
    let bytes = std::fs::read(path).unwrap();
    let mut reader = Reader::new(&bytes).unwrap();
    let header = reader.header.clone();
    let parsed = |texts: &[&str]| texts.iter().map(|text| Change::parse(text).unwrap()).collect::<Vec<_>>();
    let mut replay = Replay::new(&header, &parsed(changes), &parsed(corrections)).unwrap();
    for item in reader.by_ref() {
        match item {
            Item::Pairs(pairs) => replay.pairs(&pairs),
            Item::Choices(choices) => replay.choices(&choices),
            Item::Mark(mark) => replay.mark(&mark),
        }
    }
    replay.finish()
}

/// What this machine had set, and the recording does not hold.
const NO_SPINNING: &[&str] = &["guest-halt-poll=0us"];

fn share(side: &Side, state: &str) -> f64 {
    side.states.iter().find(|s| s.state == state).map_or(0.0, |s| s.time_ratio)
}

#[test]
fn the_recorded_policy_returns_the_recorded_decisions_and_times() {
    let r = replayed(&[], NO_SPINNING);
    assert_eq!((r.n_compared, r.n_identical, r.is_trusted), (3137, 3137, Some(true)), "{}", r.trust);
    assert_eq!(r.predicted, r.recorded_again);
    let time = |side: &Side| side.states.iter().map(|s| s.time_ns).sum::<u64>() as f64;
    let wakes = |side: &Side| side.states.iter().map(|s| s.n_wakes).sum::<u64>() as f64;
    assert!((time(&r.recorded_again) / time(&r.recorded) - 1.0).abs() < 0.01);
    assert!(
        (wakes(&r.recorded_again) / wakes(&r.recorded) - 1.0).abs() < 0.02,
        "{:?} {:?}",
        r.recorded,
        r.recorded_again
    );
    assert!(r.remarks.iter().any(|words| words.contains("the governor became menu")));
}

#[test]
fn without_what_the_recording_lacks_fewer_decisions_are_alike() {
    let r = replayed(&[], &[]);
    assert!(r.identical_ratio.unwrap() < 1.0 && r.n_compared == 3137);
    // Rules of another kernel for what menu recorded: told apart, and said first.
    let other = replayed(&[], &["governor=ladder", "table=POLL:0us/0us,C1:400us/900us,C6:900us/2000us"]);
    assert_eq!(other.is_trusted, Some(false));
    assert!(other.trust.starts_with("Not to be trusted"), "{}", other.trust);
}

#[test]
fn limits_and_switched_off_states_are_kept() {
    let limited = replayed(&["max-latency=poll"], NO_SPINNING);
    assert_eq!((share(&limited.predicted, "POLL"), limited.predicted.wake_cost.max_ns), (1.0, 0));
    let deep = "table=POLL:0us/0us,C1:2us/2us,C6:133us/600us";
    let free = replayed(&["governor=menu", deep], NO_SPINNING);
    assert!(share(&free.predicted, "C6") > 0.5);
    for set in ["max-state=1", "disable=c6", "max-latency=50us"] {
        let held = replayed(&["governor=menu", deep, set], NO_SPINNING);
        assert_eq!(share(&held.predicted, "C6"), 0.0, "{set}");
        assert!(held.predicted.wake_cost.mean_ns <= free.predicted.wake_cost.mean_ns, "{set}");
        assert!(held.predicted.modelled_energy_uj > free.predicted.modelled_energy_uj, "{set}");
    }
    assert!(free.remarks.iter().any(|words| words.contains("is assumed")));
}

#[test]
fn what_cannot_be_asked_is_said() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/traces/vm-haltpoll-6.18.wtrace");
    let bytes = std::fs::read(path).unwrap();
    let header = Reader::new(&bytes).unwrap().header.clone();
    let refused = |header: &Header, text: &[&str]| {
        let changes: Vec<Change> = text.iter().map(|t| Change::parse(t).unwrap()).collect();
        Replay::new(header, &changes, &[]).unwrap_err().to_string()
    };
    assert_eq!(refused(&header, &["disable=C9"]), "no idle state `C9` in the table; it has POLL, haltpoll idle");
    let other = Header { governor: Some("own".into()), ..header.clone() };
    assert!(refused(&other, &[]).contains("governor is own, which has no model"));
    assert!(refused(&Header { kernel: "elm".into(), ..header.clone() }, &[]).contains("kernel is elm"));
    assert!(refused(&Header { tick_ns: None, ..header.clone() }, &[]).contains("how long a tick is"));
    assert!(refused(&Header { tables: Vec::new(), ..header }, &[]).contains("the recording has none"));
}

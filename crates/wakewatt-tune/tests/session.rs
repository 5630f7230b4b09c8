//! Sessions on a machine in memory: sets that meet in one file, tunables that come and go, CPUs that go, commands; and a
//! process killed at any operation of it, after which recovery from the journal restores everything.
#![allow(clippy::unwrap_used)] // A test that cannot go on should stop.

use std::collections::BTreeMap;
use std::path::Path;
use wakewatt_host::simulated::{Fault, SimulatedMachine, cpus};
use wakewatt_tune::hands::Hands;
use wakewatt_tune::journal::{Draft, Entry, Journal, Owner, Phase};
use wakewatt_tune::put_back::undo_all;
use wakewatt_tune::request::Request;
use wakewatt_tune::session::{Session, SettingSet};

const STATE: &str = "/var/lib/wakewatt/open";
const CPU: &str = "/sys/devices/system/cpu";

fn machine() -> SimulatedMachine {
    SimulatedMachine::new(&(cpus::policies("amd-pstate-epp", cpus::EPP) + &format!("//- {CPU}/cpu1/online\n1\n")))
}

fn hands(machine: &SimulatedMachine) -> Hands<'_> {
    Hands { source: machine, sink: machine, store: machine, runner: machine }
}

fn set(requests: &[&str]) -> SettingSet {
    SettingSet { requests: requests.iter().map(|r| Request::parse(r).unwrap()).collect(), command: None }
}

/// Found; a governor that forces the preference; tunables; the preference that the second set moves; a CPU off.
fn sets() -> Vec<SettingSet> {
    vec![
        SettingSet::default(),
        set(&["freq.governor=performance", "freq.min=1GHz"]),
        set(&["freq.governor=conservative", "freq.tunable.conservative.up_threshold=98"]),
        set(&["freq.epp=power", "freq.max=2GHz"]),
        set(&["cpu.online@cpus:1=off", "freq.governor@cpus:0=ondemand"]),
        SettingSet { command: Some((vec!["start".into()], vec!["stop".into()])), ..set(&["freq.max=2.5GHz"]) },
    ]
}

fn begin(machine: &SimulatedMachine) -> Result<Session<'_>, String> {
    let owner = Owner { boot_id: machine.boot_id(), pid: 1, ..Owner::default() };
    Session::begin(hands(machine), &owner, Path::new(STATE), "test", sets(), None, "").map_err(|e| e.to_string())
}

fn value(machine: &SimulatedMachine, path: &str) -> Option<String> {
    machine.snapshot("/var").get(&format!("{CPU}/cpufreq/{path}")).cloned()
}

fn settings(machine: &SimulatedMachine) -> BTreeMap<String, String> {
    machine.snapshot("/var").into_iter().filter(|(p, _)| p.starts_with("/sys")).collect()
}

#[test]
fn every_order_of_sets_sets_what_it_says_and_leaves_what_was_found() {
    let machine = machine();
    let before = settings(&machine);
    let mut session = begin(&machine).unwrap();
    for order in [[1, 2, 3, 4, 5, 0], [4, 3, 2, 1, 0, 5], [3, 1, 3, 2, 4, 2]] {
        for set in order {
            session.enter(set).unwrap_or_else(|why| panic!("set {set}: {why}"));
            let governor = value(&machine, "policy0/scaling_governor").unwrap();
            match set {
                0 => assert_eq!(settings(&machine), before),
                1 => assert_eq!(
                    (governor.as_str(), value(&machine, "policy1/scaling_min_freq").unwrap().as_str()),
                    ("performance", "1000000")
                ),
                2 => assert_eq!(value(&machine, "conservative/up_threshold").unwrap(), "98"),
                3 => assert_eq!(value(&machine, "policy1/energy_performance_preference").unwrap(), "power"),
                4 => assert_eq!((governor.as_str(), value(&machine, "policy1/scaling_governor")), ("ondemand", None)),
                _ => assert_eq!(machine.ran().last().unwrap(), "start"),
            }
        }
    }
    assert!(session.end().is_complete());
    assert_eq!(settings(&machine), before);
    assert_eq!(Journal::all(&machine, Path::new(STATE)).0.len(), 0);
    let ran = machine.ran();
    assert!(ran.chunks(2).all(|pair| pair == ["start", "stop"]), "{ran:?}");
}

#[test]
fn killed_at_any_operation_recovery_restores_everything() {
    let run = |machine: &SimulatedMachine| -> Result<(), String> {
        let mut session = begin(machine)?;
        for set in [1, 3, 2, 5, 4, 0] {
            session.enter(set)?;
        }
        session.end();
        Ok(())
    };
    let whole = machine();
    run(&whole).unwrap();
    let n = whole.n_operations();
    assert!(n > 500);
    for at in (0..n).step_by(7).chain(n - 20..n) {
        let machine = machine();
        let before = settings(&machine);
        machine.fail_at(at, Fault::Kill);
        let _ = run(&machine);
        machine.heal();
        let (journals, bad) = Journal::all(&machine, Path::new(STATE));
        assert!(bad.is_empty(), "{bad:?}");
        for mut journal in journals.into_iter().filter(|j| j.phase == Phase::Open) {
            let report = undo_all(hands(&machine), &mut journal, &machine.boot_id(), false);
            assert!(report.is_complete(), "killed at {at}: {:?}", report.left());
        }
        assert_eq!(settings(&machine), before, "killed at {at}");
        let ran = machine.ran();
        let is_left_started = ran.iter().rev().find(|c| *c == "start" || *c == "stop").is_some_and(|c| c == "start");
        assert!(!is_left_started, "killed at {at}: {ran:?}");
    }
}

#[test]
fn a_refused_set_is_taken_back_and_the_next_one_works() {
    let machine = machine();
    let before = settings(&machine);
    let mut session = begin(&machine).unwrap();
    let file = format!("{CPU}/cpufreq/policy1/energy_performance_preference");
    machine.on(&file, wakewatt_host::simulated::Event::Refuse("Device or resource busy".into()));
    assert!(session.enter(3).unwrap_err().contains("busy"));
    assert_eq!(settings(&machine), before);
    session.enter(2).unwrap();
    assert!(session.end().is_complete());
    assert_eq!(settings(&machine), before);
}

#[test]
fn a_misspelled_command_is_refused_and_one_that_goes_missing_was_not_started() {
    let machine = machine();
    let before = settings(&machine);
    machine.lose_program("start");
    let refused = begin(&machine).err().unwrap();
    assert!(refused.contains("nothing is changed: start: no such program"), "{refused}");
    assert_eq!((settings(&machine), Journal::all(&machine, Path::new(STATE)).0.len()), (before.clone(), 0));
    // It goes after the session has begun: nothing is to be taken back for it, so the journal does not stay open.
    let machine = self::machine();
    let mut session = begin(&machine).unwrap();
    machine.lose_program("start");
    assert!(session.enter(5).unwrap_err().contains("cannot be run"));
    assert!(session.end().is_complete());
    assert_eq!((settings(&machine), Journal::all(&machine, Path::new(STATE)).0.len()), (before, 0));
    assert!(machine.ran().is_empty(), "{:?}", machine.ran());
    assert!(begin(&machine).is_err() && Journal::all(&machine, Path::new(STATE)).0.is_empty());
}

#[test]
fn nothing_is_begun_on_what_a_killed_run_has_left() {
    let machine = machine();
    let session = begin(&machine).unwrap();
    std::mem::forget(session);
    let refused = begin(&machine).err().unwrap();
    assert!(
        refused.contains("a killed run left settings changed") && refused.contains("wakewatt recover"),
        "{refused}"
    );
}

/// Entries of a killed run: as before, and on an interface that has gone.
#[test]
fn what_is_out_of_reach_is_in_nobodys_way_and_what_stands_changed_is() {
    let machine = machine();
    let governor = format!("{CPU}/cpufreq/policy0/scaling_governor");
    let entry = |path: &str, before: &str| Entry::new(path, Some(before.into()), vec![Some("7".into())]);
    let found = value(&machine, "policy0/scaling_governor").unwrap();
    let owner = Owner { boot_id: machine.boot_id(), pid: 1, ..Owner::default() };
    let refusal = |entries: Vec<Entry>| {
        let draft = Draft { purpose: "killed", entries, ..Draft::default() };
        let journal = Journal::create(&machine, Path::new(STATE), &owner, "run-1", draft).unwrap();
        let begun = begin(&machine).map(|session| assert!(session.end().is_complete()));
        journal.finish(&machine).unwrap();
        begun.err().unwrap_or_default()
    };
    let away = || entry("ethtool:gone0/rx-usecs", "3");
    assert_eq!(refusal(vec![entry(&governor, &found), away()]), "");
    let why = refusal(vec![entry(&governor, "another"), away()]);
    assert!(why.contains("wakewatt recover --forget run-1-1"), "{why}");
    // All is as before: recovery can remove the journal, which would be undone again later.
    assert!(refusal(vec![entry(&governor, &found)]).contains("recover"));
    // Nobody knows what has become of a register.
    assert!(refusal(vec![entry("msr:0x1b0@0/3:0", "3"), away()]).contains("recover"));
}

//! Going to and fro between idle states, as experiments do before every block: what that costs, that nothing is overwritten
//! which somebody else wrote, and that every operation of it may fail, be the last of a killed process, find the disk
//! read-only, or lose the power; afterwards all is as before, or the journal names what is left and recovery undoes it.
//!
//! `cargo test -p wakewatt-tune --test to_and_fro -- --nocapture` prints how many points were tried.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // A test that cannot go on should stop; figures are printed.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use wakewatt_core::source::{Read, Source};
use wakewatt_host::simulated::{Event, Fault, SimulatedMachine, cpus};
use wakewatt_host::sink::{Sink, SinkError};
use wakewatt_tune::hands::Hands;
use wakewatt_tune::journal::{Journal, Owner};
use wakewatt_tune::recovery::close;
use wakewatt_tune::request::Request;
use wakewatt_tune::session::{Session, SettingSet};
use wakewatt_tune::undo::{UndoReport, Undone};

const STATE: &str = "/var/lib/wakewatt/open";
const CPU: &str = "/sys/devices/system/cpu";
const N_CPUS: usize = 2;
const N_STATES: usize = 3;

/// POLL, C1 and C6, a limit left on CPU 1, two frequency policies.
fn machine() -> SimulatedMachine {
    let mut text = cpus::policies("acpi-cpufreq", &[]) + &cpus::idle_states();
    for (cpu, limit) in [(0, "0"), (1, "n/a")] {
        text += &format!("//- {CPU}/cpu{cpu}/power/pm_qos_resume_latency_us\n{limit}\n");
    }
    SimulatedMachine::new(&text)
}

fn hands(machine: &SimulatedMachine) -> Hands<'_> {
    Hands { source: machine, sink: machine, store: machine, runner: machine }
}

fn set(requests: &[&str]) -> SettingSet {
    SettingSet { requests: requests.iter().map(|r| Request::parse(r).unwrap()).collect(), command: None }
}

/// As found; each idle state alone; polling by a limit; a governor, which must go the long way.
fn sets() -> Vec<SettingSet> {
    vec![
        SettingSet::default(),
        set(&["idle.state.POLL=off", "idle.state.C1=on", "idle.state.C6=off", "qos.cpu=none"]),
        set(&["idle.state.POLL=off", "idle.state.C1=off", "idle.state.C6=on", "qos.cpu=none"]),
        set(&["idle.state.POLL=on", "idle.state.C1=on", "idle.state.C6=on", "qos.cpu=poll"]),
        set(&["freq.governor=performance"]),
    ]
}

fn owner(machine: &SimulatedMachine) -> Owner {
    Owner { boot_id: machine.boot_id(), pid: 1, ..Owner::default() }
}

fn begin<'a>(hands: Hands<'a>, owner: &Owner) -> Result<Session<'a>, String> {
    Session::begin(hands, owner, Path::new(STATE), "test", sets(), None, "").map_err(|e| e.to_string())
}

type State = BTreeMap<String, String>;

fn settings(machine: &SimulatedMachine) -> State {
    machine.snapshot("/var").into_iter().filter(|(p, _)| p.starts_with("/sys")).collect()
}

fn value(machine: &SimulatedMachine, path: &str) -> String {
    settings(machine)[&format!("{CPU}/{path}")].clone()
}

fn journals(machine: &SimulatedMachine) -> Vec<Journal> {
    let (journals, bad) = Journal::all(machine, Path::new(STATE));
    assert!(bad.is_empty(), "a journal is never half written: {bad:?}");
    journals
}

fn recover(machine: &SimulatedMachine) {
    for mut journal in journals(machine) {
        let report = close(hands(machine), &mut journal, &machine.boot_id(), false);
        assert!(report.remains().is_empty(), "{:?}", report.remains());
    }
}

#[test]
fn each_set_is_what_it_says_whatever_came_before() {
    let machine = machine();
    let before = settings(&machine);
    let owner = owner(&machine);
    let mut session = begin(hands(&machine), &owner).unwrap();
    for set in [1, 2, 1, 3, 2, 0, 4, 1, 4, 3, 0, 2] {
        session.enter(set).unwrap();
        let disabled = |state: u32| value(&machine, &format!("cpu1/cpuidle/state{state}/disable"));
        let limit = |cpu: u32| value(&machine, &format!("cpu{cpu}/power/pm_qos_resume_latency_us"));
        let governor = value(&machine, "cpufreq/policy0/scaling_governor");
        assert_eq!(governor, if set == 4 { "performance" } else { "schedutil" });
        let seen = (disabled(0), disabled(1), disabled(2), limit(0), limit(1));
        let expected = match set {
            1 => ("1", "0", "1", "0", "0"),
            2 => ("1", "1", "0", "0", "0"),
            3 => ("0", "0", "0", "n/a", "n/a"),
            _ => ("0", "0", "0", "0", "n/a"),
        };
        let text = |s: &str| s.to_string();
        let (a, b, c, d, e) = expected;
        assert_eq!(seen, (text(a), text(b), text(c), text(d), text(e)), "set {set}");
    }
    assert!(session.end().is_complete());
    assert_eq!((settings(&machine), journals(&machine).len()), (before, 0));
}

/// Counts what is asked of the kernel.
struct Counting<'a> {
    inner: &'a SimulatedMachine,
    n_sink: Cell<usize>,
    n_writes: Cell<usize>,
    n_source: Cell<usize>,
}

fn one_more(count: &Cell<usize>) {
    count.set(count.get() + 1);
}

impl Sink for Counting<'_> {
    fn write(&self, path: &str, value: &str) -> Result<(), SinkError> {
        one_more(&self.n_sink);
        one_more(&self.n_writes);
        self.inner.write(path, value)
    }
    fn read(&self, path: &str) -> Result<String, SinkError> {
        one_more(&self.n_sink);
        Sink::read(self.inner, path)
    }
}

impl Source for Counting<'_> {
    fn read(&self, path: &str) -> Read<Vec<u8>> {
        one_more(&self.n_source);
        Source::read(self.inner, path)
    }
    fn list(&self, path: &str) -> Read<Vec<String>> {
        self.inner.list(path)
    }
    fn link(&self, path: &str) -> Read<String> {
        self.inner.link(path)
    }
    fn msr(&self, cpu: u32, register: u32) -> Read<u64> {
        self.inner.msr(cpu, register)
    }
    fn origin(&self) -> String {
        self.inner.origin()
    }
}

/// Writing every declared value and reading it back, which is what a switch cost when sets did not know of each other.
const ALL_WRITTEN_AND_READ: usize = 2 * N_CPUS * (N_STATES + 1);

#[test]
fn a_switch_writes_what_differs_and_looks_at_the_rest() {
    let machine = machine();
    let counting = Counting { inner: &machine, n_sink: Cell::new(0), n_writes: Cell::new(0), n_source: Cell::new(0) };
    let hands = Hands { source: &counting, sink: &counting, store: &machine, runner: &machine };
    let owner = owner(&machine);
    let mut session = begin(hands, &owner).unwrap();
    session.enter(1).unwrap();
    for (set, n_differing) in [(2, 2 * N_CPUS), (1, 2 * N_CPUS), (1, 0)] {
        counting.n_sink.set(0);
        counting.n_writes.set(0);
        counting.n_source.set(0);
        session.enter(set).unwrap();
        let (n_sink, n_writes) = (counting.n_sink.get(), counting.n_writes.get());
        println!("to set {set}: {n_sink} operations, {n_writes} of them writes; before: {ALL_WRITTEN_AND_READ}");
        assert_eq!((n_writes, counting.n_source.get()), (n_differing, 0), "facts are not read anew");
        assert!(n_sink <= ALL_WRITTEN_AND_READ, "{n_sink}");
    }
    assert!(session.end().is_complete());
}

#[test]
fn what_somebody_else_sets_meanwhile_is_seen_and_left_alone() {
    let machine = machine();
    let before = settings(&machine);
    let owner = owner(&machine);
    let mut session = begin(hands(&machine), &owner).unwrap();
    session.enter(1).unwrap();
    let limit = format!("{CPU}/cpu0/power/pm_qos_resume_latency_us");
    machine.meddle(&limit, "99");
    let why = session.enter(2).unwrap_err();
    assert!(why.contains(&limit) && why.contains("somebody else has set it to \"99\""), "{why}");
    let report = session.end();
    assert!(report.left().len() == 1 && report.left()[0].contains("somebody else"), "{report:?}");
    assert_eq!(value(&machine, "cpu0/power/pm_qos_resume_latency_us"), "99");
    assert_eq!(value(&machine, "cpu0/cpuidle/state2/disable"), "0");
    let mut left = journals(&machine);
    assert!(close(hands(&machine), &mut left[0], &machine.boot_id(), true).remains().is_empty());
    assert_eq!((settings(&machine), journals(&machine).len()), (before, 0));
}

#[test]
fn a_refusal_takes_the_set_back_and_dropping_does_too() {
    let machine = machine();
    let before = settings(&machine);
    let owner = owner(&machine);
    {
        let mut session = begin(hands(&machine), &owner).unwrap();
        machine.on(&format!("{CPU}/cpu1/cpuidle/state2/disable"), Event::Ignore);
        let why = session.enter(1).unwrap_err();
        assert!(why.contains("wrote \"1\", reads back \"0\""), "{why}");
        assert_eq!(settings(&machine), before, "half of a set is none");
        session.enter(3).unwrap();
        assert_ne!(settings(&machine), before);
    }
    assert_eq!((settings(&machine), journals(&machine).len()), (before, 0));
}

/// A whole run: what it left undone, where it came to its end.
fn run(machine: &SimulatedMachine) -> Result<UndoReport, String> {
    let owner = owner(machine);
    let mut session = begin(hands(machine), &owner)?;
    // An arm that cannot be entered is a lost block, and the run goes on.
    for set in [1, 2, 3, 0, 4, 2] {
        let _ = session.enter(set);
    }
    Ok(session.end())
}

#[test]
fn every_fault_leaves_before_or_a_journal_that_names_the_rest() {
    let whole = machine();
    let before = settings(&whole);
    whole.heal();
    run(&whole).unwrap();
    let n = whole.n_operations();
    assert_eq!((settings(&whole), journals(&whole).len()), (before.clone(), 0));
    let mut n_left = 0;
    for at in 0..n {
        for fault in [Fault::Once, Fault::Forever, Fault::Kill, Fault::ReadOnly] {
            let machine = machine();
            machine.fail_at(at, fault);
            let end = run(&machine);
            machine.heal();
            let now = settings(&machine);
            if fault == Fault::ReadOnly {
                assert_eq!(now, before, "a disk that can be read only keeps no setting changed: {at}");
            }
            if now != before {
                assert_eq!(journals(&machine).len(), 1, "{fault:?} at {at}: changed and no journal");
                assert!(
                    fault == Fault::Kill || end.as_ref().is_ok_and(|report| !report.is_complete()),
                    "{fault:?} at {at}: changed and called complete: {end:?}"
                );
                n_left += 1;
            }
            // What is named as left is what is left.
            if let (Ok(report), false) = (&end, fault == Fault::Kill) {
                for (path, undone) in &report.entries {
                    let is_changed = now.get(path) != before.get(path);
                    let may_be = matches!(undone, Undone::Failed(_) | Undone::Away(_));
                    assert!(!is_changed || may_be, "{path} after {fault:?} at {at}: {undone}");
                }
            }
            recover(&machine);
            assert_eq!((settings(&machine), journals(&machine).len()), (before.clone(), 0), "{fault:?} at {at}");
            recover(&machine);
            assert_eq!(settings(&machine), before, "recovery is idempotent");
        }
        let machine = machine();
        machine.fail_at(at, Fault::Kill);
        let _ = run(&machine);
        machine.power_cycle();
        recover(&machine);
        assert_eq!((settings(&machine), journals(&machine).len()), (before.clone(), 0), "power lost at {at}");
    }
    println!(
        "to and fro: {n} operations, each failing once, for ever, killed, on a read-only disk and without power; {n_left} left a journal that recovery then undid"
    );
}

/// As a build before sessions wrote it, for an experiment that was killed.
#[test]
fn a_journal_of_an_older_build_is_recovered() {
    let machine = machine();
    let before = settings(&machine);
    let entry = |path: &str, before: &str| {
        format!(r#"{{ "path": "{CPU}/{path}", "before": "{before}", "ours": ["0", "1", "n/a"] }}"#)
    };
    let entries = [
        entry("cpu1/power/pm_qos_resume_latency_us", "n/a"),
        entry("cpu1/cpuidle/state2/disable", "0"),
        entry("cpu1/cpuidle/state1/disable", "0"),
    ];
    let text = format!(
        r#"{{ "format": 2, "boot_id": "{}", "pid": 1, "pid_start_ticks": 7, "purpose": "measure idle", "root": "/",
             "phase": "open", "entries": [{}] }}"#,
        machine.boot_id(),
        entries.join(", ")
    );
    machine.put_file(&format!("{STATE}/run-1-1.json"), &text);
    machine.meddle(&format!("{CPU}/cpu1/power/pm_qos_resume_latency_us"), "0");
    machine.meddle(&format!("{CPU}/cpu1/cpuidle/state2/disable"), "1");
    let refused = begin(hands(&machine), &owner(&machine)).err().unwrap();
    assert!(refused.contains("a killed run left settings changed"), "{refused}");
    recover(&machine);
    assert_eq!((settings(&machine), journals(&machine).len()), (before, 0));
}

//! Crash safety, proved on a machine in memory: every operation of apply and of undo fails once, fails for ever, or is
//! the last one of a killed process or of a machine that loses power, or the last before the disk becomes read-only.
//! Afterwards the machine is as before, or as planned, or the journal names what is left; and recovery from the journal,
//! run twice, always ends at one of the two. While the disk is read-only the kernel's settings go back all the same.
//!
//! `cargo test -p wakewatt-tune --test crash -- --nocapture` prints how many points were tried.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // A test that cannot go on should stop; figures are printed.

use std::collections::BTreeMap;
use std::path::Path;
use wakewatt_host::simulated::{DROP_IN, Fault, GENERATED, SimulatedMachine, cpus};
use wakewatt_tune::apply::{FileChange, Order, apply};
use wakewatt_tune::hands::Hands;
use wakewatt_tune::journal::{Journal, Owner, Phase};
use wakewatt_tune::put_back::undo_all;
use wakewatt_tune::recovery::close;
use wakewatt_tune::request::Request;

const STATE: &str = "/var/lib/wakewatt/open";

fn machine() -> SimulatedMachine {
    let more = [cpus::EPP, &[("base_frequency", "2000000")]].concat();
    let mut text = cpus::policies("amd-pstate-epp", &more) + &cpus::idle_states();
    text += &format!("//- {}/cpu1/online\n1\n//- /dev/cpu_dma_latency\n2000000000\n", cpus::ROOT);
    let machine = SimulatedMachine::new(&text);
    machine.put_file(GENERATED, "linux /vmlinuz quiet ");
    machine
}

fn hands(machine: &SimulatedMachine) -> Hands<'_> {
    Hands { source: machine, sink: machine, store: machine, runner: machine }
}

fn owner(machine: &SimulatedMachine) -> Owner {
    Owner { boot_id: machine.boot_id(), pid: 1, ..Owner::default() }
}

/// What is applied: files that stay where they are, files that come with a governor, files that go with a CPU, a process
/// that holds a limit.
const ORDERS: [&[&str]; 4] = [
    &["freq.governor=performance", "freq.max=2GHz", "freq.min=1GHz", "idle.state.C6=off"],
    &["freq.governor=ondemand", "freq.tunable.ondemand.up_threshold=98", "freq.min=1GHz"],
    &["cpu.online@cpus:1=off", "freq.governor@cpus:0=performance", "idle.state.C6@cpus:0=off"],
    &["qos.global=10us", "idle.state.C6@cpus:0=off"],
];

fn order(requests: &[&str]) -> Order<'static> {
    let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
    Order {
        purpose: "crash test".into(),
        requests: requests.iter().map(|r| Request::parse(r).unwrap()).collect(),
        files: vec![FileChange { path: format!("file:{DROP_IN}"), to: Some("processor.max_cstate=1\n".into()) }],
        commands: vec![(words("update-grub"), words("update-grub"))],
        ..Order::default()
    }
}

type State = BTreeMap<String, String>;

/// What recovery at start-up does with what it finds.
fn recover(machine: &SimulatedMachine) {
    let (journals, bad) = Journal::all(machine, Path::new(STATE));
    assert!(bad.is_empty(), "a journal is never half written: {bad:?}");
    for mut journal in journals.into_iter().filter(|j| j.phase == Phase::Open) {
        let report = undo_all(hands(machine), &mut journal, &machine.boot_id(), false);
        assert!(report.is_complete(), "with a healthy machine everything goes back: {:?}", report.left());
        journal.finish(machine).unwrap();
    }
}

fn n_journals(machine: &SimulatedMachine) -> usize {
    Journal::all(machine, Path::new(STATE)).0.len()
}

/// The settings of the planned state survive no reboot, its files do: what a power loss may leave.
fn after_boot(before: &State, state: &State) -> State {
    let files = state.iter().filter(|(p, _)| p.starts_with("file:")).map(|(p, v)| (p.clone(), v.clone()));
    before.iter().filter(|(p, _)| !p.starts_with("file:")).map(|(p, v)| (p.clone(), v.clone())).chain(files).collect()
}

fn differences(a: &State, b: &State) -> String {
    let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let line = |k: &&String| (a.get(*k) != b.get(*k)).then(|| format!("{k}: {:?} / {:?}", a.get(*k), b.get(*k)));
    keys.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_fault_leaves_before_or_planned_or_a_journal_that_says_so() {
    ORDERS.iter().for_each(|requests| faults_of_apply(requests));
}

fn faults_of_apply(requests: &[&str]) {
    let order = || order(requests);
    let planned = machine();
    let before = planned.snapshot(STATE);
    planned.heal();
    let done = apply(hands(&planned), &owner(&planned), Path::new(STATE), &order()).unwrap();
    assert!(done.failed.is_none() && done.id.is_some(), "{done:?}");
    let n_apply = planned.n_operations();
    let planned = planned.snapshot(STATE);
    assert_ne!(before, planned);
    let is_held = planned.get("hold:cpu_dma_latency").is_some_and(|limit| limit == "10us");
    assert_eq!(is_held, requests.contains(&"qos.global=10us"), "the holder's write is among the operations");

    let mut n_tried = [0; 4];
    let mut n_left = 0;
    for at in 0..n_apply {
        for fault in [Fault::Once, Fault::Forever, Fault::Kill] {
            let machine = machine();
            machine.fail_at(at, fault);
            let end = apply(hands(&machine), &owner(&machine), Path::new(STATE), &order());
            let is_told = match &end {
                Ok(outcome) => outcome.failed.as_ref().is_none_or(|(_, report)| report.is_complete()),
                Err(_) => true,
            };
            machine.heal();
            let now = machine.snapshot(STATE);
            if now != before && now != planned {
                assert_eq!(
                    n_journals(&machine),
                    1,
                    "{fault:?} at {at}: changed and no journal\n{}",
                    differences(&before, &now)
                );
                assert!(
                    fault == Fault::Kill || !is_told,
                    "{fault:?} at {at}: changed and called complete\n{}",
                    differences(&before, &now)
                );
                n_left += 1;
            }
            recover(&machine);
            let now = machine.snapshot(STATE);
            let is_applied = n_journals(&machine) == 1;
            let expected = if is_applied { &planned } else { &before };
            assert_eq!(differences(expected, &now), "", "{fault:?} at {at}, after recovery");
            recover(&machine);
            assert_eq!(machine.snapshot(STATE), now, "recovery is idempotent");
            n_tried[fault as usize] += 1;
        }
        // The same point, but the power goes.
        let machine = machine();
        machine.fail_at(at, Fault::Kill);
        let _ = apply(hands(&machine), &owner(&machine), Path::new(STATE), &order());
        machine.power_cycle();
        recover(&machine);
        let now = machine.snapshot(STATE);
        let is_applied = n_journals(&machine) == 1;
        let expected = if is_applied { after_boot(&before, &planned) } else { before.clone() };
        assert_eq!(differences(&expected, &now), "", "power lost at {at}");
        n_tried[3] += 1;
    }
    println!(
        "apply: {n_apply} operations; tried and survived: {} failing once, {} failing for ever, {} killed, {} power losses; {n_left} left a journal that recovery then undid",
        n_tried[0], n_tried[1], n_tried[2], n_tried[3]
    );
}

#[test]
fn every_fault_during_undo_is_mended_by_undoing_again() {
    ORDERS.iter().for_each(|requests| faults_of_undo(requests));
}

fn faults_of_undo(requests: &[&str]) {
    let order = || order(requests);
    let fresh = || {
        let machine = machine();
        let before = machine.snapshot(STATE);
        apply(hands(&machine), &owner(&machine), Path::new(STATE), &order()).unwrap();
        machine.heal();
        (machine, before)
    };
    let undo = |machine: &SimulatedMachine| {
        let (journals, _) = Journal::all(machine, Path::new(STATE));
        for mut journal in journals {
            if undo_all(hands(machine), &mut journal, &machine.boot_id(), false).is_complete() {
                let _ = journal.finish(machine);
            }
        }
    };
    let (machine, before) = fresh();
    undo(&machine);
    let n_undo = machine.n_operations();
    assert_eq!((differences(&before, &machine.snapshot(STATE)), n_journals(&machine)), (String::new(), 0));
    let mut n_tried = 0;
    for at in 0..n_undo {
        for fault in [Fault::Once, Fault::Forever, Fault::Kill] {
            for is_power_lost in [false, true] {
                let (machine, before) = fresh();
                machine.fail_at(at, fault);
                undo(&machine);
                machine.heal();
                if is_power_lost {
                    machine.power_cycle();
                }
                if machine.snapshot(STATE) != before {
                    assert_eq!(n_journals(&machine), 1, "{fault:?} at {at}: not restored and no journal");
                }
                undo(&machine);
                assert_eq!(differences(&before, &machine.snapshot(STATE)), "", "{fault:?} at {at}");
                assert_eq!(n_journals(&machine), 0);
                n_tried += 1;
            }
        }
    }
    println!("undo: {n_undo} operations; tried and survived: {n_tried} faults, kills and power losses");
}

/// The same, of a boot file that somebody has edited between apply and undo: at every point a second undo ends with that
/// person's line, without our word, and never with anything else.
#[test]
fn our_word_leaves_a_hand_edited_boot_file_whatever_fails() {
    const FILE: &str = "file:/etc/kernel/cmdline";
    let edited = || {
        let machine = machine();
        machine.put_file("/etc/kernel/cmdline", "root=/dev/sda1 ro\n");
        let to = Some("root=/dev/sda1 ro idle=poll\n".to_string());
        let mut order = order(&[]);
        order.files.push(FileChange { path: FILE.into(), to });
        apply(hands(&machine), &owner(&machine), Path::new(STATE), &order).unwrap();
        machine.put_file("/etc/kernel/cmdline", "root=/dev/sda1 quiet ro idle=poll debug\n");
        machine.heal();
        machine
    };
    let undo = |machine: &SimulatedMachine| {
        for mut journal in Journal::all(machine, Path::new(STATE)).0 {
            let report = undo_all(hands(machine), &mut journal, &machine.boot_id(), false);
            if report.is_complete() {
                let _ = journal.finish(machine);
            }
        }
    };
    let left = |machine: &SimulatedMachine| machine.snapshot(STATE)[FILE].clone();
    let machine = edited();
    undo(&machine);
    let n_undo = machine.n_operations();
    assert_eq!((left(&machine).as_str(), n_journals(&machine)), ("root=/dev/sda1 quiet ro debug\n", 0));
    for at in 0..n_undo {
        for fault in [Fault::Once, Fault::Forever, Fault::Kill] {
            for is_power_lost in [false, true] {
                let machine = edited();
                machine.fail_at(at, fault);
                undo(&machine);
                machine.heal();
                if is_power_lost {
                    machine.power_cycle();
                }
                undo(&machine);
                assert_eq!(left(&machine), "root=/dev/sda1 quiet ro debug\n", "{fault:?} at {at}");
                assert_eq!(n_journals(&machine), 0, "{fault:?} at {at}");
            }
        }
    }
    println!("undo of an edited file: {n_undo} operations, each failing, killed and without power");
}

/// Without the files, which a read-only disk holds fast.
fn attributes(state: &State) -> State {
    state.iter().filter(|(path, _)| !path.starts_with("file:")).map(|(p, v)| (p.clone(), v.clone())).collect()
}

#[test]
fn a_disk_that_becomes_read_only_keeps_no_setting_changed() {
    ORDERS.iter().for_each(|requests| read_only_from_any_operation(requests));
}

fn read_only_from_any_operation(requests: &[&str]) {
    let order = || order(requests);
    let whole = machine();
    let before = whole.snapshot(STATE);
    whole.heal();
    apply(hands(&whole), &owner(&whole), Path::new(STATE), &order()).unwrap();
    let (n_apply, planned) = (whole.n_operations(), whole.snapshot(STATE));
    let mut n_tried = 0;
    for at in 0..n_apply {
        let machine = machine();
        machine.fail_at(at, Fault::ReadOnly);
        let end = apply(hands(&machine), &owner(&machine), Path::new(STATE), &order());
        let is_applied = end.as_ref().is_ok_and(|outcome| outcome.failed.is_none());
        let expected = attributes(if is_applied { &planned } else { &before });
        assert_eq!(differences(&expected, &attributes(&machine.snapshot(STATE))), "", "read-only from {at}: {end:?}");
        // What it says is true: a journal that lies there is told of, and nothing is called complete that is not.
        if let Ok(outcome) = &end {
            let told = outcome.failed.as_ref().is_some_and(|(_, report)| !report.remains().is_empty());
            assert_eq!(n_journals(&machine) == 1, told || is_applied, "read-only from {at}: {end:?}");
        }
        // Recovering while nothing can be written changes no setting any more; afterwards it ends at one of the two.
        if !is_applied {
            for mut journal in Journal::all(&machine, Path::new(STATE)).0 {
                let report = close(hands(&machine), &mut journal, &machine.boot_id(), false);
                assert!(!report.remains().is_empty(), "the journal cannot be gone");
            }
            assert_eq!(attributes(&machine.snapshot(STATE)), attributes(&before));
        }
        machine.heal();
        // Struck between the journal's last rename and its folder's sync it reads "applied": then it is `tune undo` that
        // takes the files back, which a read-only disk held fast.
        for mut journal in Journal::all(&machine, Path::new(STATE)).0.into_iter().filter(|_| !is_applied) {
            let report = close(hands(&machine), &mut journal, &machine.boot_id(), false);
            assert!(report.remains().is_empty(), "{:?}", report.remains());
        }
        let expected = if is_applied { &planned } else { &before };
        assert_eq!(differences(expected, &machine.snapshot(STATE)), "", "healed after read-only from {at}");

        // The process is killed, and whoever recovers finds the disk read-only from its first operation on.
        let machine = self::machine();
        machine.fail_at(at, Fault::Kill);
        let _ = apply(hands(&machine), &owner(&machine), Path::new(STATE), &order());
        machine.fail_at(0, Fault::ReadOnly);
        for mut journal in Journal::all(&machine, Path::new(STATE)).0.into_iter().filter(|j| j.phase == Phase::Open) {
            let report = close(hands(&machine), &mut journal, &machine.boot_id(), false);
            assert!(!report.remains().is_empty(), "killed at {at}: the journal cannot be gone");
            let now = attributes(&machine.snapshot(STATE));
            assert_eq!(differences(&attributes(&before), &now), "", "killed at {at}, recovered read-only");
        }
        machine.heal();
        recover(&machine);
        n_tried += 2;
    }
    println!("read-only disk: {n_apply} operations; tried and survived: {n_tried} remounts and kills");
}

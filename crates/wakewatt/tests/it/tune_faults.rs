//! Settings go back whatever becomes of the disk, the lock, the guard or standard output.
//!
//! Most of it runs on a made-up tree: a journal names its own root, and a mount namespace holds a state folder of its own,
//! so nothing of this machine is touched. That needs root. What needs the kernel's own files is live, as in `tune.rs`.

use crate::live::machine;
use crate::tool::{PROGRAM, Said, is_root, said, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use wakewatt_host::store::Disk;
use wakewatt_testing::{Lacks, skipped};
use wakewatt_tune::journal::{self, Draft, Entry, Journal, Owner, STATE_DIR};

const MINUTE: Duration = Duration::from_secs(60);
const LIMIT: &str = "/sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us";
const STATE: &str = "/var/lib/wakewatt";

/// A tree with one setting that a run has changed from 0 to 7, and its journal.
struct Cut {
    dir: tempfile::TempDir,
}

impl Cut {
    /// None where namespaces cannot be made.
    fn new(test: &str, owner: &Owner, commands: Vec<journal::Command>) -> Option<Cut> {
        if !is_root() {
            skipped(test, Lacks::Root, "needs root for a mount namespace");
            return None;
        }
        fs::create_dir_all(STATE).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let cut = Cut { dir };
        fs::create_dir_all(cut.setting().parent().unwrap()).unwrap();
        fs::write(cut.setting(), "7\n").unwrap();
        let root = cut.dir.path().display().to_string();
        let entries = vec![Entry::new(LIMIT, Some("0".into()), vec![Some("7".into())])];
        let draft = Draft { purpose: "a study", root: &root, entries, commands, ..Draft::default() };
        Journal::create(&Disk, &cut.dir.path().join("open"), owner, "run-1", draft).unwrap();
        Some(cut)
    }

    fn setting(&self) -> PathBuf {
        self.dir.path().join(LIMIT.trim_start_matches('/'))
    }

    fn value(&self) -> String {
        fs::read_to_string(self.setting()).unwrap().trim().into()
    }

    /// Runs a script in a mount namespace where the state folder holds the journal; `W` is the program.
    fn run(&self, script: &str) -> Said {
        let all = format!(
            "set -u; W={PROGRAM}; mount -t tmpfs none {STATE} && cp -r {}/open {STATE}/ && cd {STATE} || exit 99\n{script}",
            self.dir.path().display()
        );
        said(Command::new("unshare").args(["-m", "sh", "-c", &all]).stdin(Stdio::null()))
    }
}

/// A process that has ended.
fn gone() -> Owner {
    Owner { pid_start_ticks: Some(1), ..Owner::this_process() }
}

#[test]
fn a_read_only_state_folder_keeps_no_setting_changed() {
    let Some(cut) = Cut::new("tune_faults::a_read_only_state_folder", &gone(), Vec::new()) else { return };
    let end = cut.run(
        "touch lock; mount -o remount,ro . || exit 98; $W recover; echo one $?; $W recover --force; echo two $?
         $W tune undo --all; echo three $?; mount -o remount,rw .; $W recover; echo four $?; ls open; $W recover; echo five $?",
    );
    assert_eq!(cut.value(), "0", "{end:?}");
    for says in ["one 4", "two 4", "three 4", "four 0", "five 0", "put back"] {
        assert!(end.out.contains(says), "{says}: {end:?}");
    }
    assert!(end.err.contains("all settings are put back, but their journal could not be removed"), "{end:?}");
    assert!(end.err.contains("run-1-1.json") && end.err.contains("remount,rw"), "{end:?}");
    assert!(!end.err.contains("nothing is changed") && !end.out.contains("run-1-1.json"), "{end:?}");
}

#[test]
fn without_a_lock_file_what_nobody_can_be_at_work_on_goes_back() {
    let name = "tune_faults::without_a_lock_file";
    // Never made and cannot be now; a folder in its place; a link.
    for spoil in ["mount -o remount,ro .", "mkdir lock", "ln -s /dev/null lock"] {
        let Some(cut) = Cut::new(name, &gone(), Vec::new()) else { return };
        let refused = cut.run(&format!("{spoil} || exit 98; $W tune undo --all"));
        assert!(refused.code == Some(7) && refused.err.contains("--force undoes without the lock"), "{refused:?}");
        assert_eq!(cut.value(), "7", "{spoil}");
        let end = cut.run(&format!("{spoil} || exit 98; $W recover"));
        assert!(end.err.contains("the lock cannot be taken") && end.err.contains("without it"), "{spoil}: {end:?}");
        assert!(matches!(end.code, Some(0 | 4)), "{spoil}: {end:?}");
        assert_eq!(cut.value(), "0", "{spoil}: {end:?}");
    }
    // Whose process cannot be seen, and no lock to ask: only with --force.
    let ours = Owner::this_process();
    let unseen = Owner { pid_namespace: ours.pid_namespace.map(|n| n + 1), ..ours };
    let Some(cut) = Cut::new(name, &unseen, Vec::new()) else { return };
    let left = cut.run("mkdir lock; $W recover");
    assert!(left.code == Some(5) && left.out.contains("PID namespace"), "{left:?}");
    assert_eq!(cut.value(), "7");
    assert_eq!(cut.run("mkdir lock; $W recover --force").code, Some(0));
    assert_eq!(cut.value(), "0");
}

#[test]
fn two_pid_namespaces_share_one_state_folder() {
    // This very process is the owner: alive, and a stranger's number in the other namespace.
    let name = "tune_faults::two_pid_namespaces";
    let Some(cut) = Cut::new(name, &Owner::this_process(), Vec::new()) else { return };
    let here = cut.run("$W tune status; echo status $?; $W recover; echo recover $?");
    assert!(here.out.contains("its run goes on") && here.out.contains("its process still runs"), "{here:?}");
    assert_eq!(cut.value(), "7");
    let there = cut.run(
        "touch lock; (flock 9; touch taken; sleep 1; echo held > free) 9< lock & until [ -e taken ]; do sleep 0.01; done
         unshare -pf --mount-proc sh -c \"$W tune status; echo status \\$?; $W recover; echo recover \\$?\"; cat free; wait",
    );
    assert!(there.out.replace("\n      ", " ").contains("another PID namespace"), "{there:?}");
    assert!(there.out.contains("status 0") && there.out.contains("recover 0"), "{there:?}");
    // Whoever changes settings holds the lock: recovery waited for it, and then nobody was at work.
    assert!(there.out.contains("held"), "{there:?}");
    assert_eq!(cut.value(), "0");
}

#[test]
fn a_run_cut_short_is_seen_everywhere_and_can_be_given_up() {
    let words = |text: &str| text.split(' ').map(str::to_string).collect::<Vec<_>>();
    let misspelled =
        || vec![journal::Command { run: words("strat-it now"), undo: words("stpo-it now"), is_started: true }];
    let name = "tune_faults::a_run_cut_short";
    let Some(cut) = Cut::new(name, &gone(), misspelled()) else { return };
    let end = cut.run(
        "$W tune status; echo status $?; $W tune undo --all --force; echo undo $?; $W recover --force; echo recover $?
         $W recover --forget run-9; echo wrong $?; $W recover --forget run-1-1; echo shown $?; ls open
         $W recover --forget run-1-1 --force; echo forgotten $?; $W recover; echo after $?; $W tune status; echo status $?",
    );
    for says in ["status 5", "undo 5", "recover 5", "wrong 2", "shown 7", "forgotten 0", "after 0", "status 0"] {
        assert!(end.out.contains(says), "{says}: {end:?}");
    }
    assert!(end.out.contains("7") && end.out.contains("cut short"), "{end:?}");
    assert!(end.out.contains("stays so: strat-it now: may have been run"), "{end:?}");
    assert_eq!(cut.value(), "0", "the rest is put back all the same");
    // Without such a command `undo --all` is enough.
    let Some(cut) = Cut::new(name, &gone(), Vec::new()) else { return };
    let end = cut.run("$W tune undo --all; echo undo $?; ls open; $W tune status; echo status $?");
    assert!(end.out.contains("undo 0") && end.out.contains("Nothing is applied"), "{end:?}");
    assert_eq!(cut.value(), "0");
}

#[test]
fn a_full_or_closed_standard_output_stops_no_undo() {
    for to in [">/dev/full", ">&-"] {
        for what in ["recover", "tune undo --all"] {
            let Some(cut) = Cut::new("tune_faults::a_full_or_closed_output", &gone(), Vec::new()) else { return };
            let end = cut.run(&format!("$W {what} {to}; echo code $? >&2; ls open >&2"));
            assert_eq!(cut.value(), "0", "{what} {to}: {end:?}");
            if to == ">/dev/full" {
                assert!(end.err.contains("code 4"), "{what}: {end:?}");
                assert!(end.err.contains("standard output: No space left"), "{what}: {end:?}");
                assert!(end.err.contains("all settings are put back"), "{what}: {end:?}");
            }
            assert!(!end.err.contains("run-1-1.json"), "{what} {to}: {end:?}");
        }
    }
}

#[test]
fn journals_are_for_their_owner_and_leftovers_are_named() {
    use std::os::unix::fs::PermissionsExt;
    let Some(cut) = Cut::new("tune_faults::journals_are_for_their_owner", &gone(), Vec::new()) else { return };
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let open = cut.dir.path().join("open");
    assert_eq!((mode(&open), mode(&open.join("run-1-1.json"))), (0o700, 0o600));
    let end = cut.run("echo half > open/.run-2-1.json.wakewatt-new; $W recover; ls -A open");
    assert!(end.out.contains(".run-2-1.json.wakewatt-new: half-written by a killed run; removed"), "{end:?}");
    assert!(end.out.trim_end().ends_with("put back"), "nothing is left in the folder: {end:?}");
}

const GOVERNOR: &str = "/sys/devices/system/cpu/cpuidle/current_governor";

fn governor() -> String {
    fs::read_to_string(GOVERNOR).unwrap().trim().into()
}

/// Whatever a failing test leaves.
struct PutBack(String);

impl Drop for PutBack {
    fn drop(&mut self) {
        let _ = fs::write(GOVERNOR, &self.0);
    }
}

#[test]
fn live_nobody_confirms_and_the_disk_is_read_only_by_then() {
    let Some(_machine) = machine("tune_faults::live_nobody_confirms_and_the_disk_is_read_only_by_then") else { return };
    let before = PutBack(governor());
    let other = if before.0 == "menu" { "ladder" } else { "menu" };
    let script = format!(
        "mount -t tmpfs none {STATE} && {PROGRAM} tune apply --set idle.governor={other} --confirm-within 3s && \
         mount -o remount,ro {STATE} && cat {GOVERNOR} && for i in $(seq 600); do \
         grep -qx {} {GOVERNOR} && break; sleep 0.1; done; cat {GOVERNOR}; {PROGRAM} recover; echo recover $?",
        before.0
    );
    let end = said(Command::new("unshare").args(["-m", "sh", "-c", &script]).stdin(Stdio::null()));
    assert!(end.out.contains(&format!("{other}\n{}\n", before.0)), "{end:?}");
    assert!(end.out.contains("recover 4") && end.err.contains("could not be removed"), "{end:?}");
    assert_eq!(governor(), before.0);
}

#[test]
fn live_a_report_that_cannot_be_written_hides_nothing() {
    let Some(_machine) = machine("tune_faults::live_a_report_that_cannot_be_written_hides_nothing") else { return };
    let before = PutBack(governor());
    let other = if before.0 == "menu" { "ladder" } else { "menu" };
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut apply = Command::new(PROGRAM);
    apply.args(["tune", "apply", "--set", &format!("idle.governor={other}")]).stdin(Stdio::null()).stdout(full);
    let end = said(&mut apply);
    let is_applied = governor() == other;
    let undone = said(Command::new(PROGRAM).args(["tune", "undo"]).stdin(Stdio::null()));
    assert!(is_applied && end.code == Some(4), "{end:?}");
    assert!(end.err.contains("is applied and stays; wakewatt tune undo"), "{end:?}");
    assert!(undone.code == Some(0) && governor() == before.0, "{undone:?}");
}

#[test]
fn live_a_frozen_guard_holds_nobody_up() {
    let Some(_machine) = machine("tune_faults::live_a_frozen_guard_holds_nobody_up") else { return };
    let before = PutBack(governor());
    let other = if before.0 == "menu" { "ladder" } else { "menu" };
    let setting = format!("idle.governor={other}");
    // The user's guard ends with an error, so everything goes back while wakewatt's own guard is frozen.
    let script = format!("grep -qx {} {GOVERNOR} || {{ sleep 3; false; }}", before.0);
    let mut apply = Command::new(PROGRAM);
    apply.args(["tune", "apply", "--set", &setting, "--guard", &script]).stdin(Stdio::null()).stdout(Stdio::null());
    let mut apply = apply.spawn().unwrap();
    assert!(wait_until(MINUTE, || governor() == other), "never applied");
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", apply.id())).unwrap();
    let is_guard = |pid: &&str| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.windows(7).any(|w| w == b"\0guard\0"))
    };
    let guard: i32 = children.split_whitespace().find(is_guard).unwrap().parse().unwrap();
    kill_process(Pid::from_raw(guard).unwrap(), Signal::STOP).unwrap();
    let mut code = None;
    let has_ended = wait_until(MINUTE * 3, || {
        code = apply.try_wait().unwrap();
        code.is_some()
    });
    if !has_ended {
        let _ = apply.kill();
    }
    assert_eq!(code.and_then(|c| c.code()), Some(7), "held up by its guard");
    assert_eq!(governor(), before.0);
    assert!(!Path::new(&format!("/proc/{guard}")).exists(), "the guard was killed");
    assert!(fs::read_dir(STATE_DIR).into_iter().flatten().next().is_none(), "no journal is left");
}

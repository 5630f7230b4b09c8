//! `measure` and `run` at their border: what they refuse, what they leave alone, what they say of meters that lie.
//!
//! Nothing here asserts a latency or watts that this machine would have to produce: meters are commands of the test's own.

use crate::schemas::{assert_valid, validator};
use crate::tool::{Said, is_root, run, said, wait_until, wakewatt};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use wakewatt_testing::{Lacks, skipped};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A file of a MiB in memory, where there is such a file system.
fn in_memory() -> Option<tempfile::NamedTempFile> {
    let file = tempfile::NamedTempFile::new_in("/dev/shm").ok()?;
    fs::write(file.path(), vec![7; 2 << 20]).unwrap();
    Some(file)
}

#[test]
fn only_files_and_devices_are_read_and_memory_is_no_disk() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, link) = (folder.path().join("pipe"), folder.path().join("link"));
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    std::os::unix::fs::symlink("/dev/null", &link).unwrap();
    let device = "is a character device";
    for (target, why) in [
        ("/dev/null", device),
        (text(&link), device),
        (text(folder.path()), "is a directory"),
        (text(&pipe), "is a pipe"),
    ] {
        let refused = run(&["measure", "disk", target, "--duration", "100ms"]);
        assert_eq!((refused.code, refused.out.as_str()), (Some(3), ""), "{target}: {refused:?}");
        assert!(refused.err.contains(why), "{refused:?}");
    }
    let Some(file) = in_memory() else { return };
    let before = fs::read(file.path()).unwrap();
    let refused = run(&["measure", "disk", text(file.path()), "--duration", "100ms"]);
    assert!(refused.code == Some(3) && refused.err.contains("tmpfs"), "{refused:?}");
    let read =
        run(&["measure", "disk", text(file.path()), "--buffered", "--engine", "psync", "--duration", "2s", "--json"]);
    let document = assert_valid(&validator("measure"), "disk", &read.out);
    assert_eq!(document["disk"][0]["target"]["is_direct"], false, "{document}");
    assert_eq!(fs::read(file.path()).unwrap(), before, "what is measured is never written to");
}

#[test]
fn a_file_is_made_only_where_there_is_room_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let made = run(&["measure", "disk", "--in", text(folder.path()), "--buffered", "--size", "4M", "--duration", "2s"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let none = run(&["measure", "disk", "--in", "/proc", "--duration", "100ms"]);
    assert!(none.code == Some(3) && none.err.contains("cannot be made in /proc"), "{none:?}");
    let vast = run(&["measure", "disk", "--in", text(folder.path()), "--buffered", "--size", "900T"]);
    assert!(vast.code == Some(3) && vast.err.contains("too little for a file"), "{vast:?}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_experiment_with_reads_is_of_one_kind() {
    for options in [["--depth", "1,4"], ["--engine", "psync,io_uring"]] {
        let said = run(&[&["measure", "disk", "--experiment"], &options[..]].concat());
        assert!(said.code == Some(2) && said.err.contains("give one --depth and one --engine"), "{said:?}");
    }
}

#[test]
fn there_is_no_way_to_write() {
    let help = run(&["measure", "disk", "--help"]).out;
    assert!(help.contains("only ever read"), "{help}");
    for word in ["--write", "--rw", "--readwrite", "--trim", "--fill"] {
        assert_eq!(run(&["measure", "disk", word, "/dev/null"]).code, Some(2), "{word}");
    }
}

/// One second of this meter, read each 100 ms.
fn metered(command: &str) -> (Said, Value) {
    let words = ["measure", "power", "--meter", "command", "--interval", "100ms", "--for", "1s", "--json"];
    let mut wakewatt = wakewatt(&[&words[..], &["--meter-cmd", command]].concat());
    let said = said(wakewatt.env("PATH", "/usr/bin:/bin"));
    let document = assert_valid(&validator("measure"), command, &said.out);
    let meters = document["power"][0]["sample"]["meters"].as_array().unwrap().clone();
    let meter = meters.into_iter().find(|m| m["meter"] == "command").unwrap();
    (said, meter)
}

#[test]
fn a_meter_that_lies_gives_no_watts_and_its_reason() {
    for (command, label, why) in [
        ("while :; do echo banana; sleep 0.1; done", "unavailable", "banana"),
        ("while :; do echo 0; sleep 0.1; done", "present_but_dead", "zero"),
        ("while :; do echo -5; sleep 0.1; done", "unavailable", "no machine draws"),
        ("true", "unavailable", "without printing a number"),
        ("exit 7", "unavailable", "7"),
        ("head -c 3000000 /dev/zero", "unavailable", "not a number"),
    ] {
        let (said, meter) = metered(command);
        assert_eq!(said.code, Some(3), "{command}: {said:?}");
        assert_eq!(meter["label"], label, "{command}: {meter}");
        assert!(meter["why"].as_str().unwrap().contains(why), "{command}: {meter}");
        assert!(meter["total"].is_null(), "{command}: {meter}");
    }
}

#[test]
fn a_meter_that_stops_is_doubted_and_one_that_floods_does_no_harm() {
    let (said, stopped) = metered("echo 100; sleep 0.1; echo 100; sleep 60");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(stopped["channels"][0]["doubts"].to_string().contains("gave nothing in the last"), "{stopped}");
    let (said, flood) = metered("yes 100");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(flood["total"]["mean_uw"], 100_000_000, "{flood}");
}

#[test]
fn a_model_needs_a_meter_and_a_sound_file() {
    let words = ["measure", "power", "--calibrate", "--for", "50ms", "--meter", "command", "--meter-cmd", "exit 1"];
    let none = said(wakewatt(&words).env("PATH", "/usr/bin:/bin"));
    assert!(none.code == Some(3) && none.err.contains("fitted to a meter, and none works"), "{none:?}");
    assert_eq!(none.out, "");
    let file = tempfile::NamedTempFile::new().unwrap();
    for content in ["", "format = 1", "root:x:0:0"] {
        fs::write(file.path(), content).unwrap();
        let refused = run(&["measure", "power", "--for", "50ms", "--model", text(file.path())]);
        assert!(refused.code == Some(4) && refused.err.contains("--calibrate"), "{content:?}: {refused:?}");
    }
}

/// Copies per node need a kernel with memory policies; a sandbox may forbid them.
fn can_bind() -> bool {
    run(&["run", "--per-node", "--", "true"]).code == Some(0)
}

#[test]
fn the_worst_copys_code_is_returned_and_the_document_says_the_rest() {
    if !can_bind() {
        return skipped("the_worst_copys_code…", Lacks::Here, "a command cannot be bound to a node here");
    }
    let ended = said(
        wakewatt(&["run", "--per-node", "--json", "--", "sh", "-c", "echo hello; exit 7"]).env("PATH", "/usr/bin:/bin"),
    );
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert!(ended.err.contains("hello"), "{ended:?}");
    let document = assert_valid(&validator("per-node"), "run", &ended.out);
    assert_eq!(document["copies"][0]["exit_code"], 7);
    let killed = said(wakewatt(&["run", "--per-node", "--", "sh", "-c", "kill -9 $$"]).env("PATH", "/usr/bin:/bin"));
    assert_eq!(killed.code, Some(137), "{killed:?}");
    let missing = run(&["run", "--per-node", "--", "/no/such/program"]);
    assert!(missing.code == Some(2) && missing.err.contains("could not be started"), "{missing:?}");
    let words =
        ["run", "--per-node", "--compare", "--json", "--metric", "score ([0-9]+)", "--", "sh", "-c", "echo score 3"];
    let compared = said(wakewatt(&words).env("PATH", "/usr/bin:/bin"));
    let document = assert_valid(&validator("per-node"), "run --compare", &compared.out);
    assert_eq!((&document["unbound"]["metric"], &document["unbound"]["node"]), (&3.0.into(), &Value::Null));
    assert!(document["scaling"]["metric_ratio"].as_f64().is_some_and(|ratio| ratio >= 1.0), "{document}");
}

#[test]
fn copies_end_with_their_starter_however_it_ends() {
    if !can_bind() {
        return skipped("copies_end_with_their_starter…", Lacks::Here, "a command cannot be bound to a node here");
    }
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::TERM, Some(143)), (Signal::KILL, None)] {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("pid");
        let script = format!("echo $$ > {}; exec sleep 60", mark.display());
        let mut command = wakewatt(&["run", "--per-node", "--", "sh", "-c", &script]);
        command.env("PATH", "/usr/bin:/bin").stdout(Stdio::null()).stderr(Stdio::null());
        let mut starter = command.spawn().unwrap();
        let pid = || fs::read_to_string(&mark).ok()?.trim().parse::<u32>().ok();
        assert!(wait_until(Duration::from_secs(120), || pid().is_some()));
        let copy = format!("/proc/{}/stat", pid().unwrap());
        kill_process(Pid::from_raw(i32::try_from(starter.id()).unwrap()).unwrap(), signal).unwrap();
        assert_eq!(starter.wait().unwrap().code(), code, "{signal:?}");
        // Gone, or a zombie that nobody has taken yet.
        let is_over = || fs::read_to_string(&copy).map_or(true, |stat| stat.contains(") Z "));
        assert!(wait_until(Duration::from_secs(120), is_over), "{signal:?}: the copy goes on");
    }
}

#[test]
fn what_would_not_fit_is_refused_before_it_is_taken() {
    for part in [&["latency", "--size", "900T"], &["bandwidth", "--array-size", "900T"]] {
        let refused = run(&[&["measure", "memory", "--part"], &part[..]].concat());
        let said = refused.err.clone() + " " + &refused.out;
        // As one line, however wide the terminal is.
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(refused.code, Some(3), "{part:?}: {refused:?}");
        assert!(said.contains("are needed, and only"), "{part:?}: {refused:?}");
    }
}

#[test]
fn idle_states_that_are_not_there_are_named_and_nobody_else_may_try() {
    let unknown = run(&["measure", "idle", "--state", "C99"]);
    assert_eq!(unknown.code, Some(3), "{unknown:?}");
    let has_states = Path::new("/sys/devices/system/cpu/cpu0/cpuidle/state0").exists();
    assert!(unknown.err.contains(if has_states { "no idle state \"C99\"" } else { "no idle" }), "{unknown:?}");
    if has_states && is_root() {
        let program = crate::tool::ForNobody::new();
        let refused = said(&mut program.command(&["measure", "idle", "--duration", "100ms"]));
        assert_eq!(refused.code, Some(3), "{refused:?}");
    }
}

/// The process that this one started to measure memory.
fn memory_worker_of(starter: u32) -> Option<u32> {
    let all = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let is_worker = |pid: &u32| {
        let text = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let parent = text("stat").rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u32>().ok());
        parent == Some(starter) && text("cmdline").split('\0').nth(1) == Some("memory-worker")
    };
    all.into_iter().find(is_worker)
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

fn oom_score_adj(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap_or_default().trim().to_string()
}

const A_MINUTE: Duration = Duration::from_secs(60);
/// Long enough to be interrupted: a hundred samples of a second each.
const LONG: [&str; 11] =
    ["measure", "memory", "--part", "latency", "--size", "1M", "--samples", "100", "--sample-time", "1s", "--json"];

#[test]
fn memory_is_measured_by_a_process_that_goes_first_and_that_may_die() {
    let own = oom_score_adj(std::process::id());
    let starter = wakewatt(&LONG).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut worker = None;
    let is_ready = || {
        worker = memory_worker_of(starter.id());
        worker.is_some_and(|pid| oom_score_adj(pid) == "1000")
    };
    assert!(wait_until(A_MINUTE, is_ready), "no process that goes first: {worker:?}");
    assert_eq!(oom_score_adj(starter.id()), own, "only the process that measures");
    signal(worker.unwrap(), Signal::KILL);
    let ended = starter.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(3), "{said}");
    for word in ["signal 9 (the kernel does so when memory runs out)", "dmesg", "--max-size"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn the_process_that_measures_memory_ends_with_its_starter_and_stops_when_told() {
    for (sent, code) in [(Signal::KILL, None), (Signal::INT, Some(130))] {
        let mut starter = wakewatt(&LONG).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut worker = None;
        let is_there = || {
            worker = memory_worker_of(starter.id());
            worker.is_some_and(|pid| oom_score_adj(pid) == "1000")
        };
        assert!(wait_until(A_MINUTE, is_there));
        signal(starter.id(), sent);
        assert_eq!(starter.wait().unwrap().code(), code, "{sent:?}");
        let stat = format!("/proc/{}/stat", worker.unwrap());
        let is_over = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        assert!(wait_until(A_MINUTE, is_over), "{sent:?}: it goes on");
    }
}

#[test]
fn doctor_goes_on_without_the_process_that_measures_memory() {
    let doctor = ["doctor", "--quick", "--read-only", "--no-report", "--json"];
    let mut starter = wakewatt(&doctor).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut out = starter.stdout.take().unwrap();
    let read = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut out, &mut text).map(|_| text)
    });
    // The measurements before it take seconds.
    let mut worker = None;
    let is_there = || {
        worker = memory_worker_of(starter.id());
        worker.is_some()
    };
    assert!(wait_until(3 * A_MINUTE, is_there), "doctor started no process to measure memory");
    signal(worker.unwrap(), Signal::KILL);
    assert_eq!(starter.wait().unwrap().code(), Some(0));
    let document: Value = serde_json::from_str(&read.join().unwrap().unwrap()).unwrap();
    let evidence = &document["evidence"];
    assert_eq!(evidence["memory"], Value::Null);
    let not_done = evidence["not_done"].as_array().unwrap();
    let is_told = |line: &Value| line.as_str().is_some_and(|l| l.starts_with("memory: ") && l.contains("signal 9"));
    assert!(not_done.iter().any(is_told), "{not_done:?}");
    assert!(!evidence["speed"].as_array().unwrap().is_empty(), "what comes after memory was measured: {not_done:?}");
}

//! `watch` as a stream: valid documents, numbers that add up, recordings that survive, faults that are told.

use crate::schemas::{assert_valid, validator};
use crate::tool::{host, hosts, is_root, run, said, wait_until, wakewatt};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use wakewatt_testing::{Lacks, skipped};

const CPU: &str = "sys/devices/system/cpu";

fn write(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    // In place and never empty in between: who reads it at this moment sees a number, as in sysfs.
    let mut file = fs::File::options().write(true).create(true).truncate(false).open(file).unwrap();
    file.write_all(format!("{text}\n").as_bytes()).unwrap();
    file.set_len(text.len() as u64 + 1).unwrap();
}

/// A tree of two CPUs with one idle state.
fn tree(root: &Path, usage: u64) {
    write(root, &format!("{CPU}/present"), "0-1");
    write(root, &format!("{CPU}/online"), "0-1");
    for cpu in 0..2 {
        let at = format!("{CPU}/cpu{cpu}/cpuidle/state1");
        write(root, &format!("{at}/name"), "C6");
        for (file, n) in [("usage", usage), ("time", usage * 100), ("above", 0), ("below", 0), ("rejected", 0)] {
            write(root, &format!("{at}/{file}"), &n.to_string());
        }
    }
    write(
        root,
        "proc/stat",
        &format!("cpu  {0} 0 0 900\ncpu0 {0} 0 0 450\ncpu1 {0} 0 0 450\nintr 5\nctxt 9", usage / 10),
    );
}

#[test]
fn documents_are_valid_live_and_on_every_host() {
    let validator = validator("watch");
    let live = run(&["watch", "--json", "--count", "2", "--interval", "100ms"]);
    assert_eq!((live.code, live.out.lines().count()), (Some(0), 2), "{}", live.err);
    for line in live.out.lines() {
        let document = assert_valid(&validator, "live", line);
        assert_eq!(document["schema"], "wakewatt/watch/v1");
        assert_eq!(document["cost"]["n_remote_interrupts"], 0, "the default wakes no other CPU");
    }
    for (name, file) in hosts() {
        for sources in ["quiet", "all"] {
            let said = run(&["watch", "--json", "--sources", sources, "--host", file.to_str().unwrap()]);
            assert_eq!(said.code, Some(0), "{name}: {}", said.err);
            assert_valid(&validator, &name, &said.out);
        }
        assert!(run(&["watch", "--once", "--host", file.to_str().unwrap()]).out.contains("CPUs online"), "{name}");
    }
}

#[test]
fn a_changing_tree_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    tree(dir.path(), 1000);
    let mut command = wakewatt(&["watch", "--json", "--interval", "100ms", "--sysroot"]);
    let mut child = command.arg(dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let left = |d: &Value, cpu: usize| {
        let per_s = d["cpus"][cpu]["wakeups_per_s"].as_f64()?;
        let window = d["window"]["end_at_ns"].as_f64()? - d["window"]["start_at_ns"].as_f64()?;
        Some(per_s * window / 1e9)
    };
    // Each change is made once the one before was seen, however long an interval takes here.
    let mut all = vec![next()];
    tree(dir.path(), 1500);
    let mut until = |is_seen: &dyn Fn(&[Value]) -> bool| {
        while !is_seen(&all) && all.len() < 600 {
            all.push(next());
        }
        all.clone()
    };
    let total = |all: &[Value]| all.iter().filter_map(|d| left(d, 0)).sum::<f64>();
    until(&|all| total(all) > 499.0);
    fs::remove_dir_all(dir.path().join(format!("{CPU}/cpu1/cpuidle"))).unwrap();
    write(dir.path(), &format!("{CPU}/online"), "0");
    let is_offline = |all: &[Value]| all.last().unwrap()["cpus"][1]["wakeups_per_s"] == "offline";
    let all = until(&is_offline);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!((total(&all) - 500.0).abs() < 1.0, "the 500 entries are seen once: {}", total(&all));
    assert!(is_offline(&all));
    assert_eq!(all.last().unwrap()["machine"]["n_online"], 1);
}

#[test]
fn core_states_say_how_deep_they_let_the_package_go() {
    let once = |name: &str| {
        let said = run(&["watch", "--once", "--host", host(name).to_str().unwrap()]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        said.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
    };
    let granite = once("gnr3");
    assert!(granite.iter().any(|line| line.starts_with("C6P PC6 210us")), "{granite:#?}");
    assert!(granite.iter().any(|line| line.starts_with("C6 less than PC6 170us")), "{granite:#?}");
    let epyc = once("rome0");
    assert!(epyc.iter().any(|line| line.starts_with("C2 400us")), "nothing is known of it: {epyc:#?}");
    assert!(epyc.iter().any(|line| line.starts_with("package states: unavailable") || line.contains("not known of this processor")), "{epyc:#?}");
}

#[test]
fn csv_has_as_many_cells_in_every_row() {
    let said = run(&["watch", "--csv", "--count", "2", "--interval", "100ms"]);
    let rows: Vec<usize> = said.out.lines().map(|l| l.split(',').count()).collect();
    assert!(rows.len() >= 5 && rows.iter().all(|n| *n == rows[0]), "{}", said.out);
    assert!(said.out.lines().filter(|l| l.contains(",total,")).count() == 2);
}

#[test]
fn without_a_screen_it_says_what_to_do() {
    let said = run(&["watch"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("not a terminal") && said.err.contains("--once"), "{}", said.err);
    for bad in
        [&["--interval", "1ms"][..], &["--filter", "heat>3", "--once"], &["--sort", "nothing"], &["--count", "0"]]
    {
        assert_eq!(run(&[&["watch"], bad].concat()).code, Some(2), "{bad:?}");
    }
}

#[test]
fn a_recording_plays_and_a_killed_one_too() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("r");
    let path = folder.to_str().unwrap();
    let made = run(&["watch", "--json", "--count", "5", "--interval", "100ms", "--record", path]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let played = run(&["watch", "--json", "--play", path]);
    let strip = |text: &str| {
        text.lines()
            .map(|l| {
                let mut document: Value = serde_json::from_str(l).unwrap();
                document["machine"]["limit_holders"] = Value::Null;
                document["notes"] = Value::Null;
                // A recording is a file, and names nobody.
                document["hostname"] = Value::Null;
                document
            })
            .collect::<Vec<_>>()
    };
    assert!(played.out.contains("\"hostname\":null"), "{}", played.out);
    assert_eq!(strip(&played.out), strip(&made.out), "what is played is what was seen");
    assert_eq!(run(&["watch", "--once", "--play", path]).code, Some(0));
    assert_eq!(run(&["watch", "--json", "--count", "1", "--record", path]).code, Some(4), "never overwritten");

    let file = folder.join("counters.watch");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() * 3 / 4]).unwrap();
    let cut = run(&["watch", "--json", "--play", path]);
    assert_eq!(cut.code, Some(0));
    assert!(cut.err.contains("cut off") && cut.out.lines().count() < 5 && !cut.out.is_empty(), "{}", cut.err);
    fs::write(&file, "something else\n").unwrap();
    let wrong = run(&["watch", "--json", "--play", path]);
    assert!(wrong.code == Some(4) && wrong.err.contains("not a recording"), "{}", wrong.err);
}

#[test]
fn sigterm_ends_a_stream_and_its_recording() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("r");
    let mut command = wakewatt(&["watch", "--json", "--interval", "10min", "--record", folder.to_str().unwrap()]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let file = folder.join("counters.watch");
    assert!(wait_until(Duration::from_secs(120), || fs::read_to_string(&file).is_ok_and(|t| t.lines().count() >= 3)));
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let start = std::time::Instant::now();
    let out = child.wait_with_output().unwrap();
    assert!(start.elapsed() < Duration::from_secs(120), "a signal ends the wait of ten minutes");
    assert_eq!(out.status.code(), Some(130));
    assert!(fs::read_to_string(&file).unwrap().contains(r#"{"end":"interrupted"}"#));
}

#[test]
fn a_full_disk_ends_the_recording_not_the_watching() {
    if !is_root() {
        return skipped(
            "a_full_disk_ends_the_recording_not_the_watching",
            Lacks::Root,
            "needs root to mount a small tmpfs",
        );
    }
    let dir = tempfile::tempdir().unwrap();
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=16k", "none"])
        .arg(dir.path())
        .stderr(Stdio::null())
        .status();
    if !mount.is_ok_and(|s| s.success()) {
        return skipped("a_full_disk_ends_the_recording_not_the_watching", Lacks::Here, "a tmpfs cannot be mounted");
    }
    let folder = dir.path().join("r");
    let said = said(&mut wakewatt(&[
        "watch",
        "--json",
        "--count",
        "60",
        "--interval",
        "100ms",
        "--record",
        folder.to_str().unwrap(),
    ]));
    let played = run(&["watch", "--json", "--play", folder.to_str().unwrap()]);
    let _ = std::process::Command::new("umount").arg(dir.path()).status();
    assert_eq!((said.code, said.out.lines().count()), (Some(4), 60), "{}", said.err);
    assert!(said.err.contains("No space left") && said.err.contains("incomplete"), "{}", said.err);
    assert!(
        played.code == Some(0) && played.err.contains("cut off") && played.out.lines().count() > 3,
        "{}",
        played.err
    );
}

#[test]
fn a_recording_ends_at_its_limit_and_watching_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("r");
    let args = ["watch", "--json", "--count", "40", "--interval", "100ms", "--record-limit", "8KiB", "--record"];
    tree(dir.path(), 1000);
    let said = run(&[&args[..], &[folder.to_str().unwrap(), "--sysroot", dir.path().to_str().unwrap()]].concat());
    assert_eq!((said.code, said.out.lines().count()), (Some(0), 40), "{}", said.err);
    assert!(said.err.contains("limit of 8") && said.err.contains("watching goes on"), "{}", said.err);
    let file = fs::read_to_string(folder.join("counters.watch")).unwrap();
    assert!(file.len() <= 8 << 10 && file.lines().last().unwrap().contains("--record-limit"), "{}", file.len());
    let played = run(&["watch", "--json", "--play", folder.to_str().unwrap()]);
    assert!(played.code == Some(0) && !played.err.contains("cut off"), "{}", played.err);
}

//! Recordings of idle intervals: what kills, full disks and storms leave of them, whether their numbers agree with the
//! kernel's own, and files that are none. The live ones as in `live.rs`.

use crate::live::machine;
use crate::matrix;
use crate::schemas::{assert_valid, validator};
use crate::tool::{PROGRAM, Said, fixtures, run, said, wait_until, wakewatt};
use crate::trace::{Running, Storm, say};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use wakewatt_core::record::wtrace::{Item, Reader};
use wakewatt_core::samples::idle_pair::{IdlePair, WakeCause};
use wakewatt_testing::{Lacks, skipped};

fn fixture() -> PathBuf {
    fixtures().join("traces/vm-haltpoll-6.18.wtrace")
}

fn info(file: &Path) -> Value {
    let said = run(&["trace", "info", "--json", file.to_str().unwrap()]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert_valid(&validator("trace-info"), "trace info", &said.out)
}

fn n_pairs(file: &Path) -> u64 {
    info(file)["summary"]["n_pairs"].as_u64().unwrap()
}

fn record(file: &Path, more: &[&str]) -> Said {
    said(&mut wakewatt(&[&["trace", "--record", file.to_str().unwrap()], more].concat()))
}

#[test]
fn exact_inputs_stand_beside_the_stays_that_came_of_them() {
    const NAME: &str = "exact_inputs_stand_beside_the_stays_that_came_of_them";
    let Some(_machine) = machine(NAME) else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.wtrace");
    let storm = Storm::of(2, Duration::from_millis(3));
    let said = record(&file, &["--exact", "--for", "2s"]);
    drop(storm);
    if said.err.contains("exact inputs cannot be recorded here") {
        return skipped(NAME, Lacks::Here, "it has neither fentry nor kprobes on the governor");
    }
    assert_eq!(said.code, Some(0), "{said:?}");
    let told = info(&file);
    let n_choices = told["n_choices"].as_u64().unwrap();
    assert!(told["header"]["sources"].as_array().unwrap().iter().any(|s| s.as_str().unwrap().starts_with("choices: ")));
    let bytes = fs::read(&file).unwrap();
    let (mut n_pairs, mut n_entered, mut n_differ) = (0u64, 0u64, 0u64);
    for item in Reader::new(&bytes).unwrap() {
        match item {
            Item::Pairs(pairs) => n_pairs += pairs.len() as u64,
            Item::Choices(choices) => {
                let entered = choices.iter().filter_map(|c| Some((c.answer, c.outcome?.state)));
                n_entered += entered.clone().count() as u64;
                n_differ += entered.filter(|(answer, state)| answer != state).count() as u64;
            }
            Item::Mark(_) => {}
        }
    }
    assert!(n_choices > 50 && n_pairs > 50, "{n_choices} choices, {n_pairs} stays");
    // Both ends of the window cut a few off, on each CPU.
    assert!(n_entered.abs_diff(n_pairs) <= 20 + n_pairs / 50, "{n_entered} entered, {n_pairs} stays");
    assert!(n_differ <= n_entered / 20, "{n_differ} of {n_entered} went elsewhere than the governor said");
}

#[test]
fn killed_it_reads_as_unfinished_and_is_continued() {
    let Some(_machine) = machine("killed_it_reads_as_unfinished_and_is_continued") else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.wtrace");
    let path = file.to_str().unwrap();
    let storm = Storm::of(2, Duration::from_millis(1));
    let trace = Running::trace(&["--for", "60s", "--window", "200ms", "--record", path]);
    trace.attached();
    std::thread::sleep(Duration::from_secs(1));
    // Meanwhile nobody else may write to it, forced or not.
    for more in ["--resume", "--force"] {
        let second = record(&file, &["--for", "100ms", more]);
        assert_eq!(second.code, Some(4), "{second:?}");
        assert!(second.err.contains("another recorder"), "{second:?}");
    }
    trace.signal(Signal::KILL);
    drop(trace);
    let before = info(&file);
    let n_before = before["summary"]["n_pairs"].as_u64().unwrap();
    assert!(before["ending"].as_str().unwrap().starts_with("unfinished"), "{}", before["summary"]);
    if n_before <= 100 {
        let why = format!("the storm made only {n_before} idle intervals");
        return skipped("killed_it_reads_as_unfinished_and_is_continued", Lacks::Quiet, &why);
    }
    let refused = record(&file, &["--for", "100ms"]);
    assert!(
        refused.code == Some(4) && refused.err.contains("--force") && refused.err.contains("--resume"),
        "{refused:?}"
    );
    // Torn in the middle of a block, as a crash of the machine leaves it.
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, [&bytes[..], &bytes[18..40]].concat()).unwrap();
    let resumed = record(&file, &["--for", "500ms", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    drop(storm);
    let after = info(&file);
    assert_eq!(after["ending"], "complete");
    assert!(after["summary"]["n_pairs"].as_u64().unwrap() > n_before);
    assert!(after["marks"].to_string().contains("resumed"));
    // Over an old one only when asked; then it is gone.
    assert_eq!(record(&file, &["--for", "300ms", "--force"]).code, Some(0));
    assert!(!info(&file)["marks"].to_string().contains("resumed"));
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_trace() {
    let test = "a_full_disk_ends_the_recording_and_not_the_trace";
    let Some(_machine) = machine(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().display();
    let script = format!(
        "mount -t tmpfs -o size=64k none {folder} && head -c 32768 /dev/zero > {folder}/filler || exit 99
         {PROGRAM} trace --json --for 4s --window 100ms --record {folder}/a.wtrace; echo code $?
         {PROGRAM} trace info --json {folder}/a.wtrace; echo code $?"
    );
    let _storm = Storm::of(6, Duration::from_micros(100));
    let output = Command::new("unshare").args(["-m", "/bin/sh", "-c", &script]).stdin(Stdio::null()).output();
    let Ok(output) = output else { return skipped(test, Lacks::Program("unshare"), "unshare is not installed") };
    if output.status.code() == Some(99) {
        return skipped(test, Lacks::Here, &String::from_utf8_lossy(&output.stderr));
    }
    let out = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((lines.len(), lines[3]), (4, "code 0"), "{out}");
    let traced = assert_valid(&validator("trace"), "trace", lines[0]);
    let remarks = traced["remarks"].to_string();
    if remarks.contains("recorded ") {
        return skipped(
            test,
            Lacks::Quiet,
            &format!("other work kept the CPUs from idling, so the disk did not fill: {remarks}"),
        );
    }
    assert!(remarks.contains("recording stopped early") && remarks.contains("No space left"), "{remarks}");
    assert_eq!(lines[1], "code 4", "an output could not be written");
    assert!(
        traced["window"]["end_at_ns"].as_u64().unwrap() - traced["window"]["start_at_ns"].as_u64().unwrap()
            > 3_900_000_000
    );
    let info = assert_valid(&validator("trace-info"), "trace info", lines[3 - 1]);
    assert!(info["marks"].as_array().is_some_and(|m| !m.is_empty()), "{}", info["summary"]);
    assert!(!info["ending"].as_str().unwrap().starts_with("damaged"), "{}", info["ending"]);
    // The last page of a full disk may have room for the reason or not.
    let is_marked = info["marks"].to_string().contains("stopped");
    assert!(is_marked || info["ending"] != "complete", "{}", info["marks"]);
    say(&format!("{test}: {}; marked: {is_marked}", info["ending"]));
}

#[test]
fn the_size_allowed_is_kept() {
    let Some(_machine) = machine("the_size_allowed_is_kept") else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.wtrace");
    let _storm = Storm::of(8, Duration::from_micros(50));
    let trace = Running::trace(&[
        "--for",
        "90s",
        "--json",
        "--window",
        "200ms",
        "--record",
        file.to_str().unwrap(),
        "--record-mib",
        "1",
    ]);
    let length = || fs::metadata(&file).map_or(0, |m| m.len());
    let is_full = wait_until(Duration::from_secs(80), || {
        let before = length();
        std::thread::sleep(Duration::from_millis(1500));
        before > 900_000 && before == length()
    });
    trace.signal(Signal::TERM);
    let said = trace.end();
    if !is_full {
        return skipped("the_size_allowed_is_kept", Lacks::Quiet, &format!("only {} bytes in 80 s", length()));
    }
    assert!(length() <= (1 << 20) + 300, "{}", length());
    assert!(said.out.contains("reached the size allowed") && said.out.contains("--record-mib"), "{}", said.err);
    let info = info(&file);
    assert!(
        info["ending"] == "complete" && info["marks"].to_string().contains("reached the size allowed"),
        "{}",
        info["ending"]
    );
}

#[test]
fn an_overrun_is_counted_and_breaks_nothing() {
    let test = "an_overrun_is_counted_and_breaks_nothing";
    let Some(_machine) = machine(test) else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.wtrace");
    let args = ["--json", "--for", "60s", "--window", "500ms", "--record", file.to_str().unwrap()];
    let trace = Running::trace(&args);
    trace.attached();
    let storm = Storm::of(8, Duration::from_micros(50));
    trace.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(8));
    trace.signal(Signal::CONT);
    drop(storm);
    std::thread::sleep(Duration::from_millis(1200));
    trace.signal(Signal::INT);
    let said = trace.end();
    assert_eq!(said.code, Some(130), "{}", said.err);
    let traced = assert_valid(&validator("trace"), "trace", &said.out);
    let n_lost = traced["missed"]["n_lost"].as_u64().unwrap();
    let info = info(&file);
    if n_lost == 0 {
        return skipped(
            test,
            Lacks::Quiet,
            &format!("the storm made only {} idle intervals", info["summary"]["n_pairs"]),
        );
    }
    say(&format!("{test}: {n_lost} lost beside {} kept", info["summary"]["n_pairs"]));
    assert!(
        traced["remarks"].to_string().contains(&format!("{n_lost} idle records were lost")),
        "{}",
        traced["remarks"]
    );
    assert_eq!((info["summary"]["n_lost"].as_u64(), info["ending"].as_str()), (Some(n_lost), Some("complete")));
    let text = run(&["trace", "info", file.to_str().unwrap()]).out;
    assert!(text.contains(&format!("records lost: {n_lost}")), "{text}");
    // Stopped for seconds: one long window, no row of empty ones.
    let n_windows = traced["windows"].as_array().map_or(0, Vec::len);
    assert!(n_windows < 12, "{n_windows} windows");
    // The histograms go on counting in the kernel.
    let requested: u64 = traced["states"].as_array().unwrap().iter().map(|s| s["n_requested"].as_u64().unwrap()).sum();
    assert!(requested >= n_lost);
}

fn pairs(file: &Path) -> Vec<IdlePair> {
    let bytes = fs::read(file).unwrap();
    let items: Vec<Item> = Reader::new(&bytes).unwrap().collect();
    items.into_iter().filter_map(|i| if let Item::Pairs(p) = i { Some(p) } else { None }).flatten().collect()
}

/// What the kernel's own counters say beside the recording, and what the timers say beside the wake-ups.
#[test]
fn intervals_agree_with_sysfs_and_with_their_timers() {
    let test = "intervals_agree_with_sysfs_and_with_their_timers";
    let Some(_machine) = machine(test) else { return };
    if !Path::new("/sys/devices/system/cpu/cpu0/cpuidle/state0").exists() {
        return skipped(test, Lacks::Here, "no idle driver that counts");
    }
    let dir = tempfile::tempdir().unwrap();
    let mut worst: Vec<f64> = Vec::new();
    for attempt in 0..3 {
        let file = dir.path().join(format!("{attempt}.wtrace"));
        let _storm = Storm::of(2, Duration::from_millis(7));
        let said = record(&file, &["--for", "4s", "--json"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let traced = assert_valid(&validator("trace"), "trace", &said.out);
        for state in traced["states"].as_array().unwrap() {
            let number = |key: &str| state[key].as_f64().unwrap();
            let (requested, entered) = (number("n_requested"), number("n_entered"));
            assert!((requested - entered).abs() <= 8.0 + entered / 1000.0, "{state}");
            if number("entered_time_ns") > 5e8 {
                worst.push((number("time_ns") / number("entered_time_ns") - 1.0).abs());
            }
        }
        let all = pairs(&file);
        let in_file: u64 = all.iter().map(|p| p.duration_ns).sum();
        let requested =
            traced["states"].as_array().unwrap().iter().map(|s| s["n_requested"].as_u64().unwrap()).sum::<u64>();
        assert!(requested.abs_diff(all.len() as u64) <= 8, "{requested} requested, {} recorded", all.len());
        // Exit after the deadline of a pair that the next timer ended, the tick being stopped.
        let mut late: Vec<i64> = all
            .iter()
            .filter(|p| p.ended_by == WakeCause::Timer && p.is_tick_stopped == Some(true))
            .filter_map(|p| {
                let reference = p.enter_at_ns.cast_signed() - p.entry_lag_ns?.cast_signed();
                Some(p.enter_at_ns.cast_signed() + p.duration_ns.cast_signed() - reference - p.sleep_length_ns?)
            })
            .collect();
        late.sort_unstable();
        if late.len() <= 50 {
            say(&format!(
                "attempt {attempt}: only {} intervals ended by a timer, other work kept the CPUs busy",
                late.len()
            ));
            continue;
        }
        let at = |percent: usize| late[(late.len() - 1) * percent / 100] as f64 / 1e3;
        say(&format!(
            "{} intervals, {:.3} s; ended by a timer, tick stopped: {}, exit after the deadline: least {:.1}, p50 {:.1}, p99 {:.1} us",
            all.len(),
            in_file as f64 / 1e9,
            late.len(),
            at(0),
            at(50),
            at(99)
        ));
        assert!(late[0] >= -1_100, "left before its timer: {} ns", late[0]);
        assert!(at(50) < 500.0, "typically late by {} us", at(50));
    }
    if worst.is_empty() {
        return skipped(
            "intervals_agree_with_sysfs_and_with_their_timers",
            Lacks::Quiet,
            "other work kept the CPUs from idling",
        );
    }
    worst.sort_by(f64::total_cmp);
    say(&format!(
        "time against sysfs: off by {:?} %",
        worst.iter().map(|w| (w * 1e5).round() / 1e3).collect::<Vec<_>>()
    ));
    assert!(worst[worst.len() / 2] < 0.02, "{worst:?}");
}

#[test]
fn the_recorded_fixture_reads_as_it_did() {
    let file = fixture();
    let said = run(&["trace", "info", file.to_str().unwrap()]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    let golden = fixtures().join("golden/trace-info/vm-haltpoll-6.18.txt");
    assert_eq!(matrix::compare(&golden, &said.out), None, "to accept: {}", matrix::BLESS);
    assert!(n_pairs(&file) > 1000);
    // One row per interval in the table.
    let dir = tempfile::tempdir().unwrap();
    let table = dir.path().join("t.parquet");
    let export = ["trace", "export", file.to_str().unwrap(), "-o", table.to_str().unwrap()];
    let said = run(&export);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains(&format!("{} rows", n_pairs(&file))), "{said:?}");
    assert!(fs::read(&table).unwrap().starts_with(b"PAR1"));
    let again = run(&export);
    assert!(again.code == Some(4) && again.err.contains("--force"), "{again:?}");
}

fn refused(file: &Path, what: &str) {
    let path = file.to_str().unwrap();
    let table = file.with_extension("parquet");
    for args in [&["trace", "info", path][..], &["trace", "export", path, "-o", table.to_str().unwrap()]] {
        let said = run(args);
        assert_eq!((said.code, said.out.as_str()), (Some(4), ""), "{said:?}");
        assert!(said.err.contains(path) && said.err.contains(what), "{what:?}: {}", said.err);
        assert_eq!(said.err.trim_end().lines().count(), 1, "{}", said.err);
        assert!(!said.err.trim_end().contains(|c: char| c.is_control()), "{:?}", said.err);
    }
    assert!(!table.exists());
}

#[test]
fn files_that_are_no_recordings_are_named_and_do_not_hang_it() {
    let dir = tempfile::tempdir().unwrap();
    let good = fs::read(fixture()).unwrap();
    let at = |name: &str, bytes: &[u8]| {
        let file = dir.path().join(name);
        fs::write(&file, bytes).unwrap();
        file
    };
    refused(&at("empty.wtrace", b""), "not a wakewatt recording");
    refused(&at("random.wtrace", &[0xa5; 5000]), "not a wakewatt recording");
    refused(&at("text.wtrace", b"wakewatt-host 1\n"), "not a wakewatt recording");
    refused(&at("newer.wtrace", b"wakewatt-wtrace 3\nH"), "another version (3)");
    refused(&at("hostile.wtrace", b"wakewatt-wtrace \x1b[31m\x07\nH"), "another version");
    refused(&at("head.wtrace", &good[..18]), "in its header");
    refused(&at("header.wtrace", &good[..100]), "cut off");
    let huge_block = [&good[..18], b"H", &[0xff; 8]].concat();
    refused(&at("length.wtrace", &huge_block), "claims 4294967295 bytes");
    let huge = at("huge.wtrace", b"");
    fs::OpenOptions::new().write(true).open(&huge).unwrap().set_len(3 << 30).unwrap();
    refused(&huge, "not a wakewatt recording");
    let fifo = dir.path().join("fifo.wtrace");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    refused(&fifo, "not a plain file");
    refused(dir.path(), "not a plain file");
    refused(&dir.path().join("none.wtrace"), "No such file");
    let zero = run(&["trace", "info", "/dev/zero"]);
    assert!(zero.code == Some(4) && zero.err.contains("/dev/zero: not a plain file"), "{zero:?}");
}

#[test]
fn a_recording_cut_or_spoilt_anywhere_is_read_as_far_as_it_is_good() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cut.wtrace");
    let good = fs::read(fixture()).unwrap();
    let n_good = n_pairs(&fixture());
    let n_header = 27 + u32::from_le_bytes(good[19..23].try_into().unwrap()) as usize;
    for part in 0..12 {
        let length = n_header + (good.len() - n_header) * part / 12;
        fs::write(&file, &good[..length]).unwrap();
        let cut = info(&file);
        assert!(
            cut["ending"] != "complete" && cut["summary"]["n_pairs"].as_u64().unwrap() <= n_good,
            "{}",
            cut["ending"]
        );
        let mut spoilt = good.clone();
        spoilt[length] ^= 0x40;
        fs::write(&file, &spoilt).unwrap();
        assert!(n_pairs(&file) <= n_good);
    }
}

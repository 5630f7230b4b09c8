//! The golden matrix: every reading command on every recorded host.
//!
//! A `.host` file dropped into `fixtures/hosts` adds a row. `WAKEWATT_BLESS=1 cargo test -p wakewatt --test it matrix`
//! writes what is missing or has changed; the diff is then reviewed like code. JSON is too long to keep: instead it must
//! survive a second capture unchanged (here) and validate against its schema (`schemas.rs`).

use crate::tool::{fixtures, host, hosts, run};
use std::path::{Path, PathBuf};
use wakewatt::cmd::inspect;
use wakewatt_core::facts::Snapshot;
use wakewatt_host::recorded;
use wakewatt_lab::capture::captured;

/// How to accept a change.
pub const BLESS: &str = "WAKEWATT_BLESS=1 cargo test -p wakewatt --test it matrix";

fn is_blessing() -> bool {
    ["WAKEWATT_BLESS", "UPDATE_EXPECT"].iter().any(|name| std::env::var(name).is_ok_and(|v| v == "1"))
}

fn golden(command: &str, host: &str) -> PathBuf {
    fixtures().join("golden").join(command).join(format!("{host}.txt"))
}

/// Compares with the golden file, or writes it; returns what is wrong.
pub fn compare(file: &Path, text: &str) -> Option<String> {
    let wanted = std::fs::read_to_string(file).unwrap_or_default();
    if wanted == text {
        return None;
    }
    if is_blessing() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
        return None;
    }
    let n_lines = wanted.lines().count().max(text.lines().count());
    let line = |text: &str, at: usize| text.lines().nth(at).unwrap_or("(nothing)").to_string();
    let at = (0..n_lines).find(|at| line(&wanted, *at) != line(text, *at)).unwrap_or(0);
    Some(format!("{}, line {}:\n  golden: {}\n  now:    {}", file.display(), at + 1, line(&wanted, at), line(text, at)))
}

/// Runs a command on every host and compares; also that nothing volatile is in the text.
fn check(command: &str, args: impl Fn(&str) -> Vec<String>) {
    let mut wrong = Vec::new();
    for (name, file) in hosts() {
        let args = args(file.to_str().unwrap());
        let said = run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{command} on {name}");
        assert!(!said.out.contains('\u{1b}'), "{command} on {name}: colour without being asked");
        assert!(!said.out.contains(fixtures().to_str().unwrap()), "{command} on {name} names this checkout");
        wrong.extend(compare(&golden(command, &name), &said.out));
    }
    assert!(wrong.is_empty(), "{}\nTo accept: {BLESS}", wrong.join("\n"));
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

#[test]
fn inspect_on_every_host() {
    check("inspect", |host| words(&["inspect", "--host", host]));
}

#[test]
fn doctor_on_every_host() {
    check("doctor", |host| words(&["doctor", "--read-only", "--no-report", "--host", host]));
}

#[test]
fn compare_with_every_host() {
    let first = host("emr9");
    check("compare", |host| words(&["compare", first.to_str().unwrap(), host]));
}

#[test]
fn no_golden_file_without_its_host() {
    let names: Vec<String> = hosts().into_iter().map(|(name, _)| name).collect();
    for command in ["inspect", "doctor", "compare"] {
        for entry in std::fs::read_dir(fixtures().join("golden").join(command)).into_iter().flatten() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            assert!(names.contains(&stem), "{}: no such host any more; delete it", path.display());
        }
    }
}

#[test]
fn a_second_capture_changes_nothing() {
    for (name, file) in hosts() {
        let first = recorded::open(&file).unwrap();
        let facts = inspect::json(&Snapshot::read(&first, |_| true)).unwrap();
        let text = captured(&first, false).text;
        let lines = |text: &str| text.lines().filter(|l| !l.starts_with('#')).map(String::from).collect::<Vec<_>>();
        let kept = std::fs::read_to_string(&file).unwrap();
        let (kept, again) = (lines(&kept), lines(&text));
        let differs = kept.iter().zip(&again).position(|(a, b)| a != b).unwrap_or(kept.len().min(again.len()));
        assert_eq!(
            (kept.len(), kept.get(differs)),
            (again.len(), again.get(differs)),
            "{name}: capture of a capture differs after line {differs}; new parsers? capture the host again"
        );
        let second = wakewatt_core::record::host_file::read(&text, &first.name).unwrap();
        assert!(facts == inspect::json(&Snapshot::read(&second, |_| true)).unwrap(), "{name}: facts differ");
    }
}

#[test]
fn no_fixture_holds_an_address_or_a_name() {
    let own_name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    for (name, file) in hosts() {
        let text = std::fs::read_to_string(&file).unwrap();
        for line in text.lines() {
            let value = line.split_once(['=', '\t']).map_or("", |(_, v)| v);
            let masked = wakewatt_core::record::mask::addresses(value);
            assert_eq!(value, masked, "{name} holds an address");
            assert!(
                own_name.trim().len() < 4 || !value.split_whitespace().any(|w| w == own_name.trim()),
                "{name}: {line}"
            );
        }
    }
}

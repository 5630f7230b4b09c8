//! Runs of one plan joined: three sessions together, and what is refused.

use crate::runs::{made_up, text};
use crate::schemas::{assert_valid, validator};
use crate::tool::run;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// The made-up run again, on another day: its baseline takes so many times as long.
fn another_day(first: &str, by: f64, file: &Path) {
    let mut run: Value = serde_json::from_str(first).unwrap();
    for block in run["experiment"]["blocks"].as_array_mut().unwrap() {
        let is_baseline = block["arm"] == "default" || block["arm"] == "found";
        for value in block["values"].as_array_mut().unwrap() {
            if let Some(number) = value.as_f64().filter(|_| is_baseline) {
                *value = (number * by).into();
            }
        }
    }
    fs::write(file, run.to_string()).unwrap();
}

#[test]
fn sessions_are_joined_and_other_questions_refused() {
    let dir = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = ["a.run", "b.run", "c.run", "other.run"].iter().map(|n| dir.path().join(n)).collect();
    let first = made_up("two-arms", &files[0]);
    another_day(&first, 1.2, &files[1]);
    another_day(&first, 0.9, &files[2]);
    made_up("three-arms", &files[3]);
    let names: Vec<&str> = files.iter().map(|f| text(f)).collect();
    let replicate = |runs: &[&str]| run(&[&["experiment", "replicate"], runs].concat());
    let said = replicate(&names[..3]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let out = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "3 sessions of 1 host",
        "95 % interval, which covers this machine",
        "each run by itself",
        "from session to session",
        "covers these runs alone",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    let document =
        assert_valid(&validator("replicate"), "replicate", &replicate(&[&names[..3], &["--json"]].concat()).out);
    assert_eq!(document["effects"][0]["covers"], "machine");
    assert_eq!(document["effects"][0]["sessions"][0]["covers"], "run");
    let hosts: Vec<String> = names[..3].iter().enumerate().map(|(at, name)| format!("host{at}={name}")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    assert!(replicate(&hosts).out.contains("these machines"));
    let said = replicate(&[names[0], names[3]]);
    assert!(said.code == Some(7) && said.err.contains("give runs with the same arms"), "{said:?}");
    let said = replicate(&[names[0], names[0]]);
    assert!(said.code == Some(7) && said.err.contains("it is the same run as"), "{said:?}");
}

#[test]
fn several_runs_of_two_sides_are_compared_by_their_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = (0..4).map(|n| dir.path().join(format!("{n}.run"))).collect();
    let first = made_up("two-arms", &files[0]);
    for (by, file) in [(1.02, &files[1]), (3.0, &files[2]), (3.1, &files[3])] {
        another_day(&first, by, file);
    }
    let [a, b, c, d] = [0, 1, 2, 3].map(|n| text(&files[n]));
    let said = run(&["compare", "--all", a, b, "--against", c, d]);
    assert!(said.code == Some(0) && said.out.contains("windows in 2 and 2 runs"), "{said:?}");
    let document =
        assert_valid(&validator("compare"), "compare", &run(&["compare", "--json", a, b, "--against", c, d]).out);
    let samples = document["runs"]["samples"].as_array().unwrap();
    let blocks = samples.iter().find(|s| s["id"].as_str().is_some_and(|id| id.starts_with("blocks."))).unwrap();
    assert_eq!(
        (&blocks["basis"], &blocks["covers"], &blocks["verdict"]),
        (&"sessions".into(), &"machine".into(), &"higher".into())
    );
    assert_eq!(run(&["compare", a]).code, Some(2));
}

//! Runs of one plan joined: three sessions together, and what is refused.

use crate::runs::{made_up, text};
use crate::schemas::{assert_valid, validator};
use crate::tool::{run, wakewatt};
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

/// The folder that an experiment keeps its blocks in, made of a run file's blocks.
fn folder_of(run: &str, host: &str, folder: &Path) {
    let run: Value = serde_json::from_str(run).unwrap();
    let experiment = &run["experiment"];
    let plan = "format = 1\nname = \"mine\"\nquestion = \"?\"\n";
    let head = serde_json::json!({
        "format": 2,
        "host": { "name": host, "kernel": "6.1", "cpus": "CPUs 0-1" },
        "seed": 1,
        "plan": plan,
        "arms": experiment["arms"],
        "skipped": [],
        "metrics": experiment["metrics"],
        "budget_ns": 1,
    });
    let kept = |block: &Value| serde_json::json!({ "block": block, "latencies": [], "spent_ns": 1 }).to_string() + "\n";
    let blocks: String = experiment["blocks"].as_array().unwrap().iter().map(kept).collect();
    fs::create_dir(folder).unwrap();
    for (name, text) in [("plan.toml", plan.to_string()), ("head.json", head.to_string()), ("blocks.jsonl", blocks)] {
        fs::write(folder.join(name), text).unwrap();
    }
}

#[test]
fn folders_of_experiments_are_sessions_too_and_the_page_shows_all_levels() {
    let dir = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = ["a.run", "b.run"].iter().map(|n| dir.path().join(n)).collect();
    let folders: Vec<PathBuf> = ["a", "b"].iter().map(|n| dir.path().join(n)).collect();
    let first = made_up("two-arms", &files[0]);
    another_day(&first, 1.2, &files[1]);
    let second = fs::read_to_string(&files[1]).unwrap();
    folder_of(&first, "db7", &folders[0]);
    folder_of(&second, "db7", &folders[1]);
    let page = dir.path().join("page.html");
    let said = run(&["experiment", "replicate", text(&folders[0]), text(&folders[1]), "-o", text(&page)]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.starts_with("mine: 2 sessions of 1 host") && said.err.contains("Page: "), "{said:?}");
    let html = fs::read_to_string(&page).unwrap().replace('\u{a0}', " ");
    for part in [
        "<svg",
        "together",
        "covers this machine",
        "covers this run",
        "Every round with its two windows",
        "What was joined",
    ] {
        assert!(html.contains(part), "{part}");
    }
    for forbidden in ["http://", "https://", "<script", "NaN"] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    // A folder of another host is another host; its name is the folder's own.
    let other = dir.path().join("c");
    folder_of(&second, "db8", &other);
    let said = run(&["experiment", "replicate", text(&folders[0]), text(&other)]);
    assert!(said.code == Some(0) && said.out.starts_with("mine: 2 sessions of 2 hosts"), "{said:?}");
}

#[test]
fn odd_endings_of_replicate_are_told_in_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let (file, other, folder) = (dir.path().join("a.run"), dir.path().join("b.run"), dir.path().join("c"));
    let first = made_up("two-arms", &file);
    another_day(&first, 1.2, &other);
    folder_of(&first, "db7", &folder);
    let (a, b, c) = (text(&file), text(&other), text(&folder));
    let replicate = |runs: &[&str]| run(&[&["experiment", "replicate"], runs].concat());
    let mixed = replicate(&[a, c]);
    assert!(mixed.code == Some(2) && mixed.err.contains("name the host of each, as in HOST="), "{mixed:?}");
    let questions = replicate(&[&format!("x={a}"), &format!("x={c}")]);
    assert!(questions.code == Some(7) && questions.err.contains("different questions"), "{questions:?}");
    let alone = replicate(&[a]);
    assert!(alone.code == Some(7) && alone.err.contains("one session says nothing of the next"), "{alone:?}");
    let missing = replicate(&[a, "/nowhere/x.run"]);
    assert!(missing.code == Some(4) && missing.err.contains("/nowhere/x.run: cannot be read"), "{missing:?}");
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let no_run = replicate(&[c, text(&empty)]);
    assert!(no_run.code == Some(4) && no_run.err.contains("is it the folder of a run"), "{no_run:?}");
    fs::write(folder.join("blocks.jsonl"), "rubbish\n{}\n").unwrap();
    let broken = replicate(&[c, c]);
    assert!(broken.code == Some(4) && broken.err.contains("blocks.jsonl: line 1"), "{broken:?}");
    let full = replicate(&[a, b, "-o", "/dev/full"]);
    assert!(full.code == Some(4) && full.err.contains("No space left") && full.out.contains("Together"), "{full:?}");
    let mut command = wakewatt(&["experiment", "replicate", a, b]);
    let device = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.stdout(device).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(4) && err.contains("No space left"), "{err}");
    // Whoever read has left: that is no error of ours.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let gone = wakewatt(&["experiment", "replicate", a, b]).stdout(writer).output().unwrap();
    assert!(gone.status.code() == Some(0) && gone.stderr.is_empty(), "{gone:?}");
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
        (&"sessions".into(), &"hours".into(), &"higher".into()),
        "they did not take turns"
    );
    assert_eq!(run(&["compare", a]).code, Some(2));
}

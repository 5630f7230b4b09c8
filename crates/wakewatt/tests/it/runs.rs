//! Saved runs as people use them: save, report, compare; and files that are not what they should be.

use crate::schemas::{assert_valid, validator};
use crate::tool::{Said, host, run, said, wakewatt};
use std::fs;
use std::path::Path;
use wakewatt::report::sample;
use wakewatt_core::record::mask::Names;
use wakewatt_core::record::run_file::RunFile;

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A made-up run on a recorded host.
pub fn made_up(name: &str, file: &Path) -> String {
    let (_, report) = sample::all().into_iter().find(|(n, _)| *n == name).unwrap();
    let facts = fs::read_to_string(host("sklep0")).unwrap();
    let run = RunFile::of(&report.evidence, facts, Names::default(), "doctor", "2026-11-21T09:00:00Z".into()).unwrap();
    let document = wakewatt::output::json("run", &run).unwrap();
    fs::write(file, &document).unwrap();
    document
}

/// The whole way on this machine: 100 ms of wake-ups on one CPU, twice.
#[test]
fn a_measured_run_is_saved_shown_and_compared() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let measure = |file: &Path| {
        let cpu = wakewatt_host::affinity::allowed_cpus().unwrap().first().unwrap().to_string();
        let args = ["measure", "wakeup", "--kind", "timer", "--duration", "1s", "--cpu", &cpu, "--save", text(file)];
        said(&mut wakewatt(&args))
    };
    for name in ["a.run", "b.run"] {
        let said = measure(&at(name));
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.err.contains("read it with: wakewatt report"), "{said:?}");
        let document = assert_valid(&validator("run"), name, &fs::read_to_string(at(name)).unwrap());
        assert_eq!((&document["schema"], &document["command"]), (&"wakewatt/run/v1".into(), &"measure wakeup".into()));
        assert!(document["host"].as_str().unwrap().starts_with("wakewatt-host 1\n"));
    }
    let page = at("page.html");
    let said = run(&["report", text(&at("a.run")), "-o", text(&page), "--csv", text(&at("tables"))]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
    assert!(fs::read_to_string(&page).unwrap().contains("<html"));
    let csv = fs::read_to_string(at("tables").join("wakeups.csv")).unwrap();
    assert!(csv.starts_with("kind,cpu,from_cpu,gap_ns,n,mean_ns") && csv.lines().count() == 2, "{csv}");
    let said = run(&["compare", text(&at("a.run")), text(&at("b.run"))]);
    assert!(said.code == Some(0) && said.out.contains("timer wake-up after 1ms, random, median"), "{said:?}");
    assert!(said.out.contains("The runs are not paired") && said.out.contains("one window each"), "{}", said.out);
    let said = run(&["compare", "--json", text(&at("a.run")), text(&at("b.run"))]);
    let document = assert_valid(&validator("compare"), "compare", &said.out);
    assert_eq!(document["runs"]["samples"][0]["basis"], "few_windows");
}

#[test]
fn doctor_saves_what_it_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.run");
    let recorded = host("dell-latitude-5420-tgl");
    let said = run(&["doctor", "--no-report", "--host", text(&recorded), "--save", text(&file)]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let rules = |said: &Said| {
        let document: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let rulings = document["rulings"].as_array().unwrap().clone();
        rulings.into_iter().map(|r| (r["rule"].to_string(), r["answer"].to_string())).collect::<Vec<_>>()
    };
    let then = run(&["doctor", "--json", "--no-report", "--host", text(&recorded)]);
    let now = run(&["report", "--json", text(&file)]);
    assert_valid(&validator("report"), "report", &now.out);
    assert_eq!(rules(&then), rules(&now), "the rules say the same of the facts read again");
    let compared = run(&["compare", text(&file), text(&recorded)]);
    assert!(
        compared.err.contains("compared between two run files") && compared.out.contains("No difference"),
        "{compared:?}"
    );
}

#[test]
fn every_made_up_run_is_shown_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let (report, runs) = (validator("report"), validator("run"));
    for (name, _) in sample::all() {
        let file = dir.path().join(format!("{name}.run"));
        assert_valid(&runs, name, &made_up(name, &file));
        assert_valid(&report, name, &run(&["report", "--json", text(&file)]).out);
        let said = run(&["report", "--markdown", text(&file)]);
        assert!(said.code == Some(0) && said.out.starts_with("# "), "{name}: {said:?}");
        let table = dir.path().join(format!("{name}.parquet"));
        let said = run(&["report", text(&file), "--parquet", text(&table)]);
        assert!(said.code == Some(0) && fs::read(&table).unwrap().starts_with(b"PAR1"), "{name}: {said:?}");
    }
    let at = |name: &str| dir.path().join(format!("{name}.run"));
    let said = run(&["compare", text(&at("two-arms")), text(&at("three-arms"))]);
    assert!(said.out.contains("ratio of ratios") && said.out.contains("What cannot be concluded"), "{}", said.out);
    let said = run(&["compare", "--json", text(&at("two-arms")), text(&at("three-arms"))]);
    assert_valid(&validator("compare"), "compare", &said.out);
    let mut three = vec!["compare"];
    let files = [at("two-arms"), at("three-arms"), at("undecided")];
    three.extend(files.iter().map(|f| text(f)));
    assert!(run(&three).err.contains("Only facts are compared"));
}

#[test]
fn a_file_that_is_no_run_says_what_to_try() {
    let dir = tempfile::tempdir().unwrap();
    let good = made_up("two-arms", &dir.path().join("good.run"));
    let bad = dir.path().join("bad.run");
    for (content, says) in [
        (String::new(), "make one with --save"),
        ("wakewatt-host 1\n".into(), "make one with --save"),
        ("{}".into(), "make one with --save"),
        (run(&["inspect", "idle", "--json", "--host", text(&host("sklep0"))]).out, "document of --json"),
        (good.replace("wakewatt/run/v1", "wakewatt/run/v7"), "this wakewatt reads wakewatt/run/v1"),
        (good[..good.len() / 2].into(), "cut off at line 1"),
        (good.replace("wakewatt-host 1", "wakewatt-host 4"), "the facts in it: format version 4"),
        (good.replacen("\"made_at\":\"", "\"made_at\":7,\"x\":\"", 1), "damaged"),
    ] {
        fs::write(&bad, &content).unwrap();
        let said = run(&["report", text(&bad)]);
        assert_eq!((said.code, said.out.as_str()), (Some(4), ""), "{says}: {said:?}");
        assert!(said.err.contains("bad.run") && said.err.contains(says), "{says}: {}", said.err);
        assert!(!dir.path().join("wakewatt-report.html").exists());
    }
    let said = run(&["report", text(&dir.path().join("none.run"))]);
    assert!(said.code == Some(4) && said.err.contains("make one with"), "{said:?}");
    let said = run(&["report", text(dir.path())]);
    assert!(said.code == Some(4) && said.err.contains("not a file"), "{said:?}");
    fs::write(&bad, "{ \"schema\": ").unwrap();
    let said = run(&["compare", text(&bad), text(&host("sklep0"))]);
    assert!(said.code == Some(4) && said.err.contains("cut off"), "{said:?}");
}

#[test]
fn where_to_save_is_tried_before_anything_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let nowhere = dir.path().join("none").join("x.run");
    for file in [text(&nowhere), text(dir.path())] {
        let said = run(&["measure", "wakeup", "--save", file]);
        assert!(said.code == Some(4) && said.err.contains("nothing was measured"), "{said:?}");
        assert_eq!(said.out, "");
    }
    // Where a command of the user's prints, too.
    assert_eq!(run(&["measure", "power", "--save", "-", "--", "true"]).code, Some(2));
    assert_eq!(run(&["load", "--save", "-", "--", "true"]).code, Some(2));
}

//! `wakewatt carried`: what it writes into the log of a pod, and how long it stays.

use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn carried(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wakewatt")).arg("carried").args(words).env_clear().output().unwrap()
}

fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(String::from).collect()
}

#[test]
fn the_answer_is_lines_with_an_end_that_fits() {
    let host = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/hosts");
    let host = std::fs::read_dir(host)
        .unwrap()
        .flatten()
        .map(|e| e.path())
        .find(|p| p.extension().is_some_and(|e| e == "host"))
        .unwrap();
    let host = host.to_str().unwrap();
    let said = carried(&["--at-most=10000000", "--", "inspect", "--json", "--host", host]);
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let own = Command::new(env!("CARGO_BIN_EXE_wakewatt"))
        .args(["inspect", "--json", "--host", host])
        .env_clear()
        .output()
        .unwrap();
    let lines = lines(&said);
    let (end, parts) = lines.split_last().unwrap();
    assert!(parts.iter().all(|line| line.starts_with("wakewatt-answer/1 ") && line.len() < 16 << 10));
    let end: serde_json::Value = serde_json::from_str(end.strip_prefix("wakewatt-answer/1 end ").unwrap()).unwrap();
    assert_eq!((&end["code"], &end["is_late"], &end["is_cut"]), (&0.into(), &false.into(), &false.into()));
    assert_eq!(end["n_bytes"], own.stdout.len());
}

#[test]
fn an_order_that_fails_is_late_or_came_too_late_is_an_answer_too() {
    let end = |words: &[&str]| -> serde_json::Value {
        let said = carried(words);
        assert!(said.status.success());
        let lines = lines(&said);
        serde_json::from_str(lines.last().unwrap().strip_prefix("wakewatt-answer/1 end ").unwrap()).unwrap()
    };
    let wrong = end(&["--", "inspect", "--none"]);
    assert_eq!(wrong["code"], 2);
    assert!(wrong["said"].as_str().unwrap().contains("--none"));
    let began = Instant::now();
    let late = end(&["--within=1s", "--", "watch", "--json", "--interval", "1s"]);
    assert_eq!(late["is_late"], true, "{late}");
    assert!(began.elapsed() < Duration::from_secs(120));
    let past = end(&["--start-before=1000", "--", "inspect", "--none"]);
    assert!(past["is_late"] == true && past["said"].as_str().unwrap().contains("nothing was done"), "{past}");
    let cut = end(&["--at-most=10", "--", "--help"]);
    assert_eq!((&cut["is_cut"], &cut["n_bytes"]), (&true.into(), &10.into()));
}

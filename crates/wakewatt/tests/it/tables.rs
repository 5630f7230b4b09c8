//! `fleet tables`: every query of docs/fleet-queries.md, run by DuckDB on recorded machines, beside what `inspect` and `trace info` say of them.

use crate::tool::{PROGRAM, Said, fixtures, hosts, run};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wakewatt_testing::{Lacks, skipped};

/// Reads `{query: SQL}`, answers `{query: [rows]}`, in the folder it is given.
const ASK: &str = "import sys, os, json, duckdb
os.chdir(sys.argv[1])
print(json.dumps({name: duckdb.sql(sql).fetchall() for name, sql in json.load(sys.stdin).items()}, default=str))";

/// Python with DuckDB, as `scripts/ensure-duckdb.sh` makes it.
fn python(test: &str) -> Option<PathBuf> {
    let target = Path::new(PROGRAM).ancestors().nth(3)?;
    let python = target.join("duckdb-venv/bin/python3");
    if python.exists() {
        return Some(python);
    }
    skipped(test, Lacks::Here, "no DuckDB (scripts/ensure-duckdb.sh makes it from PyPI)");
    None
}

/// The queries of the page, by their headings.
fn queries() -> BTreeMap<String, String> {
    let text = fs::read_to_string(fixtures().join("../docs/fleet-queries.md")).unwrap();
    let mut found = BTreeMap::new();
    let (mut heading, mut sql): (String, Option<String>) = (String::new(), None);
    for line in text.lines() {
        match (&mut sql, line) {
            (None, "```sql") => sql = Some(String::new()),
            (Some(_), "```") => {
                assert!(found.insert(heading.clone(), sql.take().unwrap()).is_none(), "{heading}: two queries");
            }
            (Some(sql), line) => *sql += &format!("{line}\n"),
            (None, line) => {
                if let Some(words) = line.strip_prefix("## ") {
                    heading = words.into();
                }
            }
        }
    }
    found
}

/// A folder of recorded machines; two of them twice, so that a class has more than one.
fn fleet() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, file) in hosts() {
        fs::copy(file, dir.path().join(format!("{name}.host"))).unwrap();
    }
    let text = fs::read_to_string(dir.path().join("sklep0.host")).unwrap();
    fs::write(dir.path().join("sklep1.host"), &text).unwrap();
    let changed = text.replace("scaling_governor = powersave", "scaling_governor = performance");
    let changed = changed.replace("cpu{0-103}/cpuidle/state3/disable = 0", "cpu{0-103}/cpuidle/state3/disable = 1");
    let changed = changed.replace("pm_qos_resume_latency_us = 0", "pm_qos_resume_latency_us = 50");
    assert_ne!(changed.len(), text.len(), "the recording has these lines");
    fs::write(dir.path().join("sklep2.host"), changed).unwrap();
    for (name, trace) in [("vm-haltpoll-2cpu", "vm-haltpoll-6.18"), ("arm64-psci-6.1", "arm64-menu-exact-6.1")] {
        fs::copy(fixtures().join(format!("traces/{trace}.wtrace")), dir.path().join(format!("{name}.wtrace"))).unwrap();
    }
    dir
}

fn tables(folder: &Path) -> Said {
    run(&["fleet", "tables", folder.to_str().unwrap()])
}

/// What `inspect` says of each host in the folder.
fn inspected(folder: &Path) -> BTreeMap<String, Value> {
    let files = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|e| e == "host"));
    files
        .map(|path| {
            let said = run(&["inspect", "--json", "idle", "freq", "kernel", "--host", path.to_str().unwrap()]);
            (path.file_stem().unwrap().to_string_lossy().into_owned(), serde_json::from_str(&said.out).unwrap())
        })
        .collect()
}

/// States of a host with the groups of CPUs that agree: name, then (CPUs, value).
fn states<'a>(facts: &'a Value, member: &str) -> Vec<(String, Vec<(&'a str, &'a Value)>)> {
    facts["idle"]["states"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|state| {
            let groups = state[member].as_array().unwrap().iter().filter(|g| g.get("value").is_some());
            let name = state["name"][0]["value"].as_str().unwrap_or_default().to_string();
            (name, groups.map(|g| (g["cpus"].as_str().unwrap(), &g["value"])).collect())
        })
        .collect()
}

#[test]
fn every_query_of_the_page_answers_as_inspect_does() {
    let Some(python) = python("tables::every_query_of_the_page") else { return };
    let fleet = fleet();
    // Short, and on any machine: how long its wake-ups take is not looked at.
    let measured = fleet.path().join("here.run");
    let wakeup = ["measure", "wakeup", "--kind", "timer", "--cpu", "0", "--policy", "other", "--save"];
    let is_measured = run(&[&wakeup[..], &[measured.to_str().unwrap()]].concat()).code == Some(0);
    let said = tables(fleet.path());
    assert_eq!(said.code, Some(0), "{said:?}");
    let queries = queries();
    assert!(queries.len() >= 10, "{:?}", queries.keys());
    let mut child = Command::new(python)
        .args(["-c", ASK, fleet.path().to_str().unwrap()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&serde_json::to_vec(&queries).unwrap()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: Value = serde_json::from_slice(&output.stdout).unwrap();
    let answer = |begin: &str| {
        let name = queries.keys().find(|q| q.starts_with(begin)).unwrap_or_else(|| panic!("no query: {begin}"));
        answers[name].as_array().unwrap()
    };
    for name in queries.keys() {
        let has_rows = !answers[name].as_array().unwrap().is_empty();
        assert!(has_rows || (name.starts_with("What is the 99th") && !is_measured), "{name}: no row");
    }
    let facts = inspected(fleet.path());

    let mut kernels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (host, facts) in &facts {
        if let Some(kernel) = facts["kernel"]["release"]["value"].as_str() {
            kernels.entry(kernel).or_default().insert(host);
        }
    }
    for row in answer("Which kernels") {
        let Some(expected) = kernels.remove(row[0].as_str().unwrap()) else { continue };
        // The machine that measured is a host, too.
        let named: BTreeSet<&str> = row[2].as_str().unwrap().split(", ").filter(|h| *h != "here").collect();
        assert_eq!(named, expected, "{row}");
    }
    assert!(kernels.is_empty(), "not in the answer: {kernels:?}");

    let allowed = |facts: &Value| {
        states(facts, "is_disabled")
            .iter()
            .any(|(name, g)| name.starts_with("C6") && g.iter().any(|(_, v)| **v == json!(false)))
    };
    let expected: BTreeSet<&str> = facts.iter().filter(|(_, f)| allowed(f)).map(|(h, _)| h.as_str()).collect();
    let found: BTreeSet<&str> = answer("Which hosts may go into C6").iter().map(|r| r[0].as_str().unwrap()).collect();
    let found: BTreeSet<&str> = found.into_iter().filter(|h| *h != "here").collect();
    assert!(expected.len() >= 5 && found == expected, "{found:?} {expected:?}");

    let mut off: BTreeSet<(String, String, String)> = BTreeSet::new();
    for (host, facts) in &facts {
        for (state, groups) in states(facts, "is_disabled") {
            off.extend(
                groups
                    .iter()
                    .filter(|(_, v)| **v == json!(true))
                    .map(|(cpus, _)| (host.clone(), state.clone(), (*cpus).to_string())),
            );
        }
    }
    let text = |row: &Value, at: usize| row[at].as_str().unwrap_or_default().to_string();
    let found: BTreeSet<_> =
        answer("Which idle states are off").iter().map(|r| (text(r, 0), text(r, 1), text(r, 2))).collect();
    let found: BTreeSet<_> = found.into_iter().filter(|(host, ..)| host != "here").collect();
    assert_eq!(found, off);

    for row in answer("What does leaving the deepest") {
        let Some(facts) = facts.get(row[0].as_str().unwrap()) else { continue };
        let groups = states(facts, "exit_latency_ns");
        let most = groups.iter().flat_map(|(_, g)| g.iter().filter_map(|(_, v)| v.as_f64())).fold(0.0, f64::max);
        assert_eq!(row[2].as_f64(), Some(most / 1000.0), "{row}");
    }

    // sklep2 is the one that was changed.
    assert!(off.iter().any(|(host, state, _)| host == "sklep2" && state == "C6"), "{off:?}");
    // On this machine another test may hold one.
    let limits: Vec<&Value> = answer("Who holds").iter().filter(|row| row[0] != "here").collect();
    assert_eq!(limits, [&json!(["sklep2", "qos.per_cpu", "0-103", "50us"])]);
    let drifted: Vec<&Value> = answer("Which hosts have drifted").iter().collect();
    assert!(drifted.iter().any(|r| **r == json!(["sklep2", "performance", "powersave"])), "{drifted:?}");
    assert!(drifted.iter().all(|r| r[0] != "sklep0" && r[0] != "sklep1"), "{drifted:?}");

    let info = run(&["trace", "info", "--json", fleet.path().join("arm64-psci-6.1.wtrace").to_str().unwrap()]);
    let info: Value = serde_json::from_str(&info.out).unwrap();
    let seen: BTreeSet<&str> = answer("Where do CPUs spend")
        .iter()
        .filter(|r| r[0] == "arm64-psci-6.1")
        .map(|r| r[1].as_str().unwrap())
        .collect();
    let states = info.pointer("/summary/states").or(info.get("states")).unwrap().as_array().unwrap();
    let expected: BTreeSet<&str> = states.iter().map(|s| s["state"].as_str().unwrap()).collect();
    assert_eq!(seen, expected);
    for row in answer("Where do CPUs spend") {
        assert!((0.0..=100.0).contains(&row[2].as_f64().unwrap()), "{row}");
    }
}

#[test]
fn a_folder_of_nothing_is_refused_and_a_broken_file_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let said = tables(dir.path());
    assert!(said.code == Some(4) && said.err.contains("holds no .host"), "{said:?}");
    fs::copy(fixtures().join("hosts/sklep0.host"), dir.path().join("a.host")).unwrap();
    fs::write(dir.path().join("b.host"), "no such thing").unwrap();
    fs::write(dir.path().join("c.wtrace"), "nor this").unwrap();
    let said = tables(dir.path());
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.err.contains("b.host") && said.err.contains("c.wtrace"), "{said:?}");
    assert!(dir.path().join("facts.parquet").metadata().unwrap().len() > 1000);
}

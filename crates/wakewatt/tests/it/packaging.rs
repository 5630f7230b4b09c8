//! What is shipped beside the program: dashboards and alerts name metrics that there are, their queries are ones, the alerts speak when they should, and the service
//! is as closed as it says.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use wakewatt_testing::{Lacks, skipped};

pub(crate) const DASHBOARDS: [&str; 2] = ["grafana/node.json", "grafana/fleet.json"];
const RULES: &str = "prometheus/wakewatt.rules.yml";

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn shipped(name: &str) -> String {
    fs::read_to_string(top().join("packaging").join(name)).unwrap()
}

/// A judge's answer; none where there is no such judge.
fn judged(test: &str, program: &'static str, args: &[&str], folder: &Path) -> Option<Output> {
    match Command::new(program).args(args).current_dir(folder).output() {
        Ok(output) => Some(output),
        Err(_) => {
            skipped(test, Lacks::Program(program), "nobody to judge");
            None
        }
    }
}

/// Everything said, in an assertion.
fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The panels of a dashboard.
fn panels(dashboard: &Value) -> Vec<&Value> {
    dashboard["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row").collect()
}

/// Every query of a dashboard, with its variables as Grafana would fill them in.
pub(crate) fn queries(dashboard: &Value, job: &str, instance: &str) -> Vec<String> {
    let of = |panel: &Value| {
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        targets.into_iter().map(|target| target["expr"].as_str().unwrap().to_string())
    };
    let notes = dashboard["annotations"]["list"].as_array().unwrap().iter();
    let notes = notes.map(|note| note["expr"].as_str().unwrap().to_string());
    let filled = |query: String| {
        let named = query.replace("$job", job).replace("$instance", instance);
        named.replace("$__rate_interval", "5m").replace("$__range", "6h")
    };
    panels(dashboard).into_iter().flat_map(of).chain(notes).map(filled).collect()
}

/// Words that begin as our metrics do; a part of a histogram is the histogram.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    let ours = words.filter(|word| word.starts_with("wakewatt_"));
    ours.map(|word| ["_bucket", "_sum", "_count"].iter().find_map(|end| word.strip_suffix(end)).unwrap_or(word).into())
        .collect()
}

#[test]
fn every_metric_that_is_asked_for_is_one_of_the_agents() {
    let reference = fs::read_to_string(top().join("docs/ref/metrics.md")).unwrap();
    let known: BTreeSet<&str> =
        reference.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    assert!(known.len() > 20, "the reference was not found");
    for (file, at_least) in [(DASHBOARDS[0], 20), (DASHBOARDS[1], 8), (RULES, 8)] {
        let asked = metrics_in(&shipped(file));
        assert!(asked.len() >= at_least, "{file}: the search finds only {asked:?}");
        let strangers: Vec<&String> = asked.iter().filter(|name| !known.contains(name.as_str())).collect();
        assert!(strangers.is_empty(), "{file}: not in docs/ref/metrics.md: {strangers:?}");
    }
}

#[test]
fn dashboards_are_whole_and_their_queries_are_queries() {
    let mut groups = Vec::new();
    for file in DASHBOARDS {
        let dashboard: Value = serde_json::from_str(&shipped(file)).unwrap();
        assert!(dashboard["schemaVersion"].as_u64().is_some() && dashboard["uid"].as_str().is_some(), "{file}");
        let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
        for panel in dashboard["panels"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap();
            assert!(ids.insert(panel["id"].as_u64()), "{file}: {title}: its id is taken");
            let at = |name: &str| panel["gridPos"][name].as_u64().unwrap();
            for (x, y) in (at("x")..at("x") + at("w")).flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y))) {
                assert!(x < 24 && cells.insert((x, y)), "{file}: {title} lies over another panel");
            }
        }
        for panel in panels(&dashboard) {
            let title = panel["title"].as_str().unwrap();
            assert!(panel["description"].as_str().is_some_and(|text| text.len() > 5), "{file}: {title} says nothing");
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{file}: {title}");
        }
        let rules = queries(&dashboard, "j", "i").into_iter().enumerate();
        let rules: Vec<Value> =
            rules.map(|(i, query)| json!({ "record": format!("query_{i}"), "expr": query })).collect();
        assert!(rules.len() > 10, "{file}");
        groups.push(json!({ "name": file, "rules": rules }));
    }
    // JSON is YAML.
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("queries.yml"), json!({ "groups": groups }).to_string()).unwrap();
    let args = ["check", "rules", "queries.yml"];
    if let Some(output) = judged("packaging::queries", "promtool", &args, dir.path()) {
        assert!(output.status.success(), "{}", said(&output));
    }
}

#[test]
fn alerts_speak_when_they_should() {
    let folder = top().join("packaging/prometheus");
    for args in [["check", "rules", "wakewatt.rules.yml"], ["test", "rules", "wakewatt.rules.test.yml"]] {
        let Some(output) = judged("packaging::alerts", "promtool", &args, &folder) else { return };
        assert!(output.status.success(), "{args:?}: {}", said(&output));
    }
    // None is shipped that no test makes speak.
    let tests = shipped("prometheus/wakewatt.rules.test.yml");
    let rules = shipped(RULES);
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() >= 6, "{alerts:?}");
    for alert in alerts {
        assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert}: no test makes it speak");
    }
}

/// Whoever opens a shipped file first reads what it is for, how it is used, and what it leaves out.
#[test]
fn every_shipped_file_opens_with_an_essay() {
    let (mut wrong, mut folders, mut n_seen) = (Vec::new(), vec![top().join("packaging")], 0);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path()) {
            // Charts and collections have a form of their own, which begins with a page for people.
            let page = path.join("README.md");
            if page.is_file() {
                let n_words = fs::read_to_string(&page).unwrap().split_whitespace().count();
                if n_words < 60 {
                    wrong.push(format!("{}: {n_words} words", page.display()));
                }
                continue;
            }
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            n_seen += 1;
            let text = fs::read_to_string(&path).unwrap();
            // This format has no comments, but a place for what a person should know.
            let is_json = path.extension().is_some_and(|end| end == "json");
            let essay = if is_json {
                let document: Value = serde_json::from_str(&text).unwrap();
                document["description"].as_str().unwrap_or_default().to_string()
            } else {
                let lines = text.lines().skip_while(|line| line.starts_with("#!"));
                let lines: Vec<&str> = lines.map_while(|line| line.strip_prefix('#')).map(str::trim).collect();
                // A first sentence, a line of its own, and more after it.
                let is_parted = lines.get(1).is_some_and(|line| line.is_empty()) && lines.len() > 2;
                if is_parted { lines.join(" ") } else { String::new() }
            };
            let n_words = essay.split_whitespace().count();
            if n_words < if is_json { 10 } else { 20 } {
                wrong.push(format!("{}: {n_words} words", path.display()));
            }
        }
    }
    assert!(n_seen >= 6, "the shipped files were not found");
    assert!(wrong.is_empty(), "say first what it is for:\n{}", wrong.join("\n"));
}

#[test]
fn the_service_is_as_closed_as_it_says() {
    let unit = top().join("packaging/wakewatt-agent.service");
    let args = ["security", "--offline=true", unit.to_str().unwrap()];
    let Some(output) = judged("packaging::service", "systemd-analyze", &args, &top()) else { return };
    let text = said(&output);
    let figure = text.lines().find_map(|line| line.split("Overall exposure level for").nth(1));
    let figure: Option<f64> = figure.and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
    let figure = figure.unwrap_or_else(|| panic!("no figure: {text}"));
    assert!(figure <= 2.0, "exposure {figure} of 10: {text}");
}

/// systemd gives the whole folder that it is told of to the service's own user. Journals of settings, which root believes, lie in the folder above.
#[test]
fn the_service_gets_its_history_and_no_journal() {
    let unit = shipped("wakewatt-agent.service");
    let folders: Vec<&str> = unit.lines().filter_map(|line| line.strip_prefix("StateDirectory=")).collect();
    assert_eq!(folders, ["wakewatt/history"]);
    assert!(unit.contains(" --history ${STATE_DIRECTORY}\n"), "it writes elsewhere than into its own folder");
}

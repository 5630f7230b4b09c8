//! Golden formats: what every command writes for programs, on inputs that do not change.
//!
//! The text that people read of hosts is in `matrix.rs`. Here is what programs read, key by key and cell by cell: JSON documents,
//! CSV tables, Parquet (schema and rows) and the page for Prometheus, of recorded hosts, recorded traces and made-up runs
//! that hold every kind of sample. A change of a record is seen as a change of these files and reviewed like code;
//! `WAKEWATT_BLESS=1 cargo test -p wakewatt --test it formats` accepts it.

use crate::matrix::compare;
use crate::runs::{made_up, text};
use crate::tool::{fixtures, host, run};
use std::path::{Path, PathBuf};

/// Small ones of different makers: their documents are kept whole.
const HOSTS: &[&str] = &["vm-haltpoll-2cpu", "dnv0", "arm64-psci-6.1"];

/// Of each host: the file's name, and the command before `--host`.
const OF_HOST: &[(&str, &str)] = &[
    ("inspect.json", "inspect --json"),
    ("doctor.json", "doctor --json --read-only --no-report"),
    ("explain.json", "explain --json C1"),
    ("plan.json", "tune plan latency --json"),
    ("knobs.json", "tune knobs --json"),
    ("watch.json", "watch --once --json"),
    ("watch.csv", "watch --once --csv"),
    ("agent.prom", "agent --once"),
];

/// `HOST` and `OTHER` are recorded hosts, `TRACE` a recorded trace.
const ALONE: &[(&str, &str)] = &[
    ("compare-hosts.json", "compare --json HOST OTHER"),
    ("trace-info.json", "trace info --json TRACE"),
    ("replay.json", "replay TRACE --recorded hz=250 --json"),
    ("replay-sweep.json", "replay TRACE --recorded hz=250 --sweep --json"),
    ("simulate.json", "simulate plain --duration 300ms --replications 2 --json"),
    ("simulate.csv", "simulate plain --duration 300ms --replications 2 --csv"),
    (
        "simulate-sweep.csv",
        "simulate plain --duration 300ms --replications 2 --csv --sweep machine.idle.max_latency=0us,2us",
    ),
];

/// When they say they were made (`runs::made_up`).
const MADE_AT: &str = "2026-11-21T09:00:00Z";

/// Made-up runs that between them hold every kind of sample.
const RUNS: &[&str] = &["everything", "repeated-load", "governor"];

fn golden(name: &str) -> PathBuf {
    fixtures().join("golden/formats").join(name)
}

/// JSON a line a key, so that a difference is a line; what a run file says of its host is told by `inspect.json`.
fn pretty(json: &str) -> String {
    let mut document: serde_json::Value = serde_json::from_str(json).unwrap();
    for part in ["host", "facts"] {
        if let Some(value) = document.get_mut(part) {
            *value = "(left out here)".into();
        }
    }
    shorten(&mut document);
    serde_json::to_string_pretty(&document).unwrap() + "\n"
}

/// So many rows of one kind show what they are.
const MOST_ROWS: usize = 6;

/// Long arrays by their first items and their length.
fn shorten(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Array(items) => {
            let n_more = items.len().saturating_sub(MOST_ROWS);
            if n_more > 1 {
                items.truncate(MOST_ROWS);
                items.push(format!("{n_more} more").into());
            }
            items.iter_mut().for_each(shorten);
        }
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                // How long reading took, and when.
                if ["reading_ns", "wall_at_ns"].contains(&name.as_str()) {
                    *value = "NOW".into();
                }
                shorten(value);
            }
        }
        _ => {}
    }
}

/// A table's head and first rows, and how many more there are.
fn first_rows(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let kept: String = lines.iter().take(MOST_ROWS + 1).map(|line| format!("{line}\n")).collect();
    match lines.len().saturating_sub(MOST_ROWS + 1) {
        0 => kept,
        n_more => format!("{kept}({n_more} more)\n"),
    }
}

fn shown(name: &str, out: &str) -> String {
    if name.ends_with(".json") { pretty(out) } else { out.lines().map(|line| timeless(line) + "\n").collect() }
}

/// A line without the moment at which it was written.
fn timeless(line: &str) -> String {
    // The agent's own time and memory.
    if let Some((name, _)) = line.rsplit_once(' ').filter(|_| line.starts_with("wakewatt_agent_")) {
        return format!("{name} NOW");
    }
    let now_s = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let is_moment = |word: &str| {
        let is_epoch = word.parse::<f64>().is_ok_and(|s| (s - now_s).abs() < 3600.0);
        let is_rfc_3339 = word.len() == 20 && word.ends_with('Z') && word.as_bytes()[10] == b'T';
        is_epoch || (is_rfc_3339 && word != MADE_AT)
    };
    let parts = line.split_inclusive([',', ' ']).map(|part| {
        let word = part.trim_end_matches([',', ' ']);
        if is_moment(word) { part.replace(word, "NOW") } else { part.to_string() }
    });
    parts.collect()
}

fn accept(wrong: &[String]) {
    assert!(
        wrong.is_empty(),
        "{}\nTo accept: WAKEWATT_BLESS=1 cargo test -p wakewatt --test it formats",
        wrong.join("\n")
    );
}

/// A command's standard output, which must not depend on this machine.
fn out(words: &[&str]) -> String {
    let said = run(words);
    assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
    assert!(!said.out.contains(fixtures().to_str().unwrap()), "{words:?} names this checkout");
    said.out
}

#[test]
fn documents_of_hosts() {
    let mut wrong = Vec::new();
    for name in HOSTS {
        let file = host(name);
        for (kind, command) in OF_HOST {
            let words: Vec<&str> = command.split(' ').chain(["--host", text(&file)]).collect();
            wrong.extend(compare(&golden(&format!("{name}/{kind}")), &shown(kind, &out(&words))));
        }
    }
    accept(&wrong);
}

#[test]
fn documents_of_recordings_and_models() {
    let (one, other) = (host("emr9"), host("genoa0"));
    let trace = fixtures().join("traces/vm-haltpoll-6.18.wtrace");
    let mut wrong = Vec::new();
    for (name, command) in ALONE {
        let place = |word| match word {
            "HOST" => text(&one),
            "OTHER" => text(&other),
            "TRACE" => text(&trace),
            word => word,
        };
        let words: Vec<&str> = command.split(' ').map(place).collect();
        wrong.extend(compare(&golden(name), &shown(name, &out(&words))));
    }
    accept(&wrong);
}

#[test]
fn every_form_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mut wrong = Vec::new();
    for name in RUNS {
        let file = at(&format!("{name}.run"));
        let document = made_up(name, &file);
        wrong.extend(compare(&golden(&format!("{name}/run.json")), &pretty(&document)));
        wrong.extend(compare(
            &golden(&format!("{name}/report.json")),
            &pretty(&out(&["report", "--json", text(&file)])),
        ));
        let (tables, rows) = (at(&format!("{name}.csv")), at(&format!("{name}.parquet")));
        out(&["report", text(&file), "--csv", text(&tables)]);
        wrong.extend(compare(&golden(&format!("{name}/tables.txt")), &folder(&tables)));
        out(&["report", text(&file), "--parquet", text(&rows)]);
        wrong.extend(compare(&golden(&format!("{name}/parquet.txt")), &parquet(&rows)));
        let said = out(&["report", "--markdown", text(&file)]);
        wrong.extend(compare(&golden(&format!("{name}/report.md")), &shown("report.md", &said)));
    }
    let both = [at("everything.run"), at("repeated-load.run")];
    let compared = out(&["compare", "--json", text(&both[0]), text(&both[1])]);
    wrong.extend(compare(&golden("compare-runs.json"), &pretty(&compared)));
    accept(&wrong);
}

/// Every table of a folder, one behind the other.
fn folder(folder: &Path) -> String {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let one = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        format!("== {name}\n{}", first_rows(&std::fs::read_to_string(path).unwrap()))
    };
    files.iter().map(one).collect()
}

/// The schema of a Parquet file, and its rows.
fn parquet(file: &Path) -> String {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let reader = SerializedFileReader::new(std::fs::File::open(file).unwrap()).unwrap();
    let mut said = Vec::new();
    parquet::schema::printer::print_schema(&mut said, reader.metadata().file_metadata().schema());
    // Some sixty rows from all over the table, and how many there are.
    let rows: Vec<String> = reader.get_row_iter(None).unwrap().map(|row| format!("{}\n", row.unwrap())).collect();
    let n_rows = rows.len();
    let step = n_rows.div_ceil(60).max(1);
    String::from_utf8(said).unwrap()
        + &rows.into_iter().step_by(step).collect::<String>()
        + &format!("({n_rows} rows)\n")
}

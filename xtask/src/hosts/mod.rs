//! `cargo xtask hosts DIR`: every reading command on every recorded host, every value against the raw text, and what is found.
//!
//! The binary runs as a subprocess in an empty environment with a time limit. What it says about idle states,
//! frequency, topology, NUMA and latency limits is compared with the raw files by a second reader (`raw`, `expect`,
//! `tables`, `check`) that shares no code with it. A captured host must say the same as the tree it was made from.

mod check;
mod expect;
pub(crate) mod find;
mod findings;
mod content;
mod host_text;
mod raw;
mod tables;

use crate::binary;
use anyhow::{Context, Result};
use check::Tally;
use find::Host;
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `hosts`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Recorded hosts: folders that hold sys/, .tar.xz of them, or .host files
    dir: PathBuf,
    /// The binary to test; built when not given
    #[arg(long)]
    bin: Option<PathBuf>,
    /// Seconds one command may take
    #[arg(long, default_value_t = 60)]
    limit: u64,
    /// Mismatches shown per host
    #[arg(long, default_value_t = 8)]
    show: usize,
}

/// The reading commands, besides the ones with checks of their own. FROM is where the host goes, OTHER another host,
/// NAMED this one by its bare path, OUT a file to write. A new reading command is one line here.
const COMMANDS: &[&[&str]] = &[
    &["inspect", "FROM"],
    &["inspect", "--gaps", "--color", "always", "FROM"],
    &["compare", "NAMED", "OTHER"],
    &["compare", "NAMED", "OTHER", "--all"],
    &["compare", "NAMED", "OTHER", "--json"],
    &["compare", "NAMED", "NAMED"],
    &["doctor", "--read-only", "--output", "OUT", "FROM"],
    &["doctor", "--read-only", "--no-report", "--json", "FROM"],
    &["doctor", "--read-only", "--no-report", "--markdown", "FROM"],
];

#[derive(Default)]
struct Row {
    n_cpus: usize,
    n_commands: u64,
    n_checked: u64,
    n_gaps: u64,
    mismatches: Vec<String>,
    panics: Vec<String>,
    inspect_ms: f64,
    total_ms: f64,
    notes: Vec<String>,
    findings: String,
}

struct Bench<'a> {
    binary: &'a Path,
    limit: Duration,
    scratch: &'a Path,
    other: &'a Host,
}

pub(crate) fn run(args: &Args) -> Result<bool> {
    let binary = match &args.bin {
        Some(binary) => binary.clone(),
        None => binary::build(binary::Profile::Dev)?,
    };
    let scratch = tempfile::tempdir()?;
    let hosts = find::hosts(&args.dir, scratch.path())?;
    let width = hosts.iter().map(|h| h.name.len()).max().unwrap_or(4).max(5);
    println!(
        "{:width$} {:>5} {:>9} {:>9} {:>11} {:>6} {:>7} {:>11} {:>9}",
        "host", "CPUs", "commands", "values", "mismatches", "gaps", "panics", "inspect ms", "all ms"
    );
    let mut total = Row::default();
    let mut notes = std::collections::BTreeSet::new();
    for (at, host) in hosts.iter().enumerate() {
        let other = &hosts[(at + 1) % hosts.len()];
        let bench = Bench { binary: &binary, limit: Duration::from_secs(args.limit), scratch: scratch.path(), other };
        let row = bench.host(host).with_context(|| host.name.clone())?;
        print_row(&host.name, width, &row);
        println!("    finds {}", row.findings);
        for problem in row.panics.iter().chain(row.mismatches.iter().take(args.show)) {
            println!("    {problem}");
        }
        if row.mismatches.len() > args.show {
            println!("    … and {} more mismatches", row.mismatches.len() - args.show);
        }
        total.n_cpus += row.n_cpus;
        total.n_commands += row.n_commands;
        total.n_checked += row.n_checked;
        total.n_gaps += row.n_gaps;
        total.inspect_ms += row.inspect_ms;
        total.total_ms += row.total_ms;
        total.mismatches.extend(row.mismatches);
        total.panics.extend(row.panics);
        notes.extend(row.notes);
    }
    print_row(&format!("{} hosts", hosts.len()), width, &total);
    notes.iter().for_each(|note| println!("note: {note}"));
    Ok(total.mismatches.is_empty() && total.panics.is_empty())
}

fn print_row(name: &str, width: usize, row: &Row) {
    println!(
        "{name:width$} {:>5} {:>9} {:>9} {:>11} {:>6} {:>7} {:>11.1} {:>9.0}",
        row.n_cpus,
        row.n_commands,
        row.n_checked,
        row.mismatches.len(),
        row.n_gaps,
        row.panics.len(),
        row.inspect_ms,
        row.total_ms
    );
}

/// Facts the document gives as gaps: absent, denied, malformed or not recorded, each with its path and reason.
fn n_gaps(json: &Value) -> u64 {
    match json {
        Value::Object(map) => map.iter().map(|(key, value)| u64::from(key == "gap") + n_gaps(value)).sum(),
        Value::Array(items) => items.iter().map(n_gaps).sum(),
        _ => 0,
    }
}

impl Bench<'_> {
    fn host(&self, host: &Host) -> Result<Row> {
        let mut row = Row::default();
        let raw = raw::Raw::open(&host.path)?;
        row.n_cpus = raw.numbered("/sys/devices/system/cpu", "cpu").len();
        let from = from(&host.path);
        let direct = self.json(&mut row, &["inspect".into(), "--json".into()], &from)?;
        row.inspect_ms = row.total_ms;
        if let Some(direct) = &direct {
            self.values(&mut row, &raw, direct, "");
            if row.n_cpus == 0 {
                // A host without cpuN folders: what the tool says is all there is to show.
                row.n_cpus =
                    direct["cpus"]["present"]["value"].as_str().and_then(expect::cpu_list).map_or(0, |s| s.len());
            }
            row.n_gaps = n_gaps(direct);
            for topic in direct["topics"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                self.exec(&mut row, &["inspect".into(), topic.into()], &from)?;
                let alone = self.json(&mut row, &["inspect".into(), topic.into(), "--json".into()], &from)?;
                if alone.is_some_and(|a| a[topic] != direct[topic]) {
                    row.mismatches
                        .push(format!("inspect {topic} --json differs from the same topic of inspect --json"));
                }
            }
        }
        self.capture(&mut row, host, &raw, direct.as_ref())?;
        for template in COMMANDS {
            let out = self.scratch.join("report.html");
            let mut words: Vec<OsString> = Vec::new();
            for word in *template {
                match *word {
                    "FROM" => words.extend(from.iter().cloned()),
                    "NAMED" => words.push(host.path.clone().into()),
                    "OTHER" => words.push(self.other.path.clone().into()),
                    "OUT" => words.push(out.clone().into()),
                    plain => words.push(plain.into()),
                }
            }
            if template.contains(&"--json") {
                let json = self.json(&mut row, &words, &[])?;
                if template[0] == "doctor" {
                    row.findings = json.map_or_else(|| "nothing readable".into(), |json| findings::line(&json));
                }
            } else {
                self.exec(&mut row, &words, &[])?;
            }
        }
        Ok(row)
    }

    /// Checks a document's values.
    fn values(&self, row: &mut Row, raw: &raw::Raw, json: &Value, what: &str) {
        let Tally { n_checked, mismatches, missing_topics, .. } = check::check(raw, json);
        row.n_checked += n_checked;
        row.mismatches.extend(mismatches.into_iter().map(|m| format!("{what}{m}")));
        row.notes.extend(
            missing_topics.iter().map(|t| format!("this wakewatt has no topic {t}; its values were not checked")),
        );
    }

    /// Captures the host, and asks the capture the same questions.
    fn capture(&self, row: &mut Row, host: &Host, raw: &raw::Raw, direct: Option<&Value>) -> Result<()> {
        let from = from(&host.path);
        let file = |kind: &str| self.scratch.join(format!("{}.{kind}.host", host.name));
        for (kind, extra) in [("masked", None), ("unmasked", Some("--unmasked"))] {
            let path = file(kind);
            let mut words: Vec<OsString> = vec!["capture".into(), "--output".into(), path.clone().into()];
            words.extend(extra.map(OsString::from));
            if self.exec(row, &words, &from)?.is_none() {
                continue;
            }
            let host_arg: [OsString; 2] = ["--host".into(), path.clone().into()];
            let Some(again) = self.json(row, &["inspect".into(), "--json".into()], &host_arg)? else { continue };
            self.values(row, raw, &again, &format!("{kind} capture: "));
            // Masking changes text on purpose; the unmasked capture must say word for word the same.
            if let (Some(direct), Some(_)) = (direct, extra) {
                let mut differences = Vec::new();
                difference(direct, &again, "", &mut differences);
                differences.retain(|d| !d.starts_with("/origin"));
                row.n_checked += 1;
                row.mismatches.extend(differences.into_iter().map(|d| format!("capture and inspect differ: {d}")));
            }
            // A capture of a capture is the same file.
            let twice = file("twice");
            let mut words: Vec<OsString> = vec!["capture".into(), "--output".into(), twice.clone().into()];
            words.extend(extra.map(OsString::from));
            if self.exec(row, &words, &host_arg)?.is_some() && std::fs::read(&path)? != std::fs::read(&twice)? {
                row.mismatches.push(format!("the capture of the {kind} capture is another file"));
            }
        }
        for kind in ["masked", "unmasked", "twice"] {
            let _ = std::fs::remove_file(file(kind));
        }
        Ok(())
    }

    /// Runs a command that must exit with 0; none if it did not, which is noted as a mismatch or a panic.
    fn exec(&self, row: &mut Row, words: &[OsString], more: &[OsString]) -> Result<Option<Vec<u8>>> {
        let all: Vec<&OsStr> = words.iter().chain(more).map(OsString::as_os_str).collect();
        let outcome = binary::run(self.binary, &all, self.limit)?;
        row.n_commands += 1;
        row.total_ms += outcome.took.as_secs_f64() * 1e3;
        let line = || all.iter().map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ");
        if let Some(crash) = outcome.crash {
            row.panics.push(format!("{}: {crash}", line()));
            return Ok(None);
        }
        if outcome.code != Some(0) {
            let why = outcome.stderr.lines().last().unwrap_or_default();
            row.mismatches.push(format!("{}: exit code {}: {why}", line(), outcome.code.unwrap_or(-1)));
            return Ok(None);
        }
        Ok(Some(outcome.stdout))
    }

    fn json(&self, row: &mut Row, words: &[OsString], more: &[OsString]) -> Result<Option<Value>> {
        let Some(stdout) = self.exec(row, words, more)? else { return Ok(None) };
        match serde_json::from_slice(&stdout) {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                row.mismatches.push(format!("{}: not JSON: {error}", words[0].to_string_lossy()));
                Ok(None)
            }
        }
    }
}

fn from(path: &Path) -> [OsString; 2] {
    [if path.is_dir() { "--sysroot".into() } else { "--host".into() }, path.into()]
}

/// Where two documents differ, as JSON pointers.
fn difference(a: &Value, b: &Value, at: &str, out: &mut Vec<String>) {
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            for key in x.keys().chain(y.keys().filter(|k| !x.contains_key(*k))) {
                difference(
                    a.get(key).unwrap_or(&Value::Null),
                    b.get(key).unwrap_or(&Value::Null),
                    &format!("{at}/{key}"),
                    out,
                );
            }
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            for (i, (p, q)) in x.iter().zip(y).enumerate() {
                difference(p, q, &format!("{at}/{i}"), out);
            }
        }
        _ if a != b => {
            let show = |v: &Value| v.to_string().chars().take(90).collect::<String>();
            out.push(format!("{at}: {} became {}", show(a), show(b)));
        }
        _ => {}
    }
}

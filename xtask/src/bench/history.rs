//! A week of an agent's history: its size on the disk at one reading every 10 s of 128 CPUs, and how long the whole of it takes to be asked.
//!
//! The node is made up (`wakewatt_agent::history::week`): counters drawn per CPU, summed and kept as an agent keeps them, wake-ups traced, so the sizes are of
//! such noise. Asked is the real binary: a range, a rate and a percentile over the whole week, each the median of some rounds, from the page cache.

use super::{Measured, Row, median};
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use wakewatt_agent::history::week::{INTERVAL_MS, N_READINGS, Week};
use wakewatt_agent::history::{Limits, Ring, segments};

const N_CPUS: u32 = 128;
const ROUNDS: usize = 5;
const START_MS: u64 = 1_760_000_000_000;
/// As the agent has it where nothing else is asked for.
const LIMIT_BYTES: u64 = 64 << 20;
const GOAL_MS: f64 = 1000.0;

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let mut all = Measured { rows: Vec::new(), csv: "what,round,value,unit\n".into() };
    let folder = tempfile::tempdir()?;
    let week = folder.path();
    let n_series = fill(week)?;
    let bytes = size(week)?;
    let _ = writeln!(all.csv, "a week,0,{bytes},bytes");
    let n_kept = asked(binary, week, RANGE, 0, &mut all)?.1;
    all.rows.push(Row {
        what: "history: a week at 10 s of 128 CPUs, traced",
        ours: format!(
            "{:.1} MB for {n_kept} of {N_READINGS} intervals, {:.0} bytes each, {n_series} series, a histogram counted as one",
            bytes as f64 / 1e6,
            bytes as f64 / n_kept as f64
        ),
        peer: "-".into(),
        goal: "all of it within 64 MiB",
        is_met: Some(bytes <= LIMIT_BYTES && n_kept == N_READINGS),
    });
    for (what, query) in [
        ("history: a range over the week (limit, hourly)", RANGE),
        ("history: a rate over the week (C6 time, hourly)", RATE),
        ("history: a percentile over the week (wake-ups, hourly)", PERCENTILE),
    ] {
        let mut times = Vec::new();
        for round in 0..ROUNDS {
            times.push(asked(binary, week, query, round, &mut all)?.0);
        }
        let ms = median(&times);
        all.rows.push(Row {
            what,
            ours: format!("{ms:.0} ms"),
            peer: "-".into(),
            goal: "below a second",
            is_met: Some(ms < GOAL_MS),
        });
    }
    Ok(all)
}

/// Arguments behind `agent query`.
type Asked = [&'static str];
const RANGE: &Asked = &["wakewatt_latency_limit_seconds", "--step=1h"];
const RATE: &Asked = &["wakewatt_cpuidle_time_seconds_total", "--label=state=C6", "--rate", "--step=1h"];
const PERCENTILE: &Asked = &["wakewatt_wakeup_latency_seconds", "--percentile=99", "--step=1h"];

/// Keeps a week; how many series there are.
fn fill(folder: &Path) -> Result<usize> {
    let mut ring = Ring::open(folder, Limits { most_bytes: LIMIT_BYTES, free_share: 0.0 })?;
    let mut week = Week::of(N_CPUS);
    let mut n_series = 0;
    for n in 0..N_READINGS {
        let page = week.next_page();
        n_series = page.n_series();
        ring.push(START_MS + n * INTERVAL_MS, &page)?;
    }
    ring.finish()?;
    Ok(n_series)
}

fn size(folder: &Path) -> Result<u64> {
    segments(folder).iter().map(|path| Ok(std::fs::metadata(path)?.len())).sum()
}

/// How long the whole question took in milliseconds, and how many moments were read.
fn asked(binary: &Path, folder: &Path, query: &Asked, round: usize, all: &mut Measured) -> Result<(f64, u64)> {
    let until = humantime::format_rfc3339_seconds(
        std::time::UNIX_EPOCH + std::time::Duration::from_millis(START_MS + N_READINGS * INTERVAL_MS),
    );
    let begun = Instant::now();
    let out = Command::new(binary)
        .args(["agent", "query"])
        .args(query)
        .args(["--last", "168h", "--until", &until.to_string(), "--json", "--history"])
        .arg(folder)
        .output()?;
    let ms = begun.elapsed().as_secs_f64() * 1e3;
    ensure!(out.status.success(), "agent query: {}", String::from_utf8_lossy(&out.stderr));
    let document: serde_json::Value = serde_json::from_slice(&out.stdout)?;
    ensure!(document["series"].as_array().is_some_and(|series| !series.is_empty()), "{query:?}: no series");
    let n = document["n_moments"].as_u64().context("no count of moments")?;
    let _ = writeln!(all.csv, "\"{}\",{round},{ms:.1},ms", query.join(" "));
    Ok((ms, n))
}

//! What asking who pays costs beside a plain trace: CPU time of the programs in the kernel for each wake-up, with nothing more, with `--by` and with `--stacks`.
//!
//! The load is threads that sleep 20 us, so that nearly all wake-ups come out of idle, where the payer is charged; `perf bench sched pipe`, which the plain
//! trace is measured with, never goes idle. Time is the kernel's own account of our programs (BPF_ENABLE_STATS), its counting
//! included, by all wake-ups that were classed. All ways are tried in each round, in random order; shown is the median, and the ratio to plain within a round.

use super::agent::with_program_times;
use super::record::Load;
use super::{Measured, Row, median};
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use wakewatt_core::stats::random::Random;

const ROUNDS: usize = 9;
const SEED: u64 = 20_261_123;
const WAYS: [(&str, &[&str]); 5] = [
    ("plain", &[]),
    ("plain again", &[]),
    ("--by cgroup", &["--by", "cgroup"]),
    ("--by container", &["--by", "container"]),
    ("--stacks", &["--stacks"]),
];

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let what = "trace: programs' time for a wake-up, plain and by payer";
    if !rustix::process::geteuid().is_root() {
        let row =
            Row { what, ours: "-".into(), peer: "tracing needs root".into(), goal: "a figure to show", is_met: None };
        return Ok(Measured { rows: vec![row], csv: String::new() });
    }
    let found = with_program_times(|| rounds(binary))?;
    let mut csv = String::from("round,way,ns_per_wakeup,wakeups,share_from_idle\n");
    let mut times = vec![Vec::new(); WAYS.len()];
    for (round, way, one) in &found {
        let _ = writeln!(csv, "{round},{},{:.1},{},{:.3}", WAYS[*way].0, one.each_ns, one.n, one.share_from_idle);
        times[*way].push(one.each_ns);
    }
    let ratio = |way: usize| median(&times[way].iter().zip(&times[0]).map(|(a, b)| a / b).collect::<Vec<_>>());
    let said = |way: usize| format!("{} {:.0} ns ({:.2} times)", WAYS[way].0, median(&times[way]), ratio(way));
    let from_idle = median(&found.iter().map(|(_, _, one)| one.share_from_idle).collect::<Vec<_>>());
    let row = Row {
        what,
        ours: (2..WAYS.len()).map(said).collect::<Vec<_>>().join("; "),
        peer: format!(
            "plain {:.0} ns; {}; {:.0} % of the wake-ups out of idle",
            median(&times[0]),
            said(1),
            from_idle * 100.0
        ),
        goal: "a figure to show",
        is_met: None,
    };
    Ok(Measured { rows: vec![row], csv })
}

/// What a run came to.
struct One {
    each_ns: f64,
    n: f64,
    share_from_idle: f64,
}

/// Each with its round and its way; of a round in the order of the ways.
fn rounds(binary: &Path) -> Result<Vec<(usize, usize, One)>> {
    let mut random = Random::new(SEED);
    let load = Load::start(std::thread::available_parallelism()?.get());
    let mut all = Vec::new();
    for round in 0..ROUNDS {
        let mut order: Vec<usize> = (0..WAYS.len()).collect();
        random.shuffle(&mut order);
        let found: Result<Vec<_>> = order.into_iter().map(|way| Ok((round, way, one(binary, WAYS[way].1)?))).collect();
        all.extend(found?);
    }
    drop(load);
    all.sort_by_key(|(round, way, _)| (*round, *way));
    Ok(all)
}

fn one(binary: &Path, more: &[&str]) -> Result<One> {
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(binary);
    command.args(["trace", "--for", "2s", "--json"]).args(more);
    if more == ["--stacks"] {
        command.arg(folder.path().join("stacks"));
    }
    let out = command.output()?;
    let traced: serde_json::Value = serde_json::from_slice(&out.stdout)
        .with_context(|| format!("trace {more:?}: {}", String::from_utf8_lossy(&out.stderr)))?;
    let rows = traced["rows"].as_array().context("trace says no rows")?;
    let n = |is_wanted: &dyn Fn(&serde_json::Value) -> bool| -> f64 {
        rows.iter().filter(|row| is_wanted(row)).filter_map(|row| row["n"].as_f64()).sum()
    };
    let all = n(&|_| true);
    let run_ns = traced["own"]["programs_ns"].as_f64().context("the kernel does not say what programs take")?;
    Ok(One {
        each_ns: run_ns / all.max(1.0),
        n: all,
        share_from_idle: n(&|row| row["contains_exit"] == true) / all.max(1.0),
    })
}

//! The timer wake-up probe against cyclictest: same CPU, same pause, alternating, neither tuning the machine.
//!
//! cyclictest would hold /dev/cpu_dma_latency at 0 and so switch off what is measured; `--default-system` prevents that.
//! It prints a histogram in nanoseconds (`-N`), from which the median is taken as wakewatt takes its own. On a shared
//! machine the medians of one second wander by a third, of either program: so many short rounds, the ratio within each,
//! and the 95 % interval of the median ratio. When that interval overlaps the goal, a miss is "cannot tell".

use super::{Measured, Row, installed, median};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const ROUNDS: usize = 25;
const GAP_US: u32 = 1000;
const LOOPS: u32 = 400;
const WHAT: &str = "timer wake-up median";
const GOAL: &str = "medians within 5 %";

/// Measures.
pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let row = |ours: String, peer: String, is_met| Row { what: WHAT, ours, peer, goal: GOAL, is_met };
    let cpu = last_allowed_cpu();
    let first = match ours(binary, cpu) {
        Ok(first) => first,
        Err(error) => {
            let row = row(format!("{error:#}"), "-".into(), None);
            return Ok(Measured { rows: vec![row], csv: String::new() });
        }
    };
    let Some(cyclictest) = installed("cyclictest") else {
        let peer = "cyclictest: not installed (Debian package rt-tests)".to_string();
        return Ok(Measured { rows: vec![row(format!("{:.1} us", first / 1e3), peer, None)], csv: String::new() });
    };
    let (mut our_medians, mut peer_medians, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut csv = String::from("round,wakewatt_p50_ns,cyclictest_p50_ns\n");
    for round in 0..ROUNDS {
        // Who goes first changes every round, so that a drift of the machine favours neither.
        let (our, peer) = if round % 2 == 0 {
            let our = ours(binary, cpu)?;
            (our, theirs(&cyclictest, cpu)?)
        } else {
            let peer = theirs(&cyclictest, cpu)?;
            (ours(binary, cpu)?, peer)
        };
        let _ = writeln!(csv, "{round},{our:.0},{peer:.0}");
        our_medians.push(our);
        peer_medians.push(peer);
        ratios.push(our / peer);
    }
    let (ours, theirs, ratio) = (median(&our_medians), median(&peer_medians), median(&ratios));
    let (low, high) = interval(&ratios);
    let is_met = match (ratio - 1.0).abs() <= 0.05 {
        true => Some(true),
        false if high < 0.95 || low > 1.05 => Some(false),
        false => None,
    };
    let peer = format!(
        "cyclictest {:.1} us; ratio {ratio:.3}, 95 % interval {low:.3} to {high:.3} over {ROUNDS} rounds on CPU {cpu}",
        theirs / 1e3
    );
    Ok(Measured { rows: vec![row(format!("{:.1} us", ours / 1e3), peer, is_met)], csv })
}

/// The distribution-free 95 % interval of a median: the order statistics that a fair coin passes with 97.5 % each.
fn interval(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    // The widest trim k whose tail, P(fewer than k+1 heads), is still at most 2.5 %.
    let trim = (0..n / 2).take_while(|k| tail(n, *k) <= 0.025).count();
    // Ranks from 1: the trim-th from either end (8th and 18th of 25).
    match trim.checked_sub(1) {
        Some(at) => (sorted[at], sorted[n - 1 - at]),
        None => (f64::NAN, f64::NAN),
    }
}

/// P(at most k of n fair coins show heads).
fn tail(n: usize, k: usize) -> f64 {
    let mut term = 0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut sum = term;
    for i in 0..k {
        term *= (n - i) as f64 / (i + 1) as f64;
        sum += term;
    }
    sum
}

/// The highest CPU this process may run on: the farthest from the boot CPU and its interrupts.
fn last_allowed_cpu() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap_or("0");
    list.trim().rsplit([',', '-']).next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn ours(binary: &Path, cpu: u32) -> Result<f64> {
    let duration = format!("{}us", u64::from(GAP_US) * u64::from(LOOPS));
    let mut command = Command::new(binary);
    command.args(["measure", "wakeup", "--kind", "timer", "--json", "--cpu", &cpu.to_string()]);
    command.args(["--gap", &format!("{GAP_US}us"), "--duration", &duration]);
    let output = command.output()?;
    if !output.status.success() {
        bail!("`measure wakeup`: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let json: Value = serde_json::from_slice(&output.stdout)?;
    find_p50(&json).context("no median in the output of `measure wakeup`")
}

/// The first `latency` distribution's median, wherever the document keeps its samples.
fn find_p50(json: &Value) -> Option<f64> {
    if let Some(quantiles) = json["latency"]["quantiles"].as_array() {
        return quantiles.iter().find(|q| q["q"] == 0.5)?["value_ns"].as_f64();
    }
    match json {
        Value::Array(items) => items.iter().find_map(find_p50),
        Value::Object(map) => map.values().find_map(find_p50),
        _ => None,
    }
}

fn theirs(cyclictest: &Path, cpu: u32) -> Result<f64> {
    let mut command = Command::new(cyclictest);
    let (cpu, gap, loops) = (cpu.to_string(), GAP_US.to_string(), LOOPS.to_string());
    command.args(["--default-system", "-q", "-N", "-m", "-t1", "-a", &cpu, "-p", "80", "-i", &gap, "-l", &loops]);
    let output = command.args(["-h", "900000"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("cyclictest: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let row = |line: &str| {
        let (ns, n) = line.split_once(' ').or_else(|| line.split_once('\t'))?;
        Some((ns.trim().parse::<u64>().ok()?, n.trim().parse::<u64>().ok()?))
    };
    let bins: Vec<(u64, u64)> = text.lines().filter(|l| !l.starts_with('#')).filter_map(row).collect();
    let total: u64 = bins.iter().map(|b| b.1).sum();
    let mut sum = 0;
    let half = bins.iter().find(|(_, n)| {
        sum += n;
        sum * 2 >= total.max(1)
    });
    half.map(|(ns, _)| *ns as f64).context("cyclictest printed no histogram")
}

#[cfg(test)]
mod tests {
    #[test]
    fn interval_of_a_median() {
        let values: Vec<f64> = (1..=25).map(f64::from).collect();
        assert_eq!(super::interval(&values), (8.0, 18.0), "the textbook ranks for n = 25");
        assert!(super::interval(&[1.0, 2.0]).0.is_nan(), "two values have none");
    }
}

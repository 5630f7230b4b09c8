//! The timer wake-up probe against cyclictest: same CPU, same pause, alternating, neither tuning the machine.
//!
//! cyclictest would hold /dev/cpu_dma_latency at 0 and so switch off what is measured; `--default-system` prevents that.
//! It prints a histogram in nanoseconds (`-N`), from which the median is taken as wakewatt takes its own. A run's median
//! depends on the machine's mood and on the phase between its period and the kernel's tick, so cyclictest also runs
//! against itself: a difference from wakewatt means something only where it exceeds cyclictest's own.

use super::versus::{self, CSV_HEAD};
use super::{Measured, Row, installed};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const ROUNDS: usize = 24;
const GAP_US: u32 = 1000;
const LOOPS: u32 = 500;
const WHAT: &str = "timer wake-up median";
const GOAL: &str = "medians within 5 %";

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
    let (ours, theirs) = (|| Ok(vec![ours(binary, cpu)?]), || Ok(vec![theirs(&cyclictest, cpu)?]));
    let rounds = versus::rounds(ROUNDS, "wakeup", "cyclictest", &["p50_ns"], &ours, &theirs)?;
    let versus = rounds.figure(0)?;
    let peer = format!("cyclictest {:.1} us on CPU {cpu}; {}", versus.theirs / 1e3, versus.ratio());
    let row = row(format!("{:.1} us", versus.ours / 1e3), peer, versus.is_within(0.05));
    Ok(Measured { rows: vec![row], csv: format!("{CSV_HEAD}{}", rounds.csv()) })
}

/// The highest CPU this process may run on: the farthest from the boot CPU and its interrupts.
pub(super) fn last_allowed_cpu() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap_or("0");
    list.trim().rsplit([',', '-']).next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

pub(super) fn ours(binary: &Path, cpu: u32) -> Result<f64> {
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

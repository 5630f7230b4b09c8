//! `compare` on runs of the same: how often it calls different what nobody changed, on this machine.
//!
//! Short runs one after the other, no setting touched between them; each is compared with the next one as a user would:
//! a load of four windows with the load after it, and three runs of wake-ups with the three after them. At most 5 % of the
//! comparisons of a metric may say higher or lower. Beside it stands what the interval of single windows would have called
//! (windows that do not overlap): what a machine does by itself from run to run. Only when named: 40 pairs take half an hour.

use super::{Measured, Row};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pairs unless --pairs says otherwise.
pub(crate) const PAIRS: usize = 40;
const GOAL: &str = "at most 5 % of a metric's pairs";
/// Runs on a side where runs are the unit.
const RUNS_A_SIDE: usize = 3;
/// Fewer pairs than this cannot tell 5 % from much more.
const MIN_PAIRS: usize = 20;

/// What is run, and how many of it are a side.
struct Kind {
    what: &'static str,
    args: &'static [&'static str],
    n_runs: usize,
}

const KINDS: [Kind; 3] = [
    Kind {
        what: "compare: runs of the same, 4 windows of load each",
        args: &["load", "steps", "--levels", "4000/s", "--work", "550", "--interval", "2s", "--repeat", "4"],
        n_runs: 1,
    },
    Kind {
        what: "compare: runs of the same, one window of wake-ups each",
        args: &["measure", "wakeup", "--kind", "timer", "--kind", "eventfd", "--cpu", "0", "--duration", "1s"],
        n_runs: 1,
    },
    Kind {
        what: "compare: runs of the same, three runs of wake-ups a side",
        args: &["measure", "wakeup", "--kind", "timer", "--kind", "eventfd", "--cpu", "0", "--duration", "1s"],
        n_runs: RUNS_A_SIDE,
    },
];

/// Of one metric.
#[derive(Default)]
struct Count {
    pairs: usize,
    different: usize,
    /// Pairs in which each side is one window, and those of them whose intervals do not overlap.
    windows: usize,
    apart: usize,
}

pub(crate) fn measure(binary: &Path, n_pairs: usize) -> Result<Measured> {
    let folder = tempfile::tempdir()?;
    let mut out =
        Measured { csv: "kind,pair,metric,ratio,ratio_low,ratio_high,verdict,basis\n".into(), ..Measured::default() };
    for kind in &KINDS {
        let counts = aa(binary, folder.path(), kind, n_pairs, &mut out.csv)?;
        out.rows.push(row(kind, &counts));
        for (metric, count) in &counts {
            println!("  {metric}: {} of {} called different", count.different, count.pairs);
        }
    }
    Ok(out)
}

fn aa(binary: &Path, folder: &Path, kind: &Kind, n_pairs: usize, csv: &mut String) -> Result<BTreeMap<String, Count>> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let side = |at: usize| -> Result<Vec<PathBuf>> {
        (0..kind.n_runs).map(|n| run(binary, kind, &folder.join(format!("{at}-{n}.run")))).collect()
    };
    let mut before = side(0)?;
    for pair in 0..n_pairs {
        let after = side(pair + 1)?;
        let document = compared(binary, &before, &after)?;
        for found in document["runs"]["samples"].as_array().context("no samples compared")? {
            let id = found["id"].as_str().unwrap_or("?");
            let count = counts.entry(id.into()).or_default();
            let verdict = found["verdict"].as_str().unwrap_or("?");
            count.pairs += 1;
            count.different += usize::from(matches!(verdict, "higher" | "lower"));
            if let Some(apart) = is_apart(found) {
                count.windows += 1;
                count.apart += usize::from(apart);
            }
            let number = |key: &str| found[key].as_f64().map_or(String::new(), |v| format!("{v:.4}"));
            let numbers = [number("ratio"), number("ratio_low"), number("ratio_high")].join(",");
            let basis = found["basis"].as_str().unwrap_or("?");
            let _ = writeln!(csv, "\"{}\",{pair},\"{id}\",{numbers},{verdict},{basis}", kind.what);
        }
        before = after;
    }
    Ok(counts)
}

/// Do the intervals of two windows not overlap? None where a side is no single window.
fn is_apart(found: &Value) -> Option<bool> {
    let end = |side: &str, end: &str| found[side][end].as_f64();
    let (a, b) =
        ((end("a_window", "low")?, end("a_window", "high")?), (end("b_window", "low")?, end("b_window", "high")?));
    Some(a.1 < b.0 || b.1 < a.0)
}

fn run(binary: &Path, kind: &Kind, file: &Path) -> Result<PathBuf> {
    let output = Command::new(binary).args(kind.args).arg("--save").arg(file).output()?;
    if !output.status.success() {
        bail!("{}: {}", kind.args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(file.into())
}

fn compared(binary: &Path, a: &[PathBuf], b: &[PathBuf]) -> Result<Value> {
    let output = Command::new(binary).args(["compare", "--json"]).args(a).arg("--against").args(b).output()?;
    if !output.status.success() {
        bail!("compare: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn row(kind: &Kind, counts: &BTreeMap<String, Count>) -> Row {
    let sum = |of: fn(&Count) -> usize| counts.values().map(of).sum::<usize>();
    let (pairs, different, windows, apart) =
        (sum(|c| c.pairs), sum(|c| c.different), sum(|c| c.windows), sum(|c| c.apart));
    let percent = |n: usize, of: usize| 100.0 * n as f64 / of.max(1) as f64;
    let worst = counts.iter().max_by_key(|(_, c)| c.different);
    let worst = worst
        .filter(|(_, c)| c.different > 0)
        .map_or(String::new(), |(id, c)| format!("; most: {id}, {} of {}", c.different, c.pairs));
    let peer = match windows {
        0 => "-".into(),
        _ => format!("windows that do not overlap: {:.1} % of {windows}", percent(apart, windows)),
    };
    // A percentile that some runs leave out (too few samples beyond it) has fewer pairs: shown, not judged.
    let enough: Vec<&Count> = counts.values().filter(|c| c.pairs >= MIN_PAIRS).collect();
    // Of one metric's 40 pairs 5 % are two; as many as chance gives one metric in a hundred are allowed it.
    let is_met = (!enough.is_empty()).then(|| {
        let (of, found) = enough.iter().fold((0, 0), |(n, d), c| (n + c.pairs, d + c.different));
        percent(found, of) <= 5.0 && enough.iter().all(|c| c.different <= most(c.pairs))
    });
    let ours =
        format!("{:.1} % of {pairs} called different ({} metrics{worst})", percent(different, pairs), counts.len());
    Row { what: kind.what, ours, peer, goal: GOAL, is_met }
}

/// So many of n pairs are called different by chance in one metric of a hundred, where each is with 5 %.
fn most(n: usize) -> usize {
    let (mut chance, mut sum) = (0.95f64.powi(i32::try_from(n).unwrap_or(i32::MAX)), 0.0);
    for k in 0..n {
        sum += chance;
        if sum >= 0.99 {
            return k;
        }
        chance *= (n - k) as f64 / (k + 1) as f64 * 0.05 / 0.95;
    }
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_allows_and_windows_apart() {
        assert_eq!((most(40), most(100), most(1)), (6, 11, 1));
        let found = |b: f64| serde_json::json!({ "a_window": { "low": 1.0, "high": 2.0 }, "b_window": { "low": b, "high": b + 1.0 } });
        assert_eq!((is_apart(&found(1.5)), is_apart(&found(2.5))), (Some(false), Some(true)));
        assert_eq!(is_apart(&serde_json::json!({ "a_window": null })), None);
    }
}

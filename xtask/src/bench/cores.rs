//! `measure cores` against the same method in C, compiled on the spot: one pair of CPUs, alternating, random order.
//!
//! Debian packages no core-to-core-latency, and its own number would differ by method; this says whether the probe adds
//! anything of its own. The C program also runs against itself, since a guest's two CPUs may be siblings one minute and
//! far apart the next: a difference means something only beyond that.

use super::{Measured, Row, installed, median};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use wakewatt_core::samples::experiment::Effect;
use wakewatt_core::stats::paired::Judge;
use wakewatt_core::stats::random::Random;

const ROUNDS: usize = 24;
const SEED: u64 = 20_261_121;
const WHAT: &str = "cache line hand-over, median";
const GOAL: &str = "within 5 %";
const PROGRAM: &str = include_str!("hand_over.c");

/// Measures.
pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let none = |ours: String, peer: String| Measured {
        rows: vec![Row { what: WHAT, ours, peer, goal: GOAL, is_met: None }],
        csv: String::new(),
    };
    let first = match ours(binary) {
        Ok(first) => first,
        Err(error) => return Ok(none(format!("{error:#}"), "-".into())),
    };
    let Some(cc) = installed("cc") else {
        return Ok(none(format!("{first:.1} ns"), "no C compiler (Debian package gcc)".into()));
    };
    let folder = tempfile::tempdir()?;
    let (source, program) = (folder.path().join("hand_over.c"), folder.path().join("hand_over"));
    std::fs::write(&source, PROGRAM)?;
    let made = Command::new(cc).args(["-O2", "-pthread", "-o"]).arg(&program).arg(&source).status()?;
    if !made.success() {
        bail!("the reference program was not compiled");
    }
    let (mut pairs, mut itself) = (Vec::new(), Vec::new());
    let mut csv = String::from("round,order,wakewatt_ns,c_ns,c_again_ns\n");
    let mut random = Random::new(SEED);
    for round in 0..ROUNDS {
        let mut order = [0, 1, 2];
        random.shuffle(&mut order);
        let mut medians = [0.0; 3];
        for probe in order {
            medians[probe] = if probe == 0 { ours(binary)? } else { theirs(&program)? };
        }
        let [our, peer, again] = medians;
        let _ = writeln!(csv, "{round},{order:?},{our:.2},{peer:.2},{again:.2}");
        pairs.push((our, peer));
        itself.push((again, peer));
    }
    let judge = Judge::new(SEED);
    let effect = judge.effect("median", "wakewatt", "C", &pairs).context("no rounds")?;
    let noise = judge.effect("median", "C", "C", &itself).context("no rounds")?;
    let interval = |e: &Effect| format!("{:.3} [{:.3}, {:.3}]", e.ratio, e.ratio_low, e.ratio_high);
    let of = |first: bool| median(&pairs.iter().map(|p| if first { p.0 } else { p.1 }).collect::<Vec<_>>());
    let peer = format!(
        "same method in C {:.1} ns; ratio {} over {ROUNDS} rounds; C to itself {}",
        of(false),
        interval(&effect),
        interval(&noise)
    );
    let is_met = match ((effect.ratio - 1.0).abs() <= 0.05, effect.ratio_low > 1.05 || effect.ratio_high < 0.95) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    };
    let row = Row { what: WHAT, ours: format!("{:.1} ns", of(true)), peer, goal: GOAL, is_met };
    Ok(Measured { rows: vec![row], csv })
}

/// CPU 0 leads CPU 1.
fn ours(binary: &Path) -> Result<f64> {
    let output = Command::new(binary).args(["measure", "cores", "--cpu", "0-1", "--json"]).output()?;
    if !output.status.success() {
        bail!("`measure cores`: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let json: Value = serde_json::from_slice(&output.stdout)?;
    json["cores"][0]["pairs"][0]["median_ns"].as_f64().context("no pair in the output of `measure cores`")
}

fn theirs(program: &Path) -> Result<f64> {
    let output = Command::new(program).args(["0", "1"]).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().next().and_then(|n| n.parse().ok()).context("the reference program printed nothing")
}

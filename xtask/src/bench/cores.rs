//! `measure cores` against the same method in C, compiled on the spot: one pair of CPUs, alternating, random order.
//!
//! Debian packages no core-to-core-latency, and its own number would differ by method; this says whether the probe adds
//! anything of its own. The C program also runs against itself, since a guest's two CPUs may be siblings one minute and
//! far apart the next: a difference means something only beyond that.

use super::versus::{self, CSV_HEAD};
use super::{Measured, Row, compiled};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const ROUNDS: usize = 24;
const WHAT: &str = "cache line hand-over, median";
const GOAL: &str = "within 5 %";

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let none = |ours: String, peer: String| Measured {
        rows: vec![Row { what: WHAT, ours, peer, goal: GOAL, is_met: None }],
        csv: String::new(),
    };
    let first = match ours(binary) {
        Ok(first) => first,
        Err(error) => return Ok(none(format!("{error:#}"), "-".into())),
    };
    let folder = tempfile::tempdir()?;
    let program = match compiled(folder.path(), "hand_over", include_str!("hand_over.c"), &["-O2", "-pthread"]) {
        Ok(program) => program,
        Err(why) => return Ok(none(format!("{first:.1} ns"), why)),
    };
    let (ours, theirs) = (|| Ok(vec![ours(binary)?]), || Ok(vec![theirs(&program)?]));
    let rounds = versus::rounds(ROUNDS, "cores", "C", &["median_ns"], &ours, &theirs)?;
    let versus = rounds.figure(0)?;
    let peer = format!("same method in C {:.1} ns; {}", versus.theirs, versus.ratio());
    let ours = format!("{:.1} ns", versus.ours);
    let row = Row { what: WHAT, ours, peer, goal: GOAL, is_met: versus.is_within(0.05) };
    Ok(Measured { rows: vec![row], csv: format!("{CSV_HEAD}{}", rounds.csv()) })
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

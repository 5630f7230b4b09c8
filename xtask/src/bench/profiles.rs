//! Does it matter how the program was built? What a fresh clone builds (`release`) against what packages hold (`dist`).
//!
//! A figure must not hang on the build, so what measures is optimised alike in both. Three figures that would show it: the
//! median of a timer's wake-up as `measure wakeup` sees it, the CPU time that the load generator itself takes for a
//! transaction, and a round of `perf bench sched pipe` with `trace` attached. `dist` also runs against itself.

use super::versus::{self, CSV_HEAD, Rounds};
use super::{Measured, Row, installed, load, trace, wakeup};
use crate::binary::{Profile, build};
use anyhow::{Context, Result};
use std::path::Path;

const ROUNDS: usize = 12;
const PEER: &str = "dist";

pub(crate) fn measure(dist: &Path) -> Result<Measured> {
    let release = build(Profile::Release)?;
    let mut out = Measured { rows: Vec::new(), csv: CSV_HEAD.into() };
    let cpu = wakeup::last_allowed_cpu();
    let compared = |what: &str, figure: &str, of: &dyn Fn(&Path) -> Result<f64>| {
        versus::rounds(ROUNDS, what, PEER, &[figure], &|| Ok(vec![of(&release)?]), &|| Ok(vec![of(dist)?]))
    };
    let wakeups = compared("timer wake-up", "p50_ns", &|binary| wakeup::ours(binary, cpu))?;
    row(&mut out, "timer wake-up median: release against dist", "us", &wakeups, 1e3)?;
    // A rate, half of what the CPUs could: nothing is calibrated, which would take four times as long as the load.
    let rate = format!("{}/s", 1000 * std::thread::available_parallelism()?.get());
    let own = |binary: &Path| {
        let json = load::steps(binary, &["--levels", &rate, "--interval", "4s", "--seed", "1"])?;
        json["run"]["overhead_ns_per_op"].as_f64().context("no overhead in the document of load")
    };
    row(&mut out, "the load generator itself: release against dist", "us", &compared("load", "own_ns", &own)?, 1e3)?;
    let Some(perf) = installed("perf") else {
        out.rows.push(Row {
            what: "trace attached: release against dist",
            ours: "-".into(),
            peer: "perf: not installed (Debian package linux-perf)".into(),
            goal: "the same",
            is_met: None,
        });
        return Ok(out);
    };
    let last = trace::last_cpu()?;
    let traced = |binary: &Path| {
        let tool = trace::attach(trace::OURS, binary)?;
        let took = trace::pipe(&perf, &last);
        trace::detach(tool)?;
        Ok(took? * 1e9)
    };
    row(&mut out, "trace attached: release against dist", "s", &compared("trace", "pipe_ns", &traced)?, 1e9)?;
    Ok(out)
}

fn row(out: &mut Measured, what: &'static str, unit: &str, rounds: &Rounds, scale: f64) -> Result<()> {
    out.csv.push_str(rounds.csv());
    let versus = rounds.figure(0)?;
    out.rows.push(Row {
        what,
        ours: format!("{:.2} {unit}", versus.ours / scale),
        peer: format!("dist {:.2} {unit}; {}", versus.theirs / scale, versus.ratio()),
        goal: "within 5 %",
        is_met: versus.is_within(0.05),
    });
    Ok(())
}

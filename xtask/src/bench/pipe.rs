//! Hand-overs through pipes against `perf bench sched pipe`: on one CPU, and across two.
//!
//! perf prints microseconds per operation: a round trip, two wake-ups, averaged over the run. Twice our mean is the same.
//! perf is run with threads (`-T`), as ours are, since processes add a change of address space. It cannot pin its two
//! threads apart, so for the row across two CPUs one of them is moved from outside as soon as it is seen, which leaves
//! some milliseconds of the run on one CPU.

use super::versus::{self, CSV_HEAD};
use super::wakeup::last_allowed_cpu;
use super::{Measured, Row, installed};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 12;
const LOOPS: u32 = 100_000;
const GOAL: &str = "within 10 %";

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let last = last_allowed_cpu();
    let mut all = Measured { rows: Vec::new(), csv: CSV_HEAD.into() };
    let (perf, taskset) = (installed("perf"), installed("taskset"));
    for (what, from, to) in [("pipe round trip, one CPU", last, last), ("pipe round trip, two CPUs", 0, last)] {
        let row = |ours: String, peer: String, is_met| Row { what, ours, peer, goal: GOAL, is_met };
        if what.ends_with("CPUs") && from == to {
            all.rows.push(row("-".into(), "needs two CPUs".into(), None));
            continue;
        }
        let (Some(perf), Some(taskset)) = (&perf, &taskset) else {
            let peer = "perf or taskset: not installed (Debian packages linux-perf, util-linux)".to_string();
            all.rows.push(row(format!("{:.2} us", ours(binary, from, to)? / 1e3), peer, None));
            continue;
        };
        let ours = || Ok(vec![ours(binary, from, to)?]);
        let theirs = || Ok(vec![theirs(perf, taskset, from, to)?]);
        let rounds = versus::rounds(ROUNDS, what, "perf", &["round_trip_ns"], &ours, &theirs)?;
        let versus = rounds.figure(0)?;
        let peer = format!("perf {:.2} us; {}", versus.theirs / 1e3, versus.ratio());
        all.rows.push(row(format!("{:.2} us", versus.ours / 1e3), peer, versus.is_within(0.10)));
        all.csv.push_str(rounds.csv());
    }
    Ok(all)
}

/// A round trip, ns.
fn ours(binary: &Path, from: u32, to: u32) -> Result<f64> {
    let mut command = Command::new(binary);
    command.args(["measure", "wakeup", "--kind", "pipe", "--duration", "1s", "--json"]);
    let output = command.args(["--from", &from.to_string(), "--cpu", &to.to_string()]).output()?;
    if !output.status.success() {
        bail!("`measure wakeup --kind pipe`: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let json: Value = serde_json::from_slice(&output.stdout)?;
    let mean = json["wakeups"][0]["latency"]["mean_ns"].as_f64();
    Ok(2.0 * mean.context("no mean in the output of `measure wakeup`")?)
}

fn theirs(perf: &Path, taskset: &Path, from: u32, to: u32) -> Result<f64> {
    let mut command = Command::new(taskset);
    command.args(["-c", &from.to_string()]).arg(perf);
    command.args(["bench", "sched", "pipe", "-T", "-l", &LOOPS.to_string()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("perf")?;
    let moved = if from == to { Ok(()) } else { move_second_thread(&mut child, taskset, to) };
    let output = child.wait_with_output()?;
    moved?;
    let text = String::from_utf8_lossy(&output.stdout);
    let us = text.lines().find_map(|line| line.trim().strip_suffix("usecs/op")?.trim().parse::<f64>().ok());
    let said = || format!("perf bench printed no usecs/op: {}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(us.with_context(said)? * 1e3)
}

/// Of the two that hand over, the younger goes elsewhere. The thread that only waits for them has the process's number.
fn move_second_thread(child: &mut std::process::Child, taskset: &Path, to: u32) -> Result<()> {
    let folder = format!("/proc/{}/task", child.id());
    for _ in 0..2000 {
        let names = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut tids: Vec<u32> = names.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
        tids.sort_unstable();
        if let [_, _, younger] = tids[..] {
            let words = ["-cp".to_string(), to.to_string(), younger.to_string()];
            let done = Command::new(taskset).args(words).output()?;
            if done.status.success() {
                return Ok(());
            }
        }
        if child.try_wait()?.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
    let _ = child.kill();
    bail!("perf's second thread was not seen in {folder}")
}

//! `trace --record` under more and more wake-ups: how many events a second it keeps, at how many bytes and how much CPU time, and from
//! where on it drops some.
//!
//! The load is threads that sleep 20 us each, without timer slack, so that CPUs enter and leave idle as often as they can; with more
//! threads than the CPUs can serve there is no idle left and the rate falls again, so several numbers are tried. Where leaving the
//! only real state takes a guest's exit, that bounds the rate: so the same is tried with CPUs that may only spin
//! (/dev/cpu_dma_latency held at 0, which needs root). An idle interval is two events. What the load itself reaches bounds what can
//! be shown here, and is printed beside the goal.

use super::{Measured, Row};
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::num::NonZeroU64;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const SLEEP: Duration = Duration::from_micros(20);
const RECORDED: &str = "8s";
const RECORDED_S: f64 = 8.0;
/// Threads for each CPU, and whether CPUs may only spin.
const LOADS: [(usize, bool); 7] = [(1, false), (2, false), (3, false), (4, false), (1, true), (2, true), (3, true)];
const GOAL_PER_S: f64 = 100_000.0;
const GOAL_BYTES: f64 = 3.0;

/// What came of a number of threads.
struct Kept {
    n_threads: usize,
    is_spinning: bool,
    events_per_s: f64,
    n_lost: f64,
    bytes_per_event: f64,
    /// Of one CPU, in percent.
    cpu_percent: f64,
}

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let n_cpus = std::thread::available_parallelism()?.get();
    let is_root = rustix::process::geteuid().is_root();
    let loads = LOADS.iter().filter(|(_, is_spinning)| is_root || !is_spinning);
    let kept = loads.map(|(each, spins)| under_load(binary, each * n_cpus, *spins)).collect::<Result<Vec<_>>>()?;
    let mut csv = String::from("threads,is_spinning,events_per_s,n_lost,bytes_per_event,cpu_percent\n");
    for k in &kept {
        let _ = writeln!(
            csv,
            "{},{},{:.0},{:.0},{:.3},{:.2}",
            k.n_threads, k.is_spinning, k.events_per_s, k.n_lost, k.bytes_per_event, k.cpu_percent
        );
    }
    let most = kept.iter().map(|k| k.events_per_s).fold(0.0, f64::max);
    let whole = kept.iter().filter(|k| k.n_lost == 0.0).max_by(|a, b| a.events_per_s.total_cmp(&b.events_per_s));
    let lost: f64 = kept.iter().map(|k| k.n_lost).sum();
    let told = |k: &Kept| {
        format!(
            "{:.0}/s from {} threads on {n_cpus} CPUs{}: 0 lost, {:.2} bytes an event, {:.1} % of one CPU",
            k.events_per_s,
            k.n_threads,
            if k.is_spinning { " that spin" } else { "" },
            k.bytes_per_event,
            k.cpu_percent
        )
    };
    let row = Row {
        what: "trace --record: most events a second without a drop",
        ours: whole.map_or_else(|| format!("every load lost some, {lost:.0} in all"), told),
        peer: format!("the load itself reached {most:.0}/s{}", if most == 0.0 { ": no CPU was ever idle" } else { "" }),
        goal: "100,000/s, at most 3 bytes each",
        // A load that cannot reach the goal proves nothing against it.
        is_met: whole
            .map(|k| k.events_per_s >= GOAL_PER_S && k.bytes_per_event <= GOAL_BYTES)
            .filter(|is_met| *is_met || most >= GOAL_PER_S || lost > 0.0),
    };
    Ok(Measured { rows: vec![row], csv })
}

fn under_load(binary: &Path, n_threads: usize, is_spinning: bool) -> Result<Kept> {
    let _held = is_spinning.then(only_spinning).transpose()?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("bench.wtrace");
    let load = Load::start(n_threads);
    std::thread::sleep(Duration::from_millis(300));
    let out = Command::new(binary).args(["trace", "--for", RECORDED, "--json", "--record"]).arg(&file).output();
    drop(load);
    let out = out.with_context(|| binary.display().to_string())?;
    let traced: serde_json::Value = serde_json::from_slice(&out.stdout)
        .with_context(|| format!("trace --record: {}", String::from_utf8_lossy(&out.stderr).trim()))?;
    let info = Command::new(binary).args(["trace", "info", "--json"]).arg(&file).output()?;
    let info: serde_json::Value = serde_json::from_slice(&info.stdout).context("trace info")?;
    let number = |v: &serde_json::Value| v.as_f64().context("a figure is missing in what trace said");
    Ok(Kept {
        n_threads,
        is_spinning,
        events_per_s: 2.0 * info["summary"]["n_pairs"].as_f64().unwrap_or(0.0) / RECORDED_S,
        n_lost: number(&traced["missed"]["n_lost"])?,
        // Without any event there is none: others kept the CPUs busy.
        bytes_per_event: info["bytes_per_event"].as_f64().unwrap_or(f64::NAN),
        cpu_percent: number(&traced["own"]["cpu_ns"])? / 1e9 / RECORDED_S * 100.0,
    })
}

/// No idle state but the spinning one, until it is dropped.
fn only_spinning() -> Result<File> {
    let path = "/dev/cpu_dma_latency";
    let mut file = OpenOptions::new().write(true).open(path).context(path)?;
    file.write_all(&0i32.to_ne_bytes()).context(path)?;
    Ok(file)
}

/// Threads that sleep again and again; dropping it ends them.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Load {
    pub(super) fn start(n_threads: usize) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let one = |_| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                // The usual 50 us of slack would make one wake-up of many.
                let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(SLEEP);
                }
            })
        };
        let threads = (0..n_threads).map(one).collect();
        Load { stop, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

//! Disk reads against fio: the same file, the same CPU and priority, in random order within each round.
//!
//! Random 4 KiB reads past the page cache at depth 1, with `pread` and with io_uring. fio's `lat` is compared (submission
//! to completion as its thread sees it), which is what wakewatt takes. fio also runs a second time in each round: how far
//! it is from itself says what a difference from wakewatt can mean on this machine. The file lies under `target`, is
//! written with random data and removed afterwards.

use super::versus::{self, CSV_HEAD, all_met};
use super::{Measured, Row, installed};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use wakewatt_core::stats::random::Random;

const ROUNDS: usize = 8;
const SEED: u64 = 20_261_121;
const SECONDS: u32 = 2;
const FILE_MIB: usize = 1024;
/// Engine, the row's heading, and its goal.
const ENGINES: [(&str, &str); 2] = [("psync", "disk read, psync"), ("io_uring", "disk read, io_uring")];
const GOAL: &str = "mean within 3 %, p99 within 10 % of fio";

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let row = |what, ours: String, peer: String, is_met| Row { what, ours, peer, goal: GOAL, is_met };
    let (Some(fio), Some(chrt)) = (installed("fio"), installed("chrt")) else {
        let peer = "fio or chrt: not installed (scripts/ensure-packages.sh --optional fio=fio)".to_string();
        let rows = ENGINES.map(|(_, what)| row(what, "-".into(), peer.clone(), None));
        return Ok(Measured { rows: rows.into(), csv: String::new() });
    };
    let file = Made::new()?;
    let mut all = Measured { rows: Vec::new(), csv: CSV_HEAD.into() };
    for (engine, what) in ENGINES {
        let ours = || ours(binary, engine, &file.0);
        let theirs = || theirs(&chrt, &fio, engine, &file.0);
        let rounds = versus::rounds(ROUNDS, engine, "fio", &["mean_ns", "p99_ns"], &ours, &theirs)?;
        let (mean, p99) = (rounds.figure(0)?, rounds.figure(1)?);
        let shown = |mean: f64, p99: f64| format!("mean {:.1} us, p99 {:.1} us", mean / 1e3, p99 / 1e3);
        let peer = format!("fio {}; mean {}; p99 {}", shown(mean.theirs, p99.theirs), mean.ratio(), p99.ratio());
        let is_met = all_met(&[mean.is_within(0.03), p99.is_within(0.10)]);
        all.rows.push(row(what, shown(mean.ours, p99.ours), peer, is_met));
        all.csv.push_str(rounds.csv());
    }
    Ok(all)
}

/// The file both read; removed when dropped.
struct Made(PathBuf);

impl Made {
    fn new() -> Result<Made> {
        let folder = crate::binary::target_folder();
        std::fs::create_dir_all(&folder)?;
        let made = Made(folder.join(format!("bench-disk-{}", std::process::id())));
        let mut file = std::fs::File::create(&made.0).with_context(|| made.0.display().to_string())?;
        let mut random = Random::new(SEED);
        let mut chunk = vec![0u8; 1 << 20];
        for _ in 0..FILE_MIB {
            for word in chunk.chunks_exact_mut(8) {
                word.copy_from_slice(&random.bits().to_ne_bytes());
            }
            file.write_all(&chunk).with_context(|| made.0.display().to_string())?;
        }
        file.sync_all()?;
        Ok(made)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn ours(binary: &Path, engine: &str, file: &Path) -> Result<Vec<f64>> {
    let mut command = Command::new(binary);
    command.args(["measure", "disk", "--json", "--engine", engine, "--duration", &format!("{SECONDS}s")]).arg(file);
    let output = command.output()?;
    let json: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("`measure disk`: {}", String::from_utf8_lossy(&output.stderr).trim()))?;
    let sample = &json["disk"][0];
    if sample["engine"] != engine {
        bail!("`measure disk` did not measure {engine}: {}", json["not_done"]);
    }
    let latency = &sample["latency"];
    let p99 = latency["quantiles"].as_array().and_then(|all| all.iter().find(|q| q["q"] == 0.99));
    let p99_ns = p99.and_then(|q| q["value_ns"].as_f64()).context("too few reads for a p99")?;
    Ok(vec![latency["mean_ns"].as_f64().context("no mean")?, p99_ns])
}

/// The same priority and CPU as ours: SCHED_FIFO 80 where allowed, the last CPU.
fn theirs(chrt: &Path, fio: &Path, engine: &str, file: &Path) -> Result<Vec<f64>> {
    let can_fifo = Command::new(chrt).args(["-f", "80", "true"]).output().is_ok_and(|o| o.status.success());
    let mut command = if can_fifo { Command::new(chrt) } else { Command::new(fio) };
    if can_fifo {
        command.args(["-f", "80"]).arg(fio);
    }
    let cpu = super::wakeup::last_allowed_cpu().to_string();
    command.args(["--name=x", "--rw=randread", "--bs=4k", "--iodepth=1", "--direct=1", "--readonly", "--thread"]);
    command.args([
        "--time_based",
        "--ramp_time=300ms",
        "--randrepeat=0",
        "--lat_percentiles=1",
        "--clat_percentiles=0",
    ]);
    command.args([&format!("--ioengine={engine}"), &format!("--runtime={SECONDS}"), &format!("--cpus_allowed={cpu}")]);
    let output = command.arg(format!("--filename={}", file.display())).arg("--output-format=json").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let start = text.find('{').unwrap_or(0);
    let json: Value = serde_json::from_str(&text[start..])
        .with_context(|| format!("fio: {}", String::from_utf8_lossy(&output.stderr).trim()))?;
    let latency = &json["jobs"][0]["read"]["lat_ns"];
    let p99_ns = latency["percentile"]["99.000000"].as_f64().context("fio gave no p99")?;
    Ok(vec![latency["mean"].as_f64().context("fio gave no mean")?, p99_ns])
}

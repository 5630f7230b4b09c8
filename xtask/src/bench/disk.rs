//! Disk reads against fio: the same file, the same CPU and priority, blocks in random order within each round.
//!
//! Random 4 KiB reads past the page cache at depth 1, with `pread` and with io_uring. fio's `lat` is compared (submission
//! to completion as its thread sees it), which is what wakewatt takes. fio also runs a second time in each round: how far
//! it is from itself says what a difference from wakewatt can mean on this machine. The file lies under `target`, is
//! written with random data and removed afterwards.

use super::{Measured, Row, installed, median};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use wakewatt_core::stats::paired::Judge;
use wakewatt_core::stats::random::Random;

const ROUNDS: usize = 8;
const SEED: u64 = 20_261_121;
const SECONDS: u32 = 2;
const FILE_MIB: usize = 1024;
/// Engine, the row's heading, and its goal.
const ENGINES: [(&str, &str); 2] = [("psync", "disk read, psync"), ("io_uring", "disk read, io_uring")];
const GOAL: &str = "mean within 3 %, p99 within 10 % of fio";

/// Mean and 99th percentile of one run.
#[derive(Clone, Copy)]
struct Read {
    mean_ns: f64,
    p99_ns: f64,
}

type Number = fn(&Read) -> f64;

impl Read {
    fn mean_ns(&self) -> f64 {
        self.mean_ns
    }
    fn p99_ns(&self) -> f64 {
        self.p99_ns
    }
}

/// Measures.
pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let row = |what, ours: String, peer: String, is_met| Row { what, ours, peer, goal: GOAL, is_met };
    let (Some(fio), Some(chrt)) = (installed("fio"), installed("chrt")) else {
        let peer = "fio or chrt: not installed (scripts/ensure-packages.sh --optional fio=fio)".to_string();
        let rows = ENGINES.map(|(_, what)| row(what, "-".into(), peer.clone(), None));
        return Ok(Measured { rows: rows.into(), csv: String::new() });
    };
    let file = Made::new()?;
    let mut csv = String::from("round,order,engine,who,mean_ns,p99_ns\n");
    let mut random = Random::new(SEED);
    let mut rounds: Vec<[Read; 6]> = Vec::new();
    for round in 0..ROUNDS {
        let mut order = [0, 1, 2, 3, 4, 5];
        random.shuffle(&mut order);
        let mut reads = [Read { mean_ns: f64::NAN, p99_ns: f64::NAN }; 6];
        for which in order {
            let engine = ENGINES[which / 3].0;
            reads[which] = match which % 3 {
                0 => ours(binary, engine, &file.0)?,
                _ => theirs(&chrt, &fio, engine, &file.0)?,
            };
        }
        for (which, read) in reads.iter().enumerate() {
            let who = ["wakewatt", "fio", "fio again"][which % 3];
            let order: String = order.iter().map(ToString::to_string).collect();
            let _ =
                writeln!(csv, "{round},{order},{},{who},{:.0},{:.0}", ENGINES[which / 3].0, read.mean_ns, read.p99_ns);
        }
        rounds.push(reads);
    }
    let rows = (0..ENGINES.len()).map(|engine| judged(engine, &rounds)).collect::<Result<_>>()?;
    Ok(Measured { rows, csv })
}

fn judged(engine: usize, rounds: &[[Read; 6]]) -> Result<Row> {
    let judge = Judge::new(SEED);
    let at = engine * 3;
    let effect = |ours: usize, value: Number| {
        let pairs: Vec<(f64, f64)> = rounds.iter().map(|r| (value(&r[at + ours]), value(&r[at + 1]))).collect();
        judge.effect("read", "a", "fio", &pairs).context("no rounds")
    };
    let us = |who: usize, value: Number| median(&rounds.iter().map(|r| value(&r[at + who])).collect::<Vec<_>>()) / 1e3;
    let (mean, p99) = (Read::mean_ns as Number, Read::p99_ns as Number);
    let (by_mean, by_p99) = (effect(0, mean)?, effect(0, p99)?);
    let (fio_mean, fio_p99) = (effect(2, mean)?, effect(2, p99)?);
    let shown = |e: &wakewatt_core::samples::experiment::Effect| {
        format!("{:.3} [{:.3}, {:.3}]", e.ratio, e.ratio_low, e.ratio_high)
    };
    // Missed only where a whole interval lies outside; between, this machine is too restless to say.
    let is_in = |e: &wakewatt_core::samples::experiment::Effect, within: f64| (e.ratio - 1.0).abs() <= within;
    let is_out = |e: &wakewatt_core::samples::experiment::Effect, within: f64| {
        e.ratio_low > 1.0 + within || e.ratio_high < 1.0 - within
    };
    let is_met = if is_in(&by_mean, 0.03) && is_in(&by_p99, 0.10) {
        Some(true)
    } else if is_out(&by_mean, 0.03) || is_out(&by_p99, 0.10) {
        Some(false)
    } else {
        None
    };
    Ok(Row {
        what: ENGINES[engine].1,
        ours: format!("mean {:.1} us, p99 {:.1} us", us(0, mean), us(0, p99)),
        peer: format!(
            "fio {:.1} us, {:.1} us; ratio of means {}, of p99 {} over {} rounds; fio to itself {}, {}",
            us(1, mean),
            us(1, p99),
            shown(&by_mean),
            shown(&by_p99),
            rounds.len(),
            shown(&fio_mean),
            shown(&fio_p99)
        ),
        goal: GOAL,
        is_met,
    })
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

fn ours(binary: &Path, engine: &str, file: &Path) -> Result<Read> {
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
    Ok(Read {
        mean_ns: latency["mean_ns"].as_f64().context("no mean")?,
        p99_ns: p99.and_then(|q| q["value_ns"].as_f64()).context("too few reads for a p99")?,
    })
}

/// The same priority and CPU as ours: SCHED_FIFO 80 where allowed, the last CPU.
fn theirs(chrt: &Path, fio: &Path, engine: &str, file: &Path) -> Result<Read> {
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
    Ok(Read {
        mean_ns: latency["mean"].as_f64().context("fio gave no mean")?,
        p99_ns: latency["percentile"]["99.000000"].as_f64().context("fio gave no p99")?,
    })
}

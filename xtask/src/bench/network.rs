//! UDP round trips over loopback against `sockperf ping-pong --full-rtt`: same CPUs, size, priority, no pause between.
//!
//! The requester is on the first CPU, the responder on the last; both sides of both programs try SCHED_FIFO 80. sockperf prints
//! half round trips unless told `--full-rtt`. Ours takes kernel receive stamps on both sides, which sockperf does not; that
//! is in the ratio. The goal is judged with both CPUs kept awake (/dev/cpu_dma_latency held at 0): whether a CPU has time to
//! fall asleep between two messages hangs on a microsecond of either program's own work, so without that the two
//! programs measure different waits (docs/methods/network.md: bimodal). The row without it is shown beside, with no promise.

use super::versus::{self, CSV_HEAD, all_met};
use super::wakeup::last_allowed_cpu;
use super::{Measured, Row, installed};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::Write as _;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 12;
const SECONDS: u32 = 2;
/// The requester's.
const CPU: u32 = 0;
const WHAT: [&str; 2] = ["UDP round trip, loopback, no gap, CPUs kept awake", "the same, CPUs may sleep"];
const GOAL: [&str; 2] = ["p50 within 5 %, p99 within 10 %", "no promise"];
const LIMIT: &str = "/dev/cpu_dma_latency";

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let none = |ours: String, peer: String| Measured {
        rows: vec![Row { what: WHAT[1], ours, peer, goal: GOAL[1], is_met: None }],
        csv: String::new(),
    };
    if last_allowed_cpu() == CPU {
        return Ok(none("-".into(), "needs two CPUs".into()));
    }
    let Some(sockperf) = installed("sockperf") else {
        let [p50, p99] = ours(binary)?;
        let ours = format!("p50 {:.1} us, p99 {:.1} us", p50 / 1e3, p99 / 1e3);
        return Ok(none(ours, "sockperf: not installed (Debian package sockperf)".into()));
    };
    let mut all = Measured { rows: Vec::new(), csv: CSV_HEAD.into() };
    for (row, name) in ["network-awake", "network"].into_iter().enumerate() {
        // The limit lasts as long as the file is open.
        let held = (row == 0).then(hold).transpose();
        let Ok(held) = held else {
            let peer = format!("{LIMIT}: {}", held.err().map_or_else(String::new, |e| e.to_string()));
            all.rows.push(Row { what: WHAT[row], ours: "-".into(), peer, goal: GOAL[row], is_met: None });
            continue;
        };
        let (ours, theirs) = (|| Ok(ours(binary)?.into()), || Ok(theirs(&sockperf)?.into()));
        let rounds = versus::rounds(ROUNDS, name, "sockperf", &["p50_ns", "p99_ns"], &ours, &theirs)?;
        drop(held);
        let (p50, p99) = (rounds.figure(0)?, rounds.figure(1)?);
        let shown = |p50: f64, p99: f64| format!("p50 {:.1} us, p99 {:.1} us", p50 / 1e3, p99 / 1e3);
        let peer = format!("sockperf {}; p50 {}; p99 {}", shown(p50.theirs, p99.theirs), p50.ratio(), p99.ratio());
        let is_met = if row == 0 { all_met(&[p50.is_within(0.05), p99.is_within(0.10)]) } else { None };
        all.rows.push(Row { what: WHAT[row], ours: shown(p50.ours, p99.ours), peer, goal: GOAL[row], is_met });
        all.csv += rounds.csv();
    }
    Ok(all)
}

/// Keeps every CPU awake until dropped.
fn hold() -> std::io::Result<std::fs::File> {
    let mut file = std::fs::OpenOptions::new().write(true).open(LIMIT)?;
    file.write_all(&0i32.to_ne_bytes())?;
    Ok(file)
}

fn ours(binary: &Path) -> Result<[f64; 2]> {
    let mut command = Command::new(binary);
    command.args(["measure", "network", "--transport", "udp", "--gap", "0us", "--json"]);
    command.args(["--cpu", &CPU.to_string(), "--responder-cpu", &last_allowed_cpu().to_string()]);
    let output = command.args(["--duration", &format!("{SECONDS}s")]).output()?;
    if !output.status.success() {
        bail!("`measure network`: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let json: Value = serde_json::from_slice(&output.stdout)?;
    let quantiles = &json["network"][0]["round_trip"]["quantiles"];
    let of = |q: f64| {
        let found = quantiles.as_array().and_then(|all| all.iter().find(|one| one["q"] == q));
        found.and_then(|one| one["value_ns"].as_f64()).context("no quantile in the output of `measure network`")
    };
    Ok([of(0.5)?, of(0.99)?])
}

/// A server that ends with this value.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn theirs(sockperf: &Path) -> Result<[f64; 2]> {
    // A port nobody has: taken and given back.
    let port = UdpSocket::bind("127.0.0.1:0")?.local_addr()?.port().to_string();
    let on = |cpu: u32| {
        let prefix = prefix(cpu);
        let mut command = Command::new(&prefix[0]);
        command.args(&prefix[1..]).arg(sockperf);
        command
    };
    let mut server = on(last_allowed_cpu());
    server.args(["server", "-i", "127.0.0.1", "-p", &port]).stdout(Stdio::null()).stderr(Stdio::null());
    let _server = Server(server.spawn().context("sockperf server")?);
    std::thread::sleep(Duration::from_millis(300));
    let mut client = on(CPU);
    client.args(["ping-pong", "-i", "127.0.0.1", "-p", &port, "-m", "64", "--full-rtt", "-t", &SECONDS.to_string()]);
    let output = client.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let of = |name: &str| {
        let line = text.lines().find(|line| line.contains(&format!("percentile {name}")));
        let us = line.and_then(|line| line.rsplit('=').next()?.trim().parse::<f64>().ok());
        us.map(|us| us * 1e3).with_context(|| format!("sockperf printed no percentile {name}: {}", text.trim()))
    };
    Ok([of("50.000")?, of("99.000")?])
}

/// The words that pin a command and, where that is allowed, make it SCHED_FIFO 80.
pub(super) fn prefix(cpu: u32) -> Vec<PathBuf> {
    let can_fifo = Command::new("chrt").args(["-f", "80", "true"]).output().is_ok_and(|o| o.status.success());
    let cpu = cpu.to_string();
    let fifo: &[&str] = if can_fifo { &["chrt", "-f", "80"] } else { &[] };
    fifo.iter().chain(&["taskset", "-c", cpu.as_str()]).map(PathBuf::from).collect()
}

//! Case K2 on one machine: two network namespaces and a cable, pinged both ways, with one CPU held awake or the other.
//!
//! Host A is processed on CPU 0, host B on CPU 1 (RPS). A CPU is held awake by its own latency limit (`n/a` in
//! `power/pm_qos_resume_latency_us`), which is put back, and the namespaces removed, when the value that holds them is
//! dropped; a kill -9 in between leaves both behind. Rounds are interleaved over the arms; a row gives medians over the
//! rounds' medians, and how well the parts add up. Needs root and two CPUs.

use super::{Measured, Row, median};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROUNDS: usize = 5;
const GOAL: &str = "parts add up to the round trip within 15 %";
const ADDRESSES: [&str; 2] = ["10.218.0.1", "10.218.0.2"];
const DEVICES: [&str; 2] = ["wwbencha", "wwbenchb"];
const NAMESPACES: [&str; 2] = ["wakewatt-bench-a", "wakewatt-bench-b"];
const STRETCHES: [&str; 7] =
    ["send", "wire", "responder_wake", "responder_work", "requester_wake", "requester_run", "return"];

/// Name, CPUs held awake, and who asks (0 is A).
const ARMS: [(&str, &[usize], usize); 8] = [
    ("ping A to B (both halt)", &[], 0),
    ("ping B to A (both halt)", &[], 1),
    ("ping A to B (A held awake)", &[0], 0),
    ("ping B to A (A held awake)", &[0], 1),
    ("ping A to B (B held awake)", &[1], 0),
    ("ping B to A (B held awake)", &[1], 1),
    ("ping A to B (both held awake)", &[0, 1], 0),
    ("ping B to A (both held awake)", &[0, 1], 1),
];

pub(crate) fn measure(binary: &Path) -> Result<Measured> {
    let hosts = match Hosts::make() {
        Ok(hosts) => hosts,
        Err(why) => {
            let row =
                Row { what: "ping, divided", ours: format!("{why:#}"), peer: "-".into(), goal: GOAL, is_met: None };
            return Ok(Measured { rows: vec![row], csv: String::new() });
        }
    };
    let mut csv = format!(
        "round,arm,round_trip_p50_ns,round_trip_mean_ns,{}_p50_ns,sum_of_means_ratio,n,n_undivided,pays\n",
        STRETCHES.join("_p50_ns,")
    );
    let mut rounds: BTreeMap<usize, Vec<Ping>> = BTreeMap::new();
    for round in 0..ROUNDS {
        for (at, (name, held, from)) in ARMS.iter().enumerate() {
            let _held: Vec<Held> = held.iter().map(|cpu| Held::awake(*cpu)).collect::<Result<_>>()?;
            let ping = hosts.ping(binary, *from)?;
            let parts: Vec<String> = ping.parts_ns.iter().map(|ns| format!("{ns:.0}")).collect();
            let _ = writeln!(
                csv,
                "{round},{name},{:.0},{:.0},{},{:.3},{},{},{}",
                ping.p50_ns,
                ping.mean_ns,
                parts.join(","),
                ping.sum_ratio,
                ping.n,
                ping.n_undivided,
                ping.pays
            );
            rounds.entry(at).or_default().push(ping);
        }
    }
    let rows = rounds.iter().map(|(at, pings)| row(ARMS[*at].0, pings)).collect();
    Ok(Measured { rows, csv })
}

fn row(what: &'static str, pings: &[Ping]) -> Row {
    let of = |value: &dyn Fn(&Ping) -> f64| median(&pings.iter().map(value).collect::<Vec<_>>());
    let us = |value: &dyn Fn(&Ping) -> f64| format!("{:.1}", of(value) / 1e3);
    let parts: Vec<String> =
        STRETCHES.iter().enumerate().map(|(i, name)| format!("{name} {}", us(&|p| p.parts_ns[i]))).collect();
    let ratio = of(&|p| p.sum_ratio);
    let ours = format!("{} us = {}; adds up to {:.1} %", us(&|p| p.p50_ns), parts.join(" + "), ratio * 100.0);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    pings.iter().for_each(|p| *counts.entry(&p.pays).or_default() += 1);
    let pays = counts
        .into_iter()
        .max_by_key(|(_, n)| *n)
        .map_or(String::new(), |(who, n)| format!("{who} ({n}/{})", pings.len()));
    Row { what, ours, peer: format!("largest: {pays}"), goal: GOAL, is_met: Some((0.85..=1.15).contains(&ratio)) }
}

/// One run of the program.
struct Ping {
    p50_ns: f64,
    mean_ns: f64,
    parts_ns: [f64; 7],
    sum_ratio: f64,
    n: u64,
    n_undivided: u64,
    pays: String,
}

/// Two namespaces with their cable; gone with the value.
struct Hosts;

impl Hosts {
    fn make() -> Result<Hosts> {
        let hosts = Hosts;
        for namespace in NAMESPACES {
            run("ip", &["netns", "add", namespace])?;
        }
        let ([a, b], [on_a, on_b]) = (DEVICES, NAMESPACES);
        run("ip", &["link", "add", a, "netns", on_a, "type", "veth", "peer", "name", b, "netns", on_b])?;
        for host in 0..2 {
            let (namespace, device) = (NAMESPACES[host], DEVICES[host]);
            run("ip", &["-n", namespace, "addr", "add", &format!("{}/24", ADDRESSES[host]), "dev", device])?;
            run("ip", &["-n", namespace, "link", "set", device, "up"])?;
            let steer = format!("echo {:x} > /sys/class/net/{device}/queues/rx-0/rps_cpus", 1 << host);
            run("ip", &["netns", "exec", namespace, "sh", "-c", &steer])?;
        }
        Ok(hosts)
    }

    fn ping(&self, binary: &Path, from: usize) -> Result<Ping> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", NAMESPACES[from]]).arg(binary);
        command.args(["measure", "network", "--icmp", "--json", "--duration", "2s", "--gap", "1ms"]);
        command.args(["--peer", ADDRESSES[1 - from], "--cpu", &from.to_string()]);
        let output = command.output()?;
        let json: Value = serde_json::from_slice(&output.stdout).context("`measure network --icmp --json`")?;
        let sample = &json["icmp"][0];
        if sample.is_null() {
            bail!("{}", json["not_done"]);
        }
        let p50 = |time: &Value| {
            let found = time["quantiles"].as_array()?.iter().find(|q| q["q"] == 0.5)?;
            found["value_ns"].as_f64()
        };
        let part = |stretch: &str| sample["parts"].as_array()?.iter().find(|p| p["stretch"] == stretch);
        let mut parts_ns = [f64::NAN; 7];
        let mut sum_ns = 0.0;
        for (ns, stretch) in parts_ns.iter_mut().zip(STRETCHES) {
            let part = part(stretch).with_context(|| format!("no part {stretch}"))?;
            *ns = p50(&part["time"]).with_context(|| format!("{stretch}: {}", part["remark"]))?;
            sum_ns += part["time"]["mean_ns"].as_f64().unwrap_or(f64::NAN);
        }
        let mean_ns = sample["round_trip"]["mean_ns"].as_f64().context("no mean")?;
        let payer = &sample["payer"];
        let word = |value: &Value| value.as_str().map(str::to_string);
        let state = word(&payer["state"]).map_or("awake".into(), |s| format!("from {s}"));
        let cpu = payer["cpu"].as_u64().map_or(String::new(), |cpu| format!(" on CPU {cpu} {state}"));
        Ok(Ping {
            p50_ns: p50(&sample["round_trip"]).context("no median")?,
            mean_ns,
            parts_ns,
            sum_ratio: sum_ns / mean_ns,
            n: sample["round_trip"]["n"].as_u64().unwrap_or(0),
            n_undivided: sample["n_unsplit"].as_u64().unwrap_or(0),
            pays: format!("{}{cpu}", word(&payer["stretch"]).unwrap_or_default()),
        })
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for namespace in NAMESPACES {
            let _ = Command::new("ip").args(["netns", "del", namespace]).output();
        }
    }
}

/// A CPU that does not halt, until dropped.
struct Held {
    file: PathBuf,
    before: String,
}

impl Held {
    fn awake(cpu: usize) -> Result<Held> {
        let file = PathBuf::from(format!("/sys/devices/system/cpu/cpu{cpu}/power/pm_qos_resume_latency_us"));
        let before = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        std::fs::write(&file, "n/a").with_context(|| file.display().to_string())?;
        Ok(Held { file, before: before.trim().into() })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Err(why) = std::fs::write(&self.file, &self.before) {
            eprintln!("{} could not be put back to {}: {why}", self.file.display(), self.before);
        }
    }
}

fn run(program: &str, args: &[&str]) -> Result<()> {
    let output = Command::new(program).args(args).output().with_context(|| program.to_string())?;
    if !output.status.success() {
        bail!("{program} {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

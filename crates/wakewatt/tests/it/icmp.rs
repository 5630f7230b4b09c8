//! Case K2 on one machine: two network namespaces and a cable, each with its own CPU, one held awake and one that halts.
//!
//! Live, as in `live.rs`, and only with two CPUs, `ip`, and eBPF. RPS steers what arrives in each namespace to its CPU, so
//! that a request wakes the responder's and a reply the requester's.

use crate::live::{Limited, machine};
use crate::schemas::{assert_valid, validator};
use crate::tool::{PROGRAM, said, wakewatt};
use serde_json::Value;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wakewatt_testing::{Lacks, skipped};

/// One of the two: namespace, device, address, CPU.
struct Host {
    namespace: &'static str,
    device: &'static str,
    address: &'static str,
    cpu: u32,
}

const A: Host = Host { namespace: "wakewatt-icmp-a", device: "wwicmpa", address: "10.218.0.1", cpu: 0 };
const B: Host = Host { namespace: "wakewatt-icmp-b", device: "wwicmpb", address: "10.218.0.2", cpu: 1 };

/// Both with their cable; gone with the value.
struct Cable;

impl Cable {
    fn lay() -> Result<Cable, String> {
        let cable = Cable;
        ip(&format!("netns add {}", A.namespace))?;
        ip(&format!("netns add {}", B.namespace))?;
        let (a, b) = (A.device, B.device);
        ip(&format!("link add {a} netns {} type veth peer name {b} netns {}", A.namespace, B.namespace))?;
        for host in [A, B] {
            ip(&format!("-n {} addr add {}/24 dev {}", host.namespace, host.address, host.device))?;
            ip(&format!("-n {} link set {} up", host.namespace, host.device))?;
            let rps = format!("/sys/class/net/{}/queues/rx-0/rps_cpus", host.device);
            let write = format!("echo {:x} > {rps}", 1 << host.cpu);
            run(Command::new("ip").args(["netns", "exec", host.namespace, "sh", "-c", &write]))?;
        }
        Ok(cable)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for host in [A, B] {
            let _ = Command::new("ip").args(["netns", "del", host.namespace]).output();
        }
    }
}

fn ip(line: &str) -> Result<(), String> {
    run(Command::new("ip").args(line.split(' ')))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    let why = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {why}")) }
}

fn on(host: &Host, args: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", host.namespace, PROGRAM]).args(args).stdin(Stdio::null());
    command
}

/// Pings and returns the sample.
fn ping(from: &Host, to: &Host) -> Value {
    let cpu = from.cpu.to_string();
    let args = ["measure", "network", "--icmp", "--peer", to.address, "--cpu", &cpu, "--duration", "2s", "--json"];
    let said = said(&mut on(from, &args));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_valid(&validator("measure"), "ping", &said.out)["icmp"][0].clone()
}

/// Pings while the responder watches: what both say of the same echoes.
fn ping_watched(from: &Host, to: &Host) -> (Value, Value) {
    let mut watching = on(to, &["respond", "--icmp", "--for", "20s", "--json"]);
    let watching = watching.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut watching = Watching(watching);
    std::thread::sleep(Duration::from_millis(800));
    let sample = ping(from, to);
    let pid = rustix::process::Pid::from_raw(i32::try_from(watching.0.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let answers = std::io::read_to_string(watching.0.stdout.take().unwrap()).unwrap();
    (sample, assert_valid(&validator("respond"), "respond", &answers))
}

/// A responder that does not outlive the test.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn part<'a>(sample: &'a Value, stretch: &str) -> &'a Value {
    sample["parts"].as_array().unwrap().iter().find(|p| p["stretch"] == stretch).unwrap()
}

fn p50_us(time: &Value) -> f64 {
    time["quantiles"].as_array().unwrap().iter().find(|q| q["q"] == 0.5).unwrap()["value_ns"].as_f64().unwrap() / 1e3
}

/// Of the echoes whose stretch waited for a CPU that halted: those on this CPU, and on others.
fn n_halted(sample: &Value, stretch: &str, cpu: u32) -> (u64, u64) {
    let mut counts = (0, 0);
    for cell in part(sample, stretch)["by_state"].as_array().unwrap() {
        if cell["state"].is_null() || cell["state"] == "POLL" {
            continue;
        }
        let n = cell["time"]["n"].as_u64().unwrap();
        *(if cell["cpu"] == cpu { &mut counts.0 } else { &mut counts.1 }) += n;
    }
    counts
}

fn assert_complete(sample: &Value) {
    let n = sample["round_trip"]["n"].as_f64().unwrap();
    assert_eq!(sample["is_peer_local"], true);
    assert!(n > 1000.0, "{n} replies in 2 s");
    assert!(sample["n_unsplit"].as_f64().unwrap() < 0.05 * n, "{} of {n} not divided", sample["n_unsplit"]);
    let parts = sample["parts"].as_array().unwrap();
    let sum: f64 = parts.iter().map(|p| p["time"]["mean_ns"].as_f64().unwrap()).sum();
    let ratio = sum / sample["round_trip"]["mean_ns"].as_f64().unwrap();
    assert!((0.85..=1.15).contains(&ratio), "the parts are {ratio} of the round trip");
}

#[test]
fn a_slow_ping_is_blamed_on_the_cpu_that_halts() {
    let test = "a_slow_ping_is_blamed_on_the_cpu_that_halts";
    let Some(_machine) = machine(test) else { return };
    let state = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state1");
    let limit = |cpu: u32| wakewatt_core::facts::pm_qos::cpu_limit_path(cpu);
    if !(0..2).all(|cpu| std::fs::exists(state(cpu)).unwrap() && std::fs::exists(limit(cpu)).unwrap()) {
        return skipped(test, Lacks::Here, "needs two CPUs with two idle states and latency limits of their own");
    }
    let _cable = match Cable::lay() {
        Ok(cable) => cable,
        Err(why) => return skipped(test, Lacks::Here, &why),
    };
    if let Err(why) = wakewatt_probes::check(&wakewatt_probes::icmp::PROBE) {
        return skipped(test, Lacks::Here, &why.to_string());
    }
    let _a_polls = Limited::set(A.cpu, "n/a");

    // A machine with other work has no CPU that halts: then there is nothing to blame.
    let n_of = |sample: &Value| part(sample, "responder_wake")["time"]["n"].as_u64().unwrap();
    let halts = |sample: &Value| n_halted(sample, "responder_wake", B.cpu).0 * 10 > n_of(sample) * 9;
    let found = (0..8).find_map(|_| {
        let (there, answers) = ping_watched(&A, &B);
        halts(&there).then_some((there, answers))
    });
    let Some((there, answers)) = found else {
        return skipped(test, Lacks::Quiet, "other work kept CPU 1 from halting, in eight tries");
    };
    let back = ping(&B, &A);

    assert_complete(&there);
    assert_complete(&back);
    // A to B: B's CPU halts between requests, so the responder pays.
    let n = n_of(&there);
    let (on_b, elsewhere) = n_halted(&there, "responder_wake", B.cpu);
    assert!(on_b * 2 > n && elsewhere == 0, "{}", part(&there, "responder_wake"));
    assert_eq!(there["payer"]["stretch"], "responder_wake", "{}", there["payer"]);
    assert_eq!(there["payer"]["cpu"], B.cpu);
    // B to A: A's CPU never halts, so the responder is quick; who halts is the requester's.
    assert_eq!(n_halted(&back, "responder_wake", A.cpu), (0, 0), "{}", part(&back, "responder_wake"));
    for stretch in ["requester_wake", "requester_run"] {
        assert_eq!(n_halted(&back, stretch, B.cpu).1, 0, "{}", part(&back, stretch));
        assert_eq!(n_halted(&there, stretch, B.cpu), (0, 0), "{}", part(&there, stretch));
    }
    let wake_us = |sample: &Value| p50_us(&part(sample, "responder_wake")["time"]);
    assert!(wake_us(&there) > 2.0 * wake_us(&back), "{} us against {} us", wake_us(&there), wake_us(&back));
    // The responder's own count: the same echoes (and the warm-up's), the same time.
    assert!(answers["n_answered"].as_u64().unwrap() >= n, "{} answered, {n} seen", answers["n_answered"]);
    let own_us = p50_us(&part(&answers, "responder_wake")["time"]);
    assert!((own_us / wake_us(&there) - 1.0).abs() < 0.25, "{own_us} us there, {} us from here", wake_us(&there));
}

#[test]
fn a_pulled_cable_leaves_what_was_measured() {
    let test = "a_pulled_cable_leaves_what_was_measured";
    let Some(_machine) = machine(test) else { return };
    let _cable = match Cable::lay() {
        Ok(cable) => cable,
        Err(why) => return skipped(test, Lacks::Here, &why),
    };
    let args = ["measure", "network", "--icmp", "--peer", B.address, "--duration", "20s", "--json"];
    let ping = on(&A, &args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut ping = Watching(ping);
    std::thread::sleep(Duration::from_secs(2));
    ip(&format!("-n {} link del {}", A.namespace, A.device)).unwrap();
    let out = std::io::read_to_string(ping.0.stdout.take().unwrap()).unwrap();
    let sample = &assert_valid(&validator("measure"), "ping", &out)["icmp"][0];
    assert!(sample["round_trip"]["n"].as_u64().unwrap() > 100);
    assert!(sample["ended_early"].is_string(), "{}", sample["ended_early"]);
    // Nobody at an address of nobody's: an error that says so.
    let none = said(&mut wakewatt(&["measure", "network", "--icmp", "--peer", "240.0.0.1", "--duration", "200ms"]));
    assert_eq!(none.code, Some(3), "{none:?}");
    assert!(none.out.contains("not measured: ICMP round trip to 240.0.0.1"), "{none:?}");
}

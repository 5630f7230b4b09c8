//! `wakewatt measure`: one thing, with its uncertainty. Wake-ups and round trips are here; the rest has files of its own.

mod cores;
mod disk;
mod disk_text;
mod frequency;
pub mod idle;
mod memory;
pub mod power;

pub(crate) use disk::describe as describe_disk;
pub use memory::{as_found, nodes_of, worker as memory_worker};

use crate::cli::{Measure, MeasureArgs, NetworkArgs, WakeupArgs};
use crate::cmd::{icmp, saved};
use crate::exit::{Code, End, Failure};
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::Progress;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::net::SocketAddr;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::facts::{Cpus, Domain, topology::Topology};
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::Scheduling;
use wakewatt_core::samples::cores::CoresSample;
use wakewatt_core::samples::disk::DiskSample;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::icmp::IcmpSample;
use wakewatt_core::samples::memory::MemorySample;
use wakewatt_core::samples::network::{NetworkSample, Transport};
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::samples::speed::SpeedSample;
use wakewatt_core::samples::state_cost::StateCosts;
use wakewatt_core::samples::wakeup::{WakeKind, WakeupSample};
use wakewatt_core::source::Source;
use wakewatt_core::units::{Cpu, show_ns};
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_host::live::Live;
use wakewatt_host::resolve::host_and_port;
use wakewatt_lab::bench::{self, BenchError, NetworkSpec, RemoteKind, RemoteSpec, RespondSpec, Responder, TimerSpec};
use wakewatt_lab::pick;

/// More CPUs than this are sampled when none are named: all of a big machine would take an hour.
const MAX_CPUS: usize = 8;

/// What `measure` found.
#[derive(Debug, Default, serde::Serialize, schemars::JsonSchema)]
pub struct Measured {
    /// Wake-ups.
    pub wakeups: Vec<WakeupSample>,
    /// Round trips.
    pub network: Vec<NetworkSample>,
    /// Pings.
    pub icmp: Vec<IcmpSample>,
    /// Memory.
    pub memory: Option<MemorySample>,
    /// Disk reads.
    pub disk: Vec<DiskSample>,
    /// Disk reads with and without sleep, if asked for.
    pub disk_experiment: Option<ExperimentRun>,
    /// Cache line hand-overs between CPUs.
    pub cores: Vec<CoresSample>,
    /// From idle to full speed, one entry per CPU.
    pub speed: Vec<SpeedSample>,
    /// What leaving each idle state costs, one entry per CPU.
    pub idle_states: Vec<StateCosts>,
    /// Watts and joules.
    pub power: Vec<power::PowerSample>,
    /// What could not be measured, and why.
    pub not_done: Vec<NotDone>,
}

/// Runs it.
pub fn run(args: &MeasureArgs) -> Result<End> {
    let interrupt = Interrupt::listen()?;
    let src = Live::this_machine();
    let saving = saved::start(args.save.as_deref(), &format!("measure {}", args.what.word()), &src)?;
    let (measured, is_json) = match &args.what {
        Measure::Wakeup(args) => (wakeup(args, &src, &interrupt)?, args.json),
        Measure::Network(args) => (network(args, &src, &interrupt)?, args.json),
        Measure::Memory(args) => (memory::measure(args, &src, &interrupt)?, args.json),
        Measure::Disk(args) => (disk::run(args, &src, &interrupt)?, args.json),
        Measure::Cores(args) => (cores::run(args, &src, &interrupt)?, args.json),
        Measure::Frequency(args) => (frequency::run(args, &interrupt)?, args.json),
        Measure::Idle(args) => (idle::run(args, &src, &interrupt)?, args.json),
        Measure::Power(args) if args.calibrate => {
            power::calibrated(args, &interrupt)?;
            return Ok(Code::Fine.into());
        }
        Measure::Power(args) => {
            let power = vec![power::run(args, &interrupt)?];
            (Measured { power, ..Measured::default() }, args.json)
        }
    };
    let shown = match is_json {
        true => output::json("measure", &measured).and_then(|text| output::print(&text)),
        false => output::print(&text(&measured, &src)),
    };
    let own = output::settled(shown, code(&measured, interrupt.is_set()));
    let own = saving.map_or(own, |saving| saving.finish_with(&measured.evidence(), own));
    // The command's code is what was promised; ours would hide it.
    if let Some(command) = measured.power.iter().find_map(|p| p.command.as_ref()) {
        return Ok(End::Command(command.exit_code));
    }
    Ok(own.into())
}

impl Measured {
    /// As evidence; the facts are the run file's own.
    fn evidence(&self) -> Evidence {
        let Measured {
            wakeups,
            network,
            icmp,
            memory,
            disk,
            disk_experiment,
            cores,
            speed,
            idle_states,
            power,
            not_done,
        } = self;
        Evidence {
            not_done: not_done.clone(),
            samples: Samples {
                wakeups: wakeups.clone(),
                network: network.clone(),
                icmp: icmp.clone(),
                memory: memory.clone(),
                disk: disk.clone(),
                disk_experiment: disk_experiment.clone(),
                cores: cores.clone(),
                speed: speed.clone(),
                idle_states: idle_states.clone(),
                energy: power.iter().map(|p| p.sample.clone()).collect(),
                ..Samples::default()
            },
            ..Evidence::default()
        }
    }
}

fn code(measured: &Measured, is_interrupted: bool) -> Code {
    let Measured {
        wakeups,
        network,
        icmp,
        memory,
        disk,
        disk_experiment,
        cores,
        speed,
        idle_states,
        power,
        not_done: _,
    } = measured;
    let has_idle = idle_states.iter().any(|costs| costs.states.iter().any(|s| !s.wakes.is_empty()));
    let has_memory = memory.as_ref().is_some_and(|m| {
        !m.latency.is_empty() || m.loaded.is_some() || !m.bandwidth.is_empty() || !m.matrix.is_empty()
    });
    let has_power = power.iter().any(|p| p.sample.chosen.is_some());
    let is_left = disk_experiment.as_ref().is_some_and(|run| !run.is_restored());
    if is_left || idle_states.iter().any(|costs| !costs.not_restored.is_empty()) {
        Code::NotRestored
    } else if is_interrupted {
        Code::Interrupted
    } else if wakeups.is_empty()
        && network.is_empty()
        && icmp.is_empty()
        && !has_memory
        && disk.is_empty()
        && disk_experiment.is_none()
        && cores.is_empty()
        && speed.is_empty()
        && !has_idle
        && !has_power
    {
        Code::CouldNotMeasure
    } else {
        Code::Fine
    }
}

/// The kinds, in the order they are measured; the last has no pause to sleep in and is measured only when named.
const KINDS: [WakeKind; 5] = [WakeKind::Timer, WakeKind::Futex, WakeKind::Eventfd, WakeKind::Ipi, WakeKind::Pipe];

fn wakeup(args: &WakeupArgs, src: &dyn Source, interrupt: &Interrupt) -> Result<Measured> {
    let allowed = allowed_cpus().context("cannot ask which CPUs this process may use")?;
    let topology = Topology::read(src, &Cpus::read(src));
    let mut measured = Measured::default();
    let cpus = args.cpu.clone().unwrap_or_else(|| pick::spread(&allowed, MAX_CPUS));
    if args.cpu.is_none() && cpus.len() < allowed.len() {
        let why = format!("only CPUs {cpus} of {allowed} were measured; name others with --cpu");
        measured.not_done.push(NotDone::new(Step::Unnamed, why));
    }
    let is_wanted = |kind: &WakeKind| {
        (args.kind.is_empty() && *kind != WakeKind::Pipe) || args.kind.iter().any(|k| k == kind.word())
    };
    let jobs: Vec<(Cpu, WakeKind)> =
        cpus.iter().flat_map(|cpu| KINDS.into_iter().filter(is_wanted).map(move |k| (cpu, k))).collect();
    let progress = Progress::start("measure wakeup");
    for (at, (cpu, kind)) in jobs.iter().enumerate() {
        if interrupt.is_set() {
            break;
        }
        progress.set(at as f64 / jobs.len() as f64, &format!("{} on CPU {cpu}", kind.word()));
        let from_cpu = args.from.or_else(|| pick::partner(&topology, &allowed, *cpu));
        match one_wakeup(*kind, *cpu, from_cpu, args.gap, args.duration, src, interrupt) {
            Ok(sample) => measured.wakeups.push(sample),
            Err(why) => {
                let step = format!("{} wake-up of CPU {cpu}", kind.word());
                measured.not_done.push(NotDone::named(step, why.to_string()));
            }
        }
    }
    Ok(measured)
}

/// One kind of wake-up on one CPU.
pub fn one_wakeup(
    kind: WakeKind,
    cpu: Cpu,
    from_cpu: Option<Cpu>,
    gap_ns: u64,
    duration_ns: u64,
    src: &dyn Source,
    interrupt: &Interrupt,
) -> Result<WakeupSample, BenchError> {
    let stop = interrupt.flag();
    if kind == WakeKind::Timer {
        return bench::timer(&TimerSpec { gap_ns, ..TimerSpec::on(cpu, duration_ns) }, stop, src).map(|s| s.sample);
    }
    let only = "it needs a second CPU to be woken from, and this process may use only one";
    let from_cpu = from_cpu.ok_or_else(|| BenchError::Unavailable(only.into()))?;
    let spec = |kind| RemoteSpec { gap_ns, ..RemoteSpec::between(kind, from_cpu, cpu, duration_ns) };
    match kind {
        WakeKind::Ipi => bench::ipi(&spec(RemoteKind::Futex), stop, src),
        WakeKind::Eventfd => bench::remote(&spec(RemoteKind::Eventfd), stop, src),
        WakeKind::Pipe => bench::pipe(&spec(RemoteKind::Futex), stop, src),
        _ => bench::remote(&spec(RemoteKind::Futex), stop, src),
    }
    .map(|s| s.sample)
}

fn network(args: &NetworkArgs, src: &dyn Source, interrupt: &Interrupt) -> Result<Measured> {
    let allowed = allowed_cpus().context("cannot ask which CPUs this process may use")?;
    let topology = Topology::read(src, &Cpus::read(src));
    let cpu = args.cpu.or(allowed.first()).context("no CPU to run on")?;
    let mut measured = Measured::default();
    if args.icmp {
        match icmp::ping(args, cpu, src, interrupt)? {
            Ok(sample) => measured.icmp.push(sample),
            Err(why) => measured.not_done.push(NotDone::new(Step::Unnamed, why)),
        }
        return Ok(measured);
    }
    let mut responder = None;
    let (peer, name, responder_cpu) = match &args.peer {
        Some(peer) => (resolve(peer)?, peer.clone(), None),
        None => {
            let responder_cpu = args.responder_cpu.or_else(|| pick::partner(&topology, &allowed, cpu));
            let started = Responder::start(&RespondSpec::loopback(responder_cpu));
            let started = responder.insert(started.map_err(|e| Failure::error(Code::CouldNotMeasure, e.to_string()))?);
            (started.address(), "loopback".to_string(), responder_cpu)
        }
    };
    let progress = Progress::start("measure network");
    let transports = [Transport::Udp, Transport::Tcp]
        .into_iter()
        .filter(|t| args.transport.is_empty() || args.transport.iter().any(|w| w == t.word()));
    for (at, transport) in transports.enumerate() {
        if interrupt.is_set() {
            break;
        }
        progress.set(at as f64 / 2.0, &format!("{} to {name}", transport.word()));
        let spec = NetworkSpec {
            gap_ns: args.gap,
            local_responder_cpu: responder_cpu,
            ..NetworkSpec::to(transport, peer, cpu, args.duration)
        };
        match bench::round_trip(&spec, interrupt.flag(), src) {
            Ok(slice) => measured.network.push(NetworkSample { peer: name.clone(), ..slice.sample }),
            Err(why) => {
                let step = format!("{} round trip to {name}", transport.word());
                measured.not_done.push(NotDone::named(step, why.to_string()));
            }
        }
    }
    Ok(measured)
}

fn resolve(peer: &str) -> Result<SocketAddr> {
    let addresses = host_and_port(peer)
        .map_err(|e| Failure::error(Code::Usage, format!("--peer: {e}; give HOST:PORT, such as 10.0.0.2:7117")))?;
    addresses.first().copied().ok_or_else(|| Failure::error(Code::Usage, format!("--peer {peer}: no address")))
}

fn text(measured: &Measured, src: &dyn Source) -> String {
    let mut out = String::new();
    if !measured.wakeups.is_empty() {
        let _ = writeln!(out, "Wake-up latency, measured (95 % interval of the median in brackets)\n");
        let _ = writeln!(
            out,
            "{:<8} {:>4} {:>5}  {:>8} {:<19} {:>8} {:>8} {:>8} {:>8}  asleep in",
            "kind", "CPU", "from", "p50", "", "p90", "p99", "p99.9", "n"
        );
    }
    for sample in &measured.wakeups {
        let from = sample.from_cpu.map_or("-".to_string(), |c| c.to_string());
        let states = sample.idle.iter().flat_map(|d| &d.states).filter(|s| s.n_usage > 0);
        let states: Vec<String> = states.map(|s| format!("{} {}x", s.name, s.n_usage)).collect();
        let _ = writeln!(
            out,
            "{:<8} {:>4} {from:>5}  {}  {}",
            sample.kind.word(),
            sample.cpu,
            columns(&sample.latency),
            states.join(", ")
        );
    }
    if !measured.network.is_empty() {
        let _ = writeln!(out, "Round trips, measured (95 % interval of the median in brackets)\n");
        let _ = writeln!(out, "{:<20} {:>8} {:<19} {:>8} {:>8} {:>8} {:>8}", "", "p50", "", "p90", "p99", "p99.9", "n");
    }
    for sample in &measured.network {
        let _ = writeln!(
            out,
            "{:<20} {}",
            format!("{} {}", sample.transport.word(), sample.peer),
            columns(&sample.round_trip)
        );
        match &sample.split {
            Ok(split) => {
                for (name, part) in [
                    ("  requester", &split.requester),
                    ("  responder", &split.responder),
                    ("  wire and stacks", &split.wire),
                ] {
                    let _ = writeln!(out, "{name:<20} {}", columns(part));
                }
            }
            Err(why) => {
                let _ = writeln!(out, "  no split: {why}");
            }
        }
        if sample.n_lost > 0 {
            let _ = writeln!(out, "  {} of {} requests were not answered", sample.n_lost, sample.n_sent);
        }
        if let Some(why) = behind_plan(sample.n_late_starts, sample.n_sent, sample.gap_ns) {
            let _ = writeln!(out, "  {why}");
        }
    }
    measured.icmp.iter().for_each(|sample| icmp::text(&mut out, sample));
    if let Some(sample) = &measured.memory {
        memory::text(&mut out, sample);
    }
    disk_text::samples(&mut out, &measured.disk);
    measured.disk_experiment.iter().for_each(|run| disk_text::experiment(&mut out, run));
    measured.cores.iter().for_each(|sample| cores::text(&mut out, sample, src));
    measured.speed.iter().for_each(|sample| frequency::text(&mut out, sample));
    measured.idle_states.iter().for_each(|costs| idle::text(&mut out, costs));
    measured.power.iter().for_each(|sample| power::text(&mut out, sample));
    let scheduling = measured
        .wakeups
        .first()
        .map(|s| &s.scheduling)
        .or(measured.network.first().map(|s| &s.scheduling))
        .or(measured.icmp.first().map(|s| &s.scheduling))
        .or(measured.disk.first().map(|s| &s.scheduling));
    let _ = match scheduling {
        Some(Scheduling::Fifo(priority)) => {
            writeln!(out, "\nThreads pinned, SCHED_FIFO {priority}; nothing on this machine was changed.")
        }
        Some(Scheduling::Other(why)) => {
            writeln!(out, "\nThreads pinned, SCHED_OTHER ({why}): run-queue delay is included. Nothing was changed.")
        }
        None => Ok(()),
    };
    for line in &measured.not_done {
        let _ = writeln!(out, "not measured: {line}");
    }
    out
}

/// A round trip longer than the gap makes each request later than the one before: then the wait in that queue is most of
/// the number, and nothing in the table tells.
fn behind_plan(n_late: u64, n_sent: u64, gap_ns: u64) -> Option<String> {
    (n_late * 10 > n_sent).then(|| {
        format!(
            "{n_late} of {n_sent} requests could not be sent as planned, every {}: their waiting is in the round trip, \
             not in its parts; to measure single round trips give a longer --gap",
            show_ns(gap_ns)
        )
    })
}

fn columns(latency: &Distribution) -> String {
    let at = |q: f64| latency.quantile(q).map_or("-".into(), |v| show_ns(v.value_ns));
    let interval =
        latency.quantile(0.5).map_or(String::new(), |v| format!("[{}, {}]", show_ns(v.low_ns), show_ns(v.high_ns)));
    format!("{:>8} {interval:<19} {:>8} {:>8} {:>8} {:>8}", at(0.5), at(0.9), at(0.99), at(0.999), latency.n)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_plan_that_was_not_kept_is_told() {
        assert_eq!(super::behind_plan(10, 100, 1_000_000), None);
        let said = super::behind_plan(1990, 2044, 1_000_000).unwrap();
        assert!(said.starts_with("1990 of 2044 requests could not be sent as planned, every 1ms"), "{said}");
        assert_eq!(super::behind_plan(0, 0, 1), None, "nothing was sent");
    }
}

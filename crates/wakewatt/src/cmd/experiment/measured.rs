//! From the workloads of a plan to what measures on this machine; one that cannot be had is left out with the reason.

use super::levels::{self, StepsSource};
#[cfg(feature = "shop")]
use super::shop_levels::ShopSource;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::disk::{DiskAccess, DiskEngine, DiskTargetKind};
use wakewatt_core::samples::load::{Ask, Kind};
use wakewatt_core::samples::network::Transport;
use wakewatt_core::samples::study::Skipped;
use wakewatt_core::source::Source;
use wakewatt_core::units::Cpu;
use wakewatt_host::disk::made;
use wakewatt_host::disk::ring;
use wakewatt_host::disk::target::Target;
use wakewatt_host::power::Recorder;
use wakewatt_host::resolve;
use wakewatt_lab::bench::DiskSpec;
use wakewatt_lab::disk_workload::DiskWorkload;
use wakewatt_lab::experiment::Workload;
use wakewatt_lab::meters::Meters;
use wakewatt_lab::pick;
use wakewatt_lab::plan::{Plan, PlanKind, PlanWorkload};
use wakewatt_lab::survey::describe;
use wakewatt_lab::wake_workload::WakeWorkload;
use wakewatt_lab::workloads::command::CommandWorkload;
use wakewatt_lab::workloads::level::LevelWorkload;
use wakewatt_lab::workloads::network::NetworkWorkload;
use wakewatt_lab::workloads::{Part, WattMeter};

/// How often meters are read within a block.
const METER_NS: u64 = 500_000_000;
/// Discarded at the start of each disk block; the block's own warm-up came before.
const DISK_WARMUP_NS: u64 = 10_000_000;

/// What workloads of a plan work with.
pub(super) struct WorkloadContext<'a> {
    pub(super) src: &'a dyn Source,
    pub(super) facts: &'a Snapshot,
    pub(super) allowed: CpuSet,
    pub(super) seed: u64,
    pub(super) settle_ns: u64,
    pub(super) meters: Meters,
    /// Of the CPUs' time, by others, in a level of load.
    pub(super) foreign_ratio: f64,
}

/// What a disk workload reads, opened before anything else borrows it; one per workload, none for the others.
pub(super) fn targets(plan: &Plan, seed: u64, stop: &AtomicBool) -> Vec<Option<Result<Target, String>>> {
    let target = |w: &PlanWorkload| match &w.kind {
        PlanKind::Disk { path, size_bytes, .. } => Some(target(path.as_deref(), *size_bytes, seed, stop)),
        _ => None,
    };
    plan.workloads.iter().map(target).collect()
}

fn target(path: Option<&str>, size_bytes: u64, seed: u64, stop: &AtomicBool) -> Result<Target, String> {
    match path.map(Path::new) {
        Some(file) if !file.is_dir() => Target::open(file, true).map_err(|e| e.to_string()),
        folder => {
            let folder = folder.unwrap_or(Path::new("/var/tmp"));
            made::make(folder, size_bytes, true, seed, stop, &|_| {}).map_err(|e| e.to_string())
        }
    }
}

/// The workloads that can be had here.
pub(super) fn parts<'a>(
    plan: &Plan,
    context: &WorkloadContext<'a>,
    targets: &'a [Option<Result<Target, String>>],
) -> (Vec<Part<'a>>, Vec<Skipped>) {
    let (mut parts, mut skipped) = (Vec::new(), Vec::new());
    for (at, wanted) in plan.workloads.iter().enumerate() {
        let target = targets.get(at).and_then(Option::as_ref);
        match workload(wanted, context, target) {
            Ok(workload) => parts.push(Part {
                name: wanted.name.clone(),
                kind: wanted.kind.word(),
                load: match wanted.kind {
                    PlanKind::Steps { .. } => Some(Kind::Steps),
                    PlanKind::Shop { .. } => Some(Kind::Shop),
                    _ => None,
                },
                workload,
            }),
            Err(why) => skipped.push(Skipped { what: format!("workload {}", wanted.kind.word()), why }),
        }
    }
    (parts, skipped)
}

fn workload<'a>(
    wanted: &PlanWorkload,
    context: &WorkloadContext<'a>,
    target: Option<&'a Result<Target, String>>,
) -> Result<Box<dyn Workload + 'a>, String> {
    let WorkloadContext { src, facts, allowed, seed, settle_ns, meters, foreign_ratio } = context;
    let cpu_of = |named: Option<Cpu>| match named {
        Some(cpu) if !allowed.contains(cpu) => {
            Err(format!("this process may not use CPU {cpu} (it may use {allowed})"))
        }
        Some(cpu) => Ok(cpu),
        None => pick::sleeper(allowed).ok_or_else(|| "this process may use no CPU".to_string()),
    };
    match &wanted.kind {
        PlanKind::Wakeup { cpu, from_cpu } => {
            let cpu = cpu_of(*cpu)?;
            let from_cpu = match from_cpu {
                Some(from) => Some(cpu_of(Some(*from))?),
                None => pick::partner(&facts.topology, allowed, cpu),
            };
            Ok(Box::new(WakeWorkload::new(*src, cpu, from_cpu, wanted.measure_ns)))
        }
        PlanKind::Network { peer, is_tcp, cpu } => {
            let cpu = cpu_of(*cpu)?;
            let address = peer.as_ref().map(|peer| {
                let found = resolve::host_and_port(peer).map_err(|e| format!("peer {peer}: {e}"))?;
                found.first().copied().ok_or_else(|| format!("peer {peer}: no address"))
            });
            let transport = if *is_tcp { Transport::Tcp } else { Transport::Udp };
            let responder = pick::partner(&facts.topology, allowed, cpu);
            // The one that answers is the one whose sleep is looked at, as in the wake-ups.
            let cpus = match (&peer, responder) {
                (None, Some(other)) => (other, Some(cpu)),
                _ => (cpu, responder),
            };
            let network = NetworkWorkload::new(*src, address.transpose()?, transport, cpus, wanted.measure_ns)?;
            Ok(Box::new(network))
        }
        PlanKind::Disk { path, is_uring, block_bytes, depth, is_sequential, .. } => {
            let target = target.ok_or("no target")?.as_ref().map_err(Clone::clone)?;
            if let (true, Some(why)) = (*is_uring, ring::refusal()) {
                return Err(format!("io_uring: {why}"));
            }
            let engine = if *is_uring { DiskEngine::IoUring } else { DiskEngine::Psync };
            let kind = match (path, target.is_device) {
                (None, _) => DiskTargetKind::Made,
                (_, true) => DiskTargetKind::Device,
                _ => DiskTargetKind::File,
            };
            let path = Path::new(path.as_deref().unwrap_or("/var/tmp"));
            let about = describe(path, kind, target, *src);
            let spec = DiskSpec {
                access: if *is_sequential { DiskAccess::Sequential } else { DiskAccess::Random },
                block_bytes: *block_bytes,
                depth: *depth,
                warmup_ns: DISK_WARMUP_NS,
                ..DiskSpec::on(engine, cpu_of(None)?, wanted.measure_ns, *seed)
            };
            Ok(Box::new(DiskWorkload::new(*src, target, about, spec)))
        }
        PlanKind::Command { argv, metrics } => {
            Ok(Box::new(CommandWorkload::new(argv.clone(), metrics, allowed.clone())?))
        }
        PlanKind::Steps { shares, service_ns } => {
            let service_ns = service_ns.unwrap_or(levels::SERVICE_NS);
            let source = StepsSource::new(*src, allowed, (service_ns, wanted.measure_ns), *seed, meters.clone())?;
            let asks = shares.iter().map(|share| if *share > 0.0 { Ask::Share(*share) } else { Ask::Idle }).collect();
            Ok(Box::new(LevelWorkload::new(source, asks, *settle_ns, wanted.measure_ns, *foreign_ratio)))
        }
        #[cfg(not(feature = "shop"))]
        PlanKind::Shop { .. } => Err(crate::features::Feature::Shop.lacking("a shop").to_string()),
        #[cfg(feature = "shop")]
        PlanKind::Shop { clients } => {
            let most = clients.iter().copied().max().unwrap_or(1);
            let source = ShopSource::new(*src, allowed.clone(), most, *seed, meters.clone());
            let asks = clients.iter().map(|n| Ask::Clients(*n)).collect();
            Ok(Box::new(LevelWorkload::new(source, asks, *settle_ns, wanted.measure_ns, *foreign_ratio)))
        }
    }
}

/// Mean watts around each workload, by the meters that work.
pub(super) struct Watts {
    meters: Meters,
    running: Option<Recorder>,
}

impl Watts {
    /// By these.
    pub(super) fn by(meters: &Meters) -> Watts {
        Watts { meters: meters.every(METER_NS), running: None }
    }
}

impl WattMeter for Watts {
    fn start(&mut self) {
        self.running = Some(self.meters.start());
    }
    fn stop(&mut self) -> Option<f64> {
        let sample = self.meters.said(self.running.take()?.stop())?;
        let mean_uw = sample.chosen()?.total.as_ref()?.mean_uw;
        (mean_uw > 0).then_some(mean_uw as f64)
    }
}

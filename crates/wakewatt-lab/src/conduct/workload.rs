//! From the workloads of a plan to what measures on this machine; one that cannot be had is left out with the reason.

#[cfg(feature = "shop")]
use super::shop_source::ShopSource;
use super::steps_source::{self, StepsSource};
use crate::bench::DiskSpec;
use crate::disk_workload::DiskWorkload;
use crate::experiment::Workload;
use crate::meters::Meters;
use crate::pick;
use crate::plan::{Plan, PlanKind, PlanWorkload};
use crate::survey::describe;
use crate::wake_workload::{WakePlaces, WakeWorkload};
use crate::workloads::Part;
use crate::workloads::alone::Alone;
use crate::workloads::command::CommandWorkload;
#[cfg(feature = "shop")]
use crate::workloads::declared::asks_of_clients;
use crate::workloads::declared::asks_of_shares;
use crate::workloads::level::LevelWorkload;
use crate::workloads::network::NetworkWorkload;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::disk::{DiskAccess, DiskEngine, DiskTargetKind};
use wakewatt_core::samples::load::Kind;
use wakewatt_core::samples::network::Transport;
use wakewatt_core::samples::study::Skipped;
use wakewatt_core::source::Source;
use wakewatt_core::units::Cpu;
use wakewatt_host::disk::made;
use wakewatt_host::disk::ring;
use wakewatt_host::disk::target::Target;
use wakewatt_host::resolve;

/// Discarded at the start of each disk block; the block's own warm-up came before.
const DISK_WARMUP_NS: u64 = 10_000_000;

/// What is said of a shop where the program was built without it.
#[cfg(not(feature = "shop"))]
const NO_SHOP: &str = "a shop: this binary was built without the feature shop; `make build`, or a package, has it";

/// What workloads of a plan work with.
pub(super) struct WorkloadContext<'a> {
    pub(super) plan: &'a Plan,
    pub(super) src: &'a dyn Source,
    pub(super) facts: &'a Snapshot,
    pub(super) allowed: CpuSet,
    pub(super) seed: u64,
    /// Looked at already.
    pub(super) meters: Meters,
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
    context: &WorkloadContext<'a>,
    targets: &'a [Option<Result<Target, String>>],
) -> (Vec<Part<'a>>, Vec<Skipped>) {
    let (mut parts, mut skipped) = (Vec::new(), Vec::new());
    for (at, wanted) in context.plan.workloads.iter().enumerate() {
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
    let WorkloadContext { plan, src, facts, allowed, seed, meters } = context;
    let (settle_ns, foreign_ratio) = (plan.settle_ns, plan.limits.foreign_ratio);
    let cpu_of = |named: Option<Cpu>| match named {
        Some(cpu) if !allowed.contains(cpu) => {
            Err(format!("this process may not use CPU {cpu} (it may use {allowed})"))
        }
        Some(cpu) => Ok(cpu),
        None => pick::sleeper(allowed).ok_or_else(|| "this process may use no CPU".to_string()),
    };
    match &wanted.kind {
        PlanKind::Wakeup { cpu, from_cpu, is_fixed } => {
            let cpu = cpu_of(*cpu)?;
            let from_cpu = match from_cpu {
                Some(from) => Some(cpu_of(Some(*from))?),
                None => pick::partner(&facts.topology, allowed, cpu),
            };
            let seed = (!is_fixed).then_some(*seed);
            let places = WakePlaces { cpu, from_cpu, block_ns: wanted.measure_ns, seed };
            Ok(Box::new(WakeWorkload::new(*src, places)))
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
        PlanKind::Alone => Ok(Box::new(Alone::new(*src, allowed.clone(), wanted.measure_ns))),
        PlanKind::Command { argv, metrics } => {
            Ok(Box::new(CommandWorkload::new(argv.clone(), metrics, allowed.clone())?))
        }
        PlanKind::Steps { shares, service_ns } => {
            let service_ns = service_ns.unwrap_or(steps_source::SERVICE_NS);
            let source = StepsSource::new(*src, allowed, (service_ns, wanted.measure_ns), *seed, meters.clone())?;
            let asks = asks_of_shares(shares);
            Ok(Box::new(LevelWorkload::new(source, asks, settle_ns, wanted.measure_ns, foreign_ratio)))
        }
        #[cfg(not(feature = "shop"))]
        PlanKind::Shop { .. } => Err(NO_SHOP.into()),
        #[cfg(feature = "shop")]
        PlanKind::Shop { clients } => {
            let most = clients.iter().copied().max().unwrap_or(1);
            let source = ShopSource::new(*src, allowed.clone(), most, *seed, meters.clone());
            let asks = asks_of_clients(clients);
            Ok(Box::new(LevelWorkload::new(source, asks, settle_ns, wanted.measure_ns, foreign_ratio)))
        }
    }
}

//! `wakewatt measure disk`: what is read, with which engines, and what must be said beside the numbers.

use super::Measured;
use crate::cli::disk::DiskArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use anyhow::{Context, Result};
use std::path::Path;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::disk::{DiskAccess, DiskEngine, DiskTarget, DiskTargetKind};
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::samples::study::Skipped;
use wakewatt_core::source::Source;
use wakewatt_core::stats::sequential::Looks;
use wakewatt_core::units::{Cpu, show_bytes};
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_host::disk::made::{self, MadeError};
use wakewatt_host::disk::ring;
use wakewatt_host::disk::target::{Target, TargetError};
use wakewatt_lab::bench::{self, DiskSpec};
use wakewatt_lab::disk_workload::DiskWorkload;
use wakewatt_lab::experiment::Design;
use wakewatt_lab::{idle_experiment, pick};

/// A file that is made, unless said otherwise: larger than the memory of most disks and controllers.
const MADE_BYTES: u64 = 1 << 30;
/// Below this some cache under the file may hold all of it.
const SMALL_BYTES: u64 = 256 << 20;
/// Discarded at the start of each sample.
const WARMUP_NS: u64 = 300_000_000;

/// Runs it.
pub(super) fn run(args: &DiskArgs, src: &dyn Source, interrupt: &Interrupt) -> Result<Measured> {
    let allowed = allowed_cpus().context("cannot ask which CPUs this process may use")?;
    let seed = args.seed.unwrap_or_else(pick::seed_of_now);
    let mut remarks = Vec::new();
    if args.experiment && (args.depth.len() > 1 || args.engine.len() > 1) {
        let why = "--experiment measures one kind of reads under several settings; give one --depth and one --engine";
        return Err(Failure::error(Code::Usage, why));
    }
    let target = open(args, seed, interrupt, &mut remarks)?;
    let about = about(args, &target, src);
    remarks.extend(what_to_know(&target, &allowed));
    let mut measured = Measured::default();
    let engines = engines(args, src, &mut remarks, &mut measured.not_done);
    let spec = |engine, depth| DiskSpec {
        access: if args.sequential { DiskAccess::Sequential } else { DiskAccess::Random },
        block_bytes: args.block,
        depth,
        planned_per_s: args.rate,
        cpus: reading_cpus(args.cpu.as_ref(), &allowed, depth),
        warmup_ns: WARMUP_NS,
        ..DiskSpec::on(engine, 0, args.duration, seed)
    };
    if args.experiment {
        let (engine, depth) = (engines.first().copied().unwrap_or(DiskEngine::Psync), args.depth.first());
        let spec = spec(engine, depth.copied().unwrap_or(1));
        match experiment(args, spec, &target, about, src, interrupt) {
            Ok((run, skipped)) => {
                measured.disk_experiment = Some(run);
                measured.not_done.extend(idle_experiment::not_done(Step::Experiment, &skipped));
            }
            Err(why) => measured.not_done.push(NotDone::new(Step::Experiment, why)),
        }
        return Ok(measured);
    }
    let jobs: Vec<DiskSpec> = engines.iter().flat_map(|e| args.depth.iter().map(|d| spec(*e, *d))).collect();
    let progress = Progress::start("measure disk");
    for (at, spec) in jobs.iter().enumerate() {
        if interrupt.is_set() {
            break;
        }
        progress.set(at as f64 / jobs.len() as f64, &format!("{} at depth {}", spec.engine.word(), spec.depth));
        match bench::disk(spec, &target, about.clone(), interrupt.flag(), src) {
            Ok(mut slice) => {
                slice.sample.remarks.clone_from(&remarks);
                measured.disk.push(slice.sample);
            }
            Err(why) => {
                let step = format!("{} at depth {}", spec.engine.word(), spec.depth);
                measured.not_done.push(NotDone::named(step, why.to_string()));
            }
        }
    }
    Ok(measured)
}

/// What was named, or a file made for it.
fn open(args: &DiskArgs, seed: u64, interrupt: &Interrupt, remarks: &mut Vec<String>) -> Result<Target> {
    let refuse = |why: String| Failure::error(Code::CouldNotMeasure, why);
    let mut target = match &args.target {
        Some(path) => match Target::open(path, true) {
            Err(TargetError::Memory { .. } | TargetError::NotDirect { .. }) if args.buffered => {
                Target::open(path, false)
            }
            other => other,
        }
        .map_err(|e| refuse(e.to_string()))?,
        None => made(args, seed, interrupt)?,
    };
    if !target.is_direct {
        remarks.push(
            "read through the page cache (--buffered): memory may have answered, and then this is no disk's latency"
                .into(),
        );
    }
    if let (Some(_), Some(size)) = (&args.target, args.size) {
        if size > target.size_bytes {
            let found = show_bytes(target.size_bytes);
            return Err(refuse(format!("--size {}: the target holds {found}; give less", show_bytes(size))));
        }
        target.size_bytes = size;
    }
    Ok(target)
}

fn made(args: &DiskArgs, seed: u64, interrupt: &Interrupt) -> Result<Target> {
    let progress = Progress::start("measure disk");
    let size = args.size.unwrap_or(MADE_BYTES);
    let words = format!("writing {} of random bytes to read from", show_bytes(size));
    let told = |share: f64| progress.set(share, &words);
    let make = |is_direct| made::make(&args.folder, size, is_direct, seed, interrupt.flag(), &told);
    match make(true) {
        Err(MadeError::Target(TargetError::Memory { .. } | TargetError::NotDirect { .. })) if args.buffered => {
            make(false)
        }
        other => other,
    }
    .map_err(|why| {
        let code = if matches!(why, MadeError::Stopped) { Code::Interrupted } else { Code::CouldNotMeasure };
        Failure::error(code, why.to_string())
    })
}

fn about(args: &DiskArgs, target: &Target, src: &dyn Source) -> DiskTarget {
    let kind = match (&args.target, target.is_device) {
        (None, _) => DiskTargetKind::Made,
        (_, true) => DiskTargetKind::Device,
        _ => DiskTargetKind::File,
    };
    describe(args.target.as_deref().unwrap_or(&args.folder), kind, target, src)
}

/// What a sample says of its target.
pub(crate) fn describe(path: &Path, kind: DiskTargetKind, target: &Target, src: &dyn Source) -> DiskTarget {
    let (major, minor) = target.device;
    let link = src.link(&format!("/sys/dev/block/{major}:{minor}")).ok();
    DiskTarget {
        path: path.display().to_string(),
        kind,
        filesystem: target.filesystem.map(ToString::to_string),
        device: link.and_then(|l| l.rsplit('/').next().map(ToString::to_string)),
        size_bytes: target.size_bytes,
        is_direct: target.is_direct,
    }
}

fn what_to_know(target: &Target, allowed: &CpuSet) -> Vec<String> {
    let mut remarks = Vec::new();
    if target.has_holes {
        remarks.push("the file has parts that were never written: their reads do not reach the disk".to_string());
    }
    if target.size_bytes < SMALL_BYTES {
        let size = show_bytes(target.size_bytes);
        remarks
            .push(format!("only {size} are read: a cache in disk, controller or host may hold all of it; give more"));
    }
    if allowed.len() == 1 {
        remarks.push("this process may use one CPU only: reader, kernel and interrupt share it".to_string());
    }
    remarks
}

/// Those asked for that this kernel lets us use; without io_uring `pread` takes its place.
fn engines(
    args: &DiskArgs,
    src: &dyn Source,
    remarks: &mut Vec<String>,
    not_done: &mut Vec<NotDone>,
) -> Vec<DiskEngine> {
    let is_wanted =
        |e: DiskEngine| args.engine.is_empty() && !args.experiment || args.engine.iter().any(|w| w == e.word());
    let mut engines: Vec<DiskEngine> =
        [DiskEngine::Psync, DiskEngine::IoUring].into_iter().filter(|e| is_wanted(*e)).collect();
    if let (true, Some(why)) = (engines.contains(&DiskEngine::IoUring), ring::refusal()) {
        engines.retain(|e| *e == DiskEngine::Psync);
        let text = src.read("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
        let because = match String::from_utf8_lossy(&text).trim() {
            "1" | "2" => "kernel.io_uring_disabled forbids it; root may set it to 0 with sysctl",
            _ => "a container's system call filter (seccomp) forbids it, or the kernel lacks it",
        };
        let said = format!("{why}; {because}");
        if engines.is_empty() {
            remarks.push(format!("io_uring: {said}; measured with psync instead"));
        } else {
            not_done.push(NotDone::named("io_uring", said));
        }
    }
    if engines.is_empty() {
        engines.push(DiskEngine::Psync);
    }
    engines
}

/// One reader sits on the last CPU; more readers spread from there.
fn reading_cpus(named: Option<&CpuSet>, allowed: &CpuSet, depth: u32) -> Vec<Cpu> {
    match named {
        Some(cpus) => cpus.iter().collect(),
        None if depth == 1 => pick::sleeper(allowed).into_iter().collect(),
        None => {
            let mut cpus: Vec<Cpu> = allowed.iter().collect();
            cpus.reverse();
            cpus
        }
    }
}

fn experiment(
    args: &DiskArgs,
    spec: DiskSpec,
    target: &Target,
    about: DiskTarget,
    src: &dyn Source,
    interrupt: &Interrupt,
) -> Result<(ExperimentRun, Vec<Skipped>), String> {
    let facts = Snapshot::read(src, |_| true);
    let design = Design { warmup_ns: WARMUP_NS, budget_ns: args.budget, ..Design::new(Looks::standard(), spec.seed) };
    let spec = DiskSpec { warmup_ns: 10_000_000, ..spec };
    let mut workload = DiskWorkload::new(src, target, about, spec);
    let progress = Progress::start("measure disk");
    idle_experiment::run(&mut workload, &design, &facts, interrupt.lab(src, &progress))
}

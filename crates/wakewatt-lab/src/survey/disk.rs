//! Disk reads: what is read, with which engines, and what must be said beside the numbers.

use super::{Found, allowed_cpus, each};
use crate::bench::{self, DiskSpec};
use crate::context::Lab;
use crate::pick;
use crate::refusal::Refusal;
use std::path::{Path, PathBuf};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::disk::{DiskAccess, DiskEngine, DiskSample, DiskTarget, DiskTargetKind};
use wakewatt_core::samples::not_done::NotDone;
use wakewatt_core::source::Source;
use wakewatt_core::units::{Cpu, show_bytes};
use wakewatt_host::disk::made::{self, MadeError};
use wakewatt_host::disk::ring;
use wakewatt_host::disk::target::{Target, TargetError};

/// A file that is made, unless said otherwise: larger than the memory of most disks and controllers.
const MADE_BYTES: u64 = 1 << 30;
/// Below this some cache under the file may hold all of it.
const SMALL_BYTES: u64 = 256 << 20;
/// Discarded at the start of each sample.
const WARMUP_NS: u64 = 300_000_000;

/// What is to be read, and how.
#[derive(Clone, Debug)]
pub struct DiskPlan {
    /// A file or device; one is made when none.
    pub target: Option<PathBuf>,
    /// Where it is made.
    pub folder: PathBuf,
    /// Of the file that is made, or how much of the target is read from.
    pub size_bytes: Option<u64>,
    /// These, or `psync` where none of them can be had.
    pub engines: Vec<DiskEngine>,
    /// Reads under way.
    pub depths: Vec<u32>,
    /// Order.
    pub access: DiskAccess,
    /// Of each read.
    pub block_bytes: u64,
    /// Planned reads per second.
    pub planned_per_s: Option<f64>,
    /// Through the page cache where it cannot be bypassed.
    pub is_buffered: bool,
    /// CPUs of the readers.
    pub cpus: Option<CpuSet>,
    /// Time per engine and depth.
    pub duration_ns: u64,
    /// Of the order.
    pub seed: u64,
}

/// A plan with its target open.
pub struct Reads {
    /// What is read.
    pub target: Target,
    /// What samples say of it.
    pub about: DiskTarget,
    /// What must be known beside the numbers.
    pub remarks: Vec<String>,
    plan: DiskPlan,
    allowed: CpuSet,
}

impl Reads {
    /// Opens what was named, or makes a file.
    pub fn open(lab: Lab<'_>, plan: DiskPlan) -> Result<Reads, Refusal> {
        let allowed = allowed_cpus()?;
        let target = open(lab, &plan)?;
        let kind = match (&plan.target, target.is_device) {
            (None, _) => DiskTargetKind::Made,
            (_, true) => DiskTargetKind::Device,
            _ => DiskTargetKind::File,
        };
        let about = describe(plan.target.as_deref().unwrap_or(&plan.folder), kind, &target, lab.src);
        let remarks = what_to_know(&target, &allowed);
        Ok(Reads { target, about, remarks, plan, allowed })
    }

    /// Reads with each engine at each depth.
    pub fn measure(mut self, lab: Lab<'_>) -> Found<DiskSample> {
        let mut found = Found::default();
        let engines = self.engines(lab.src, &mut found.not_done);
        let spec = |engine: &DiskEngine| self.plan.depths.iter().map(|depth| self.spec(*engine, *depth)).collect();
        let jobs: Vec<DiskSpec> = engines.iter().flat_map::<Vec<DiskSpec>, _>(spec).collect();
        let words = |spec: &DiskSpec| format!("{} at depth {}", spec.engine.word(), spec.depth);
        each(lab, &jobs, words, |spec| {
            let slice = bench::disk(spec, &self.target, self.about.clone(), lab.stop, lab.src);
            let sample = slice.map(|slice| DiskSample { remarks: self.remarks.clone(), ..slice.sample });
            found.add(|| words(spec), sample);
        });
        found
    }

    /// The reads of one engine at one depth.
    pub fn spec(&self, engine: DiskEngine, depth: u32) -> DiskSpec {
        DiskSpec {
            access: self.plan.access,
            block_bytes: self.plan.block_bytes,
            depth,
            planned_per_s: self.plan.planned_per_s,
            cpus: reading_cpus(self.plan.cpus.as_ref(), &self.allowed, depth),
            warmup_ns: WARMUP_NS,
            ..DiskSpec::on(engine, 0, self.plan.duration_ns, self.plan.seed)
        }
    }

    /// Those asked for that this kernel lets us use; without io_uring `pread` takes its place.
    pub fn engines(&mut self, src: &dyn Source, not_done: &mut Vec<NotDone>) -> Vec<DiskEngine> {
        let mut engines = self.plan.engines.clone();
        if let (true, Some(why)) = (engines.contains(&DiskEngine::IoUring), ring::refusal()) {
            engines.retain(|e| *e == DiskEngine::Psync);
            let text = src.read("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
            let because = match String::from_utf8_lossy(&text).trim() {
                "1" | "2" => "kernel.io_uring_disabled forbids it; root may set it to 0 with sysctl",
                _ => "a container's system call filter (seccomp) forbids it, or the kernel lacks it",
            };
            let said = format!("{why}; {because}");
            match engines.is_empty() {
                true => self.remarks.push(format!("io_uring: {said}; measured with psync instead")),
                false => not_done.push(NotDone::named("io_uring", said)),
            }
        }
        if engines.is_empty() {
            engines.push(DiskEngine::Psync);
        }
        engines
    }
}

fn open(lab: Lab<'_>, plan: &DiskPlan) -> Result<Target, Refusal> {
    let mut target = match &plan.target {
        Some(path) => match Target::open(path, true) {
            Err(TargetError::Memory { .. } | TargetError::NotDirect { .. }) if plan.is_buffered => {
                Target::open(path, false)
            }
            other => other,
        }
        .map_err(|e| Refusal::Unavailable(e.to_string()))?,
        None => make(lab, plan)?,
    };
    if let (Some(_), Some(size)) = (&plan.target, plan.size_bytes) {
        if size > target.size_bytes {
            let found = show_bytes(target.size_bytes);
            let why = format!("--size {}: the target holds {found}; give less", show_bytes(size));
            return Err(Refusal::Unavailable(why));
        }
        target.size_bytes = size;
    }
    Ok(target)
}

fn make(lab: Lab<'_>, plan: &DiskPlan) -> Result<Target, Refusal> {
    let size = plan.size_bytes.unwrap_or(MADE_BYTES);
    let words = format!("writing {} of random bytes to read from", show_bytes(size));
    let told = |share: f64| lab.tell.progress(share, &words);
    let make = |is_direct| made::make(&plan.folder, size, is_direct, plan.seed, lab.stop, &told);
    let made = match make(true) {
        Err(MadeError::Target(TargetError::Memory { .. } | TargetError::NotDirect { .. })) if plan.is_buffered => {
            make(false)
        }
        other => other,
    };
    made.map_err(|why| match why {
        MadeError::Stopped => Refusal::Stopped(why.to_string()),
        other => Refusal::Unavailable(other.to_string()),
    })
}

/// What a sample says of its target.
pub fn describe(path: &Path, kind: DiskTargetKind, target: &Target, src: &dyn Source) -> DiskTarget {
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
    let size = show_bytes(target.size_bytes);
    let all = [
        (!target.is_direct).then(|| {
            "read through the page cache (--buffered): memory may have answered, and then this is no disk's latency"
                .to_string()
        }),
        target
            .has_holes
            .then(|| "the file has parts that were never written: their reads do not reach the disk".to_string()),
        (target.size_bytes < SMALL_BYTES).then(|| {
            format!("only {size} are read: a cache in disk, controller or host may hold all of it; give more")
        }),
        (allowed.len() == 1)
            .then(|| "this process may use one CPU only: reader, kernel and interrupt share it".to_string()),
    ];
    all.into_iter().flatten().collect()
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

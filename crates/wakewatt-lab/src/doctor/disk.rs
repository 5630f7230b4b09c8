//! The disk step of `doctor`: reads at depth 1 from a file made for it, as found and, where it may, with and without sleep.
//!
//! Only on a real disk with room to spare, never on a device or file of the user's, and never with `--read-only`. It has
//! [`BUDGET_NS`] for the experiment, which six rounds fit into; a smaller effect than it can prove is left undecided.

use super::Ground;
use crate::bench::{self, DiskSpec};
use crate::context::Lab;
use crate::disk_workload::DiskWorkload;
use crate::experiment::Design;
use crate::idle_experiment;
use crate::survey::describe;
use std::path::{Path, PathBuf};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::disk::{DiskEngine, DiskTarget, DiskTargetKind};
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::stats::sequential::Looks;
use wakewatt_host::disk::target::Target;
use wakewatt_host::disk::{filesystem, made};

const SIZE_BYTES: u64 = 256 << 20;
/// What a folder must have free.
const FREE_BYTES: u64 = 1 << 30;
const SAMPLE_NS: u64 = 2_000_000_000;
const WHOLE_NS: u64 = 900_000_000;
const WARMUP_NS: u64 = 100_000_000;
/// For the experiment, which mostly ends at its first interim analysis.
const BUDGET_NS: u64 = 22_000_000_000;

/// Runs it and adds the results, or the reasons why not, to the evidence.
pub(super) fn run(ground: Ground<'_>, evidence: &mut Evidence) {
    let (Ground { lab, cpu, onlooker, .. }, seed) = (ground, ground.seed());
    let (target, about) = match open(seed, lab) {
        Ok(opened) => opened,
        Err(why) => return evidence.not_done.push(NotDone::new(Step::Disk, why.to_string())),
    };
    let spec = DiskSpec::on(DiskEngine::Psync, cpu, SAMPLE_NS, seed);
    onlooker.part("doctor");
    lab.tell.progress(0.9, "measuring as found: disk reads");
    match bench::disk(&spec, &target, about.clone(), lab.stop, lab.src) {
        Ok(slice) => evidence.samples.disk.push(slice.sample),
        Err(why) => return evidence.not_done.push(NotDone::new(Step::Disk, why.to_string())),
    }
    if lab.is_stopped() {
        return;
    }
    let spec = DiskSpec { duration_ns: WHOLE_NS, warmup_ns: 0, ..spec };
    let mut workload = DiskWorkload::new(lab.src, &target, about, spec);
    let design = Design { warmup_ns: WARMUP_NS, budget_ns: BUDGET_NS, ..Design::new(Looks::standard(), seed) };
    onlooker.part("disk experiment");
    match idle_experiment::run(&mut workload, &design, &evidence.facts, lab) {
        Ok((run, skipped)) => {
            evidence.samples.disk_experiment = Some(run);
            evidence.not_done.extend(idle_experiment::not_done(Step::DiskExperiment, &skipped));
        }
        Err(why) => evidence.not_done.push(NotDone::new(Step::DiskExperiment, why)),
    }
}

/// A file in the first folder that lies on a disk with enough room.
fn open(seed: u64, lab: Lab<'_>) -> Result<(Target, DiskTarget), String> {
    let mut reasons = Vec::new();
    for folder in [PathBuf::from("."), std::env::temp_dir()] {
        match in_folder(&folder, seed, lab) {
            Ok(opened) => return Ok(opened),
            Err(why) => reasons.push(format!("{}: {why}", folder.display())),
        }
    }
    Err(format!("{}; name a folder on a disk: wakewatt measure disk --in FOLDER", reasons.join("; ")))
}

fn in_folder(folder: &Path, seed: u64, lab: Lab<'_>) -> Result<(Target, DiskTarget), String> {
    let opened = std::fs::File::open(folder).map_err(|e| e.to_string())?;
    let name = filesystem::name(&opened).unwrap_or("a file system unknown here");
    if filesystem::is_memory(name) {
        return Err(format!("{name} is memory"));
    }
    if filesystem::free_bytes(&opened).is_none_or(|free| free < FREE_BYTES) {
        return Err("less than 1 GiB is free".into());
    }
    let target = made::make(folder, SIZE_BYTES, true, seed, lab.stop, &|_| ()).map_err(|e| e.to_string())?;
    let about = describe(folder, DiskTargetKind::Made, &target, lab.src);
    // btrfs numbers its volumes itself, so the disk below cannot be named; networks and containers have none at all.
    if about.device.is_none() && name != "btrfs" {
        return Err(format!("{name} names no disk below"));
    }
    Ok((target, about))
}

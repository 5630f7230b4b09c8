//! `wakewatt measure disk`: arguments to a plan; with `--experiment` the reads are the workload under three arms.

use super::Measured;
use crate::cli::disk::DiskArgs;
use crate::exit::{Code, Failure};
use anyhow::Result;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::disk::{DiskAccess, DiskEngine};
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::samples::study::Skipped;
use wakewatt_core::stats::sequential::Looks;
use wakewatt_lab::bench::DiskSpec;
use wakewatt_lab::context::Lab;
use wakewatt_lab::disk_workload::DiskWorkload;
use wakewatt_lab::experiment::Design;
use wakewatt_lab::survey::{DiskPlan, Found, Reads};
use wakewatt_lab::{idle_experiment, pick};

/// Discarded at the start of each block, and of each read's sample in it.
const BLOCK_WARMUP_NS: u64 = 300_000_000;
const SAMPLE_WARMUP_NS: u64 = 10_000_000;

/// Runs it.
pub(super) fn run(args: &DiskArgs, lab: Lab<'_>) -> Result<Measured> {
    if args.experiment && (args.depth.len() > 1 || args.engine.len() > 1) {
        let why = "--experiment measures one kind of reads under several settings; give one --depth and one --engine";
        return Err(Failure::error(Code::Usage, why));
    }
    let mut reads = Reads::open(lab, plan(args))?;
    if !args.experiment {
        let Found { samples: disk, not_done } = reads.measure(lab);
        return Ok(Measured { disk, not_done, ..Measured::default() });
    }
    let mut measured = Measured::default();
    let engine = reads.engines(lab.src, &mut measured.not_done).first().copied().unwrap_or(DiskEngine::Psync);
    let spec = reads.spec(engine, args.depth.first().copied().unwrap_or(1));
    match experiment(args, spec, &reads, lab) {
        Ok((run, skipped)) => {
            measured.disk_experiment = Some(run);
            measured.not_done.extend(idle_experiment::not_done(Step::Experiment, &skipped));
        }
        Err(why) => measured.not_done.push(NotDone::new(Step::Experiment, why)),
    }
    Ok(measured)
}

fn plan(args: &DiskArgs) -> DiskPlan {
    let is_wanted =
        |e: &DiskEngine| args.engine.is_empty() && !args.experiment || args.engine.iter().any(|w| w == e.word());
    DiskPlan {
        target: args.target.clone(),
        folder: args.folder.clone(),
        size_bytes: args.size,
        engines: [DiskEngine::Psync, DiskEngine::IoUring].into_iter().filter(is_wanted).collect(),
        depths: args.depth.clone(),
        access: if args.sequential { DiskAccess::Sequential } else { DiskAccess::Random },
        block_bytes: args.block,
        planned_per_s: args.rate,
        is_buffered: args.buffered,
        cpus: args.cpu.clone(),
        duration_ns: args.duration,
        seed: args.seed.unwrap_or_else(pick::seed_of_now),
    }
}

fn experiment(
    args: &DiskArgs,
    spec: DiskSpec,
    reads: &Reads,
    lab: Lab<'_>,
) -> Result<(ExperimentRun, Vec<Skipped>), String> {
    let facts = Snapshot::read(lab.src, |_| true);
    let design = Design::new(Looks::standard(), spec.seed);
    let design = Design { warmup_ns: BLOCK_WARMUP_NS, budget_ns: args.budget, ..design };
    let spec = DiskSpec { warmup_ns: SAMPLE_WARMUP_NS, ..spec };
    let mut workload = DiskWorkload::new(lab.src, &reads.target, reads.about.clone(), spec);
    idle_experiment::run(&mut workload, &design, &facts, lab)
}

//! The idle experiment of `doctor`: wake-ups between two CPUs under the arms of `idle_experiment`.

use super::Times;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::source::Source;
use wakewatt_core::stats::sequential::Looks;
use wakewatt_lab::experiment::Design;
use wakewatt_lab::wake_workload::WakeWorkload;
use wakewatt_lab::{idle_experiment, pick};

/// Runs it and adds the result, or the reason why not, to the evidence.
pub(super) fn run(
    seed: Option<u64>,
    cpu: u32,
    allowed: &CpuSet,
    times: Times,
    src: &dyn Source,
    evidence: &mut Evidence,
    interrupt: &Interrupt,
) {
    let from_cpu = pick::partner(&evidence.facts.topology, allowed, cpu);
    let mut workload = WakeWorkload::new(src, cpu, from_cpu, times.block_ns);
    let looks = if times.is_quick { Looks::quick() } else { Looks::standard() };
    let seed = seed.unwrap_or_else(pick::seed_of_now);
    let (warmup_ns, budget_ns) = (times.warmup_ns, times.experiment_ns);
    let design = Design { warmup_ns, budget_ns, ..Design::new(looks, seed) };
    let progress = Progress::start("experiment");
    match idle_experiment::run(&mut workload, &design, &evidence.facts, interrupt.lab(src, &progress)) {
        Ok((run, skipped)) => {
            evidence.samples.experiment = Some(run);
            evidence.not_done.extend(idle_experiment::not_done(Step::Experiment, &skipped));
        }
        Err(why) => evidence.not_done.push(NotDone::new(Step::Experiment, why)),
    }
}

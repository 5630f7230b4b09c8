//! The idle experiment of `doctor`: wake-ups between two CPUs under the arms of `idle_experiment`.

use super::Times;
use crate::cmd::idle_experiment::{self, Plan};
use crate::interrupt::Interrupt;
use crate::pick;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::source::Source;
use wakewatt_core::stats::sequential::Looks;
use wakewatt_lab::wake_workload::WakeWorkload;

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
    match attempt(seed, cpu, allowed, times, src, evidence, interrupt) {
        Ok(run) => evidence.samples.experiment = Some(run),
        Err(why) => evidence.not_done.push(NotDone::new(Step::Experiment, why)),
    }
}

fn attempt(
    seed: Option<u64>,
    cpu: u32,
    allowed: &CpuSet,
    times: Times,
    src: &dyn Source,
    evidence: &Evidence,
    interrupt: &Interrupt,
) -> Result<wakewatt_core::samples::experiment::ExperimentRun, String> {
    let from_cpu = pick::partner(&evidence.facts.topology, allowed, cpu);
    let mut workload = WakeWorkload::new(src, cpu, from_cpu, times.block_ns);
    let plan = Plan {
        title: "experiment",
        warmup_ns: times.warmup_ns,
        budget_ns: times.experiment_ns,
        looks: if times.is_quick { Looks::quick() } else { Looks::standard() },
        seed,
    };
    idle_experiment::run(&mut workload, plan, &evidence.facts, src, interrupt)
}

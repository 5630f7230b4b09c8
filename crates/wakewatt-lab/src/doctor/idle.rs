//! The idle experiment of `doctor`: wake-ups between two CPUs under the arms of `idle_experiment`.

use super::Ground;
use crate::experiment::Design;
use crate::wake_workload::{WakePlaces, WakeWorkload};
use crate::{idle_experiment, pick};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::stats::sequential::Looks;

/// Runs it and adds the result, or the reason why not, to the evidence.
pub(super) fn run(ground: Ground<'_>, evidence: &mut Evidence) {
    let Ground { lab, cpu, times, .. } = ground;
    let from_cpu = pick::partner(&evidence.facts.topology, ground.allowed, cpu);
    let seed = ground.seed();
    let mut workload =
        WakeWorkload::new(lab.src, WakePlaces { cpu, from_cpu, block_ns: times.block_ns, seed: Some(seed) });
    let looks = if ground.plan.is_quick { Looks::quick() } else { Looks::standard() };
    let (warmup_ns, budget_ns) = (times.warmup_ns, times.experiment_ns);
    let design = Design { warmup_ns, budget_ns, ..Design::new(looks, seed) };
    ground.onlooker.part("experiment");
    match idle_experiment::run(&mut workload, &design, &evidence.facts, lab) {
        Ok((run, skipped)) => {
            evidence.samples.experiment = Some(run);
            evidence.not_done.extend(idle_experiment::not_done(Step::Experiment, &skipped));
        }
        Err(why) => evidence.not_done.push(NotDone::new(Step::Experiment, why)),
    }
}

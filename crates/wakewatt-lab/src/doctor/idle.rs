//! The idle experiment of `doctor`: wake-ups between two CPUs under the variants of `idle_plan`.

use super::Ground;
use crate::experiment::{Design, Short};
use crate::wake_workload::{WakePlaces, WakeWorkload};
use crate::{idle_experiment, pick};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::stats::sequential::Looks;

/// Every so many rounds measure the current settings twice: eight pairs by the first interim analysis, the fewest in which they
/// can be shown to differ from themselves.
const AGAIN_EVERY: usize = 3;
/// Whole rounds after the median is decided, for timers, round trips and 99th percentiles: the fewest in which several
/// metrics, adjusted together, can be shown to differ.
const N_WHOLE_ROUNDS: usize = 10;

/// Runs it and adds the result, or the reason why not, to the evidence.
pub(super) fn run(ground: Ground<'_>, evidence: &mut Evidence) {
    let Ground { lab, cpu, times, .. } = ground;
    let from_cpu = pick::partner(&evidence.facts.topology, ground.allowed, cpu);
    let seed = ground.seed();
    let places = WakePlaces { cpu, from_cpu, block_ns: times.whole_ns, seed: Some(seed) };
    let mut workload = WakeWorkload::new(lab.src, places);
    let n_whole_rounds = if ground.plan.is_quick { 0 } else { N_WHOLE_ROUNDS };
    let design = Design {
        warmup_ns: times.warmup_ns,
        budget_ns: times.experiment_ns,
        again_every: AGAIN_EVERY,
        short: Some(Short { n_whole_rounds, ..Short::new() }),
        ..Design::new(Looks::standard(), seed)
    };
    ground.onlooker.part("experiment");
    match idle_experiment::run(&mut workload, &design, &evidence.facts, lab) {
        Ok((run, skipped)) => {
            evidence.samples.experiment = Some(run);
            evidence.not_done.extend(idle_experiment::not_done(Step::Experiment, &skipped));
        }
        Err(why) => evidence.not_done.push(NotDone::new(Step::Experiment, why)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::times::FULL;
    use super::*;
    use crate::wake_workload::expected_wakes;
    use wakewatt_core::samples::tail::MIN_SAMPLES_OF_P99;
    use wakewatt_core::stats::sequential::least_rounds;
    use wakewatt_core::stats::unstable;

    #[test]
    fn the_analyses_have_the_rounds_and_the_samples_that_they_need() {
        assert!(expected_wakes(FULL.whole_ns) >= 2 * MIN_SAMPLES_OF_P99);
        // Two metrics of each of three probes, less the primary one and its tail, and two of watts, for three variants.
        assert!(N_WHOLE_ROUNDS >= least_rounds(3 * 6, 0.05));
        let first = Looks::short().all()[0].n_rounds;
        assert!(first / AGAIN_EVERY >= least_rounds(1, unstable::LEVEL), "{first} rounds have too few baseline pairs");
    }
}

//! The idle experiment of `doctor`: wake-ups between two CPUs under the arms of `idle_experiment`.

use super::Ground;
use super::times::Times;
use crate::experiment::{Design, Workload};
use crate::wake_workload::{WakePlaces, WakeWorkload};
use crate::{idle_experiment, idle_plan, pick};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::stats::sequential::Looks;

/// Runs it and adds the result, or the reason why not, to the evidence.
pub(super) fn run(ground: Ground<'_>, evidence: &mut Evidence) {
    let Ground { lab, cpu, times, .. } = ground;
    let from_cpu = pick::partner(&evidence.facts.topology, ground.allowed, cpu);
    let seed = ground.seed();
    let places = WakePlaces { cpu, from_cpu, block_ns: times.block_ns, seed: Some(seed) };
    let mut workload = WakeWorkload::new(lab.src, places);
    let n_arms = idle_plan::arms(&evidence.facts, &workload.cpus()).map_or(0, |arms| arms.len());
    let (looks, again_every) = looks(&times, ground.plan.is_quick, n_arms);
    let (warmup_ns, budget_ns) = (times.warmup_ns, times.experiment_ns);
    let design = Design { warmup_ns, budget_ns, again_every, ..Design::new(looks, seed) };
    if again_every == 0 {
        let why = "no time to hold the machine as found twice in each round, so what this host calls a difference where there is \
                   none is not known";
        evidence.not_done.push(NotDone::named("the baseline against itself", why));
    }
    ground.onlooker.part("experiment");
    match idle_experiment::run(&mut workload, &design, &evidence.facts, lab) {
        Ok((run, skipped)) => {
            evidence.samples.experiment = Some(run);
            evidence.not_done.extend(idle_experiment::not_done(Step::Experiment, &skipped));
        }
        Err(why) => evidence.not_done.push(NotDone::new(Step::Experiment, why)),
    }
}

/// Changing what is held, between two blocks.
const ENTER_NS: u64 = 20_000_000;

/// The looks that the time reaches, and whether the machine as found is held twice in every round: six pairs by the first look,
/// or what this host calls a difference where there is none is not known. Both follow from the time alone, before anything is
/// measured. The second block of the baseline goes before two more rounds until the first look, and not before any look at all.
fn looks(times: &Times, is_quick: bool, n_arms: usize) -> (Looks, usize) {
    let block_ns = times.block_ns + times.warmup_ns + ENTER_NS;
    let fits = |looks: &Looks, again: usize| {
        let n_rounds = looks.all().first().map_or(0, |look| look.n_rounds);
        block_ns.saturating_mul(((n_arms + again) * n_rounds) as u64) <= times.experiment_ns
    };
    let all = if is_quick { vec![Looks::quick()] } else { vec![Looks::standard(), Looks::quick()] };
    let of = |again: usize| all.iter().find(|looks| fits(looks, again)).map(|looks| (looks.clone(), again));
    of(1).or_else(|| of(0)).unwrap_or_else(|| (Looks::quick(), 0))
}

#[cfg(test)]
mod tests {
    use super::super::times::{FULL, QUICK};
    use super::*;
    use crate::wake_workload::expected_wakes;
    use wakewatt_core::samples::tail::MIN_SAMPLES_OF_P99;
    use wakewatt_core::stats::sequential::least_rounds;

    #[test]
    fn the_first_look_fits_has_its_baseline_pairs_and_each_block_its_tail() {
        let with = |times: Times, seconds: u64, is_quick, n_arms| {
            let times = Times { experiment_ns: seconds * 1_000_000_000, ..times };
            let (looks, again) = looks(&times, is_quick, n_arms);
            (looks.all()[0].n_rounds, again)
        };
        assert_eq!(with(FULL, 200, false, 3), (8, 1));
        assert_eq!(with(FULL, 120, false, 3), (6, 1), "beside another experiment");
        assert_eq!(with(FULL, 100, false, 3), (6, 0));
        assert_eq!((with(QUICK, 37, true, 2), with(QUICK, 37, true, 3)), ((6, 1), (6, 0)));
        assert_eq!(with(QUICK, 12, true, 3), (6, 0), "it will say that the time did not suffice");
        assert!(6 >= least_rounds(1, 0.05), "six pairs can show something");
        for times in [FULL, QUICK] {
            assert!(expected_wakes(times.block_ns) > MIN_SAMPLES_OF_P99);
        }
        assert!(expected_wakes(FULL.block_ns) >= 2 * MIN_SAMPLES_OF_P99, "twice what is needed, where there is time");
    }
}

//! Two short steps of `doctor`: speed after idle, and what each idle state costs to leave.
//!
//! Short, because the experiment needs the time: two lengths of idle, and one kind of wake-up. `measure frequency` and
//! `measure idle` take their time. The second changes settings, so it is left out by `--read-only`, and by `--quick`,
//! whose minute is full.

use super::Ground;
use crate::bench::{SpeedSpec, speed};
use crate::idle_cost::{IdleCostPlan, measure};
use crate::pick;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::not_done::{NotDone, Step, Why};

const MS: u64 = 1_000_000;

/// Some 2 s; changes nothing.
pub(super) fn speed_after_idle(ground: Ground<'_>, evidence: &mut Evidence) {
    ground.onlooker.part("doctor");
    ground.lab.tell.progress(0.9, "measuring as found: speed after idle");
    let spec = SpeedSpec { idle: vec![(MS, 12), (100 * MS, 8)], has_vector: false, ..SpeedSpec::on(ground.cpu) };
    match speed(&spec, ground.lab.stop) {
        Ok(sample) => evidence.samples.speed.push(sample),
        Err(why) => evidence.not_done.push(NotDone::new(Step::SpeedAfterIdle, why.to_string())),
    }
}

/// Some seconds per state; settings are put back before the next step.
pub(super) fn idle_states(ground: Ground<'_>, evidence: &mut Evidence) {
    if ground.plan.is_quick {
        let why = Why::Quick("wakewatt measure idle".into());
        return evidence.not_done.push(NotDone::new(Step::IdleStateCosts, why));
    }
    ground.onlooker.part("measure idle");
    let plan = IdleCostPlan::short(ground.cpu, ground.allowed, &evidence.facts, pick::seed_of_now());
    match measure(&plan, &evidence.facts, ground.lab, &mut evidence.not_done) {
        Ok(costs) => evidence.samples.idle_states.push(costs),
        Err(why) => evidence.not_done.push(NotDone::new(Step::IdleStateCosts, why.to_string())),
    }
}

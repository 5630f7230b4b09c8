//! Two short steps of `doctor`: speed after idle, and what each idle state costs to leave.
//!
//! Short, because the experiment needs the time: two lengths of idle, and one kind of wake-up. `measure frequency` and
//! `measure idle` take their time. The second changes settings, so it is left out by `--read-only`, and by `--quick`,
//! whose minute is full.

use crate::interrupt::Interrupt;
use crate::progress::Progress;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::not_done::{NotDone, Step, Why};
use wakewatt_core::source::Source;
use wakewatt_core::units::Cpu;
use wakewatt_lab::bench::{SpeedSpec, speed};
use wakewatt_lab::idle_cost::{IdleCostPlan, measure};
use wakewatt_lab::pick;

const MS: u64 = 1_000_000;

/// Some 2 s; changes nothing.
pub(super) fn speed_after_idle(cpu: Cpu, evidence: &mut Evidence, interrupt: &Interrupt) {
    let progress = Progress::start("doctor");
    progress.set(0.9, "measuring as found: speed after idle");
    let spec = SpeedSpec { idle: vec![(MS, 12), (100 * MS, 8)], has_vector: false, ..SpeedSpec::on(cpu) };
    match speed(&spec, interrupt.flag()) {
        Ok(sample) => evidence.samples.speed.push(sample),
        Err(why) => evidence.not_done.push(NotDone::new(Step::SpeedAfterIdle, why.to_string())),
    }
}

/// Some seconds per state; settings are put back before the next step.
pub(super) fn idle_states(
    cpu: Cpu,
    allowed: &CpuSet,
    is_quick: bool,
    src: &dyn Source,
    evidence: &mut Evidence,
    interrupt: &Interrupt,
) {
    if is_quick {
        let why = Why::Quick("wakewatt measure idle".into());
        return evidence.not_done.push(NotDone::new(Step::IdleStateCosts, why));
    }
    let progress = Progress::start("measure idle");
    let plan = IdleCostPlan::short(cpu, allowed, &evidence.facts, pick::seed_of_now());
    match measure(&plan, &evidence.facts, interrupt.lab(src, &progress), &mut evidence.not_done) {
        Ok(costs) => evidence.samples.idle_states.push(costs),
        Err(why) => evidence.not_done.push(NotDone::new(Step::IdleStateCosts, why.to_string())),
    }
}

//! What `doctor` measures on a live machine, step by step: as found, then the experiment that matters most there.
//!
//! One typed plan says what is allowed and how long it may take. Samples go into the evidence; every step that could not be
//! done becomes a line with its reason, and nothing stops the steps after it. What a machine's facts, rules and report say
//! is not here, nor any word on the screen: an [`Onlooker`] is told by type.

mod busy;
mod chosen;
mod disk;
mod found;
mod idle;
mod power;
mod probes;
mod quiet;
mod states;
mod times;

use crate::bench::WorkWatch;
use crate::context::Lab;
use crate::experiment::Moment;
use crate::pick;
use crate::survey::allowed_cpus;
use times::{FULL, QUICK, Times};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::busy::QuietWait;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::not_done::{NotDone, Step, Why};
use wakewatt_core::units::Cpu;

/// What may be done, and how long it may take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoctorPlan {
    /// Change nothing, write no file, load no program into the kernel.
    pub is_read_only: bool,
    /// Within a minute instead of five.
    pub is_quick: bool,
    /// Of everything drawn; from the clock where none is given.
    pub seed: Option<u64>,
    /// Wait for a quiet spell first, for so long at most.
    pub wait_quiet_ns: Option<u64>,
    /// CLOCK_MONOTONIC when it all began: what came before is part of its time.
    pub start_at_ns: u64,
}

/// Whoever watches, told by type: the words are its own.
pub trait Onlooker {
    /// A part begins, whose share is counted from nothing.
    fn part(&self, name: &str);
    /// A look at how busy the machine is, and the share of the wait that is over.
    fn looked(&self, wait: &QuietWait, share: f64);
    /// The wait for a quiet spell is over.
    fn waited(&self, wait: &QuietWait);
    /// Before and after each block of an experiment of a plan.
    fn block(&self, moment: &Moment, run: &ExperimentRun);
}

/// What every step works with.
#[derive(Clone, Copy)]
struct Ground<'a> {
    lab: Lab<'a>,
    onlooker: &'a dyn Onlooker,
    plan: &'a DoctorPlan,
    times: Times,
    /// What this process may use.
    allowed: &'a CpuSet,
    /// The one that is measured.
    cpu: Cpu,
}

impl Ground<'_> {
    fn seed(&self) -> u64 {
        self.plan.seed.unwrap_or_else(pick::seed_of_now)
    }
}

/// Adds all that could be measured to the evidence, and what could not, with the reasons.
pub fn measure(plan: &DoctorPlan, lab: Lab<'_>, onlooker: &dyn Onlooker, evidence: &mut Evidence) {
    let allowed = match allowed_cpus() {
        Ok(allowed) => allowed,
        Err(why) => return evidence.not_done.push(NotDone::new(Step::Measurements, why.to_string())),
    };
    // Its time is its own: what doctor measures gets all of what it was promised.
    let start_at_ns = plan.start_at_ns + quiet::wait(plan.wait_quiet_ns, &allowed, lab, onlooker, evidence);
    let times = if plan.is_quick { QUICK } else { FULL };
    let Some(cpu) = pick::sleeper(&allowed) else {
        return evidence.not_done.push(NotDone::new(Step::Measurements, "this process may use no CPU"));
    };
    let ground = Ground { lab, onlooker, plan, times, allowed: &allowed, cpu };
    let load = busy::Load::start(ground);
    power::look(ground, evidence);
    match load.stop(ground) {
        // What is only looked at may be looked at beside any load.
        Err(busy) if !plan.is_read_only => return left_out(evidence, Step::Experiment, Why::TooBusy(busy)),
        usable => {
            let ground = Ground { cpu: usable.unwrap_or(cpu), ..ground };
            as_found(ground, evidence);
            with_changes(ground, start_at_ns, evidence);
        }
    }
    if lab.is_stopped() {
        if evidence.samples.experiment.is_none() && !evidence.not_done.iter().any(|n| n.step == Step::Experiment) {
            left_out(evidence, Step::Experiment, Why::Interrupted);
        }
        left_out(evidence, Step::Rest, Why::Interrupted);
    }
}

/// The machine's own wake-ups come before any of ours.
fn as_found(ground: Ground<'_>, evidence: &mut Evidence) {
    let Ground { lab, plan, .. } = ground;
    let work = WorkWatch::start(lab.src, ground.allowed);
    found::trace(ground, evidence);
    found::own_work(work, lab.src, evidence);
    probes::run(ground, evidence);
    // The experiment needs the time.
    match plan.is_quick && !plan.is_read_only {
        true => left_out(evidence, Step::Memory, Why::Quick("wakewatt measure memory does it alone".into())),
        false => found::memory(ground, evidence),
    }
    match (plan.is_read_only, plan.is_quick) {
        (true, _) => left_out(evidence, Step::Disk, Why::ReadOnly("writes no file to read from".into())),
        (_, true) => left_out(evidence, Step::Disk, Why::Quick("wakewatt measure disk does it alone".into())),
        _ if lab.is_stopped() => {}
        _ => disk::run(ground, evidence),
    }
    if !lab.is_stopped() {
        states::speed_after_idle(ground, evidence);
    }
}

fn with_changes(ground: Ground<'_>, start_at_ns: u64, evidence: &mut Evidence) {
    let Ground { lab, times, .. } = ground;
    if ground.plan.is_read_only {
        let why = "changes nothing; without it doctor proves or disproves the cost";
        return left_out(evidence, Step::Experiment, Why::ReadOnly(why.into()));
    }
    if lab.is_stopped() {
        return;
    }
    states::idle_states(ground, evidence);
    match times.with_the_rest(lab.clock.now_ns().saturating_sub(start_at_ns)) {
        Ok(times) => chosen::run(Ground { times, ..ground }, evidence),
        Err(why) => left_out(evidence, Step::Experiment, why.into()),
    }
}

fn left_out(evidence: &mut Evidence, step: Step, why: Why) {
    evidence.not_done.push(NotDone { step, why });
}

#[cfg(test)]
mod tests;

//! An experiment with idle states, whatever is measured in it: arms from the facts, settings put back whatever happens.
//!
//! `doctor` measures wake-ups under these arms, `measure disk --experiment` reads.

use crate::interrupt::Interrupt;
use crate::progress::Progress;
use std::path::Path;
use std::time::SystemTime;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::source::Source;
use wakewatt_core::stats::sequential::Looks;
use wakewatt_host::sink::LiveSink;
use wakewatt_host::store::Disk;
use wakewatt_lab::context::MachineClock;
use wakewatt_lab::experiment::{self, Around, Design, Moment, Workload};
use wakewatt_lab::idle_arms::IdleArms;
use wakewatt_tune::guard::GuardCommand;
use wakewatt_tune::journal::{STATE_DIR, boot_id};
use wakewatt_tune::left;

/// How long, how often, in which order.
pub(crate) struct Plan {
    /// For the progress bar.
    pub(crate) title: &'static str,
    /// Discarded at the start of each block.
    pub(crate) warmup_ns: u64,
    /// For everything.
    pub(crate) budget_ns: u64,
    /// When to look.
    pub(crate) looks: Looks,
    /// Of the order; from the clock when none.
    pub(crate) seed: Option<u64>,
}

/// Runs it, or says why not.
pub(crate) fn run(
    workload: &mut dyn Workload,
    plan: Plan,
    facts: &Snapshot,
    src: &dyn Source,
    interrupt: &Interrupt,
) -> Result<ExperimentRun, String> {
    if facts.idle.states.is_empty() {
        return Err("this machine has no idle driver, so the kernel offers no setting to turn (/sys/devices/system/cpu/cpu0/cpuidle is missing)".into());
    }
    let sink = LiveSink::this_machine();
    if let Some(journal) = left::in_the_way(&sink, &Disk, Path::new(STATE_DIR), &boot_id(), false) {
        return Err(left::in_words(&journal));
    }
    let guard = GuardCommand::this_program().map_err(|e| e.to_string())?;
    let mut arms = IdleArms::prepare(facts, &workload.cpus(), &sink, Path::new(STATE_DIR), Some(&guard))?;
    let seed = plan.seed.unwrap_or_else(seed_of_now);
    let design = Design { warmup_ns: plan.warmup_ns, budget_ns: plan.budget_ns, ..Design::new(plan.looks, seed) };
    let bar = Progress::start(plan.title);
    let progress = |moment: &Moment, _: &ExperimentRun| bar.set(moment.share, &moment.words);
    let around = Around { src, clock: &MachineClock::default(), stop: interrupt.flag(), progress: &progress };
    experiment::run(&mut arms, workload, &design, around)
}

/// A seed nobody chose; it is recorded with what it ordered.
pub(crate) fn seed_of_now() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(1, |d| u64::from(d.subsec_nanos()) ^ d.as_secs())
}

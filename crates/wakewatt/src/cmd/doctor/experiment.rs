//! The idle experiment of `doctor`: arms from the facts, workload on two CPUs, settings put back whatever happens.

use super::Times;
use crate::interrupt::Interrupt;
use crate::pick;
use crate::progress::Progress;
use std::path::Path;
use std::time::SystemTime;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::source::Source;
use wakewatt_core::stats::sequential::Looks;
use wakewatt_host::clock;
use wakewatt_host::sink::LiveSink;
use wakewatt_lab::experiment::{self, Clock, Design, Workload};
use wakewatt_lab::idle_arms::IdleArms;
use wakewatt_lab::wake_workload::WakeWorkload;
use wakewatt_tune::guard::GuardCommand;
use wakewatt_tune::journal::{Journal, STATE_DIR};

struct RealClock;

impl Clock for RealClock {
    fn now_ns(&self) -> u64 {
        clock::monotonic_ns()
    }
    fn own_cpu_ns(&self) -> u64 {
        clock::own_cpu_ns()
    }
}

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
        Ok(run) => evidence.experiment = Some(run),
        Err(why) => evidence.not_done.push(format!("experiment: {why}")),
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
    let facts = &evidence.facts;
    if facts.idle.states.is_empty() {
        return Err("this machine has no idle driver, so the kernel offers no setting to turn (/sys/devices/system/cpu/cpu0/cpuidle is missing)".into());
    }
    let (open, _) = Journal::open_ones(Path::new(STATE_DIR));
    if let Some(journal) = open.iter().find(|j| j.is_of_this_boot() && !j.is_owner_alive()) {
        return Err(format!(
            "a killed run left settings changed ({}); undo them first: sudo wakewatt recover",
            journal.file().display()
        ));
    }
    let from_cpu = pick::partner(&facts.topology, allowed, cpu);
    let mut workload = WakeWorkload::new(src, cpu, from_cpu, times.block_ns);
    let sink = LiveSink::this_machine();
    let guard = GuardCommand::this_program().map_err(|e| e.to_string())?;
    let mut arms = IdleArms::prepare(facts, &workload.cpus(), &sink, Path::new(STATE_DIR), Some(&guard))?;
    let looks = if times.is_quick { Looks::quick() } else { Looks::standard() };
    let from_time = || SystemTime::UNIX_EPOCH.elapsed().map_or(1, |d| u64::from(d.subsec_nanos()) ^ d.as_secs());
    let design = Design {
        warmup_ns: times.warmup_ns,
        budget_ns: times.experiment_ns,
        seed: seed.unwrap_or_else(from_time),
        looks,
    };
    let bar = Progress::start("experiment");
    let progress = |_: usize, share: f64, words: &str| bar.set(share, words);
    experiment::run(&mut arms, &mut workload, design, src, &RealClock, interrupt.flag(), &progress)
}

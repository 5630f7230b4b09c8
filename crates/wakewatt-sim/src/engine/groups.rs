//! Groups of CPUs that can be a bottleneck: each CPU, each cpuset of a hop, each machine. What is offered
//! to a group beside what it can do, and how its backlog grows.
//!
//! The offered load counts only the work that no CPU outside the group can take, at the highest clock that
//! the settings allow and without any exit from idle. At 1 or more the backlog of the group grows without
//! bound, whatever happens elsewhere. Below 1 that is no proof of the opposite (lower clocks, a busy
//! sibling, tasks that stay where they were placed), so growth is also counted: `saturated` says when
//! counted growth is more than chance.

use super::plan::{MachinePlan, Plan, Stage, may_run_on, sets};
use super::{Engine, NONE};
use crate::server::{Placement, Queues, Server};

/// CPUs of one machine, by their number in it, and what is asked of them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// Which machine.
    pub(crate) machine: usize,
    /// Its CPUs.
    pub(crate) cpus: Vec<usize>,
    /// Work that no other CPU can take, as a part of what these can do; none where arrivals wait for answers.
    pub(crate) offered_ratio: Option<f64>,
}

/// Work that waits for a group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Backlog {
    /// CPU time at the reference clock, in nanoseconds.
    pub ns: f64,
    /// Pieces of it.
    pub n: u64,
}

impl Backlog {
    fn add(&mut self, ns: f64) {
        self.ns += ns.max(0.0);
        self.n += 1;
    }

    fn join(&mut self, other: Backlog) {
        self.ns += other.ns;
        self.n += other.n;
    }
}

/// All groups of a server, in the order of the backlogs that a replication counts.
pub(crate) fn groups(server: &Server) -> Vec<Group> {
    // Only a server that was checked is simulated.
    let Ok(plan) = Plan::of(server) else { return Vec::new() };
    let per_s = server.workload.arrivals.rate_per_s();
    let group = |(machine, cpus): (usize, Vec<usize>)| {
        let offered_ratio = offered(&plan, machine, &cpus, per_s);
        Group { machine, cpus, offered_ratio }
    };
    sets(&plan).into_iter().map(group).collect()
}

/// Part of a stage's tasks that only these CPUs can take.
fn bound_share(stage: &Stage, machine: &MachinePlan, cpus: &[usize]) -> f64 {
    let may = may_run_on(stage, machine);
    let mut is_in = vec![false; machine.n_cpus];
    cpus.iter().for_each(|cpu| is_in[*cpu] = true);
    if may.iter().all(|cpu| is_in[*cpu]) {
        return 1.0;
    }
    if machine.placement != Placement::Random || machine.pull || machine.queues != Queues::PerCpu {
        return 0.0;
    }
    // A CPU at random, or the next one of those that it may run on.
    let next = |start: usize| may.get(may.partition_point(|cpu| *cpu < start)).or(may.first());
    let hits = (0..machine.n_cpus).filter(|start| next(*start).is_some_and(|cpu| is_in[*cpu])).count();
    hits as f64 / machine.n_cpus.max(1) as f64
}

fn offered(plan: &Plan, m: usize, cpus: &[usize], per_s: Option<f64>) -> Option<f64> {
    let machine = &plan.machines[m];
    let cores = |of: &dyn Fn(usize) -> usize| {
        let mut all: Vec<usize> = cpus.iter().map(|cpu| of(*cpu)).collect();
        all.dedup();
        all
    };
    let all_cores = cores(&|cpu| cpu / machine.threads);
    let packages = cores(&|cpu| cpu / machine.per_package);
    // Turbo: with the fewest cores awake of a package that has some of these CPUs.
    let cores_per_package = machine.per_package / machine.threads;
    let n_awake = |package: usize| all_cores.iter().filter(|core| **core / cores_per_package == package).count();
    let least_awake = packages.iter().map(|package| n_awake(*package)).min().unwrap_or(1);
    let clock = machine.policy.clock.highest(u32::try_from(least_awake).unwrap_or(u32::MAX));
    let kernel_speed = f64::from(machine.policy.clock.khz[clock]) / machine.policy.clock.reference_khz;
    let threads_of = |core: usize| cpus.iter().filter(|cpu| **cpu / machine.threads == core).count();
    let core_speed = |core: &usize| if threads_of(*core) > 1 { (2.0 * machine.smt_share).max(1.0) } else { 1.0 };
    let tick = machine.tick.map_or(0.0, |tick| machine.tick_cost_ns / kernel_speed / tick.ns() as f64);
    let capacity: f64 = all_cores.iter().map(core_speed).sum::<f64>() - tick * cpus.len() as f64;
    let own = machine.timers.map_or(0.0, |(every, work)| work / kernel_speed / every.max(1) as f64) * cpus.len() as f64;
    let stage_ns = |stage: &Stage| {
        let (irq, list) = stage.interrupt.as_ref().map_or((0.0, None), |(work, list)| (*work, list.as_ref()));
        let task = stage.service_ns + if stage.in_interrupt { 0.0 } else { machine.wake_ns };
        let task_share = || bound_share(stage, machine, cpus) / stage.speed[clock];
        let Some(list) = list else { return (task + irq) * task_share() };
        let list_share = list.iter().filter(|cpu| cpus.contains(cpu)).count() as f64 / list.len().max(1) as f64;
        if stage.in_interrupt {
            return (task + irq) * list_share / kernel_speed;
        }
        irq * list_share / kernel_speed + task * task_share()
    };
    let per_request: f64 = plan.stages.iter().filter(|s| s.machine == m).map(stage_ns).sum();
    let requests = match per_s {
        Some(per_s) => per_s * f64::from(plan.rounds) * per_request / 1e9,
        None if own > 0.0 => 0.0,
        None => return None,
    };
    Some(if capacity > 0.0 { (requests + own) / capacity } else { f64::INFINITY })
}

impl Engine {
    /// What waits for each CPU, then for each machine's shared queue.
    fn waiting_work(&self) -> (Vec<Backlog>, Vec<Backlog>) {
        let mut cpus = vec![Backlog::default(); self.cpus.len()];
        for (cpu, c) in self.cpus.iter().enumerate() {
            let waiting = &mut cpus[cpu];
            let mut at = c.last_waiting;
            while let Some(job) = self.jobs.get(at as usize) {
                waiting.add(job.left);
                at = if job.next == c.last_waiting { NONE } else { job.next };
            }
            if let Some(interrupts) = self.interrupts.get(cpu) {
                interrupts.waiting.iter().for_each(|job| waiting.add(self.jobs[*job as usize].left));
            }
            if let Some(work) = self.owed.get(cpu).filter(|work| **work > 0.0) {
                waiting.add(*work);
            }
        }
        let shared = |host: &super::Host| {
            let mut waiting = Backlog::default();
            host.queue.iter().for_each(|job| waiting.add(self.jobs[*job as usize].left));
            waiting
        };
        (cpus, self.hosts.iter().map(shared).collect())
    }

    /// What waits for each group.
    pub(super) fn backlogs(&self) -> Vec<Backlog> {
        let (cpus, shared) = self.waiting_work();
        let of = |(m, set): &(usize, Vec<usize>)| {
            let machine = &self.plan.machines[*m];
            let mut all = Backlog::default();
            set.iter().for_each(|cpu| all.join(cpus[machine.first_cpu + cpu]));
            if set.len() == machine.n_cpus {
                all.join(shared[*m]);
            }
            all
        };
        self.plan.sets.iter().map(of).collect()
    }
}

/// Growth of a backlog over all replications is more than chance: more than 1 in 50 of what the CPUs can
/// do, and more than four standard deviations of a queue at the edge, whose length is a random walk. A
/// queue that is only near its edge is neither this nor stationary.
pub(crate) fn has_grown(grown_ns: f64, cpu_ns: f64, piece_ns: f64) -> bool {
    grown_ns > 0.02 * cpu_ns && grown_ns > 4.0 * (2.0 * cpu_ns * piece_ns).sqrt()
}

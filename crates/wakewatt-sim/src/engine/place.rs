//! Who gets what wakes: the scheduler in outline.
//!
//! `select_idle_sibling` of the kernel, from its documentation: the CPU a task ran on last if it is idle; with SMT a core whose threads are all
//! idle; then any idle CPU that shares the last-level cache; else the queue of the last CPU. A CPU that runs out of work takes
//! some that waits elsewhere (newidle balance), within its cache first. Fair shares within a queue are turns (`slice`), or none.

use super::{Engine, NONE, Phase};
use crate::server::{Placement, Queues};

impl Engine {
    /// A task is woken: it is given to a CPU, or to the queue of all.
    pub(super) fn hand_over(&mut self, job: u32) {
        let m = self.plan.stages[usize::from(self.jobs[job as usize].stage)].machine;
        match self.plan.machines[m].queues {
            Queues::PerCpu => {
                let cpu = self.place(m, job);
                self.give(cpu, job);
            }
            Queues::Shared => {
                let idle = self.any_idle(m);
                match idle {
                    Some(cpu) => self.give(cpu, job),
                    None => {
                        self.counts.runnable(self.now, m, 1);
                        self.hosts[m].queue.push_back(job);
                    }
                }
            }
            Queues::Unbound => {
                self.counts.runnable(self.now, m, 1);
                self.hosts[m].queue.push_back(job);
                if (self.hosts[m].n_waking as usize) < self.hosts[m].queue.len() {
                    self.wake_any(m);
                }
            }
            Queues::Staggered => {
                self.counts.runnable(self.now, m, 1);
                self.hosts[m].queue.push_back(job);
                self.wake_one(m);
            }
        }
    }

    /// One more CPU wakes, if none does already.
    pub(super) fn wake_one(&mut self, m: usize) {
        if self.hosts[m].n_waking == 0 {
            self.wake_any(m);
        }
    }

    fn wake_any(&mut self, m: usize) {
        if let Some(cpu) = self.any_idle(m) {
            self.wake(cpu);
        }
    }

    fn any_idle(&mut self, m: usize) -> Option<usize> {
        let (machine, host) = (&self.plan.machines[m], &mut self.hosts[m]);
        let start = if machine.placement == Placement::Pack { machine.n_cpus } else { host.last_used };
        let found = host.idle.after(start, 0, machine.n_cpus)?;
        host.last_used = found;
        Some(machine.first_cpu + found)
    }

    /// The CPU for a task.
    fn place(&mut self, m: usize, job: u32) -> usize {
        let j = self.jobs[job as usize];
        let (machine, stage) = (&self.plan.machines[m], &self.plan.stages[usize::from(j.stage)]);
        let (first, n) = (machine.first_cpu, machine.n_cpus);
        if let Some(pinned) = stage.pinned {
            return first + pinned;
        }
        let allowed = stage.allowed.as_ref().unwrap_or(&machine.allowed);
        let all = stage.allowed.is_none() && machine.allows_all;
        let may = |cpu: usize| all || allowed[cpu];
        let is_here = j.prev != NONE && (first..first + n).contains(&(j.prev as usize)) && may(j.prev as usize - first);
        let prev = if is_here {
            j.prev as usize - first
        } else {
            let start = self.random.index(n);
            if may(start) { start } else { (0..n).map(|i| (start + i) % n).find(|cpu| may(*cpu)).unwrap_or(start) }
        };
        let host = &mut self.hosts[m];
        let found = match machine.placement {
            Placement::Random => None,
            Placement::Spread => host.idle.after_that(host.last_used, 0, n, may),
            Placement::Pack => host.idle.after_that(n, 0, n, may),
            Placement::Kernel => {
                let (low, high) = machine.cache_of(prev);
                if host.idle.has(prev) && (machine.threads == 1 || host.idle_cores.has(prev / machine.threads)) {
                    Some(prev)
                } else {
                    let threads = machine.threads;
                    let whole = |core: usize| may(core * threads);
                    let cores = (threads > 1)
                        .then(|| {
                            host.idle_cores.after_that(prev / threads, low / threads, high.div_ceil(threads), whole)
                        })
                        .flatten()
                        .map(|core| core * threads);
                    let any = || {
                        if all { host.idle.after(prev, low, high) } else { host.idle.after_that(prev, low, high, may) }
                    };
                    cores.or_else(|| host.idle.has(prev).then_some(prev)).or_else(any)
                }
            }
        };
        let cpu = found.unwrap_or(prev);
        host.last_used = cpu;
        first + cpu
    }

    /// A job for this CPU: it wakes, or the job waits in its queue.
    pub(super) fn give(&mut self, cpu: usize, job: u32) {
        let m = self.cpus[cpu].machine as usize;
        self.counts.runnable(self.now, m, 1);
        if self.cpus[cpu].phase == Phase::Idle {
            self.cpus[cpu].job = job;
            self.wake(cpu);
            return;
        }
        self.wait_last(cpu, job);
    }

    /// The next job for a CPU that has none: its own queue, the queue of all, or what waits elsewhere.
    pub(super) fn next_job(&mut self, cpu: usize) -> Option<u32> {
        let m = self.cpus[cpu].machine as usize;
        if self.hosts[m].n_waiting > 0 {
            if let Some(job) = self.take_waiting(cpu) {
                return Some(job);
            }
            if self.hosts[m].n_movable > 0 && self.plan.machines[m].pull && !self.is_shared(m) {
                if let Some(job) = self.pull(cpu, m) {
                    return Some(job);
                }
            }
        }
        self.hosts[m].queue.pop_front()
    }

    fn pull(&mut self, cpu: usize, m: usize) -> Option<u32> {
        let machine = &self.plan.machines[m];
        let own = cpu - machine.first_cpu;
        if !machine.allowed[own] {
            return None;
        }
        let (low, high) = machine.cache_of(own);
        let fits = |other: usize| {
            let first = self.first_waiting(machine.first_cpu + other);
            let Some(first) = first.filter(|job| self.may_move(*job)) else { return false };
            let stage = &self.plan.stages[usize::from(self.jobs[first as usize].stage)];
            stage.pinned.is_none() && stage.allowed.as_ref().is_none_or(|allowed| allowed[own])
        };
        let waiting = &self.hosts[m].waiting;
        let found =
            waiting.after_that(own, low, high, fits).or_else(|| waiting.after_that(own, 0, machine.n_cpus, fits))?;
        self.take_waiting(self.plan.machines[m].first_cpu + found)
    }
}

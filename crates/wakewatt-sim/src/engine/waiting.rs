//! What waits for a CPU: a ring of jobs, each naming the next, of which the CPU keeps only the last.
//!
//! Most CPUs have nothing waiting at any time, so a queue of its own for each would be memory that is passed over to no purpose. The host
//! knows who has something waiting, and whether any of it may move to another CPU: where nothing may, nobody needs to look.

use super::{Engine, NONE, OWN};

impl Engine {
    /// Behind all others.
    pub(super) fn wait_last(&mut self, cpu: usize, job: u32) {
        let c = &self.cpus[cpu];
        let m = usize::from(c.machine);
        let next = match self.jobs.get(c.last_waiting as usize) {
            None => job,
            Some(last) => last.next,
        };
        if let Some(last) = self.jobs.get_mut(c.last_waiting as usize) {
            last.next = job;
        }
        self.jobs[job as usize].next = next;
        self.cpus[cpu].last_waiting = job;
        let may_move = self.may_move(job);
        let host = &mut self.hosts[m];
        host.waiting.insert(cpu - self.plan.machines[m].first_cpu);
        host.n_waiting += 1;
        host.n_movable += usize::from(may_move);
    }

    /// The first of them.
    pub(super) fn first_waiting(&self, cpu: usize) -> Option<u32> {
        self.jobs.get(self.cpus[cpu].last_waiting as usize).map(|last| last.next)
    }

    /// Takes the first of them.
    pub(super) fn take_waiting(&mut self, cpu: usize) -> Option<u32> {
        let first = self.first_waiting(cpu)?;
        let m = usize::from(self.cpus[cpu].machine);
        let last = self.cpus[cpu].last_waiting;
        let may_move = self.may_move(first);
        let host = &mut self.hosts[m];
        host.n_waiting -= 1;
        host.n_movable -= usize::from(may_move);
        if first == last {
            self.cpus[cpu].last_waiting = NONE;
            host.waiting.remove(cpu - self.plan.machines[m].first_cpu);
        } else {
            self.jobs[last as usize].next = self.jobs[first as usize].next;
        }
        Some(first)
    }

    /// The machine's own work stays on its CPU.
    pub(super) fn may_move(&self, job: u32) -> bool {
        self.jobs[job as usize].stage != OWN
    }
}

//! A CPU at work: it takes a job, runs a piece of it at its clock, and takes the next one or goes idle.

use super::{Cpu, Engine, NONE, OWN, Phase, event, kind};
use crate::server::Queues;

impl Engine {
    /// The CPU's own event: it is awake, or its piece of work is done.
    pub(super) fn cpu_event(&mut self, cpu: usize) {
        match self.cpus[cpu].phase {
            Phase::Waking => self.awake(cpu),
            Phase::Busy => self.piece_done(cpu),
            Phase::Idle => {}
        }
    }

    /// Takes up a job.
    pub(super) fn begin(&mut self, cpu: usize, job: u32) {
        let package = self.cpus[cpu].package;
        let c = &mut self.cpus[cpu];
        c.job = job;
        c.phase = Phase::Busy;
        c.at_ns = self.now;
        let j = &mut self.jobs[job as usize];
        j.prev = cpu as u32;
        if j.home == NONE {
            j.home = package;
        }
        let slice = self.plan.machines[c.machine as usize].slice_ns;
        c.chunk = if j.left > slice && !j.in_interrupt { slice } else { j.left };
        j.left -= c.chunk;
        self.set_rate(cpu);
        self.expect_end(cpu);
    }

    /// How fast the CPU goes with what it has.
    fn set_rate(&mut self, cpu: usize) {
        let c = &self.cpus[cpu];
        let machine = &self.plan.machines[c.machine as usize];
        let Some(j) = self.jobs.get(c.job as usize) else { return };
        let clock = c.clock as usize;
        let mut rate = match self.plan.stages.get(usize::from(j.stage)) {
            Some(stage) if !j.in_interrupt => stage.speed[clock],
            _ => f64::from(machine.policy.clock.khz[clock]) / machine.policy.clock.reference_khz,
        };
        if j.home != c.package {
            rate *= machine.numa_factor;
        }
        if machine.threads > 1 && self.is_sibling_busy(cpu) {
            rate *= machine.smt_share;
        }
        self.cpus[cpu].rate = rate;
    }

    /// The event of the end of the present piece; an older one no longer counts.
    #[inline]
    fn expect_end(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        c.stamp = c.stamp.wrapping_add(1) & super::STAMP;
        let work = c.chunk.max(0.0);
        // The usual case needs no division.
        #[allow(clippy::float_cmp)]
        let ns = super::whole_ns(if c.rate == 1.0 { work } else { work / c.rate });
        self.queue.push(self.now.saturating_add(ns), event(kind::CPU, c.stamp, cpu as u32));
    }

    /// Brings what a busy CPU has done up to now.
    #[inline]
    pub(super) fn sync(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let ns = self.now - c.at_ns;
        c.at_ns = self.now;
        if ns == 0 || c.phase != Phase::Busy {
            return;
        }
        c.chunk -= ns as f64 * c.rate;
        c.busy_ns += ns;
        let system = self.jobs[c.job as usize].system;
        let clock = self.plan.machines[c.machine as usize].policy.clock.khz[c.clock as usize];
        self.counts.busy(c.machine as usize, ns, system, clock);
    }

    /// Its speed has changed: the end of the present piece is another.
    pub(super) fn respeed(&mut self, cpu: usize) {
        if self.cpus[cpu].phase == Phase::Busy && self.cpus[cpu].job != NONE {
            self.sync(cpu);
            self.set_rate(cpu);
            self.expect_end(cpu);
        }
    }

    /// Work that comes between, such as a tick.
    fn stretch(&mut self, cpu: usize, work_ns: f64) {
        if work_ns <= 0.0 {
            return;
        }
        self.sync(cpu);
        self.cpus[cpu].chunk += work_ns;
        let c = &self.cpus[cpu];
        let user = 1.0 - self.jobs[c.job as usize].system;
        self.counts.more_system(c.machine as usize, work_ns / c.rate * user);
        self.expect_end(cpu);
    }

    fn piece_done(&mut self, cpu: usize) {
        self.sync(cpu);
        let job = self.cpus[cpu].job;
        if self.jobs[job as usize].left > 0.0 {
            // Its turn is over; alone it goes on.
            match self.next_own(cpu) {
                Some(next) => {
                    self.give_back(cpu, job);
                    self.begin(cpu, next);
                }
                None => self.begin(cpu, job),
            }
            return;
        }
        let m = self.cpus[cpu].machine as usize;
        self.counts.runnable(self.now, m, -1);
        self.cpus[cpu].job = NONE;
        let j = self.jobs[job as usize];
        let is_interrupt = j.in_interrupt;
        if !is_interrupt && self.goes_on(job) {
            self.begin(cpu, job);
            return;
        }
        if j.stage != OWN {
            self.worked(cpu);
        }
        // First what the job does next, so that a reply finds this CPU still awake; then what this CPU does.
        if is_interrupt {
            self.after_interrupt(job)
        } else {
            self.end_stage(job)
        }
        self.hook(cpu);
        self.next(cpu);
    }

    /// The same task has more to do at once on this machine: no wake-up, no new place.
    fn goes_on(&mut self, job: u32) -> bool {
        let j = self.jobs[job as usize];
        if j.stage == OWN {
            return false;
        }
        let Some((stage, round)) =
            self.following(j.stage, j.round).filter(|_| self.plan.stages[usize::from(j.stage)].flows)
        else {
            return false;
        };
        let next = &self.plan.stages[usize::from(stage)];
        let work = next.service.draw(&mut self.services).max(0.0);
        let system = next.system;
        self.counts.runnable(self.now, next.machine, 1);
        let j = &mut self.jobs[job as usize];
        (j.stage, j.round, j.left, j.system) = (stage, round, work, system);
        true
    }

    /// What an awake CPU without a job does next.
    pub(super) fn next(&mut self, cpu: usize) {
        if let Some(interrupt) = self.next_interrupt(cpu) {
            self.begin(cpu, interrupt);
            return;
        }
        if self.resume(cpu) {
            return;
        }
        // A job may have been given to it meanwhile.
        match self.next_job(cpu) {
            Some(job) => {
                self.begin(cpu, job);
                self.after_taking(cpu);
            }
            None => match self.owed_job(cpu) {
                Some(job) => self.begin(cpu, job),
                None => self.go_idle(cpu),
            },
        }
    }

    /// Where wake-ups are for the queue: one that nothing waits for any more is given up; staggered, one
    /// more begins where work waits.
    fn after_taking(&mut self, cpu: usize) {
        let m = self.cpus[cpu].machine as usize;
        let (n_waking, n_waiting) = (self.hosts[m].n_waking as usize, self.hosts[m].queue.len());
        match self.plan.machines[m].queues {
            Queues::Staggered if n_waiting > 0 => self.wake_one(m),
            Queues::Staggered | Queues::Unbound if n_waking > n_waiting => self.give_up_waking(m),
            _ => {}
        }
    }

    /// A CPU that wakes for the queue, and for no timer or interrupt of its own, goes back to sleep.
    fn give_up_waking(&mut self, m: usize) {
        let has_interrupt = |cpu: usize| self.interrupts.get(cpu).is_some_and(|i| !i.waiting.is_empty());
        let is_for_queue = |c: &Cpu| c.phase == Phase::Waking && c.job == NONE && c.last_waiting == NONE;
        let first = self.plan.machines[m].first_cpu;
        let mut all = first..first + self.plan.machines[m].n_cpus;
        if let Some(other) = all.find(|cpu| is_for_queue(&self.cpus[*cpu]) && !has_interrupt(*cpu)) {
            self.hosts[m].n_waking -= 1;
            self.go_idle(other);
        }
    }

    fn next_own(&mut self, cpu: usize) -> Option<u32> {
        let m = self.cpus[cpu].machine as usize;
        if self.cpus[cpu].last_waiting == NONE && self.hosts[m].queue.is_empty() { None } else { self.next_job(cpu) }
    }

    /// Back to the end of the queue, still runnable.
    fn give_back(&mut self, cpu: usize, job: u32) {
        let m = self.cpus[cpu].machine as usize;
        if self.is_shared(m) && self.jobs[job as usize].stage != OWN {
            self.hosts[m].queue.push_back(job);
            return;
        }
        self.wait_last(cpu, job);
    }

    /// An interrupt at a CPU: it wakes the CPU, preempts a task, or waits for the interrupts before it.
    pub(super) fn interrupt(&mut self, cpu: usize, job: u32) {
        let c = &self.cpus[cpu];
        self.counts.runnable(self.now, c.machine as usize, 1);
        match (c.phase, self.jobs.get(c.job as usize)) {
            (Phase::Idle, _) => {
                self.cpus[cpu].job = job;
                self.wake(cpu);
            }
            (Phase::Busy, Some(running)) if !running.in_interrupt => {
                self.preempt(cpu);
                self.begin(cpu, job);
            }
            _ => self.interrupts[cpu].waiting.push_back(job),
        }
    }

    /// Puts the running task aside until no interrupt is left.
    fn preempt(&mut self, cpu: usize) {
        self.sync(cpu);
        let c = &self.cpus[cpu];
        self.interrupts[cpu].preempted = Some((c.job, c.chunk));
    }

    fn next_interrupt(&mut self, cpu: usize) -> Option<u32> {
        self.interrupts.get_mut(cpu)?.waiting.pop_front()
    }

    /// Continues the task that an interrupt preempted, if there is one.
    fn resume(&mut self, cpu: usize) -> bool {
        let Some((job, chunk)) = self.interrupts.get_mut(cpu).and_then(|i| i.preempted.take()) else { return false };
        let c = &mut self.cpus[cpu];
        (c.job, c.chunk, c.at_ns) = (job, chunk, self.now);
        self.set_rate(cpu);
        self.expect_end(cpu);
        true
    }

    /// The exit is over and this job is the reason for it; an interrupt that came meanwhile runs first.
    pub(super) fn begin_awake(&mut self, cpu: usize, job: u32) {
        self.begin(cpu, job);
        if self.jobs[job as usize].in_interrupt {
            return;
        }
        if let Some(interrupt) = self.next_interrupt(cpu) {
            self.preempt(cpu);
            self.begin(cpu, interrupt);
        }
    }

    /// The tick of a CPU.
    pub(super) fn tick(&mut self, cpu: usize) {
        self.cpus[cpu].is_tick_armed = false;
        match self.cpus[cpu].phase {
            Phase::Idle if self.cpus[cpu].is_tick_stopped => return,
            Phase::Idle => self.tick_in_idle(cpu),
            Phase::Busy => {
                let cost = self.plan.machines[self.cpus[cpu].machine as usize].tick_cost_ns;
                self.stretch(cpu, cost);
                self.hook(cpu);
            }
            Phase::Waking => {}
        }
        if !(self.cpus[cpu].phase == Phase::Idle && self.cpus[cpu].is_tick_stopped) {
            self.arm_tick(cpu);
        }
    }

    pub(super) fn arm_tick(&mut self, cpu: usize) {
        if self.cpus[cpu].is_tick_armed {
            return;
        }
        if let Some(at) = self.next_tick(cpu) {
            self.cpus[cpu].is_tick_armed = true;
            self.queue.push_periodic(at, event(kind::TICK, 0, cpu as u32));
        }
    }

    /// The tick after now.
    pub(super) fn next_tick(&self, cpu: usize) -> Option<u64> {
        let c: &Cpu = &self.cpus[cpu];
        let ns = self.plan.machines[c.machine as usize].tick?.ns() as u64;
        // Since the phase is below a tick, the first tick is at the phase.
        let phase_ns = u64::from(c.tick_phase_ns);
        let passed = (self.now + ns - phase_ns) / ns;
        Some(passed * ns + phase_ns)
    }

    fn is_sibling_busy(&self, cpu: usize) -> bool {
        self.sibling(cpu).is_some_and(|other| self.cpus[other].phase != Phase::Idle)
    }

    /// The other CPU of a core.
    pub(super) fn sibling(&self, cpu: usize) -> Option<usize> {
        let machine = &self.plan.machines[self.cpus[cpu].machine as usize];
        if machine.threads < 2 {
            return None;
        }
        let own = cpu - machine.first_cpu;
        Some(machine.first_cpu + (own ^ 1))
    }
}

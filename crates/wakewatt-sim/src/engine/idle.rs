//! A CPU that sleeps: which state its governor chooses, what it takes there, and what leaving it costs.
//!
//! Going idle asks the governor with what it would see: time to the next timer and to the next tick, tasks in iowait. A pair of entry and exit
//! ends with a wake-up, with a tick that was kept, or with the end of polling; the last two ask again. A wake-up in state i begins
//! when entry is over and takes the exit of the state and, where the package slept, of the package.

use super::plan::Exit;
use super::{Cpu, Engine, NONE, OWN, Phase, SECONDS_PER_NS, event, kind};
use crate::server::After;
use wakewatt_models::idle::{Left, Moment};
use wakewatt_models::units::FOREVER_NS;

impl Engine {
    /// Nothing to do.
    pub(super) fn go_idle(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        c.phase = Phase::Idle;
        c.job = NONE;
        c.idle_since_ns = self.now;
        c.is_tick_fired = false;
        let (m, package) = (c.machine as usize, c.package as usize);
        let own = cpu - self.plan.machines[m].first_cpu;
        self.hosts[m].idle.insert(own);
        let p = &mut self.packages[package];
        p.n_idle_cpus += 1;
        if p.n_idle_cpus == p.n_cpus {
            p.all_idle_since_ns = self.now;
        }
        if let Some(other) = self.sibling(cpu) {
            if self.cpus[other].phase == Phase::Idle {
                self.hosts[m].idle_cores.insert(own / self.plan.machines[m].threads);
            }
            self.respeed(other);
        }
        self.pass_pelt(cpu, true);
        self.sleep(cpu);
        if !self.cpus[cpu].is_tick_stopped {
            self.arm_tick(cpu);
        }
        self.turned(cpu, false);
    }

    /// Chooses a state and enters it.
    fn sleep(&mut self, cpu: usize) {
        let m = self.cpus[cpu].machine as usize;
        let machine = &self.plan.machines[m];
        let (idle, own) = (&machine.policy.idle, cpu - machine.first_cpu);
        let is_asked = self.minds[m].is_asked();
        let (state, stops) = if is_asked {
            let c = &self.cpus[cpu];
            let moment = moment(c, self.now, machine.tick.map_or(0, |t| t.ns()), idle);
            // A timer within a tick keeps it, whatever the governor says.
            let is_kept = moment.sleep_ns <= moment.next_event_ns && !c.is_tick_stopped;
            let said = self.minds[m].select(own, &moment);
            #[cfg(test)]
            super::tests::asked(&mut self.choices, cpu, &moment, said);
            let (state, stops) = said.map_or((idle.fixed, true), |d| (d.state, d.stop_tick));
            (state.min(idle.states.len().saturating_sub(1)), stops && !is_kept)
        } else {
            (idle.fixed, true)
        };
        let c = &mut self.cpus[cpu];
        c.is_tick_stopped |= stops;
        c.idle_state = state as u8;
        c.entered_ns = self.now;
        c.stamp = c.stamp.wrapping_add(1) & super::STAMP;
        if is_asked && idle.states[state].polling {
            if let Some(usual) = idle.poll_limit_ns {
                let limit = self.minds[m].window_ns(own).unwrap_or(usual);
                self.queue.push(self.now + limit.max(1), event(kind::POLLED, c.stamp, cpu as u32));
            }
        }
        self.set_power(cpu);
    }

    /// The end of a pair: what it was, for the counts, the governor and the energy.
    fn end_pair(&mut self, cpu: usize, until_ns: u64, is_poll_limit_hit: bool) {
        let c = &mut self.cpus[cpu];
        let residency = until_ns - c.entered_ns;
        let (m, state) = (c.machine as usize, c.idle_state as usize);
        let minds = &mut self.minds[m];
        if minds.is_asked() {
            let left = Left {
                state,
                residency_ns: residency as i64,
                is_tick_fired: std::mem::take(&mut c.is_tick_fired),
                is_poll_limit_hit,
                clock_ns: until_ns as i64,
            };
            minds.reflect(cpu - self.plan.machines[m].first_cpu, &left);
            #[cfg(test)]
            super::tests::told(&mut self.choices, cpu, &left);
        }
        let idle = &self.plan.machines[m].policy.idle;
        self.counts.pair(m, state, residency, until_ns, idle);
        // Entering is charged at the power of work.
        let watts = &self.plan.machines[m].policy.watts;
        let entry = idle.entry_ns[state].min(self.now - c.entered_ns) as f64;
        let more = watts.one_thread[c.clock as usize] - watts.idle[state][c.clock as usize];
        self.cores[c.core as usize].joules +=
            (more * self.plan.machines[m].thread_share * entry * SECONDS_PER_NS).max(0.0);
    }

    /// The pair of a CPU that sleeps ends here, because the rules change.
    pub(super) fn end_sleep(&mut self, cpu: usize) {
        if self.cpus[cpu].phase == Phase::Idle {
            self.end_pair(cpu, self.now, false);
        }
    }

    /// A tick that was kept wakes an idle CPU for a moment.
    pub(super) fn tick_in_idle(&mut self, cpu: usize) {
        self.cpus[cpu].is_tick_fired = true;
        self.end_pair(cpu, self.now, false);
        let machine = &self.plan.machines[self.cpus[cpu].machine as usize];
        let c = &self.cpus[cpu];
        let cost = machine.tick_cost_ns + machine.policy.idle.states[c.idle_state as usize].exit_latency.ns() as f64;
        let watts = machine.policy.watts.one_thread[c.clock as usize]
            - machine.policy.watts.idle[c.idle_state as usize][c.clock as usize];
        self.cores[c.core as usize].joules += (watts * cost / 1e9).max(0.0);
        self.counts.more_system(c.machine as usize, machine.tick_cost_ns);
        self.sleep(cpu);
    }

    /// Polling has lasted long enough.
    pub(super) fn polled(&mut self, cpu: usize) {
        if self.cpus[cpu].phase == Phase::Idle {
            self.end_pair(cpu, self.now, true);
            self.sleep(cpu);
            if !self.cpus[cpu].is_tick_stopped {
                self.arm_tick(cpu);
            }
        }
    }

    /// Somebody wants this CPU.
    pub(super) fn wake(&mut self, cpu: usize) {
        let c = &self.cpus[cpu];
        let (m, package, state) = (c.machine as usize, c.package as usize, c.idle_state as usize);
        let idle = &self.plan.machines[m].policy.idle;
        let entered = self.now.max(c.entered_ns + idle.entry_ns[state]);
        let slept = self.now.saturating_sub(c.entered_ns);
        let waker = if idle.has_waker { self.waker(cpu, c.job) } else { None };
        let mut exit = match &idle.exit[state] {
            _ if waker.is_some() && !idle.exit_by_ipi[state].is_empty() => {
                After::exit_ns(&idle.exit_by_ipi[state], slept) as u64
            }
            Exit::Drawn(law) => law.draw(&mut self.random) as u64,
            Exit::After(rows) => After::exit_ns(rows, slept) as u64,
        };
        if self.packages[package].asleep_since_ns.is_some() {
            exit += idle.package_exit_ns;
        }
        let awake_at = entered + exit;
        let cold = match idle.cold_after[state].as_slice() {
            [] => idle.cold_ns[state],
            rows => self.cold(cpu, rows),
        };
        if idle.has_waker {
            // By the whole pause: ticks that are kept cut it into several sleeps.
            let paused = self.now.saturating_sub(self.cpus[cpu].idle_since_ns);
            let by_ipi = waker.and(idle.overhead_by_ipi.get(state)).filter(|rows| !rows.is_empty());
            let rows = by_ipi.unwrap_or(&idle.overhead[state]);
            let (overhead, send) = (After::exit_ns(rows, paused), idle.send_ns[state]);
            self.owe(cpu, overhead);
            if let Some(waker) = waker {
                self.owe(waker, send);
            }
        }
        self.end_pair(cpu, awake_at, false);
        let c = &mut self.cpus[cpu];
        c.idle_ns += awake_at - c.idle_since_ns;
        let idle_for = self.now - c.idle_since_ns;
        c.phase = Phase::Waking;
        c.is_tick_stopped = false;
        c.stamp = c.stamp.wrapping_add(1) & super::STAMP;
        let stamp = c.stamp;
        self.counts.idle_period(m, idle_for);
        if let Some(job) = self.jobs.get_mut(c.job as usize).filter(|_| cold > 0.0) {
            job.left += cold;
        }
        let own = cpu - self.plan.machines[m].first_cpu;
        self.hosts[m].idle.remove(own);
        // Without siblings nobody asks which cores are idle.
        if self.plan.machines[m].threads > 1 {
            self.hosts[m].idle_cores.remove(own / self.plan.machines[m].threads);
        }
        self.hosts[m].n_waking += 1;
        let p = &mut self.packages[package];
        if p.n_idle_cpus == p.n_cpus {
            self.counts.package_idle_period(m, self.now - p.all_idle_since_ns);
        }
        p.n_idle_cpus -= 1;
        self.turned(cpu, true);
        self.set_power(cpu);
        self.arm_tick(cpu);
        if let Some(other) = self.sibling(cpu) {
            self.respeed(other);
        }
        if awake_at > self.now {
            self.queue.push(awake_at, event(kind::CPU, stamp, cpu as u32));
        } else {
            self.awake(cpu);
        }
    }

    /// Work that the job of a waking CPU gets because this CPU has worked for no request since some time; its own work gets none.
    fn cold(&self, cpu: usize, rows: &[After]) -> f64 {
        let is_own = self.jobs.get(self.cpus[cpu].job as usize).is_none_or(|job| job.stage == OWN);
        let worked_ns = self.worked_ns.get(cpu).copied().unwrap_or(0);
        if is_own { 0.0 } else { After::exit_ns(rows, self.now.saturating_sub(worked_ns)) }
    }

    /// This CPU has worked for a request until now, where that is asked for.
    pub(super) fn worked(&mut self, cpu: usize) {
        if self.plan.machines[self.cpus[cpu].machine as usize].policy.idle.has_cold_after {
            self.worked_ns.resize(self.cpus.len(), 0);
            self.worked_ns[cpu] = self.now;
        }
    }

    /// The CPU that wakes this one for a job, where that is another one: the one that the job was on before. Arrivals from outside are timers of
    /// whoever planned them, a CPU's own work is its own timer's, and a device's interrupt is nobody's.
    fn waker(&self, cpu: usize, job: u32) -> Option<usize> {
        let j = self.jobs.get(job as usize).filter(|j| j.stage != OWN && !j.in_interrupt && j.prev != NONE)?;
        let is_later = (j.stage, j.round) != (0, 0);
        Some(j.prev as usize).filter(|prev| is_later && *prev != cpu)
    }

    /// Kernel work of a CPU that delays nobody: it is done when there is nothing else to do.
    fn owe(&mut self, cpu: usize, work: f64) {
        if work > 0.0 {
            self.owed.resize(self.cpus.len(), 0.0);
            self.owed[cpu] += work;
        }
    }

    /// What this CPU owes, as a job.
    pub(super) fn owed_job(&mut self, cpu: usize) -> Option<u32> {
        let work = self.owed.get_mut(cpu).map(std::mem::take).filter(|work| *work > 0.0)?;
        self.counts.runnable(self.now, self.cpus[cpu].machine as usize, 1);
        Some(self.own_job(cpu, work))
    }

    /// The exit is over.
    pub(super) fn awake(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        c.phase = Phase::Busy;
        c.at_ns = self.now;
        let (m, job) = (c.machine as usize, c.job);
        self.hosts[m].n_waking = self.hosts[m].n_waking.saturating_sub(1);
        self.pass_pelt(cpu, false);
        self.hook(cpu);
        if job == NONE {
            self.next(cpu);
        } else {
            self.begin_awake(cpu, job);
        }
    }

    /// After a change of settings an idle CPU chooses again; a busy one goes on at another speed.
    pub(super) fn restate(&mut self, cpu: usize) {
        match self.cpus[cpu].phase {
            Phase::Idle => {
                let n = self.plan.machines[self.cpus[cpu].machine as usize].policy.idle.states.len();
                self.cpus[cpu].idle_state = self.cpus[cpu].idle_state.min(n.saturating_sub(1) as u8);
                self.sleep(cpu);
                if !self.cpus[cpu].is_tick_stopped {
                    self.arm_tick(cpu);
                }
            }
            Phase::Busy => self.respeed(cpu),
            Phase::Waking => {}
        }
    }
}

/// What the governor sees.
fn moment(c: &Cpu, now: u64, tick_ns: i64, idle: &super::plan::IdlePlan) -> Moment {
    let timer_ns =
        if c.timer_at_ns == u64::MAX { FOREVER_NS - now as i64 } else { c.timer_at_ns.saturating_sub(now) as i64 };
    let since_tick = (now as i64 - i64::from(c.tick_phase_ns)).rem_euclid(tick_ns.max(1));
    let to_tick = tick_ns - since_tick;
    let next_event_ns = if c.is_tick_stopped { timer_ns } else { timer_ns.min(to_tick) };
    // Counted from the last tick: a timer within the next one is as good as the tick.
    let is_near = timer_ns.saturating_add(since_tick) <= tick_ns && !c.is_tick_stopped;
    Moment {
        sleep_ns: if is_near { next_event_ns } else { timer_ns },
        next_event_ns,
        is_tick_stopped: c.is_tick_stopped,
        latency_limit_ns: idle.limit_ns,
        n_iowait: c.n_iowait,
        utilisation: 0,
        disabled: idle.disabled,
        clock_ns: now as i64,
    }
}

//! How fast CPUs go: the frequency governors, the time a change takes, and what a core draws.
//!
//! ondemand, conservative and schedutil are asked where the scheduler would: when a task wakes or leaves, and at ticks. The governors of 2.6 and
//! cpuspeed are timers. For schedutil, time at a lower clock counts as less use (frequency invariance): a stretch of work is passed
//! to PELT as its part of running, then of not running.

use super::{Chooser, Engine, Phase, Share, event, kind};
use crate::server::{ClockGovernor, Domain};
use wakewatt_models::frequency::load::Elapsed;
use wakewatt_models::frequency::{conservative, conservative_old, cpuspeed, fixed, ondemand, ondemand_old, schedutil};

impl Engine {
    /// The domains of a machine, at the clock its governor starts with.
    pub(super) fn add_shares(&mut self, m: usize) {
        let machine = &self.plan.machines[m];
        let plan = &machine.policy.clock;
        let n = match plan.domain {
            Domain::Core => machine.threads,
            Domain::Package => machine.per_package,
        };
        for first in (machine.first_cpu..machine.first_cpu + machine.n_cpus).step_by(n) {
            let khz = match plan.governor {
                ClockGovernor::Performance => fixed::performance(&plan.table),
                ClockGovernor::Userspace => fixed::userspace(&plan.table, plan.set_khz),
                _ => fixed::powersave(&plan.table),
            };
            let clock = plan.khz.iter().position(|f| *f == khz).unwrap_or(0) as u32;
            let hardware = (plan.khz.last().copied().unwrap_or(khz), plan.khz.first().copied().unwrap_or(khz));
            let c = &plan.file;
            let chooser = match plan.governor {
                ClockGovernor::Performance | ClockGovernor::Powersave | ClockGovernor::Userspace => Chooser::Still,
                ClockGovernor::Cpuspeed => Chooser::Cpuspeed,
                ClockGovernor::OndemandOld => Chooser::OndemandOld,
                ClockGovernor::Ondemand => {
                    let tunables = ondemand::Tunables {
                        sampling_rate_us: plan.sampling_us,
                        up_threshold: plan.up,
                        sampling_down_factor: c.sampling_down_factor,
                        powersave_bias: c.powersave_bias,
                    };
                    Chooser::Ondemand(ondemand::Ondemand::new(plan.table.clone(), hardware, tunables, n, khz))
                }
                ClockGovernor::Conservative => {
                    let tunables = conservative::Tunables {
                        sampling_rate_us: plan.sampling_us,
                        up_threshold: plan.up,
                        down_threshold: plan.down,
                        freq_step: c.freq_step,
                        sampling_down_factor: c.sampling_down_factor,
                    };
                    let form = conservative::form_in(plan.release).form;
                    Chooser::Conservative(conservative::Conservative::new(form, plan.table.clone(), tunables, n, khz))
                }
                ClockGovernor::ConservativeOld => {
                    let tunables = conservative_old::Tunables {
                        up_threshold: plan.up,
                        down_threshold: plan.down,
                        freq_step: c.freq_step,
                    };
                    Chooser::ConservativeOld(conservative_old::ConservativeOld::new(plan.table.clone(), tunables, khz))
                }
                ClockGovernor::Schedutil => {
                    let reference = match c.invariant {
                        true => schedutil::Reference::Invariant(hardware.1),
                        false => schedutil::Reference::Present,
                    };
                    let form = schedutil::form_in(plan.release).form;
                    let table = plan.table.clone();
                    Chooser::Schedutil(schedutil::Schedutil::new(form, table, reference, plan.sampling_us, n > 1, khz))
                }
            };
            let share = self.shares.len() as u32;
            for cpu in first..first + n {
                self.share_of.push(share);
                self.cpus[cpu].clock = clock;
            }
            self.shares.push(Share {
                machine: m as u32,
                first: first as u32,
                n: n as u32,
                clock,
                target: clock,
                // Clocks of before a change of settings are not applied any more.
                stamp: (self.now % 0xfff_ffff) as u32,
                next_sample_ns: self.now,
                sampled_ns: self.now,
                idle_at_sample_ns: (first..first + n).map(|cpu| self.idle_total(cpu)).collect(),
                chooser,
            });
        }
    }

    /// The first timed samples, spread over a period.
    pub(super) fn start_shares(&mut self) {
        let n = self.shares.len().max(1) as u64;
        for share in 0..self.shares.len() {
            let s = &self.shares[share];
            if matches!(s.chooser, Chooser::Cpuspeed | Chooser::OndemandOld | Chooser::ConservativeOld(_)) {
                let period = u64::from(self.plan.machines[s.machine as usize].policy.clock.sampling_us) * 1000;
                let at = self.now + period + period * share as u64 / n;
                self.queue.push(at, event(kind::SAMPLE, self.epoch, share as u32));
            }
        }
        (0..self.cpus.len()).for_each(|cpu| self.set_power(cpu));
    }

    fn idle_total(&self, cpu: usize) -> u64 {
        let c = &self.cpus[cpu];
        c.idle_ns + if c.phase == Phase::Idle { self.now - c.idle_since_ns } else { 0 }
    }

    fn elapsed(&mut self, share: usize) -> Vec<Elapsed> {
        let s = &self.shares[share];
        let wall = self.now - s.sampled_ns;
        let (first, n) = (s.first as usize, s.n as usize);
        let totals: Vec<u64> = (first..first + n).map(|cpu| self.idle_total(cpu)).collect();
        let s = &mut self.shares[share];
        let of = |(now, before): (&u64, &u64)| Elapsed {
            wall_us: u32::try_from(wall / 1000).unwrap_or(u32::MAX),
            // A wake-up on its way is counted when it is known to end, so it may reach beyond now.
            idle_us: (now.saturating_sub(*before) / 1000).min(wall / 1000) as i64,
        };
        let elapsed = totals.iter().zip(&s.idle_at_sample_ns).map(of).collect();
        s.sampled_ns = self.now;
        s.idle_at_sample_ns = totals;
        elapsed
    }

    /// Where the scheduler calls the governor.
    #[inline]
    pub(super) fn hook(&mut self, cpu: usize) {
        let share = self.share_of[cpu] as usize;
        match self.shares[share].chooser {
            Chooser::Ondemand(_) | Chooser::Conservative(_) if self.now >= self.shares[share].next_sample_ns => {
                self.sample(share);
            }
            Chooser::Schedutil(_) => self.ask_schedutil(cpu, share),
            _ => {}
        }
    }

    fn sample(&mut self, share: usize) {
        let elapsed = self.elapsed(share);
        let step = match &mut self.shares[share].chooser {
            Chooser::Ondemand(g) => g.sample(&elapsed),
            Chooser::Conservative(g) => g.sample(&elapsed),
            _ => return,
        };
        self.shares[share].next_sample_ns = self.now + u64::from(step.next_delay_us) * 1000;
        self.wish(share, step.khz);
    }

    fn ask_schedutil(&mut self, cpu: usize, share: usize) {
        let was_idle = self.cpus[cpu].idle_since_ns >= self.shares[share].sampled_ns;
        self.pass_pelt(cpu, self.cpus[cpu].phase == Phase::Busy);
        let (first, n) = (self.shares[share].first as usize, self.shares[share].n as usize);
        let used = (first..first + n).map(|c| self.pelts[c].0.utilisation()).max().unwrap_or(0);
        let Chooser::Schedutil(g) = &mut self.shares[share].chooser else { return };
        let khz = g.update(self.now, used, was_idle);
        if self.now >= self.shares[share].next_sample_ns {
            let period = u64::from(self.plan.machines[self.shares[share].machine as usize].policy.clock.sampling_us);
            self.shares[share].next_sample_ns = self.now + period * 1000;
            self.shares[share].sampled_ns = self.now;
        }
        self.wish(share, khz);
    }

    /// The average of a CPU's use up to now: it ran until now, or it did not.
    pub(super) fn pass_pelt(&mut self, cpu: usize, was_running: bool) {
        let share = self.share_of.get(cpu).copied().unwrap_or(0) as usize;
        if !matches!(self.shares.get(share).map(|s| &s.chooser), Some(Chooser::Schedutil(_))) {
            return;
        }
        let clock = &self.plan.machines[self.cpus[cpu].machine as usize].policy.clock;
        let top = clock.khz.first().copied().unwrap_or(1);
        let scale = if clock.file.invariant {
            f64::from(clock.khz[self.cpus[cpu].clock as usize]) / f64::from(top)
        } else {
            1.0
        };
        let (pelt, at) = &mut self.pelts[cpu];
        let ns = self.now - *at;
        *at = self.now;
        if was_running {
            let running = (ns as f64 * scale) as u64;
            pelt.pass(running, true);
            pelt.pass(ns - running.min(ns), false);
        } else {
            pelt.pass(ns, false);
        }
    }

    /// A governor with a timer of its own.
    pub(super) fn timed_sample(&mut self, share: usize) {
        let Some(m) = self.shares.get(share).map(|s| s.machine as usize) else { return };
        let elapsed = self.elapsed(share);
        let clock = &self.plan.machines[m].policy.clock;
        let busiest = elapsed.iter().map(|e| {
            let busy = i64::from(e.wall_us) - e.idle_us;
            u32::try_from(100 * busy.max(0) / i64::from(e.wall_us.max(1))).unwrap_or(100)
        });
        let load = busiest.max().unwrap_or(0);
        let khz = clock.khz[self.shares[share].target as usize];
        let tick_us = self.plan.machines[m].tick.map_or(1000, |t| t.us());
        let wish = match &mut self.shares[share].chooser {
            Chooser::Cpuspeed => cpuspeed::next_khz(&clock.khz, khz, 100 - load.min(100)),
            Chooser::OndemandOld => {
                let tunables = ondemand_old::Tunables { up_threshold: clock.up, down_differential: 10 };
                ondemand_old::next_khz(&clock.table, tunables, khz, load)
            }
            Chooser::ConservativeOld(g) => {
                let ticks = clock.sampling_us / tick_us.max(1);
                // Whole ticks, as they are counted: the nearest number.
                let idle = ((100 - load.min(100)) * ticks + 50) / 100;
                g.sample(ticks, idle)
            }
            _ => return,
        };
        let period = u64::from(clock.sampling_us.max(100)) * 1000;
        self.queue.push(self.now + period, event(kind::SAMPLE, self.epoch, share as u32));
        self.wish(share, wish);
    }

    /// A governor wants this clock; the hardware follows in its time.
    fn wish(&mut self, share: usize, khz: u32) {
        let s = &mut self.shares[share];
        let plan = &self.plan.machines[s.machine as usize].policy.clock;
        let Some(target) = plan.khz.iter().position(|f| *f == khz) else { return };
        if target as u32 == s.target {
            return;
        }
        s.target = target as u32;
        s.stamp = s.stamp.wrapping_add(1) & super::STAMP;
        self.queue.push(self.now + plan.ramp_ns, event(kind::CLOCK, s.stamp, share as u32));
    }

    /// The new clock is there.
    pub(super) fn apply_clock(&mut self, share: usize) {
        let s = &mut self.shares[share];
        s.clock = s.target;
        let (first, n, clock) = (s.first as usize, s.n as usize, s.clock);
        for cpu in first..first + n {
            self.sync(cpu);
            self.pass_pelt(cpu, self.cpus[cpu].phase == Phase::Busy);
            self.cpus[cpu].clock = clock;
            self.respeed(cpu);
            self.set_power(cpu);
        }
    }

    /// What the core of a CPU draws from now on; whether it lets its package sleep.
    pub(super) fn set_power(&mut self, cpu: usize) {
        let c = &self.cpus[cpu];
        let policy = &self.plan.machines[c.machine as usize].policy;
        let clock = c.clock as usize;
        let own = (c.phase == Phase::Idle).then_some(c.idle_state);
        let state = match self.sibling(cpu) {
            None => own,
            Some(other) => {
                let o = &self.cpus[other];
                // A core is as shallow as the shallower of its threads.
                own.and_then(|s| (o.phase == Phase::Idle).then_some(s.min(o.idle_state)))
            }
        };
        let watts = match state {
            None => policy.watts.working[clock],
            Some(state) => policy.watts.idle[state as usize][clock],
        };
        let is_deep = state.is_some_and(|s| s as usize >= policy.idle.package_from);
        let core = &mut self.cores[c.core as usize];
        core.joules += core.watts * (self.now - core.since_ns) as f64 / 1e9;
        core.since_ns = self.now;
        core.watts = watts;
        if is_deep == core.is_deep {
            return;
        }
        core.is_deep = is_deep;
        let package = &mut self.packages[c.package as usize];
        if is_deep {
            package.n_deep += 1;
            if package.n_deep == package.n_cores {
                package.asleep_since_ns = Some(self.now);
            }
        } else {
            package.n_deep -= 1;
            if let Some(since) = package.asleep_since_ns.take() {
                package.asleep_ns += self.now - since;
            }
        }
    }
}

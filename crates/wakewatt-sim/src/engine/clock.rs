//! How fast CPUs go: the frequency governors, the time a change takes, and what a core draws.
//!
//! ondemand, conservative and schedutil are asked where the scheduler would: when a task wakes or leaves, and at ticks. The governors of 2.6 and
//! cpuspeed are timers. For schedutil, time at a lower clock counts as less use (frequency invariance): a stretch of work is passed
//! to PELT as its part of running, then of not running. intel_pstate without HWP thinks in steps of 100 MHz and gets the lowest clock of the list that is
//! no lower; its cores are taken to have run at their present clock since the last sample, and nothing waits for I/O here, so it has no boost.
//! Hardware-chosen clocks are the guess of `models/frequency/hwp.rs`, on the same list.

use super::plan::ClockPlan;
use super::{Chooser, Engine, Phase, SECONDS_PER_NS, Share, event, kind};
use crate::server::{ClockGovernor, Domain};
use wakewatt_models::frequency::load::Elapsed;
use wakewatt_models::frequency::{
    Relation, conservative, conservative_old, cpuspeed, fixed, hwp, intel_pstate, ondemand, ondemand_old, schedutil,
};

/// The schedutil of a machine's domains, as they begin.
fn schedutil_of(plan: &ClockPlan, is_shared: bool, khz: u32) -> schedutil::Schedutil {
    let top = plan.khz.first().copied().unwrap_or(khz);
    let reference = match plan.file.invariant {
        true => schedutil::Reference::Invariant(top),
        false => schedutil::Reference::Present,
    };
    let form = schedutil::form_in(plan.release).form;
    schedutil::Schedutil::new(form, plan.table.clone(), reference, plan.sampling_us, is_shared, khz)
}

impl Engine {
    /// The domains of a machine, at the clock its governor starts with.
    pub(super) fn add_shares(&mut self, m: usize) {
        let machine = &self.plan.machines[m];
        let plan = &machine.policy.clock;
        let n = match plan.domain {
            Domain::Core => machine.threads,
            Domain::Package => machine.per_package,
        };
        let khz = match plan.governor {
            ClockGovernor::Performance => fixed::performance(&plan.table),
            ClockGovernor::Userspace => fixed::userspace(&plan.table, plan.set_khz),
            _ => fixed::powersave(&plan.table),
        };
        // One, of which all domains take clones.
        let schedutil = schedutil_of(plan, n > 1, khz);
        for first in (machine.first_cpu..machine.first_cpu + machine.n_cpus).step_by(n) {
            let wanted = plan.khz.iter().position(|f| *f == khz).unwrap_or(0) as u16;
            let package = &self.packages[self.cpus[first].package as usize];
            let clock = wanted.max(plan.cap(package.n_awake));
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
                    let table = plan.table.clone();
                    Chooser::Ondemand(ondemand::Ondemand::new(table, hardware, tunables, n, khz).into())
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
                    let table = plan.table.clone();
                    Chooser::Conservative(conservative::Conservative::new(form, table, tunables, n, khz).into())
                }
                ClockGovernor::ConservativeOld => {
                    let tunables = conservative_old::Tunables {
                        up_threshold: plan.up,
                        down_threshold: plan.down,
                        freq_step: c.freq_step,
                    };
                    let table = plan.table.clone();
                    Chooser::ConservativeOld(conservative_old::ConservativeOld::new(table, tunables, khz).into())
                }
                ClockGovernor::Schedutil => Chooser::Schedutil(schedutil.clone()),
                ClockGovernor::IntelPstate => Chooser::IntelPstate,
                ClockGovernor::Hwp => Chooser::Hwp,
            };
            let share = self.shares.len() as u32;
            for cpu in first..first + n {
                self.cpus[cpu].share = share;
                self.cpus[cpu].clock = clock;
                self.idle_at_sample_ns.push(self.idle_total(cpu));
            }
            self.shares.push(Share {
                first: first as u32,
                // Clocks of before a change of settings are not applied any more.
                stamp: (self.now % 0xfff_ffff) as u32,
                n: n as u16,
                clock,
                wanted,
                target: wanted,
                next_sample_ns: self.now,
                sampled_ns: self.now,
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
                let period = u64::from(self.clock_plan(s.first).sampling_us) * 1000;
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
        let cpus = s.first as usize..s.first as usize + usize::from(s.n);
        let mut elapsed = Vec::with_capacity(cpus.len());
        for cpu in cpus {
            let now = self.idle_total(cpu);
            let before = std::mem::replace(&mut self.idle_at_sample_ns[cpu], now);
            elapsed.push(Elapsed {
                wall_us: u32::try_from(wall / 1000).unwrap_or(u32::MAX),
                // A wake-up on its way is counted when it is known to end, so it may reach beyond now.
                idle_us: (now.saturating_sub(before) / 1000).min(wall / 1000) as i64,
            });
        }
        self.shares[share].sampled_ns = self.now;
        elapsed
    }

    /// Where the scheduler calls the governor.
    #[inline]
    pub(super) fn hook(&mut self, cpu: usize) {
        // By the plan, which is at hand: a domain's own line of cache is not fetched for nothing.
        if !self.clock_plan(cpu as u32).is_hooked {
            return;
        }
        let share = self.cpus[cpu].share as usize;
        match self.shares[share].chooser {
            Chooser::Ondemand(_) | Chooser::Conservative(_) if self.now >= self.shares[share].next_sample_ns => {
                self.sample(share);
            }
            Chooser::Schedutil(_) => self.ask_schedutil(cpu, share),
            Chooser::IntelPstate if self.now >= self.shares[share].next_sample_ns => self.ask_intel_pstate(share),
            Chooser::Hwp if self.now >= self.shares[share].next_sample_ns => self.ask_hwp(share),
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

    /// Of CPUs that share a clock the busiest counts: each has a request of its own, and the highest wins.
    fn ask_intel_pstate(&mut self, share: usize) {
        const BUS_KHZ: u32 = 100_000;
        let elapsed = self.elapsed(share);
        let wall_us = elapsed.first().map_or(0, |e| e.wall_us);
        let busy_us = elapsed.iter().map(|e| i64::from(e.wall_us) - e.idle_us).max().unwrap_or(0);
        self.shares[share].next_sample_ns = self.now + intel_pstate::SAMPLE_NS;
        let (first, clock) = (self.shares[share].first, self.shares[share].clock);
        let plan = self.clock_plan(first);
        let (low, high) = (plan.table.min_khz, plan.table.max_khz);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Whole megahertz, checked with the file.
        let base_khz = plan.reference_khz as u32;
        let ratio = |khz: u32| khz / BUS_KHZ;
        let ratios = intel_pstate::Ratios {
            min: ratio(plan.khz.last().copied().unwrap_or(low)),
            base: ratio(base_khz),
            top: ratio(plan.khz.first().copied().unwrap_or(high)),
            limit_min: ratio(low),
            limit_max: ratio(high),
        };
        let of_base = |us: u64| us.saturating_mul(u64::from(base_khz));
        let busy_us = u64::try_from(busy_us).unwrap_or(0);
        let sample = intel_pstate::Sample {
            aperf: busy_us.saturating_mul(u64::from(plan.khz[usize::from(clock)])),
            mperf: of_base(busy_us),
            tsc: of_base(u64::from(wall_us)),
        };
        let wanted_khz = intel_pstate::next_ratio(ratios, sample, 0).saturating_mul(BUS_KHZ);
        let khz = plan.table.resolve(wanted_khz, Relation::AtLeast);
        self.wish(share, khz);
    }

    /// The hardware looks every millisecond; here when something happens on the core, which is when it matters.
    fn ask_hwp(&mut self, share: usize) {
        let elapsed = self.elapsed(share);
        let used = |e: &Elapsed| 1.0 - e.idle_us as f64 / f64::from(e.wall_us.max(1));
        let use_ratio = elapsed.iter().map(used).fold(0.0, f64::max);
        self.shares[share].next_sample_ns = self.now + hwp::PERIOD_NS;
        let plan = self.clock_plan(self.shares[share].first);
        let top = plan.khz.first().copied().unwrap_or(plan.table.max_khz);
        let wanted_khz = hwp::wish_khz(top, plan.file.epp, plan.file.epp_strength, use_ratio);
        let khz = plan.table.resolve(wanted_khz, Relation::AtLeast);
        self.wish(share, khz);
    }

    fn ask_schedutil(&mut self, cpu: usize, share: usize) {
        let was_idle = self.cpus[cpu].idle_since_ns >= self.shares[share].sampled_ns;
        self.pass_pelt(cpu, self.cpus[cpu].phase == Phase::Busy);
        let (first, n) = (self.shares[share].first as usize, usize::from(self.shares[share].n));
        let used = self.cpus[first..first + n].iter().map(|c| c.pelt.utilisation()).max().unwrap_or(0);
        let Chooser::Schedutil(g) = &mut self.shares[share].chooser else { return };
        let khz = g.update(self.now, used, was_idle);
        if self.now >= self.shares[share].next_sample_ns {
            let period = u64::from(self.clock_plan(self.shares[share].first).sampling_us);
            self.shares[share].next_sample_ns = self.now + period * 1000;
            self.shares[share].sampled_ns = self.now;
        }
        self.wish(share, khz);
    }

    /// The average of a CPU's use up to now: it ran until now, or it did not.
    pub(super) fn pass_pelt(&mut self, cpu: usize, was_running: bool) {
        let c = &mut self.cpus[cpu];
        let clock = &self.plan.machines[c.machine as usize].policy.clock;
        if clock.governor != ClockGovernor::Schedutil {
            return;
        }
        let top = clock.khz.first().copied().unwrap_or(1);
        let scale = if clock.file.invariant { f64::from(clock.khz[c.clock as usize]) / f64::from(top) } else { 1.0 };
        let ns = self.now - c.pelt_at_ns;
        c.pelt_at_ns = self.now;
        if was_running {
            let running = (ns as f64 * scale) as u64;
            c.pelt.pass(running, true);
            c.pelt.pass(ns - running.min(ns), false);
        } else {
            c.pelt.pass(ns, false);
        }
    }

    /// A governor with a timer of its own.
    pub(super) fn timed_sample(&mut self, share: usize) {
        let Some(first) = self.shares.get(share).map(|s| s.first as usize) else { return };
        let m = self.cpus[first].machine as usize;
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
        let plan = &self.plan.machines[self.cpus[s.first as usize].machine as usize].policy.clock;
        let Some(target) = plan.khz.iter().position(|f| *f == khz) else { return };
        if target as u16 == s.target {
            return;
        }
        s.target = target as u16;
        s.stamp = s.stamp.wrapping_add(1) & super::STAMP;
        self.queue.push(self.now + plan.ramp_ns, event(kind::CLOCK, s.stamp, share as u32));
    }

    /// The new clock is there.
    pub(super) fn apply_clock(&mut self, share: usize) {
        self.shares[share].wanted = self.shares[share].target;
        let clock = self.allowed(share);
        self.put_clock(share, clock);
    }

    /// What turbo leaves of the governor's wish.
    fn allowed(&self, share: usize) -> u16 {
        let s = &self.shares[share];
        let n_awake = self.packages[self.cpus[s.first as usize].package as usize].n_awake;
        s.wanted.max(self.clock_plan(s.first).cap(n_awake))
    }

    fn clock_plan(&self, cpu: u32) -> &ClockPlan {
        &self.plan.machines[self.cpus[cpu as usize].machine as usize].policy.clock
    }

    fn put_clock(&mut self, share: usize, clock: u16) {
        let s = &mut self.shares[share];
        s.clock = clock;
        let (first, n) = (s.first as usize, usize::from(s.n));
        for cpu in first..first + n {
            self.sync(cpu);
            self.pass_pelt(cpu, self.cpus[cpu].phase == Phase::Busy);
            self.cpus[cpu].clock = clock;
            self.respeed(cpu);
            self.set_power(cpu);
        }
    }

    /// A CPU has come out of idle or gone into it: where that is the whole core, turbo may mean another clock for its package, at once.
    pub(super) fn turned(&mut self, cpu: usize, is_awake: bool) {
        if self.sibling(cpu).is_some_and(|other| self.cpus[other].phase != Phase::Idle) {
            return;
        }
        let (package, plan) = (self.cpus[cpu].package as usize, self.clock_plan(cpu as u32));
        let before = self.packages[package].n_awake;
        let after = if is_awake { before + 1 } else { before - 1 };
        let is_same = plan.cap(before) == plan.cap(after);
        self.packages[package].n_awake = after;
        if is_same {
            return;
        }
        let n_cpus = self.packages[package].n_cpus as usize;
        let machine = &self.plan.machines[self.cpus[cpu].machine as usize];
        let first = machine.first_cpu + (package - machine.first_package) * n_cpus;
        let (low, high) = (self.cpus[first].share as usize, self.cpus[first + n_cpus - 1].share as usize);
        for share in low..=high {
            let clock = self.allowed(share);
            if clock != self.shares[share].clock {
                self.put_clock(share, clock);
            }
        }
    }

    /// What the core of a CPU draws from now on; whether it lets its package sleep.
    pub(super) fn set_power(&mut self, cpu: usize) {
        let c = &self.cpus[cpu];
        let policy = &self.plan.machines[c.machine as usize].policy;
        let clock = c.clock as usize;
        let own = (c.phase == Phase::Idle).then_some(c.idle_state);
        let sibling = self.sibling(cpu).map(|other| &self.cpus[other]);
        let other = sibling.map(|o| (o.phase == Phase::Idle).then_some(o.idle_state));
        // A core is as shallow as the shallower of its threads.
        let (state, watts) = match (own, other) {
            (Some(own), other) if other != Some(None) => {
                let state = other.flatten().map_or(own, |other| own.min(other));
                (Some(state), policy.watts.idle[usize::from(state)][clock])
            }
            (None, Some(None)) => (None, policy.watts.working[clock]),
            _ => (None, policy.watts.one_thread[clock]),
        };
        let is_deep = state.is_some_and(|s| s as usize >= policy.idle.package_from);
        let core = &mut self.cores[c.core as usize];
        core.joules += core.watts * (self.now - core.since_ns) as f64 * SECONDS_PER_NS;
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

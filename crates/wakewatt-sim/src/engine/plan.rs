//! A checked server made ready to run: numbers instead of names, tables instead of choices.

use crate::law::Drawn;
use crate::server::cpus;
use crate::server::{
    After, ArrivalKind, Arrivals, Clock, ClockGovernor, Domain, Hop, Idle, IdleGovernor, IdleState, Machine, Placement,
    Queues, Refused, Server, table,
};
use wakewatt_models::frequency::{self, delay};
use wakewatt_models::idle::Kind;
use wakewatt_models::kernel::{Kernel, Release};
use wakewatt_models::poll;
use wakewatt_models::table::{Disabled, State, Table};
use wakewatt_models::tick::Tick;

/// A whole server.
pub(super) struct Plan {
    pub(super) machines: Vec<MachinePlan>,
    pub(super) stages: Vec<Stage>,
    /// How often a request goes through all of them.
    pub(super) rounds: u16,
    pub(super) arrivals: ArrivalPlan,
    pub(super) limit: usize,
    pub(super) duration_ns: u64,
    pub(super) warmup_ns: u64,
    pub(super) bins: u32,
    /// CPUs whose backlog is counted together: which machine, and its CPUs.
    pub(super) sets: Vec<(usize, Vec<usize>)>,
}

/// A machine.
pub(super) struct MachinePlan {
    /// Its first CPU and its first package, among all.
    pub(super) first_cpu: usize,
    pub(super) first_package: usize,
    pub(super) n_cpus: usize,
    pub(super) n_packages: usize,
    pub(super) threads: usize,
    /// Of a core's power: one of `threads` parts.
    pub(super) thread_share: f64,
    /// CPUs of a package, and of a last-level cache; the last of a package can be smaller.
    pub(super) per_package: usize,
    pub(super) per_cache: usize,
    pub(super) wake_ns: f64,
    pub(super) tick: Option<Tick>,
    pub(super) tick_cost_ns: f64,
    pub(super) smt_share: f64,
    pub(super) numa_factor: f64,
    pub(super) placement: Placement,
    pub(super) queues: Queues,
    pub(super) pull: bool,
    pub(super) slice_ns: f64,
    pub(super) timers: Option<(u64, f64)>,
    /// CPUs that may work, by their number in the machine.
    pub(super) allowed: Vec<bool>,
    pub(super) allows_all: bool,
    pub(super) policy: Policy,
}

impl MachinePlan {
    /// CPUs that share the last-level cache of one, from and below, by their number in the machine.
    pub(super) fn cache_of(&self, cpu: usize) -> (usize, usize) {
        let package = cpu / self.per_package * self.per_package;
        let low = package + (cpu - package) / self.per_cache * self.per_cache;
        (low, (low + self.per_cache).min(package + self.per_package))
    }
}

/// What a change of settings changes.
pub(super) struct Policy {
    pub(super) idle: IdlePlan,
    pub(super) clock: ClockPlan,
    pub(super) power: crate::server::Power,
    pub(super) watts: Watts,
}

/// Power of a core in watts.
pub(super) struct Watts {
    /// At work with all threads, by clock.
    pub(super) working: Vec<f64>,
    /// The same with one thread at work; of a core that has no other the same as above.
    pub(super) one_thread: Vec<f64>,
    /// In an idle state, by state, then clock.
    pub(super) idle: Vec<Vec<f64>>,
}

pub(super) struct IdlePlan {
    pub(super) kind: Option<Kind>,
    pub(super) release: Release,
    pub(super) states: Vec<IdleState>,
    pub(super) table: Table,
    pub(super) disabled: Disabled,
    pub(super) limit_ns: i64,
    /// Longest window of haltpoll; none: as shipped.
    pub(super) halt_poll_ns: Option<u64>,
    /// The state of a fixed choice.
    pub(super) fixed: usize,
    pub(super) entry_ns: Vec<u64>,
    pub(super) exit: Vec<Exit>,
    /// The same where another CPU woke it; no rows where it is alike.
    pub(super) exit_by_ipi: Vec<Vec<After>>,
    pub(super) cold_ns: Vec<f64>,
    /// The same by time without a request; no rows where it is alike.
    pub(super) cold_after: Vec<Vec<After>>,
    /// Does any state have such rows: is the time without a request to be known?
    pub(super) has_cold_after: bool,
    pub(super) overhead: Vec<Vec<After>>,
    /// The same where another CPU woke it; no rows where it is alike.
    pub(super) overhead_by_ipi: Vec<Vec<After>>,
    pub(super) send_ns: Vec<f64>,
    /// Does any state have an exit, an overhead or a sending of its own kind: is who wakes to be asked for?
    pub(super) has_waker: bool,
    /// From this state on a core lets its package sleep.
    pub(super) package_from: usize,
    pub(super) package_exit_ns: u64,
    /// How long the polling state spins; none where nothing else is allowed.
    pub(super) poll_limit_ns: Option<u64>,
}

pub(super) struct ClockPlan {
    pub(super) governor: ClockGovernor,
    /// It is asked where the scheduler would ask it.
    pub(super) is_hooked: bool,
    pub(super) release: Release,
    pub(super) table: frequency::Table,
    /// Falling, as in the file.
    pub(super) khz: Vec<u32>,
    pub(super) reference_khz: f64,
    pub(super) set_khz: u32,
    pub(super) domain: Domain,
    pub(super) ramp_ns: u64,
    pub(super) sampling_us: u32,
    pub(super) up: u32,
    pub(super) down: u32,
    /// Steps of turbo: up to so many cores awake, and the clock that none is above.
    turbo: Vec<(u32, u16)>,
    pub(super) file: Clock,
}

impl ClockPlan {
    /// The highest clock with so many cores of a package awake.
    #[inline]
    pub(super) fn cap(&self, n_awake: u32) -> u16 {
        let step = self.turbo.iter().find(|(cores, _)| n_awake <= *cores).or(self.turbo.last());
        step.map_or(0, |(_, clock)| *clock)
    }

    /// The highest clock that the settings allow to CPUs that never idle, with so many cores of a package
    /// awake.
    pub(super) fn highest(&self, n_awake: u32) -> usize {
        let khz = match self.governor {
            ClockGovernor::Powersave => self.table.min_khz,
            ClockGovernor::Userspace => self.set_khz.clamp(self.table.min_khz, self.table.max_khz),
            _ => self.table.max_khz,
        };
        // Falling: the first that is no higher.
        let wanted = self.khz.iter().position(|f| *f <= khz).unwrap_or(0);
        wanted.max(usize::from(self.cap(n_awake)))
    }
}

/// How long leaving an idle state takes.
pub(super) enum Exit {
    Drawn(Drawn),
    /// By the length of the sleep.
    After(Vec<After>),
}

/// One stop of a request.
pub(super) struct Stage {
    pub(super) machine: usize,
    pub(super) service: Drawn,
    /// Its mean.
    pub(super) service_ns: f64,
    pub(super) cpu_bound: f64,
    pub(super) system: f64,
    pub(super) wait: Option<Drawn>,
    pub(super) iowait: bool,
    /// Its work, and the CPUs that take it in turn; none: the CPU of the task.
    pub(super) interrupt: Option<(f64, Option<Vec<usize>>)>,
    pub(super) in_interrupt: bool,
    /// The request's time begins after it.
    pub(super) untimed: bool,
    /// CPUs it may run on, by their number in the machine; none: all that may work.
    pub(super) allowed: Option<Vec<bool>>,
    /// The only one.
    pub(super) pinned: Option<usize>,
    /// Shares of speed by clock of its machine: 1 / (b * ref / f + 1 - b).
    pub(super) speed: Vec<f64>,
    /// Does the task go on with the next stage at once, on the same CPU?
    pub(super) flows: bool,
}

fn flows(here: &Stage, next: &Stage) -> bool {
    let is_apart =
        here.untimed || here.wait.is_some() || here.in_interrupt || next.interrupt.is_some() || next.in_interrupt;
    !is_apart && next.machine == here.machine && next.allowed == here.allowed && next.pinned == here.pinned
}

pub(super) enum ArrivalPlan {
    /// Mean gap in nanoseconds; none: nobody comes.
    Poisson(Option<f64>),
    /// Mean gaps outside and inside a burst, mean lengths of both.
    Bursts {
        gap_ns: [Option<f64>; 2],
        length_ns: [f64; 2],
    },
    Closed(u64, Drawn),
    Gaps(Drawn),
    Recorded(Recording),
}

/// Recorded times of arrival.
pub(super) struct Recording {
    /// In nanoseconds, rising; the last one ends the recording.
    pub(super) at_ns: Vec<u64>,
    /// Length of the blocks that are drawn from it at random; none: it is replayed from the beginning.
    pub(super) block_ns: Option<u64>,
}

impl Plan {
    /// Of a server that was checked.
    pub(super) fn of(server: &Server) -> Result<Plan, Refused> {
        server.check()?;
        let (mut machines, mut first_cpu, mut first_package) = (Vec::new(), 0, 0);
        for machine in &server.machine {
            let plan = machine_plan(machine, first_cpu, first_package)?;
            first_cpu += plan.n_cpus;
            first_package += plan.n_packages;
            machines.push(plan);
        }
        let mut stages = Vec::new();
        for hop in &server.workload.hop {
            stages.push(stage(hop, server, &machines)?);
        }
        let flows: Vec<bool> = (0..stages.len()).map(|i| flows(&stages[i], &stages[(i + 1) % stages.len()])).collect();
        stages.iter_mut().zip(flows).for_each(|(stage, flows)| stage.flows = flows);
        let mut plan = Plan {
            machines,
            stages,
            rounds: u16::try_from(server.workload.rounds.unwrap_or(1)).unwrap_or(u16::MAX),
            arrivals: arrivals(&server.workload.arrivals),
            limit: server.workload.limit.and_then(|n| usize::try_from(n).ok()).unwrap_or(usize::MAX),
            duration_ns: server.run.counted().ns(),
            warmup_ns: server.run.before().ns(),
            bins: server.run.bins,
            sets: Vec::new(),
        };
        plan.sets = sets(&plan);
        Ok(plan)
    }
}

/// CPUs, cpusets, machines: which machine, and its CPUs.
pub(super) fn sets(plan: &Plan) -> Vec<(usize, Vec<usize>)> {
    let of = |(m, machine): (usize, &MachinePlan)| {
        let mut sets: Vec<Vec<usize>> = (0..machine.n_cpus).map(|cpu| vec![cpu]).collect();
        let stages = || plan.stages.iter().filter(move |s| s.machine == m);
        let lists = stages().filter_map(|s| s.interrupt.as_ref()?.1.clone());
        let cpusets = stages().map(|s| may_run_on(s, machine)).chain(lists);
        cpusets.chain([(0..machine.n_cpus).collect()]).for_each(|set| {
            if !sets.contains(&set) {
                sets.push(set);
            }
        });
        sets.into_iter().map(|cpus| (m, cpus)).collect::<Vec<_>>()
    };
    plan.machines.iter().enumerate().flat_map(of).collect()
}

/// CPUs that the task of a stage may run on.
pub(super) fn may_run_on(stage: &Stage, machine: &MachinePlan) -> Vec<usize> {
    if let Some(cpu) = stage.pinned {
        return vec![cpu];
    }
    let allowed = stage.allowed.as_ref().unwrap_or(&machine.allowed);
    (0..machine.n_cpus).filter(|cpu| machine.queues != Queues::PerCpu || allowed[*cpu]).collect()
}

fn release(kernel: &str) -> Release {
    let newest = Release { major: 6, minor: 18, patch: 0 };
    Kernel::parse(kernel).map_or(newest, |k| k.release)
}

fn whole(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn machine_plan(m: &Machine, first_cpu: usize, first_package: usize) -> Result<MachinePlan, Refused> {
    let per_package = whole(m.cores) * whole(m.threads);
    let n_cpus = per_package * whole(m.packages);
    let mut allowed = vec![m.cpus.is_none(); n_cpus];
    if let Some(text) = &m.cpus {
        cpus("machine.cpus", text, n_cpus as u64)?.into_iter().for_each(|cpu| allowed[cpu] = true);
    }
    let cores_per_cache = whole(m.cores).div_ceil(whole(m.caches));
    Ok(MachinePlan {
        first_cpu,
        first_package,
        n_cpus,
        n_packages: whole(m.packages),
        threads: whole(m.threads),
        thread_share: 1.0 / f64::from(m.threads.max(1)),
        per_package,
        per_cache: cores_per_cache * whole(m.threads),
        wake_ns: m.wake_cost.ns() as f64,
        tick: Tick::of_hz(m.hz),
        tick_cost_ns: m.tick_cost.ns() as f64,
        smt_share: m.smt_share,
        numa_factor: 1.0 / (1.0 + m.numa_penalty),
        placement: m.placement,
        queues: m.queues,
        pull: m.pull,
        slice_ns: m.slice.map_or(f64::INFINITY, |s| s.ns() as f64),
        timers: m.timers.as_ref().map(|t| (t.every.ns(), t.work.ns() as f64)),
        allows_all: allowed.iter().all(|a| *a),
        allowed,
        policy: policy(m),
    })
}

/// The part of a machine that a change in the middle of a run may change.
pub(super) fn policy(m: &Machine) -> Policy {
    let idle = idle_plan(&m.idle, m);
    let clock = clock_plan(&m.clock, m);
    let top = f64::from(clock.khz.first().copied().unwrap_or(1)) / 1e6;
    let p = &m.power;
    let ghz: Vec<f64> = clock.khz.iter().map(|khz| f64::from(*khz) / 1e6).collect();
    let least = ghz.last().copied().unwrap_or(top);
    let watts_of = |state: &IdleState| -> Vec<f64> {
        let residency_us = state.target_residency.ns() as f64 / 1e3;
        let at = |ghz: &f64| match state.core_w {
            Some(w) => w,
            None if state.polling => p.polling_w(*ghz, top),
            None if residency_us >= p.deep_from_us => p.deep_w(),
            // C1E drops to the lowest clock's voltage.
            None if state.name.to_ascii_uppercase().ends_with('E') => p.gated_w(least, top),
            None => p.gated_w(*ghz, top),
        };
        ghz.iter().map(at).collect()
    };
    let watts = Watts {
        working: ghz.iter().map(|g| p.working_w(*g, top)).collect(),
        one_thread: ghz
            .iter()
            .map(|g| if m.threads > 1 { p.one_thread_w(*g, top) } else { p.working_w(*g, top) })
            .collect(),
        idle: idle.states.iter().map(watts_of).collect(),
    };
    Policy { idle, clock, power: m.power.clone(), watts }
}

fn idle_plan(idle: &Idle, m: &Machine) -> IdlePlan {
    let states = match &idle.table {
        Some(name) => table(name).unwrap_or_default(),
        None => idle.state.clone(),
    };
    let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let rows: Vec<State> = states
        .iter()
        .map(|s| State {
            exit_latency_ns: signed(s.exit_latency.ns()),
            target_residency_ns: signed(s.target_residency.ns()),
            is_polling: s.polling,
        })
        .collect();
    let at = |name: &Option<String>| {
        name.as_ref().and_then(|name| states.iter().position(|s| s.name.eq_ignore_ascii_case(name)))
    };
    let deepest = at(&idle.max_state).unwrap_or(states.len());
    let is_off = |i: &usize| *i > deepest || idle.disable.iter().any(|name| states[*i].name.eq_ignore_ascii_case(name));
    let disabled = Disabled::of((0..states.len()).filter(is_off));
    let no_limit = 2_000_000_000_000;
    let limit_ns = idle.max_latency.map_or(no_limit, |s| signed(s.ns()));
    let fits = |i: &usize| !disabled.has(*i) && signed(states[*i].exit_latency.ns()) <= limit_ns;
    let fixed = (0..states.len()).rev().find(fits).unwrap_or(0);
    let table = Table::new(&rows).unwrap_or_default();
    let release = release(&m.kernel);
    let claimed = |s: &IdleState| s.exit_latency.ns() as f64;
    let exit = |s: &IdleState| match &s.exit {
        _ if !s.after.is_empty() => Exit::After(s.after.clone()),
        Some(law) => Exit::Drawn(Drawn::of(law)),
        None => Exit::Drawn(Drawn::Fixed(claimed(s) * idle.exit_share)),
    };
    let tick = Tick::of_hz(m.hz).or_else(|| Tick::of_hz(250));
    let kind = match idle.governor {
        IdleGovernor::Menu => Some(Kind::Menu),
        IdleGovernor::Teo => Some(Kind::Teo),
        IdleGovernor::Ladder => Some(Kind::Ladder),
        IdleGovernor::Haltpoll => Some(Kind::Haltpoll),
        IdleGovernor::Fixed => None,
    };
    let may_sleep = limit_ns > 0 && (1..states.len()).any(|i| !disabled.has(i));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // At most 100 ms.
    let part = |s: &IdleState| (claimed(s) * idle.entry_share) as u64;
    IdlePlan {
        // With one state no governor is asked.
        kind: kind.filter(|_| states.len() > 1 && m.hz > 0),
        release,
        entry_ns: states.iter().map(part).collect(),
        exit: states.iter().map(exit).collect(),
        halt_poll_ns: idle.halt_poll.map(|span| span.ns()),
        exit_by_ipi: states.iter().map(|s| s.after_ipi.clone()).collect(),
        cold_ns: states.iter().map(|s| s.cold.ns() as f64).collect(),
        cold_after: states.iter().map(|s| s.cold_after.clone()).collect(),
        has_cold_after: states.iter().any(|s| !s.cold_after.is_empty()),
        overhead: states.iter().map(|s| s.overhead.clone()).collect(),
        overhead_by_ipi: states.iter().map(|s| s.overhead_ipi.clone()).collect(),
        send_ns: states.iter().map(|s| s.send.ns() as f64).collect(),
        has_waker: states.iter().any(|s| {
            [&s.after_ipi, &s.overhead, &s.overhead_ipi].iter().any(|rows| !rows.is_empty()) || s.send.ns() > 0
        }),
        package_from: at(&idle.package_state).unwrap_or(usize::MAX),
        package_exit_ns: idle.package_exit.ns(),
        poll_limit_ns: tick
            .filter(|_| may_sleep)
            .and_then(|tick| u64::try_from(poll::limit_ns(release, &table, disabled, tick)).ok()),
        states,
        table,
        disabled,
        limit_ns,
        fixed,
    }
}

fn clock_plan(c: &Clock, m: &Machine) -> ClockPlan {
    let khz: Vec<u32> = c.mhz.iter().map(|mhz| mhz.saturating_mul(1000)).collect();
    let (top, least) = (khz.first().copied().unwrap_or(1), khz.last().copied().unwrap_or(1));
    let (low, high) = (c.min_mhz.map_or(least, |f| f * 1000), c.max_mhz.map_or(top, |f| f * 1000));
    let release = release(&m.kernel);
    let tick = Tick::of_hz(m.hz);
    let shipped = match (c.governor, tick) {
        // Of 2.6: 20 ticks at least.
        (ClockGovernor::OndemandOld | ClockGovernor::ConservativeOld, Some(tick)) => tick.us().saturating_mul(20),
        (ClockGovernor::Cpuspeed, _) => frequency::cpuspeed::INTERVAL_US,
        (ClockGovernor::Schedutil, _) => delay::transition_delay_us(delay::form_in(release).form, 10),
        (_, Some(tick)) => delay::sampling_rate_us(delay::form_in(release).form, 10, tick),
        (_, None) => 10_000,
    };
    // Checked: it is one of them, and there are at most a hundred.
    let place = |mhz: u32| c.mhz.iter().position(|f| *f == mhz).and_then(|i| u16::try_from(i).ok()).unwrap_or(0);
    let (up, down) = match c.governor {
        ClockGovernor::Ondemand => (95, 0),
        ClockGovernor::OndemandOld => (80, 10),
        _ => (80, 20),
    };
    ClockPlan {
        governor: c.governor,
        is_hooked: match c.governor {
            ClockGovernor::Performance | ClockGovernor::Powersave | ClockGovernor::Userspace => false,
            ClockGovernor::Cpuspeed | ClockGovernor::OndemandOld | ClockGovernor::ConservativeOld => false,
            ClockGovernor::Ondemand | ClockGovernor::Conservative | ClockGovernor::Schedutil => true,
            ClockGovernor::IntelPstate | ClockGovernor::Hwp => true,
        },
        release,
        table: frequency::Table::new(khz.clone(), low, high)
            .or_else(|| frequency::Table::new(vec![top], top, top))
            .unwrap_or_else(|| unreachable!("one clock within its own limits")),
        reference_khz: f64::from(c.reference_mhz.map_or(top, |f| f * 1000)),
        set_khz: c.set_mhz.map_or(top, |f| f * 1000),
        domain: c.domain,
        ramp_ns: c.ramp.ns(),
        sampling_us: c.sampling.map_or(shipped, |s| u32::try_from(s.ns() / 1000).unwrap_or(u32::MAX)),
        up: c.up_threshold.unwrap_or(up),
        down: c.down_threshold.unwrap_or(down),
        turbo: c.turbo.iter().map(|t| (t.cores, place(t.mhz))).collect(),
        file: c.clone(),
        khz,
    }
}

/// Blocks of a recording that are as long as it together: each keeps its arrivals' order and gaps, and
/// their number differs as it does in the recording.
const BLOCKS: u64 = 50;

/// Speeds of a hop by the clocks of its machine.
pub(super) fn speeds(cpu_bound: f64, clock: &ClockPlan) -> Vec<f64> {
    let at = |khz: &u32| 1.0 / (cpu_bound * clock.reference_khz / f64::from(*khz) + 1.0 - cpu_bound);
    clock.khz.iter().map(at).collect()
}

fn stage(hop: &Hop, server: &Server, machines: &[MachinePlan]) -> Result<Stage, Refused> {
    let machine = match &hop.machine {
        None => 0,
        Some(name) => server.machine.iter().position(|m| m.name == *name).unwrap_or(0),
    };
    let n = machines[machine].n_cpus;
    let list = hop.cpus.as_ref().map(|text| cpus("workload.hop.cpus", text, n as u64)).transpose()?;
    let is_working = |cpu: &usize| machines[machine].allowed[*cpu];
    let allowed = list.as_ref().map(|list| {
        let mut allowed = vec![false; n];
        list.iter().copied().filter(is_working).for_each(|cpu| allowed[cpu] = true);
        allowed
    });
    let interrupt = match &hop.interrupt {
        None => None,
        Some(irq) => {
            let list = irq.cpus.as_ref().map(|text| cpus("workload.hop.interrupt.cpus", text, n as u64)).transpose()?;
            Some((irq.work.ns() as f64, list))
        }
    };
    Ok(Stage {
        machine,
        service: Drawn::of(&hop.service),
        service_ns: hop.service.mean_ns(),
        cpu_bound: hop.cpu_bound,
        system: hop.system,
        wait: hop.wait.as_ref().map(Drawn::of),
        iowait: hop.iowait,
        interrupt,
        in_interrupt: hop.in_interrupt,
        untimed: hop.untimed,
        pinned: list.filter(|_| hop.pinned).and_then(|list| list.into_iter().find(is_working)),
        allowed,
        speed: speeds(hop.cpu_bound, &machines[machine].policy.clock),
        flows: false,
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Checked: 0 to 1e11 us.
fn arrivals(a: &Arrivals) -> ArrivalPlan {
    let gap = |rate: Option<f64>| rate.filter(|r| *r > 0.0).map(|r| 1e9 / r);
    let length = |span: Option<crate::span::Span>| span.map_or(1e9, |s| s.ns() as f64);
    let think = a.think.as_ref().map_or(Drawn::Fixed(0.0), Drawn::of);
    match a.kind {
        ArrivalKind::Poisson | ArrivalKind::Steps => ArrivalPlan::Poisson(gap(a.per_s)),
        ArrivalKind::Bursts => ArrivalPlan::Bursts {
            gap_ns: [gap(a.per_s), gap(a.burst_per_s)],
            length_ns: [length(a.quiet), length(a.burst)],
        },
        ArrivalKind::Closed => ArrivalPlan::Closed(a.clients.unwrap_or(1), think),
        ArrivalKind::Gaps => ArrivalPlan::Gaps(think),
        ArrivalKind::Recorded => {
            let at_ns: Vec<u64> = a.at_us.iter().map(|us| (us * 1000.0) as u64).collect();
            let length_ns = at_ns.last().copied().unwrap_or(0);
            let block_ns = (length_ns / BLOCKS).max(1);
            ArrivalPlan::Recorded(Recording { block_ns: a.is_resampled().then_some(block_ns), at_ns })
        }
    }
}

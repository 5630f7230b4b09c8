//! One replication: the machines' CPUs, what is on them, and what happens next.
//!
//! Every CPU is idle, waking or busy, and has at most one event of its own that counts; a change of mind (another clock, an interrupt) gives it
//! a new stamp and leaves the old event to be ignored. `requests.rs` is the way of a request through its stages, `place.rs` who gets
//! it, `waiting.rs` who waits for it, `cpu.rs` a CPU at work, `idle.rs` its sleep, `minds.rs` who chooses how deep, `clock.rs` its speed, `count.rs` what is kept. Times are whole nanoseconds,
//! work is in nanoseconds at the reference clock.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Times are below 2^50 ns, indices below 2^32, both checked on the way in.

mod bits;
mod clock;
mod count;
mod cpu;
pub(crate) mod groups;
mod idle;
mod minds;
mod place;
mod plan;
mod requests;
#[cfg(test)]
mod tests;
mod times;
mod waiting;

pub(crate) use count::PARTS;
pub use count::{Bin, Counted, MachineCounted, Part, Periods, StateCounted};
pub use groups::Backlog;

use crate::queue::Queue;
use crate::server::{Queues, Refused, Server};
use bits::Bits;
use count::Counts;
use minds::Minds;
use plan::{Plan, Policy};
use std::collections::VecDeque;
use wakewatt_core::stats::random::Random;
use wakewatt_models::frequency::{conservative, conservative_old, ondemand, pelt, schedutil};

/// A division less for each piece of energy.
const SECONDS_PER_NS: f64 = 1e-9;
/// No job, no CPU.
const NONE: u32 = u32::MAX;
/// A stage of no request: the machine's own work.
const OWN: u16 = u16::MAX;
/// So many requests in the machines at a time are more than any queue is for: the rest is turned away, and the run says so.
const MOST_JOBS: usize = 3_000_000;

/// Kinds of events: in the top four bits; then a stamp of 28 bits, and whose event it is.
mod kind {
    pub(super) const ARRIVE: u64 = 0;
    pub(super) const CPU: u64 = 1;
    pub(super) const POLLED: u64 = 2;
    pub(super) const TICK: u64 = 3;
    pub(super) const WAITED: u64 = 4;
    pub(super) const THOUGHT: u64 = 5;
    pub(super) const CLOCK: u64 = 6;
    pub(super) const SAMPLE: u64 = 7;
    pub(super) const TIMER: u64 = 8;
    pub(super) const BURST: u64 = 9;
    pub(super) const PART: u64 = 10;
    pub(super) const CHANGE: u64 = 14;
    pub(super) const MARK: u64 = 15;
}

const STAMP: u32 = (1 << 28) - 1;

fn event(kind: u64, stamp: u32, whose: u32) -> u64 {
    kind << 60 | u64::from(stamp & STAMP) << 32 | u64::from(whose)
}

/// The nearest whole number of one that is not negative; through a signed one, which the processor has an instruction for.
#[inline]
fn whole_ns(ns: f64) -> u64 {
    (ns + 0.5) as i64 as u64
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Phase {
    Idle,
    Waking,
    Busy,
}

/// Two lines of cache, by itself: with a thousand of them, a CPU that an event finds is seldom near. So what is a machine's is not kept
/// here, and numbers are no wider than they need to be.
#[repr(align(64))]
struct Cpu {
    machine: u16,
    clock: u16,
    package: u32,
    core: u32,
    /// The CPUs that share its clock.
    share: u32,
    stamp: u32,
    job: u32,
    /// The last job that waits for it; that one names the first.
    last_waiting: u32,
    n_iowait: u32,
    /// Its place among the ticks of a period: below a second.
    tick_phase_ns: u32,
    idle_state: u8,
    phase: Phase,
    is_tick_stopped: bool,
    is_tick_armed: bool,
    is_tick_fired: bool,
    /// What is left of the present piece of work, at the reference clock; how fast it goes; since when.
    chunk: f64,
    rate: f64,
    at_ns: u64,
    /// When the present pair of entry and exit began, and the whole time without work.
    entered_ns: u64,
    idle_since_ns: u64,
    idle_ns: u64,
    busy_ns: u64,
    timer_at_ns: u64,
    /// For schedutil: its use, and until when that is known.
    pelt: pelt::Pelt,
    pelt_at_ns: u64,
}

/// A core: what it takes.
struct Core {
    watts: f64,
    since_ns: u64,
    joules: f64,
    is_deep: bool,
}

struct Package {
    machine: u32,
    n_cores: u32,
    n_deep: u32,
    /// Cores of which some CPU is not idle: turbo asks.
    n_awake: u32,
    n_idle_cpus: u32,
    n_cpus: u32,
    asleep_since_ns: Option<u64>,
    asleep_ns: u64,
    all_idle_since_ns: u64,
}

#[derive(Clone, Copy)]
struct Job {
    start_ns: u64,
    left: f64,
    /// Share of its work that the kernel does.
    system: f64,
    stage: u16,
    round: u16,
    in_interrupt: bool,
    prev: u32,
    home: u32,
    /// Where it waits: who is next.
    next: u32,
}

/// CPUs that share a clock, and who chooses it: a line of cache.
#[repr(align(64))]
struct Share {
    first: u32,
    stamp: u32,
    n: u16,
    clock: u16,
    /// What its governor has come to, and what it is on its way to; turbo may allow less.
    wanted: u16,
    target: u16,
    next_sample_ns: u64,
    sampled_ns: u64,
    chooser: Chooser,
}

enum Chooser {
    Still,
    Ondemand(Box<ondemand::Ondemand>),
    Conservative(Box<conservative::Conservative>),
    OndemandOld,
    ConservativeOld(Box<conservative_old::ConservativeOld>),
    Cpuspeed,
    Schedutil(schedutil::Schedutil),
    IntelPstate,
    Hwp,
}

/// Interrupts of a CPU: one runs at a time, in order of arrival, before any task.
#[derive(Default)]
struct Interrupts {
    waiting: VecDeque<u32>,
    /// The job that an interrupt preempted, and what was left of its piece.
    preempted: Option<(u32, f64)>,
}

/// State of a machine beside its CPUs.
struct Host {
    idle: Bits,
    idle_cores: Bits,
    waiting: Bits,
    n_waiting: usize,
    /// Of those, how many another CPU may take.
    n_movable: usize,
    queue: VecDeque<u32>,
    n_waking: u32,
    last_used: usize,
}

struct Engine {
    plan: Plan,
    later: Option<(u64, Vec<Policy>)>,
    queue: Queue,
    now: u64,
    cpus: Vec<Cpu>,
    /// Machine by machine.
    minds: Vec<Minds>,
    cores: Vec<Core>,
    packages: Vec<Package>,
    hosts: Vec<Host>,
    shares: Vec<Share>,
    /// CPU by CPU; empty where no hop has interrupts on CPUs of their own.
    interrupts: Vec<Interrupts>,
    /// Hop by hop, interrupts so far: the CPUs of its list take turns, whatever other hops do.
    turns: Vec<usize>,
    /// CPU by CPU, kernel work that waits until the CPU has nothing else to do; empty where no idle state makes any.
    owed: Vec<f64>,
    /// When each CPU last ended work for a request; empty where nobody asks.
    worked_ns: Vec<u64>,
    /// CPU by CPU, for the governors that ask: how long it had been idle when they last did.
    idle_at_sample_ns: Vec<u64>,
    jobs: Vec<Job>,
    free: Vec<u32>,
    n_requests: usize,
    arrivals: Random,
    services: Random,
    random: Random,
    in_burst: bool,
    playback: requests::Playback,
    /// Settings change once: samples planned before do not count after.
    epoch: u32,
    counts: Counts,
    /// CPU by CPU, what governors were asked and what came of it: for the tests, which replay it.
    #[cfg(test)]
    choices: Vec<Vec<wakewatt_core::samples::idle_choice::IdleChoice>>,
}

/// Runs one replication of a server. `index` chooses its random numbers, so replications differ and each can be repeated by itself.
pub(crate) fn replicate(server: &Server, index: u32) -> Result<Counted, Refused> {
    let mut engine = Engine::of(server, index)?;
    engine.start();
    engine.run();
    Ok(engine.counted())
}

impl Engine {
    fn of(server: &Server, index: u32) -> Result<Engine, Refused> {
        let plan = Plan::of(server)?;
        let later = match &server.change {
            None => None,
            Some(change) => {
                let setting = server.setting.iter().find(|s| s.name == change.setting);
                let under = setting.map(|s| server.under(s)).transpose();
                let under = under.map_err(|e| Refused { field: "change.setting".into(), why: e.to_string() })?;
                let machines = under.as_ref().map_or(&server.machine, |u| &u.machine);
                Some((plan.warmup_ns + change.at.ns(), machines.iter().map(plan::policy).collect()))
            }
        };
        // Arrivals and services have random numbers of their own: they are the same under every setting.
        let seed = server.run.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(u64::from(index));
        let (arrivals, services) = (Random::new(seed), Random::new(seed ^ 0x5851_f42d_4c95_7f2d));
        let random = Random::new(seed ^ 0x1405_7b7e_f767_814f);
        let counts = Counts::new(&plan);
        let mut engine = Engine {
            queue: Queue::with_room(256),
            now: 0,
            cpus: Vec::new(),
            interrupts: Vec::new(),
            owed: Vec::new(),
            worked_ns: Vec::new(),
            minds: Vec::new(),
            cores: Vec::new(),
            packages: Vec::new(),
            hosts: Vec::new(),
            shares: Vec::new(),
            idle_at_sample_ns: Vec::new(),
            jobs: Vec::new(),
            free: Vec::new(),
            n_requests: 0,
            arrivals,
            services,
            random,
            in_burst: false,
            turns: vec![0; plan.stages.len()],
            playback: requests::Playback::default(),
            epoch: 0,
            counts,
            plan,
            later,
            #[cfg(test)]
            choices: Vec::new(),
        };
        (0..engine.plan.machines.len()).for_each(|m| engine.add_machine(m));
        if engine.plan.stages.iter().any(|s| matches!(s.interrupt, Some((_, Some(_))))) {
            engine.interrupts.resize_with(engine.cpus.len(), Interrupts::default);
        }
        Ok(engine)
    }

    fn add_machine(&mut self, m: usize) {
        let plan = &self.plan.machines[m];
        let tick_ns = plan.tick.map_or(0, |t| t.ns() as u64);
        let first_core = self.cores.len();
        for i in 0..plan.n_cpus {
            let package = plan.first_package + i / plan.per_package;
            let core = first_core + i / plan.threads;
            // Ticks of CPUs are spread, as with skew_tick: no instant at which all CPUs wake.
            let phase = if plan.n_cpus > 0 { tick_ns * i as u64 / plan.n_cpus as u64 } else { 0 };
            self.cpus.push(Cpu {
                machine: m as u16,
                clock: 0,
                package: package as u32,
                core: core as u32,
                share: 0,
                stamp: 0,
                job: NONE,
                last_waiting: NONE,
                n_iowait: 0,
                tick_phase_ns: phase as u32,
                idle_state: 0,
                phase: Phase::Busy,
                is_tick_stopped: false,
                is_tick_armed: false,
                is_tick_fired: false,
                chunk: 0.0,
                rate: 1.0,
                at_ns: 0,
                entered_ns: 0,
                idle_since_ns: 0,
                idle_ns: 0,
                busy_ns: 0,
                timer_at_ns: u64::MAX,
                pelt: pelt::Pelt::default(),
                pelt_at_ns: 0,
            });
            if i % plan.threads == 0 {
                self.cores.push(Core { watts: 0.0, since_ns: 0, joules: 0.0, is_deep: false });
            }
        }
        self.minds.push(Minds::of(&plan.policy.idle, plan.tick, plan.n_cpus));
        for _ in 0..plan.n_packages {
            self.packages.push(Package {
                machine: m as u32,
                n_cores: (plan.per_package / plan.threads) as u32,
                n_deep: 0,
                n_awake: (plan.per_package / plan.threads) as u32,
                n_idle_cpus: 0,
                n_cpus: plan.per_package as u32,
                asleep_since_ns: None,
                asleep_ns: 0,
                all_idle_since_ns: 0,
            });
        }
        self.hosts.push(Host {
            idle: Bits::of(plan.n_cpus),
            idle_cores: Bits::of(plan.n_cpus),
            waiting: Bits::of(plan.n_cpus),
            n_waiting: 0,
            n_movable: 0,
            queue: VecDeque::new(),
            n_waking: 0,
            last_used: plan.n_cpus.saturating_sub(1),
        });
        self.add_shares(m);
    }

    /// All CPUs idle at time 0, first events in the queue.
    fn start(&mut self) {
        for cpu in 0..self.cpus.len() {
            let machine = &self.plan.machines[self.cpus[cpu].machine as usize];
            if let Some((every, _)) = machine.timers {
                let at = self.random.below(every.max(1));
                self.cpus[cpu].timer_at_ns = at;
                self.queue.push_periodic(at, event(kind::TIMER, 0, cpu as u32));
            }
            self.go_idle(cpu);
        }
        self.start_shares();
        self.start_arrivals();
        self.queue.push(self.plan.warmup_ns, event(kind::MARK, 0, 0));
        if let Some((at, _)) = &self.later {
            self.queue.push(*at, event(kind::CHANGE, 0, 0));
        }
    }

    fn run(&mut self) {
        let end = self.plan.warmup_ns + self.plan.duration_ns;
        while let Some((at, what)) = self.queue.pop() {
            if at > end {
                break;
            }
            self.now = at;
            let (stamp, whose) = ((what >> 32) as u32 & STAMP, what as u32);
            match what >> 60 {
                kind::CPU => {
                    if self.cpus[whose as usize].stamp == stamp {
                        self.cpu_event(whose as usize);
                    }
                }
                kind::ARRIVE => self.arrive(whose),
                kind::WAITED => self.waited(whose),
                kind::THOUGHT => self.thought(whose),
                kind::TICK => self.tick(whose as usize),
                kind::POLLED => {
                    if self.cpus[whose as usize].stamp == stamp {
                        self.polled(whose as usize);
                    }
                }
                kind::CLOCK => {
                    if self.shares[whose as usize].stamp == stamp {
                        self.apply_clock(whose as usize);
                    }
                }
                kind::SAMPLE => {
                    if stamp == self.epoch {
                        self.timed_sample(whose as usize);
                    }
                }
                kind::TIMER => self.timer(whose as usize),
                kind::BURST => self.burst(),
                kind::PART => self.end_part(),
                kind::CHANGE => self.change(),
                _ => self.mark(whose),
            }
        }
        self.now = end;
        self.sync_all();
    }

    /// The settings change while everything runs.
    fn change(&mut self) {
        let Some((_, policies)) = self.later.take() else { return };
        self.epoch += 1;
        for cpu in 0..self.cpus.len() {
            self.sync(cpu);
            self.end_sleep(cpu);
        }
        for (m, policy) in policies.into_iter().enumerate() {
            self.plan.machines[m].policy = policy;
        }
        for stage in &mut self.plan.stages {
            stage.speed = plan::speeds(stage.cpu_bound, &self.plan.machines[stage.machine].policy.clock);
        }
        self.shares.clear();
        self.idle_at_sample_ns.clear();
        (0..self.plan.machines.len()).for_each(|m| self.add_shares(m));
        for (minds, machine) in self.minds.iter_mut().zip(&self.plan.machines) {
            *minds = Minds::of(&machine.policy.idle, machine.tick, machine.n_cpus);
        }
        (0..self.cpus.len()).for_each(|cpu| self.restate(cpu));
        self.start_shares();
    }

    fn is_shared(&self, m: usize) -> bool {
        self.plan.machines[m].queues != Queues::PerCpu
    }
}

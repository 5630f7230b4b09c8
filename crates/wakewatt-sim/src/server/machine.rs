//! A machine: its CPUs, how work finds them, its idle states, its clocks.

use super::power::Power;
use crate::law::Law;
use crate::span::Span;
use serde::{Deserialize, Serialize};

/// A machine of the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    /// Its name, by which hops and settings find it.
    pub name: String,
    /// Processor packages; each is a memory node.
    pub packages: u32,
    /// Cores per package.
    pub cores: u32,
    /// CPUs per core: 1, or 2 with SMT.
    pub threads: u32,
    /// Last-level caches per package; wake-ups look for an idle CPU within one.
    pub caches: u32,
    /// The kernel whose governors decide: `6.1.192`.
    pub kernel: String,
    /// Ticks per second (CONFIG_HZ).
    pub hz: u32,
    /// CPU time of a tick, at the reference clock.
    pub tick_cost: Span,
    /// CPU time that a wake-up costs in the kernel (interrupt, scheduler), at the reference clock.
    pub wake_cost: Span,
    /// Speed of a CPU while its SMT sibling works too, 1 for none lost.
    pub smt_share: f64,
    /// Part by which work takes longer on another package than its memory lies on.
    pub numa_penalty: f64,
    /// How a CPU is found for what wakes.
    pub placement: Placement,
    /// Where work waits.
    pub queues: Queues,
    /// Does a CPU that runs out of work take some that waits for another?
    pub pull: bool,
    /// A task runs so long before the next of its CPU has a turn; none: until it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice: Option<Span>,
    /// CPUs that may work, such as `0-15`; all if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// Timers of the machine's own on every CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timers: Option<Timers>,
    /// Its idle states, and who chooses among them.
    pub idle: Idle,
    /// Its clocks, and who chooses among them.
    pub clock: Clock,
    /// What it takes.
    pub power: Power,
}

impl Default for Machine {
    fn default() -> Machine {
        Machine {
            name: "server".into(),
            packages: 1,
            cores: 1,
            threads: 1,
            caches: 1,
            kernel: "6.1.192".into(),
            hz: 250,
            tick_cost: Span(1500),
            wake_cost: Span::us(5),
            smt_share: 0.6,
            numa_penalty: 0.0,
            placement: Placement::Kernel,
            queues: Queues::PerCpu,
            pull: true,
            slice: None,
            cpus: None,
            timers: None,
            idle: Idle::default(),
            clock: Clock::default(),
            power: Power::default(),
        }
    }
}

impl Machine {
    /// Its CPUs.
    pub fn n_cpus(&self) -> u64 {
        u64::from(self.packages) * u64::from(self.cores) * u64::from(self.threads)
    }

    /// A machine that is nothing but so many CPUs: no tick, no cost of waking, no idle states, one clock. For queueing theory.
    pub fn bare(cores: u32) -> Machine {
        Machine {
            cores,
            hz: 0,
            tick_cost: Span(0),
            wake_cost: Span(0),
            queues: Queues::Shared,
            idle: Idle { governor: IdleGovernor::Fixed, state: vec![IdleState::free()], ..Idle::default() },
            ..Machine::default()
        }
    }
}

/// How a CPU is found for what wakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// As the kernel in outline: the CPU it ran on last if idle, else an idle core, then an idle CPU that shares its cache, else its queue.
    #[default]
    Kernel,
    /// An idle CPU anywhere, the first after the last one used: work is spread evenly.
    Spread,
    /// The idle CPU with the lowest number: work is packed on few cores and packages (consolidation).
    Pack,
    /// Any CPU at random, idle or not.
    Random,
}

/// Where work waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Queues {
    /// Every CPU has a queue.
    #[default]
    PerCpu,
    /// One queue for all, as in M/M/c. A request that finds a sleeping CPU wakes it and stays with it, also
    /// where another CPU is free sooner.
    Shared,
    /// One queue for all. A request wakes a sleeping CPU, and the first CPU that is free takes it; a
    /// wake-up that nothing waits for any more is given up (M/M/k/setup: Gandhi, Harchol-Balter & Adan
    /// 2010).
    Unbound,
    /// One queue for all, and only one CPU wakes at a time (staggered setup, Gandhi & Harchol-Balter 2009).
    Staggered,
}

/// Timers of the machine's own on every CPU: a governor sees them coming, and they wake it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Timers {
    /// Time between two on one CPU.
    pub every: Span,
    /// CPU time of each, at the reference clock.
    pub work: Span,
}

/// Who chooses idle states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IdleGovernor {
    /// The kernel's menu.
    #[default]
    Menu,
    /// The kernel's teo.
    Teo,
    /// The kernel's ladder.
    Ladder,
    /// The kernel's haltpoll, of guests.
    Haltpoll,
    /// Always the deepest state that is allowed.
    Fixed,
}

/// Idle states, and who chooses among them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Idle {
    /// Who chooses: `menu`, `teo`, `ladder`, `haltpoll`, or `fixed`.
    pub governor: IdleGovernor,
    /// States of a generation of processors, by name (`SKX`, `ICX`, `HSW`); a POLL state comes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// The states one by one, shallow first, where there is no table.
    pub state: Vec<IdleState>,
    /// Names of states that are switched off.
    pub disable: Vec<String>,
    /// No state with a longer exit latency (PM QoS, `/dev/cpu_dma_latency`); 0us polls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_latency: Option<Span>,
    /// How long a guest's haltpoll spins before it halts, at most (`guest_halt_poll_ns`); 0ns never spins. As shipped: 200us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halt_poll: Option<Span>,
    /// No deeper state than the one of this name (`intel_idle.max_cstate`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_state: Option<String>,
    /// Usual exit as a part of the claimed latency, of states without their own: 0.5.
    pub exit_share: f64,
    /// Entry as a part of the claimed latency: 0.3. A wake-up that comes before its end waits for it.
    pub entry_share: f64,
    /// The state in which all cores of a package must be for the package to sleep; none: it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_state: Option<String>,
    /// What a sleeping package adds to a wake-up.
    pub package_exit: Span,
}

impl Default for Idle {
    fn default() -> Idle {
        Idle {
            governor: IdleGovernor::Menu,
            table: None,
            state: Vec::new(),
            disable: Vec::new(),
            max_latency: None,
            halt_poll: None,
            max_state: None,
            exit_share: 0.5,
            entry_share: 0.3,
            package_state: None,
            package_exit: Span(0),
        }
    }
}

/// An idle state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct IdleState {
    /// Its name, as in sysfs: `C6`.
    pub name: String,
    /// Does the CPU spin in it?
    pub polling: bool,
    /// Exit latency as claimed.
    pub exit_latency: Span,
    /// Target residency as claimed.
    pub target_residency: Span,
    /// How long leaving it takes, measured or assumed; else a part of what is claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<Law>,
    /// How long leaving it takes after sleeps of these lengths, shortest first, in place of `exit`: a longer sleep may end in a deeper state of a
    /// package or of a host. Between two lengths it grows with their logarithm, beyond them it stays.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<After>,
    /// The same where another CPU woke it, as the later stages of a request do: sending the interrupt and taking it cost more than a timer.
    /// Else it is as `after` says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after_ipi: Vec<After>,
    /// Work that is added after it because caches were emptied, at the reference clock.
    pub cold: Span,
    /// The same by how long this CPU has worked for no request, shortest first, in place of `cold`: what others leave in caches grows with time, also
    /// while it polls (`exit` is that work here). Work of the CPU itself neither warms nor pays.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cold_after: Vec<After>,
    /// Work of the kernel for sleeps of these lengths, shortest first (`exit` is that work here), at the reference clock: its way in and out, timers
    /// stopped and set again. It is done when the CPU has nothing else to do, because what ended the sleep waits for the exit alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overhead: Vec<After>,
    /// The same of a sleep that another CPU ended, in place of `overhead`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overhead_ipi: Vec<After>,
    /// Work of another CPU that wakes one out of it, at the reference clock: an interrupt to send. That CPU does it when it has nothing else to do.
    pub send: Span,
    /// What a core takes in it in watts; else it follows from the power model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub core_w: Option<f64>,
}

impl IdleState {
    /// A state that sleeps, from what is claimed of it.
    pub fn claimed(name: &str, exit_latency: Span, target_residency: Span) -> IdleState {
        IdleState { name: name.into(), exit_latency, target_residency, ..IdleState::default() }
    }

    /// The polling state.
    pub fn poll() -> IdleState {
        IdleState { name: "POLL".into(), polling: true, ..IdleState::default() }
    }

    /// A state that costs nothing to leave.
    pub fn free() -> IdleState {
        IdleState::claimed("C0", Span(0), Span(0))
    }
}

/// What leaving a state takes after a sleep of some length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct After {
    /// So long it slept.
    pub asleep: Span,
    /// So long it takes to leave.
    pub exit: Span,
}

impl After {
    /// Of these rows, shortest sleep first, for a sleep of this length in nanoseconds; 0 without rows.
    pub fn exit_ns(rows: &[After], asleep_ns: u64) -> f64 {
        let ns = |span: Span| span.ns() as f64;
        let at = rows.partition_point(|row| row.asleep.ns() <= asleep_ns);
        let (Some(below), Some(above)) = (at.checked_sub(1).and_then(|i| rows.get(i)), rows.get(at)) else {
            return rows.get(at).or(rows.last()).map_or(0.0, |row| ns(row.exit));
        };
        let log = |from: f64, to: f64| (to.max(1.0) / from.max(1.0)).ln();
        let part = log(ns(below.asleep), asleep_ns as f64) / log(ns(below.asleep), ns(above.asleep)).max(f64::EPSILON);
        ns(below.exit) + part * (ns(above.exit) - ns(below.exit))
    }
}

/// Who chooses clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ClockGovernor {
    /// Always the highest.
    #[default]
    Performance,
    /// Always the lowest.
    Powersave,
    /// What was set.
    Userspace,
    /// The daemon of Red Hat Enterprise Linux 4 and 5, over userspace.
    Cpuspeed,
    /// ondemand since 3.12.
    Ondemand,
    /// conservative since 3.12.
    Conservative,
    /// ondemand of 2.6.18.
    OndemandOld,
    /// conservative of 2.6.18.
    ConservativeOld,
    /// schedutil, by the averages of the scheduler.
    Schedutil,
    /// intel_pstate in active mode, policy powersave, without hardware control (HWP). Its base clock is reference_mhz.
    IntelPstate,
    /// Hardware-chosen clocks (HWP): a guess at rules that are not published, by `epp` and `epp_strength`.
    Hwp,
}

/// CPUs that share a clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Domain {
    /// Each core has its own.
    #[default]
    Core,
    /// A package has one.
    Package,
}

/// Clocks, and who chooses among them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Clock {
    /// Who chooses the clock.
    pub governor: ClockGovernor,
    /// The clocks there are, in megahertz, falling.
    pub mhz: Vec<u32>,
    /// Lowest clock that may be chosen (scaling_min_freq), in megahertz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_mhz: Option<u32>,
    /// Highest clock that may be chosen (scaling_max_freq), in megahertz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_mhz: Option<u32>,
    /// The clock at which service times hold, in megahertz; the highest if not given. intel-pstate: that of its time stamps, above which turbo begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_mhz: Option<u32>,
    /// userspace: the clock that was set, in megahertz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set_mhz: Option<u32>,
    /// Who shares a clock.
    pub domain: Domain,
    /// From a decision to the new clock.
    pub ramp: Span,
    /// ondemand, conservative: percent above which the clock rises; as shipped if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up_threshold: Option<u32>,
    /// conservative: percent below which it falls; as shipped if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down_threshold: Option<u32>,
    /// conservative: a step in percent of the highest clock.
    pub freq_step: u32,
    /// ondemand: periods for which the top is kept; conservative: samples before a step down.
    pub sampling_down_factor: u32,
    /// ondemand: thousandths taken off each wish.
    pub powersave_bias: u32,
    /// hwp: the preference, 0 (performance) to 255 (power); 128 is balance_performance.
    pub epp: u32,
    /// hwp: part of the highest clock that an idle core gives up at a preference of 255, 0 to 1: assumed, to be fitted.
    pub epp_strength: f64,
    /// Time between samples; as shipped if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Span>,
    /// schedutil: is use measured independently of the clock?
    pub invariant: bool,
    /// Turbo: how high clocks go with so many cores of a package awake, whoever chooses them; none: that does not matter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub turbo: Vec<Turbo>,
}

/// A step of turbo: the fewer cores of a package are awake, the higher their clocks may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Turbo {
    /// With at most so many cores of a package awake; the last step holds for more, too.
    pub cores: u32,
    /// No clock is higher, in megahertz; one of `mhz`.
    pub mhz: u32,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock {
            governor: ClockGovernor::Performance,
            mhz: vec![1000],
            min_mhz: None,
            max_mhz: None,
            reference_mhz: None,
            set_mhz: None,
            domain: Domain::Core,
            ramp: Span::us(50),
            up_threshold: None,
            down_threshold: None,
            freq_step: 5,
            sampling_down_factor: 1,
            powersave_bias: 0,
            epp: 128,
            epp_strength: 0.8,
            sampling: None,
            invariant: true,
            turbo: Vec::new(),
        }
    }
}

//! What the eBPF programs counted: one histogram per CPU, idle state and kind of event.
//!
//! Raw on purpose: cumulative since attachment, states by index. A window is the difference of two readings
//! ([`WakeCounters::since`]); [`super::traced`] makes sense of it. The wake classes exist because the exit latency is not
//! always between "made runnable" (sched_waking) and "runs" (sched_switch):
//!
//! - remote: another CPU woke this one, which was in the state: the exit is inside;
//! - interrupt before exit: an interrupt taken inside the state's accounting (HLT, POLL, C1 with interrupts on): inside;
//! - interrupt after exit: states entered with interrupts off (intel_idle's C1E, C6): the CPU had left the state before
//!   the handler woke anybody, so the exit is *not* inside, and the histogram says less than the truth;
//! - busy: the CPU was not idle.

use super::kernel_histogram::KernelHistogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Of wake-ups onto a busy CPU all are counted and so many are timed, chosen at random: the clock is half the cost there.
pub const BUSY_TIMED_ONE_IN: u32 = 8;

/// How a task was woken, seen from the CPU it then ran on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WakeClass {
    /// From another CPU, while this one was in the state.
    Remote,
    /// By an interrupt here, before the exit event.
    InterruptBeforeExit,
    /// By an interrupt here, after the exit event: the exit latency is not inside.
    InterruptAfterExit,
    /// The CPU was not idle.
    Busy,
}

impl WakeClass {
    /// All, in the order of the C enumeration.
    pub const ALL: [WakeClass; 4] =
        [WakeClass::Remote, WakeClass::InterruptBeforeExit, WakeClass::InterruptAfterExit, WakeClass::Busy];

    /// For tables.
    pub fn words(self) -> &'static str {
        match self {
            WakeClass::Remote => "another CPU",
            WakeClass::InterruptBeforeExit => "interrupt",
            WakeClass::InterruptAfterExit => "interrupt after exit",
            WakeClass::Busy => "-",
        }
    }

    /// Does the latency contain leaving the idle state?
    pub fn contains_exit(self) -> bool {
        matches!(self, WakeClass::Remote | WakeClass::InterruptBeforeExit)
    }
}

/// What a histogram counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// Made runnable to running.
    Wake(WakeClass),
    /// Timer expiry to its handler, before the exit event.
    TimerInside,
    /// The same, handled after the exit event.
    TimerAfter,
    /// Length of one stay in the state.
    IdleLength,
}

impl Counted {
    /// All, in the order of the C enumeration.
    pub const ALL: [Counted; 7] = [
        Counted::Wake(WakeClass::Remote),
        Counted::Wake(WakeClass::InterruptBeforeExit),
        Counted::Wake(WakeClass::InterruptAfterExit),
        Counted::Wake(WakeClass::Busy),
        Counted::TimerInside,
        Counted::TimerAfter,
        Counted::IdleLength,
    ];
}

/// One CPU's counts. The key's first part is the idle state, none where no state is known (busy, or not yet seen).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuCounters {
    /// Which.
    pub cpu: u32,
    /// Non-empty histograms.
    pub cells: BTreeMap<(Option<u32>, Counted), KernelHistogram>,
    /// Wake-ups onto a busy CPU; one in [`BUSY_TIMED_ONE_IN`] of them is in its histogram.
    pub n_busy: u64,
    /// Wake-ups that could not be remembered (no memory for task storage).
    pub n_unclassed: u64,
    /// Records that did not fit the ring buffer.
    pub n_lost: u64,
    /// Timers that fired before their hard limit, within their slack: no lateness to count.
    pub n_early: u64,
    /// Wake-ups of the observer itself, kept out of the histograms.
    pub n_own: u64,
    /// Those that took this CPU out of idle.
    pub n_own_from_idle: u64,
}

/// Wake-ups of one process out of one idle state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessCounters {
    /// Thread group.
    pub tgid: u32,
    /// Its name, from one of its wake-ups.
    pub name: String,
    /// The state.
    pub state: Option<u32>,
    /// Wake-ups.
    pub n: u64,
    /// Latency, summed.
    pub sum_ns: u64,
}

/// Wake-ups of one cgroup out of one idle state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCounters {
    /// The kernel's number of the cgroup: the inode number of its folder.
    pub cgroup: u64,
    /// The state.
    pub state: Option<u32>,
    /// Wake-ups.
    pub n: u64,
    /// Latency, summed.
    pub sum_ns: u64,
}

/// In whose name somebody was woken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WakerKind {
    /// A process, running.
    Task,
    /// A high resolution timer.
    Timer,
    /// A device's interrupt.
    Interrupt,
    /// A soft interrupt: network, block device, timers of the kernel.
    Softirq,
    /// Something in the idle task that no tracepoint tells, as an interrupt between CPUs.
    #[default]
    Unknown,
}

/// Who woke whom, where, out of which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChainKey {
    /// What kind of waker.
    pub kind: WakerKind,
    /// Thread group, address of the timer's function, number of the interrupt.
    pub waker: u64,
    /// The cgroup of the woken.
    pub cgroup: u64,
    /// Thread group of the woken.
    pub tgid: u32,
    /// The idle state.
    pub state: Option<u32>,
}

/// Wake-ups of one chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChainCounters {
    /// Whose.
    pub key: ChainKey,
    /// What the waker is called; empty where that is not known, and for timers and soft interrupts.
    pub waker_name: String,
    /// What the woken process is called.
    pub name: String,
    /// Wake-ups.
    pub n: u64,
    /// Latency, summed.
    pub sum_ns: u64,
}

/// One reading of everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WakeCounters {
    /// When, CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// By CPU, ascending.
    pub cpus: Vec<CpuCounters>,
    /// Processes woken out of idle with the exit inside, by process and state ascending; the kernel keeps some 8192 of the most recent pairs of process and state.
    pub processes: Vec<ProcessCounters>,
    /// Cgroups (version 2) woken out of idle with the exit inside, by cgroup and state ascending; empty where that was not asked.
    pub groups: Vec<GroupCounters>,
    /// Who woke whom, of the same wake-ups, by key ascending; empty where that was not asked.
    pub chains: Vec<ChainCounters>,
}

impl WakeCounters {
    /// What came since an earlier reading.
    pub fn since(&self, earlier: &WakeCounters) -> WakeCounters {
        let cpus = self.cpus.iter().map(|now| {
            let none = CpuCounters::default();
            let found = earlier.cpus.binary_search_by_key(&now.cpu, |c| c.cpu);
            let before = found.map_or(&none, |at| &earlier.cpus[at]);
            let cells = now.cells.iter().filter_map(|(key, hist)| {
                let hist = before.cells.get(key).map_or_else(|| hist.clone(), |b| hist.since(b));
                (hist.n > 0).then_some((*key, hist))
            });
            CpuCounters {
                cpu: now.cpu,
                cells: cells.collect(),
                n_unclassed: now.n_unclassed.saturating_sub(before.n_unclassed),
                n_lost: now.n_lost.saturating_sub(before.n_lost),
                n_early: now.n_early.saturating_sub(before.n_early),
                n_own: now.n_own.saturating_sub(before.n_own),
                n_busy: now.n_busy.saturating_sub(before.n_busy),
                n_own_from_idle: now.n_own_from_idle.saturating_sub(before.n_own_from_idle),
            }
        });
        let processes = self.processes.iter().filter_map(|now| {
            let found = earlier.processes.binary_search_by_key(&(now.tgid, now.state), |p| (p.tgid, p.state));
            let before = found.ok().map(|at| &earlier.processes[at]);
            // A pair that was evicted and came back counts from zero again.
            let before = before.filter(|b| b.n <= now.n).cloned().unwrap_or_default();
            let (n, sum_ns) = (now.n - before.n, now.sum_ns.saturating_sub(before.sum_ns));
            (n > 0).then(|| ProcessCounters { n, sum_ns, ..now.clone() })
        });
        let groups = self.groups.iter().filter_map(|now| {
            let found = earlier.groups.binary_search_by_key(&(now.cgroup, now.state), |g| (g.cgroup, g.state));
            let before = found.ok().map(|at| &earlier.groups[at]);
            let before = before.filter(|b| b.n <= now.n).cloned().unwrap_or_default();
            let (n, sum_ns) = (now.n - before.n, now.sum_ns.saturating_sub(before.sum_ns));
            (n > 0).then_some(GroupCounters { n, sum_ns, ..*now })
        });
        let chains = self.chains.iter().filter_map(|now| {
            let found = earlier.chains.binary_search_by_key(&now.key, |chain| chain.key);
            let (n, sum_ns) = found.map_or((0, 0), |at| (earlier.chains[at].n, earlier.chains[at].sum_ns));
            let (n, sum_ns) = (now.n.saturating_sub(n), now.sum_ns.saturating_sub(sum_ns));
            (n > 0).then(|| ChainCounters { n, sum_ns, ..now.clone() })
        });
        WakeCounters {
            at_ns: self.at_ns,
            cpus: cpus.collect(),
            processes: processes.collect(),
            groups: groups.collect(),
            chains: chains.collect(),
        }
    }
}

//! The probes. To add one: write the file, add one line to [`BENCHES`].
//!
//! All share these rules (docs/methods/README.md): threads pinned, SCHED_FIFO if allowed and said so if not, memory locked,
//! timer slack 1 ns, warm-up discarded, no allocation and no input or output inside the loop, plans on an absolute
//! schedule, late starts counted from the plan. A stop flag ends each within 100 ms; what was measured by then is
//! returned. A probe blocks its caller, who keeps the [`wakewatt_core::source::Source`]: threads never see it.

pub mod disk;
pub mod hand_over;
pub mod icmp;
pub mod icmp_observe;
mod icmp_parts;
pub mod idle_counters;
pub mod memory;
pub mod network;
pub mod respond;
pub mod slice;
pub mod speed;
mod speed_parts;
pub mod wakeup_ipi;
pub mod wakeup_pipe;
pub mod wakeup_remote;
pub mod wakeup_timer;
pub mod wire;
pub mod work;

pub use disk::{DiskSlice, DiskSpec, disk};
pub use hand_over::{HandOverSlice, hand_over};
pub use icmp::{IcmpSpec, ping};
pub use icmp_observe::observe;
pub use idle_counters::IdleBaseline;
pub use memory::{MemorySpec, memory, memory_apart};
pub use network::{NetworkSpec, round_trip};
pub use respond::{RespondSpec, Responder, respond};
pub use slice::{NetworkSlice, WakeupSlice};
pub use speed::{SpeedSpec, speed};
pub use wakeup_ipi::ipi;
pub use wakeup_pipe::pipe;
pub use wakeup_remote::{RemoteKind, RemoteSpec, remote};
pub use wakeup_timer::{TimerSpec, timer};
pub use work::WorkWatch;

use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::units::{Cpu, show_ns};
use wakewatt_host::affinity::allowed_cpus;

/// A probe, for help texts and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bench {
    /// Stable: `wakeup.timer`.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// One line: what it takes from when to when.
    pub help: &'static str,
}

/// Every probe, in reading order.
pub const BENCHES: &[Bench] = &[
    Bench {
        id: "wakeup.timer",
        title: "timer wake-up",
        help: "a thread sleeps until a planned time on its own CPU: planned time to running (as cyclictest)",
    },
    Bench {
        id: "wakeup.futex",
        title: "cross-CPU wake-up, futex",
        help: "a thread on another CPU calls FUTEX_WAKE: just before the call to the sleeper running",
    },
    Bench {
        id: "wakeup.eventfd",
        title: "cross-CPU wake-up, eventfd",
        help: "a thread on another CPU writes to an eventfd: just before the write to the reader running",
    },
    Bench {
        id: "wakeup.ipi",
        title: "interrupt round trip",
        help: "another CPU is asked for a counter and answers from its interrupt: there and back, no thread switched in",
    },
    Bench {
        id: "wakeup.pipe",
        title: "hand-over by pipe",
        help: "two threads pass one byte back and forth without a pause: half a round trip (as perf bench sched pipe)",
    },
    Bench {
        id: "cores.hand-over",
        title: "cache line hand-over",
        help: "two CPUs write one cache line in turn: half a round trip, for each direction with the line on the leader's node",
    },
    Bench {
        id: "frequency.ramp",
        title: "idle to full speed",
        help: "a thread sleeps, then works in quanta of known length: when do they become as short as they get?",
    },
    Bench {
        id: "network.udp",
        title: "UDP round trip",
        help: "one datagram and its reply, split into requester, responder and wire",
    },
    Bench {
        id: "network.tcp",
        title: "TCP round trip",
        help: "one small message and its reply on an open connection, split into requester, responder and wire",
    },
    Bench {
        id: "network.icmp",
        title: "ICMP round trip",
        help: "one echo and its reply, which the peer's kernel gives; split by tracepoints, each part with its idle state",
    },
    Bench {
        id: "memory",
        title: "memory latency and bandwidth",
        help: "dependent loads against working set and load; load, copy, triad; both between nodes",
    },
    Bench {
        id: "disk.read",
        title: "disk read",
        help: "one block read past the page cache: planned start (or submission) to the thread having the data",
    },
];

/// The pause before each event, unless said otherwise: 1 ms.
pub const DEFAULT_GAP_NS: u64 = 1_000_000;
/// The longest pause, so that a stop is obeyed within it.
pub const MAX_GAP_NS: u64 = 100_000_000;
/// The shortest: below, the wake-up itself takes longer than the pause.
pub const MIN_GAP_NS: u64 = 10_000;
/// Samples of this first time are thrown away.
pub const DEFAULT_WARMUP_NS: u64 = 50_000_000;
/// What cyclictest uses in its documentation.
pub const DEFAULT_FIFO_PRIORITY: u8 = 80;

/// Why a probe has no numbers.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// Offline, or outside the affinity of this process.
    #[error(
        "CPU {cpu} is not available to this process (it may use {allowed}); choose one of those, or widen taskset or cpuset"
    )]
    CpuNotAllowed {
        /// The CPU asked for.
        cpu: Cpu,
        /// What is available.
        allowed: CpuSet,
    },
    /// A remote wake-up needs two.
    #[error("the waking and the woken CPU are both {0}; name two different ones")]
    SameCpu(Cpu),
    /// Too long or too short.
    #[error("a gap of {} is outside {} to {}; choose one within", show_ns(*gap_ns), show_ns(MIN_GAP_NS), show_ns(MAX_GAP_NS))]
    Gap {
        /// The gap asked for.
        gap_ns: u64,
    },
    /// Not on this machine, or not for this user: why, and what to try.
    #[error("{0}")]
    Unavailable(String),
    /// The system refused something the probe cannot do without.
    #[error("{doing}: {source}")]
    System {
        /// What was tried, with its object.
        doing: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Interrupted, or too short a run.
    #[error("no sample was taken: the run was interrupted or shorter than its warm-up and one gap")]
    NoSamples,
    /// The measuring process was ended from outside, by the kernel or by somebody.
    #[error("the measuring process was ended by signal {signal} ({}) at: {doing}; {ENDED_TRY}", signal_meaning(*signal))]
    Ended {
        /// SIGKILL where the kernel ran out of memory.
        signal: i32,
        /// What it did.
        doing: String,
    },
    /// A bug of ours.
    #[error("a measuring thread crashed; please report it")]
    Crashed,
}

const ENDED_TRY: &str = "nothing else was ended by it; dmesg says whether memory ran out and where; free memory, or try a \
                         smaller --max-size or --array-size with wakewatt measure memory";

fn signal_meaning(signal: i32) -> &'static str {
    match signal {
        SIGKILL => "the kernel does so when memory runs out",
        SIGBUS => {
            "the kernel does so when a page cannot be had: broken memory, or a reserved huge page that is not there"
        }
        _ => "neither the kernel for want of memory nor wakewatt sends this one",
    }
}

const SIGKILL: i32 = rustix::process::Signal::KILL.as_raw();
const SIGBUS: i32 = rustix::process::Signal::BUS.as_raw();

impl BenchError {
    pub(crate) fn system(doing: impl Into<String>, source: impl Into<std::io::Error>) -> BenchError {
        BenchError::System { doing: doing.into(), source: source.into() }
    }
}

pub(crate) fn check_cpu(cpu: Cpu) -> Result<(), BenchError> {
    let allowed = allowed_cpus().map_err(|e| BenchError::system("asking which CPUs may be used", e))?;
    if allowed.contains(cpu) { Ok(()) } else { Err(BenchError::CpuNotAllowed { cpu, allowed }) }
}

pub(crate) fn check_gap(gap_ns: u64) -> Result<(), BenchError> {
    if (MIN_GAP_NS..=MAX_GAP_NS).contains(&gap_ns) { Ok(()) } else { Err(BenchError::Gap { gap_ns }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_errors_say_what_to_try() {
        let ids: std::collections::BTreeSet<&str> = BENCHES.iter().map(|b| b.id).collect();
        assert_eq!(ids.len(), BENCHES.len());
        assert!(check_cpu(4000).unwrap_err().to_string().contains("taskset"));
        assert_eq!(check_gap(1).unwrap_err().to_string(), "a gap of 1ns is outside 10us to 100ms; choose one within");
    }
}

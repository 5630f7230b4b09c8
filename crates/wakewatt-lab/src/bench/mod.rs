//! The probes. To add one: write the file, and add its `mod` and what callers need of it here.
//!
//! All share these rules (docs/methods/README.md): threads pinned, SCHED_FIFO if allowed and said so if not, memory locked,
//! timer slack 1 ns, warm-up discarded, no allocation and no input or output inside the loop, plans on an absolute
//! schedule, late starts counted from the plan. A stop flag ends each within a pause; what was measured by then is
//! returned. A probe blocks its caller, who keeps the [`wakewatt_core::source::Source`]: threads never see it.

pub mod clock_bound;
pub mod disk;
pub mod first_work;
pub(crate) mod gaps;
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

pub use clock_bound::clock_bound;
pub use disk::{DiskSlice, DiskSpec, disk};
pub use first_work::{FirstWorkSlice, FirstWorkSpec, first_work, units_on};
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

/// The pause before each event, unless said otherwise: 1 ms.
pub const DEFAULT_GAP_NS: u64 = 1_000_000;
/// The longest mean pause. A stop is obeyed within the longest pause that is drawn.
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
    fn a_gap_or_cpu_out_of_reach_is_refused_with_what_to_try() {
        assert!(check_cpu(4000).unwrap_err().to_string().contains("taskset"));
        assert_eq!(check_gap(1).unwrap_err().to_string(), "a gap of 1ns is outside 10us to 100ms; choose one within");
        let fits = [MIN_GAP_NS - 1, MIN_GAP_NS, MAX_GAP_NS, MAX_GAP_NS + 1].map(|gap_ns| check_gap(gap_ns).is_ok());
        assert_eq!(fits, [false, true, true, false]);
    }
}

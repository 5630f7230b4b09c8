//! A wake-up measurement: how long from the reason to run until running, on one CPU.

use super::{IdleDelta, Scheduling, Window};
use crate::distribution::Distribution;
use serde::{Deserialize, Serialize};

/// What woke the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WakeKind {
    /// Its own absolute timer on that CPU (what cyclictest measures).
    Timer,
    /// FUTEX_WAKE from another CPU.
    Futex,
    /// A write to an eventfd from another CPU.
    Eventfd,
    /// A bare inter-processor interrupt, round trip (a remote counter read), no thread switched in.
    Ipi,
    /// One byte through a pipe, back and forth without a pause; a sample is one way.
    Pipe,
}

impl WakeKind {
    /// For tables and ids.
    pub fn word(self) -> &'static str {
        match self {
            WakeKind::Timer => "timer",
            WakeKind::Futex => "futex",
            WakeKind::Eventfd => "eventfd",
            WakeKind::Ipi => "ipi",
            WakeKind::Pipe => "pipe",
        }
    }
}

/// One measured wake-up distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WakeupSample {
    /// What woke the CPU.
    pub kind: WakeKind,
    /// The CPU that was woken.
    pub cpu: u32,
    /// The CPU that woke it; none for its own timer.
    pub from_cpu: Option<u32>,
    /// The pause before each wake-up, in which the CPU may go idle.
    pub gap_ns: u64,
    /// How it was scheduled.
    pub scheduling: Scheduling,
    /// Planned start (timer) or the waker's call (futex, eventfd, ipi) to running. Counted from the plan, so a late sample does not hide the next (no coordinated omission).
    pub latency: Distribution,
    /// Planned wake-ups that were already over when the thread came round; they are in `latency`, counted from the plan.
    pub n_late_starts: u64,
    /// Cost of one clock read, not subtracted.
    pub clock_read_ns: u64,
    /// From when to when it was measured.
    pub window: Window,
    /// What the woken CPU's idle counters did meanwhile.
    pub idle: Option<IdleDelta>,
}

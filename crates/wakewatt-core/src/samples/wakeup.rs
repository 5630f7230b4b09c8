//! A wake-up measurement: how long from the reason to run until running, on one CPU.

use super::waker::{Pauses, Waker};
use super::{IdleDelta, Scheduling, Window};
use crate::distribution::Distribution;
use crate::units::show_ns;
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
    /// The mean pause before each wake-up, in which the CPU may go idle.
    pub gap_ns: u64,
    /// How the pauses were drawn. Files that do not say had fixed ones.
    #[serde(default)]
    pub pauses: Pauses,
    /// How it was scheduled.
    pub scheduling: Scheduling,
    /// From when to running: a timer's planned time, or the moment the waker really rang (futex, eventfd, ipi). A ring that finds
    /// the one before unanswered counts from itself until the sleeper ran, so a late sample does not hide the next.
    pub latency: Distribution,
    /// Wake-ups that were already due when the thread came round; they are in `latency`, counted from when they were due.
    pub n_late_starts: u64,
    /// How the waking thread kept its plan (futex, eventfd); none for kinds that have no waker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waker: Option<Waker>,
    /// The clocks of the two CPUs agree within this, as measured just before; none where one clock did it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_bound_ns: Option<u64>,
    /// Cost of one clock read, not subtracted.
    pub clock_read_ns: u64,
    /// From when to when it was measured.
    pub window: Window,
    /// What the woken CPU's idle counters did meanwhile.
    pub idle: Option<IdleDelta>,
}

impl WakeupSample {
    /// What another sample must be to be compared with this one: an id, and in words what was woken how.
    pub fn series(&self) -> (String, String) {
        let (kind, gap) = (self.kind.word(), show_ns(self.gap_ns));
        let (mut id, mut words) = (format!("{kind}.{gap}"), format!("{kind} wake-up after {gap}"));
        if matches!(self.pauses, Pauses::Exponential { .. }) {
            id += ".random";
            words += ", random";
        }
        // A pipe is always handed over by ordinary threads.
        if self.scheduling == Scheduling::Ordinary && self.kind != WakeKind::Pipe {
            id += ".ordinary";
            words += ", ordinary thread";
        }
        (id, words)
    }
}

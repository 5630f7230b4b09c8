//! One pass of the idle loop: a state was selected, entered and left. The unit of a recording and of replay.
//!
//! Everything a governor saw when it chose (docs/governors.md) and what came of it. Read from the tick's own structure at
//! the moment of entry, not rebuilt from timer events: `docs/journal/2026-11-21-idle-recording.md` compares the two. What
//! could not be read is none.

use serde::{Deserialize, Serialize};

/// What ended a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WakeCause {
    /// The events do not tell.
    #[default]
    Unknown,
    /// The scheduler tick's timer ended the sleep.
    Tick,
    /// Another high resolution timer.
    Timer,
    /// An interrupt that is neither the tick nor another timer.
    Interrupt,
    /// A task was woken from another CPU.
    RemoteWake,
    /// The same, while this CPU was polling: no interrupt was needed.
    PolledWake,
}

impl WakeCause {
    /// All, by their number in files and in the probe.
    pub const ALL: [WakeCause; 6] = [
        WakeCause::Unknown,
        WakeCause::Tick,
        WakeCause::Timer,
        WakeCause::Interrupt,
        WakeCause::RemoteWake,
        WakeCause::PolledWake,
    ];

    /// From that number; an unknown one is unknown.
    pub fn of(number: u32) -> WakeCause {
        WakeCause::ALL.get(number as usize).copied().unwrap_or_default()
    }

    /// For tables.
    pub fn words(self) -> &'static str {
        match self {
            WakeCause::Unknown => "unknown",
            WakeCause::Tick => "tick",
            WakeCause::Timer => "timer",
            WakeCause::Interrupt => "interrupt",
            WakeCause::RemoteWake => "another CPU",
            WakeCause::PolledWake => "another CPU, polled",
        }
    }
}

/// One select, enter, exit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdlePair {
    /// CPU.
    pub cpu: u32,
    /// CLOCK_MONOTONIC at power:cpu_idle entry.
    pub enter_at_ns: u64,
    /// To its exit; overstates the kernel's own residency by the cost of the two events.
    pub duration_ns: u64,
    /// Index requested.
    pub state: u8,
    /// Time to the next timer if the tick may stop, from the idle loop's own reference time; negative when already due.
    pub sleep_length_ns: Option<i64>,
    /// Time to the next programmed clock event, from the same; can be slightly negative.
    pub next_event_ns: Option<i64>,
    /// From that reference time (idle loop entered, or its last interrupt ended) to the entry.
    pub entry_lag_ns: Option<u64>,
    /// Was the tick stopped already when the governor chose?
    pub is_tick_stopped: Option<bool>,
    /// First pair of an idle period: a task ran before.
    pub is_first: bool,
    /// What ended it.
    pub ended_by: WakeCause,
    /// The tick fired inside the pair: the governor's tick wake-up flag.
    pub is_tick_fired: Option<bool>,
    /// Tasks sleeping in iowait that last ran on this CPU.
    pub n_iowait: Option<u16>,
}

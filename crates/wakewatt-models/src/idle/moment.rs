//! What a governor sees when it chooses, what it says, and what it hears afterwards.

use crate::table::Disabled;

/// What a governor sees when it chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Time to the next timer if the tick may stop, in nanoseconds; negative when already due.
    pub sleep_ns: i64,
    /// Time to the next clock event with the tick kept, in nanoseconds; can be slightly negative.
    pub next_event_ns: i64,
    /// Is the tick stopped already?
    pub is_tick_stopped: bool,
    /// The strictest latency limit in force, in nanoseconds.
    pub latency_limit_ns: i64,
    /// Tasks that last ran here and sleep in iowait.
    pub n_iowait: u32,
    /// Utilisation of the CPU, 0 to 1024.
    pub utilisation: u32,
    /// States that may not be chosen.
    pub disabled: Disabled,
    /// The CPU's clock, in nanoseconds.
    pub clock_ns: i64,
}

/// What a governor says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Index of the state to enter.
    pub state: usize,
    /// May the tick be stopped? The core does not ask when it is stopped already.
    pub stop_tick: bool,
    /// Did the governor look at the timers? Later versions avoid it, because looking is dear.
    pub asked_timers: bool,
}

/// What a governor hears after a state was left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Index of the state that was entered.
    pub state: usize,
    /// How long it lasted by the core's own clock, in nanoseconds.
    pub residency_ns: i64,
    /// Did the tick fire while the CPU was in the idle loop?
    pub is_tick_fired: bool,
    /// Did the polling state give up at its time limit?
    pub is_poll_limit_hit: bool,
    /// The CPU's clock, in nanoseconds.
    pub clock_ns: i64,
}

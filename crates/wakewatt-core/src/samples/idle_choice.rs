//! One question to the idle governor, with what its own functions were told and what it answered.
//!
//! The exact twin of [`super::idle_pair::IdlePair`]: that one is rebuilt from the tick's structure when a state is entered, this one is read
//! where the governor reads, while it decides. It also holds what a pair cannot: questions after which no state was entered.
//! Recorded only when asked for (`trace --record --exact`), because each question then costs some microseconds.

/// What the governor was told of the timers, when it asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimersTold {
    /// Time to the next timer if the tick may stop, in nanoseconds; negative when already due.
    pub sleep_length_ns: i64,
    /// Time to the next clock event with the tick kept, in nanoseconds.
    pub next_event_ns: i64,
}

/// What came of an answer, as the governor heard it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Index of the state that was entered.
    pub state: u8,
    /// How long it lasted by the kernel's own clock, in nanoseconds.
    pub residency_ns: i64,
    /// Did the tick fire in the idle loop meanwhile?
    pub is_tick_fired: Option<bool>,
    /// Did the polling state give up at its time limit?
    pub is_poll_limit_hit: Option<bool>,
}

/// Who was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The menu governor.
    Menu,
    /// The teo governor.
    Teo,
    /// The ladder governor.
    Ladder,
    /// The haltpoll governor.
    Haltpoll,
}

impl Asked {
    /// All, by their number in files and in the probe, from 1.
    pub const ALL: [Asked; 4] = [Asked::Menu, Asked::Teo, Asked::Ladder, Asked::Haltpoll];

    /// From that number; 0 and unknown ones are nobody known.
    pub fn of(number: u64) -> Option<Asked> {
        Asked::ALL.get(usize::try_from(number.checked_sub(1)?).ok()?).copied()
    }

    /// As the kernel calls it.
    pub fn name(self) -> &'static str {
        match self {
            Asked::Menu => "menu",
            Asked::Teo => "teo",
            Asked::Ladder => "ladder",
            Asked::Haltpoll => "haltpoll",
        }
    }
}

/// One question and its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleChoice {
    /// CPU.
    pub cpu: u32,
    /// CLOCK_MONOTONIC when the governor was asked.
    pub at_ns: u64,
    /// Which governor; a recording may hold several, one after the other.
    pub governor: Option<Asked>,
    /// Index of the state it chose.
    pub answer: u8,
    /// May the tick stop, by its answer? Nobody listens where it is stopped already.
    pub stops_tick: Option<bool>,
    /// None where the governor did not ask.
    pub timers: Option<TimersTold>,
    /// Was the tick stopped?
    pub is_tick_stopped: Option<bool>,
    /// Tasks sleeping in iowait that last ran on this CPU.
    pub n_iowait: Option<u16>,
    /// The strictest latency limit, in nanoseconds.
    pub latency_limit_ns: Option<i64>,
    /// States that are switched off, a bit each by their index.
    pub disabled: Option<u16>,
    /// None where no state was entered: a task became runnable, or the driver refused.
    pub outcome: Option<Outcome>,
}

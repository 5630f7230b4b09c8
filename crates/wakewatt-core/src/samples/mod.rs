//! Samples: what wakewatt measured. Every one carries its acquisition window, its size and how it was taken.

mod all;
pub mod broken_rule;
pub mod disk;
pub mod disturbance;
pub mod busy;
pub mod chains;
mod clocks;
pub mod compared;
pub mod cores;
pub mod ended;
pub mod energy;
pub mod experiment;
pub mod grade;
mod grading;
pub mod idle_choice;
pub mod idle_pair;
pub mod icmp;
pub mod kernel_histogram;
pub mod load;
pub mod memory;
pub mod network;
pub mod not_done;
pub mod numa_maps;
pub mod speed;
pub mod state_cost;
pub mod state_energy;
pub mod measured_table;
mod metered;
pub mod stated;
pub mod study;
pub mod meters;
mod pairing;
pub mod payers;
pub mod power_model;
mod presence;
pub mod rejection;
pub mod replayed;
pub mod repeated;
pub mod roles;
pub mod side_effect;
mod slept;
pub mod tail;
pub mod taken;
pub mod timeline;
pub mod titles;
pub mod traced;
pub mod traced_whose;
pub mod waker;
pub mod wakes;
pub mod watts_by;
pub mod woken;
pub mod work;
pub(crate) mod worded;
pub mod wakeup;

pub use all::Samples;

use serde::{Deserialize, Serialize};

/// What a number is worth. Every number shown to a person has one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Label {
    /// Taken from this machine in a stated window.
    Measured,
    /// Computed from facts or a model.
    Modelled,
    /// Could not be had here; the reason is beside it.
    Unavailable,
    /// The counter exists and never moves.
    PresentButDead,
}

/// When a measurement ran, in CLOCK_MONOTONIC nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Window {
    /// When it began, on CLOCK_MONOTONIC.
    pub start_at_ns: u64,
    /// When it ended, on the same clock.
    pub end_at_ns: u64,
}

impl Window {
    /// Its length.
    pub fn length_ns(&self) -> u64 {
        self.end_at_ns.saturating_sub(self.start_at_ns)
    }
}

/// How the measuring threads were scheduled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// SCHED_FIFO with this priority.
    Fifo(u8),
    /// SCHED_OTHER, because FIFO was refused: the reason. Numbers then include run-queue delay.
    Other(String),
    /// SCHED_OTHER, because that was asked for: what the thread of an ordinary service meets, run-queue delay included.
    Ordinary,
}

/// What one CPU's idle-state counters did during a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleDelta {
    /// Number of the CPU.
    pub cpu: u32,
    /// Per state: name, entries, time.
    pub states: Vec<StateDelta>,
}

/// One state's part of an [`IdleDelta`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateDelta {
    /// Index of the state, as the kernel counts on this CPU.
    pub index: u32,
    /// Name of the state, as the driver calls it.
    pub name: String,
    /// Times entered in the window (counted when left).
    pub n_usage: u64,
    /// Time spent in the state, as the kernel accounts it when the state is left.
    pub time_ns: u64,
}

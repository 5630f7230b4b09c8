//! What coordinator and worker processes say to each other: one JSON document per line, down a pipe and back.
//!
//! Times are CLOCK_MONOTONIC, which all processes of a machine share. An order holds everything a level needs, so nothing
//! is said while it runs. Nothing here is a border: both ends are the same binary.

use serde::{Deserialize, Serialize};
use wakewatt_core::distribution::Censored;
#[cfg(doc)]
use wakewatt_core::distribution::Recorder;

/// When a level's phases begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Load begins.
    pub start_at_ns: u64,
    /// From here on it counts.
    pub from_ns: u64,
    /// Up to here.
    pub to_ns: u64,
    /// Load ends.
    pub end_at_ns: u64,
}

impl Times {
    /// In the part that counts?
    pub fn is_recorded(&self, at_ns: u64) -> bool {
        (self.from_ns..self.to_ns).contains(&at_ns)
    }
}

/// To a worker process. Lists hold one entry per thread, in the order of its CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Take these CPUs; the seed fills the tables.
    Start {
        /// One thread on each.
        cpus: Vec<u32>,
        /// Of the tables.
        seed: u64,
    },
    /// Say what a unit of work takes.
    Cost,
    /// So many units are a transaction from now on.
    Units(u64),
    /// One transaction after another.
    Closed(Times),
    /// Transactions as planned.
    Open {
        times: Times,
        /// Seeds of the schedules.
        seeds: Vec<u64>,
        /// Rates of the schedules.
        per_s: Vec<f64>,
    },
}

/// From a worker process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// As ordered.
    Done,
    /// Nanoseconds a unit, per thread.
    Cost(Vec<f64>),
    /// What the threads counted.
    Counted(Vec<Counted>),
    /// It cannot.
    Failed(String),
}

/// What one thread counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Planned in the recorded part.
    pub n_planned: u64,
    /// Finished of them, when it may be.
    pub n_done: u64,
    /// Finished within the recorded part, whenever planned.
    pub n_finished: u64,
    /// Latencies of those planned, whether finished or not: nanoseconds, count.
    pub latency: Vec<(u64, u64)>,
    /// Of each tenth of the recorded part: step of [`Recorder::parts`], count. None where the order was given up.
    #[serde(default)]
    pub tenths: Vec<Vec<(u16, u64)>>,
    /// Those among them that were not finished: counted at what they had waited when the level ended.
    #[serde(default)]
    pub censored: Option<Censored>,
    /// How many were finished in each part of the recorded part.
    #[serde(default)]
    pub ended: Vec<u64>,
    /// Their service times.
    pub service: Vec<(u64, u64)>,
    /// CPU time between the end of one transaction and the start of the next, where it was looked at.
    pub own_ns: u64,
    /// How often it was looked at.
    pub n_own: u64,
    /// Its CPU could not be had (offline, or taken from this process), so it ran wherever the kernel put it.
    #[serde(default)]
    pub is_displaced: bool,
}

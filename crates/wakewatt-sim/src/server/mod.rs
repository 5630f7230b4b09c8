//! What is simulated: machines, what they are asked to do, for how long, and the settings to compare. One set of types for the TOML file
//! (`file.rs`) and for whoever makes a server in code; `check.rs` refuses what no machine could be, with the field and why.

mod check;
mod error;
mod file;
mod keys;
mod machine;
mod power;
mod published;
mod tables;
mod workload;

pub use check::Refused;
pub(crate) use check::cpus;
pub use error::ServerError;
pub use machine::{
    After, Clock, ClockGovernor, Domain, Idle, IdleGovernor, IdleState, Machine, Placement, Queues, Timers, Turbo,
};
pub use power::{Power, PsuPoint};
pub use published::{Against, Published, Quantity};
pub use tables::{TABLES, Table, table};
pub use workload::{ArrivalKind, Arrivals, Hop, Interrupt, Workload};

use crate::span::Span;
use serde::{Deserialize, Serialize};

/// A server, or several, with its work and the settings to compare.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Version of the format: always 1.
    pub format: u32,
    /// Name of the model.
    pub name: String,
    /// What it stands for, and what was assumed.
    #[serde(default)]
    pub about: String,
    /// How long is simulated, and how often.
    #[serde(default)]
    pub run: Run,
    /// The machines; the first one takes the requests.
    pub machine: Vec<Machine>,
    /// What they are asked to do.
    pub workload: Workload,
    /// Settings to compare, the first one as found; without any, the file as it stands.
    #[serde(default)]
    pub setting: Vec<Setting>,
    /// Another setting in the middle of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    /// What was published of the machine that this stands for, to be held against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
}

/// How long is simulated, and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct Run {
    /// Simulated time that counts, of each replication: `20s`. If not given, as long as the intervals need.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// Simulated before, and not counted: `2s`. If not given, a tenth of the duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup: Option<Span>,
    /// Replications with different random numbers; the intervals come from them.
    pub replications: u32,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Parts of the duration that the time series has.
    pub bins: u32,
}

impl Default for Run {
    fn default() -> Run {
        Run { duration: None, warmup: None, replications: 8, seed: 1, bins: 40 }
    }
}

impl Run {
    /// Simulated time that counts; the first one tried where the file leaves it open.
    pub fn counted(&self) -> Span {
        self.duration.unwrap_or(Span::ms(10_000))
    }

    /// Simulated before it.
    pub fn before(&self) -> Span {
        self.warmup.unwrap_or(Span(self.counted().ns() / 10))
    }
}

/// A setting: fields of the file that it changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Short name of the setting: `polling`.
    pub name: String,
    /// What it is, for people.
    #[serde(default)]
    pub about: String,
    /// Fields and values: `machine.idle.max_latency=5us`. Of several machines all are meant, or one by its name:
    /// `machine.db.clock.governor=performance`.
    #[serde(default)]
    pub set: Vec<String>,
}

/// A change in the middle of the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// When, counted from the end of the warm-up: `10s`.
    pub at: Span,
    /// To which setting; only its idle states and clocks count, and power parameters are those of the end.
    pub setting: String,
}

impl Server {
    /// One machine with these parts and this work, everything else as usual.
    pub fn of(machine: Machine, workload: Workload) -> Server {
        Server {
            format: 1,
            name: "server".into(),
            about: String::new(),
            run: Run::default(),
            machine: vec![machine],
            workload,
            setting: Vec::new(),
            change: None,
            published: Vec::new(),
        }
    }

    /// All CPUs of all machines.
    pub fn n_cpus(&self) -> u64 {
        self.machine.iter().map(Machine::n_cpus).sum()
    }
}

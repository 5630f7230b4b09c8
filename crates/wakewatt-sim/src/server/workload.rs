//! What the machines are asked to do: when requests arrive, and the hops of each.

use crate::law::Law;
use crate::span::Span;
use serde::{Deserialize, Serialize};

/// Requests: when they come, and what each goes through.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// When they arrive.
    pub arrivals: Arrivals,
    /// What each goes through, one after the other.
    pub hop: Vec<Hop>,
    /// Repeats all hops so often in each request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<u32>,
    /// More requests at a time are turned away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// How requests arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ArrivalKind {
    /// Independently of each other, so many per second.
    #[default]
    Poisson,
    /// Poisson with two rates that take turns (MMPP).
    Bursts,
    /// So many clients, each waiting for its answer and then thinking.
    Closed,
    /// With these gaps.
    Gaps,
    /// At recorded times, over and over.
    Recorded,
    /// Poisson at so many percent of what the machine can do, level by level, as SPECpower steps.
    Steps,
}

/// When requests arrive; which fields it takes depends on the kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// `poisson`, `bursts`, `closed`, `gaps`, `recorded` or `steps`.
    pub kind: ArrivalKind,
    /// poisson: requests per second; bursts: in the quiet part; steps: what 100 percent is (measured by a run if not given).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_s: Option<f64>,
    /// bursts: requests per second in a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_per_s: Option<f64>,
    /// bursts: mean length of a burst.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Span>,
    /// bursts: mean length between bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<Span>,
    /// closed: how many clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u64>,
    /// closed: how long a client thinks; gaps: from one arrival to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<Law>,
    /// recorded: times of arrival in microseconds, rising; the last one ends the recording. From 2000
    /// arrivals on they are resampled in blocks; fewer are replayed again and again, and nothing has an
    /// interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_us: Vec<f64>,
    /// steps: percent of the maximum, level by level; 0 is active idle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percent: Vec<f64>,
}

/// Fewer arrivals make blocks of too few.
const LEAST_RESAMPLED: usize = 2000;

impl Arrivals {
    /// Independent of each other.
    pub fn poisson(per_s: f64) -> Arrivals {
        Arrivals { kind: ArrivalKind::Poisson, per_s: Some(per_s), ..Arrivals::default() }
    }

    /// Requests per second on average, where that does not depend on answers.
    pub fn rate_per_s(&self) -> Option<f64> {
        let per_s = self.per_s.unwrap_or(0.0);
        match self.kind {
            ArrivalKind::Poisson | ArrivalKind::Steps => Some(per_s),
            ArrivalKind::Bursts => {
                let (burst, quiet) = (self.burst?.seconds(), self.quiet?.seconds());
                Some((self.burst_per_s? * burst + per_s * quiet) / (burst + quiet))
            }
            ArrivalKind::Gaps => Some(1e9 / self.think.as_ref()?.mean_ns()),
            ArrivalKind::Recorded => Some(self.at_us.len() as f64 * 1e6 / self.at_us.last()?),
            ArrivalKind::Closed => None,
        }
    }

    /// Are arrivals drawn from a recording in blocks? One with fewer arrivals is replayed as it is.
    pub fn is_resampled(&self) -> bool {
        self.kind == ArrivalKind::Recorded && self.at_us.len() >= LEAST_RESAMPLED
    }

    /// A closed loop.
    pub fn closed(clients: u64, think: Law) -> Arrivals {
        Arrivals { kind: ArrivalKind::Closed, clients: Some(clients), think: Some(think), ..Arrivals::default() }
    }
}

/// One hop of a request: work on a CPU, then a wait.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// The machine it runs on, by name; the first if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// CPU time at the reference clock.
    pub service: Law,
    /// Part of it that scales with the clock; the rest waits for memory: 1.
    #[serde(default = "whole")]
    pub cpu_bound: f64,
    /// Part of it that the kernel works: 0.
    #[serde(default)]
    pub system: f64,
    /// Time after it in which no CPU works for the request: disk, network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Law>,
    /// Does the task wait in iowait, as for a disk?
    #[serde(default)]
    pub iowait: bool,
    /// The interrupt that wakes it; none: it wakes by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<Interrupt>,
    /// Is all of it the interrupt's work, with no task to wake (the answer to a ping)?
    #[serde(default)]
    pub in_interrupt: bool,
    /// Does the time of the request begin only when this hop is done (its sender's own work before it is sent)?
    #[serde(default)]
    pub untimed: bool,
    /// CPUs it may run on, such as `0-3`; all of the machine's if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
    /// Always on the same CPU of those.
    #[serde(default)]
    pub pinned: bool,
}

fn whole() -> f64 {
    1.0
}

impl Hop {
    /// Work and nothing else.
    pub fn of(service: Law) -> Hop {
        Hop { service, cpu_bound: 1.0, ..Hop::default() }
    }
}

/// An interrupt, and who takes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Interrupt {
    /// Its CPU time, at the reference clock.
    pub work: Span,
    /// CPUs that take it, such as `0` or `0-7`, in turn; the CPU of the task if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<String>,
}

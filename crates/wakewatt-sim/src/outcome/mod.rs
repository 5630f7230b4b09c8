//! What replications come to: each number with the interval that they allow, labelled as modelled.
//!
//! An interval is Student's t over the replications: they are independent, which the requests of one run
//! are not. It says how well the model's number is known, not how well the model fits a machine. Times and
//! their quantiles are of all replications together, and each replication's distance from that gives the
//! interval (sectioning, Asmussen & Glynn 2007, III.5): a quantile of one replication is biased, and its
//! bias widens the interval. Arrivals that are resampled from a recording add that the recording is one
//! sample of them. Where a run is too short for an interval to hold (`interval.rs`) there is none, and the
//! length that is needed.

mod estimate;
mod interval;
mod of;

pub use crate::engine::{Backlog, Bin, Counted, MachineCounted, Part, Periods, StateCounted};
pub use estimate::Estimate;
use estimate::Spread;
pub use interval::NoInterval;
pub(crate) use interval::recorded_ns;

use serde::{Deserialize, Serialize};
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::Label;

/// What the simulation of a server came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// Always modelled, never measured.
    pub label: Label,
    /// Name of the server file.
    pub name: String,
    /// Replications that the intervals come from.
    pub n_replications: u32,
    /// Simulated time that counts, of each replication, in nanoseconds.
    pub duration_ns: u64,
    /// Simulated time before it, which does not count, in nanoseconds.
    pub warmup_ns: u64,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Requests that came, per second.
    pub offered_per_s: Estimate,
    /// Requests that were done, per second.
    pub done_per_s: Estimate,
    /// Part of the requests that was turned away.
    pub turned_away_ratio: f64,
    /// Does more arrive than some CPU, cpuset or machine can do? Times then grow with the duration and mean
    /// nothing.
    pub is_saturated: bool,
    /// Where that is, in words: `CPU 0 of server`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<String>,
    /// Why times have no interval; none where they have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_interval: Option<NoInterval>,
    /// How long requests took, on average, in nanoseconds.
    pub mean_ns: Estimate,
    /// Quantiles of it.
    pub quantiles: Vec<QuantileOutcome>,
    /// All requests of all replications; its own intervals take requests for independent, so the ones above count.
    pub times: Distribution,
    /// Requests in the machines, averaged over time.
    pub in_system: Estimate,
    /// Power of all machines at the wall, in watts.
    pub wall_w: Estimate,
    /// Requests per joule at the wall.
    pub per_joule: Estimate,
    /// Machine by machine.
    pub machines: Vec<MachineOutcome>,
    /// Part by part of the duration, averaged over replications.
    pub series: Vec<BinOutcome>,
}

/// A quantile of the times of requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuantileOutcome {
    /// Which, 0 to 1.
    pub q: f64,
    /// So long at most, in nanoseconds.
    pub ns: Estimate,
}

/// What a machine came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineOutcome {
    /// Its name in the file.
    pub name: String,
    /// How many packages it has.
    pub n_packages: u32,
    /// Part of the time that its CPUs worked, 0 to 1.
    pub use_ratio: Estimate,
    /// Part of that which the kernel worked: interrupts, wake-ups, ticks, and what hops say of themselves.
    pub system_ratio: Estimate,
    /// CPU time per request, in nanoseconds.
    pub cpu_per_request_ns: Estimate,
    /// Tasks that ran or waited for a CPU, averaged over time: the load.
    pub load: Estimate,
    /// Clock while at work, in megahertz.
    pub mhz: Estimate,
    /// Power at the wall, in watts.
    pub wall_w: Estimate,
    /// Power behind the supply, in watts.
    pub dc_w: Estimate,
    /// Of that, its cores.
    pub cores_w: Estimate,
    /// CPUs woken from idle, per second.
    pub wakes_per_s: Estimate,
    /// Part of the time that a package slept, 0 to 1.
    pub package_asleep_ratio: Estimate,
    /// Its idle states, shallow first.
    pub states: Vec<StateOutcome>,
    /// Part of the time that each CPU worked, 0 to 1, averaged over replications.
    pub cpu_use: Vec<f64>,
    /// Idle periods of its CPUs.
    pub idle_periods: PeriodsOutcome,
    /// Periods in which all CPUs of a package were idle.
    pub package_idle_periods: PeriodsOutcome,
}

/// What an idle state came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateOutcome {
    /// Its name in the file.
    pub name: String,
    /// Part of all CPUs' time in it, 0 to 1, exit included.
    pub time_ratio: Estimate,
    /// Entries per second.
    pub per_s: f64,
    /// Part of the entries that were shorter than its target residency.
    pub too_deep_ratio: f64,
    /// Part of the entries that the next deeper state would have suited.
    pub too_shallow_ratio: f64,
}

/// Idle periods, and how they vary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PeriodsOutcome {
    /// How many, in all replications.
    pub n: u64,
    /// Their mean length, in nanoseconds.
    pub mean_ns: f64,
    /// Standard deviation over mean: 1 where they are exponential.
    pub cv: f64,
}

/// A part of the duration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BinOutcome {
    /// Its end, in nanoseconds from the beginning of counting.
    pub until_ns: u64,
    /// Requests done per second.
    pub done_per_s: f64,
    /// How long those took on average, in nanoseconds; none without any.
    pub mean_ns: Option<f64>,
    /// Part of the time that the CPUs of all machines worked, 0 to 1.
    pub use_ratio: f64,
    /// Tasks that ran or waited for a CPU.
    pub load: f64,
    /// Power of all machines at the wall, in watts.
    pub wall_w: f64,
}

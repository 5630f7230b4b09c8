//! What a quantity is in, and what it is about: speed, watts, CPU time. A gate names such things, and a run has fifty quantities.
//!
//! It follows from what the number is in and, where nanoseconds are those of a CPU at work and not of somebody who waits, from
//! the end of its id. Ids join runs, so they are never reworded.

use crate::samples::experiment::{Better, Unit};
use crate::units::{show_ns, show_uw, three_digits};
use serde::Serialize;

/// What a quantity is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Latency or CPU time, in nanoseconds.
    Nanoseconds,
    /// Operations per second.
    PerSecond,
    /// Bandwidth, in bytes per second.
    BytesPerSecond,
    /// Power, in microwatts.
    Microwatts,
    /// Work per energy: operations per joule.
    PerJoule,
    /// Whatever a user's benchmark prints.
    Number,
}

impl From<Unit> for Measure {
    fn from(unit: Unit) -> Measure {
        match unit {
            Unit::Nanoseconds => Measure::Nanoseconds,
            Unit::PerSecond => Measure::PerSecond,
            Unit::Microwatts => Measure::Microwatts,
            Unit::PerJoule => Measure::PerJoule,
            Unit::Number => Measure::Number,
        }
    }
}

impl Measure {
    /// What the raw numbers are in.
    pub fn unit(self) -> &'static str {
        match self {
            Measure::Nanoseconds => "ns",
            Measure::PerSecond => "1/s",
            Measure::BytesPerSecond => "bytes/s",
            Measure::Microwatts => "uW",
            Measure::PerJoule => "1/J",
            Measure::Number => "",
        }
    }

    /// As people read it.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // rounded, not negative, and `as` saturates
    pub fn show(self, value: f64) -> String {
        let whole = value.abs().round() as u64;
        let sign = if value < 0.0 { "-" } else { "" };
        match self {
            Measure::Nanoseconds => format!("{sign}{}", show_ns(whole)),
            Measure::PerSecond => format!("{}/s", three_digits(value)),
            Measure::BytesPerSecond => format!("{} GB/s", three_digits(value / 1e9)),
            Measure::Microwatts => format!("{sign}{}", show_uw(whole)),
            Measure::PerJoule => format!("{}/J", three_digits(value)),
            Measure::Number => three_digits(value),
        }
    }
}

/// What a quantity is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// How long somebody waits.
    Latency,
    /// How much is done in a second, operations or bytes.
    Rate,
    /// How often CPUs are disturbed in a second: wake-ups, interrupts, switches.
    Disturbance,
    /// How long CPUs work for one operation.
    CpuTime,
    /// Watts that were measured.
    Power,
    /// Work per energy.
    WorkPerEnergy,
    /// A figure that a user's benchmark prints.
    Figure,
    /// Predicted by a model, whatever it is in: nothing of it was measured.
    Modelled,
}

/// The last word of ids whose nanoseconds are CPU time: of levels of load, and of the metrics of an experiment.
const CPU_ENDS: [&str; 3] = ["CPU time per operation", "cpu", "system"];

impl Aspect {
    /// Of a quantity of this kind and id.
    pub fn of(kind: &str, id: &str, measure: Measure, better: Better) -> Aspect {
        let end = id.rsplit('.').next().unwrap_or_default();
        match measure {
            _ if matches!(kind, "replay" | "simulated") => Aspect::Modelled,
            Measure::Nanoseconds if CPU_ENDS.contains(&end) => Aspect::CpuTime,
            Measure::Nanoseconds => Aspect::Latency,
            // Less of it is better, so it is nothing that gets done.
            Measure::PerSecond if better == Better::Lower => Aspect::Disturbance,
            Measure::PerSecond | Measure::BytesPerSecond => Aspect::Rate,
            Measure::Microwatts => Aspect::Power,
            Measure::PerJoule => Aspect::WorkPerEnergy,
            Measure::Number => Aspect::Figure,
        }
    }
}

//! What a quantity is about: speed, watts, CPU time. A gate names such things, and a run names fifty quantities.
//!
//! It follows from what the number is in and, where nanoseconds are those of a CPU at work and not of somebody who waits, from
//! the end of its id. Ids join runs, so they are never reworded.

use super::quantities::Measure;
use serde::Serialize;

/// What a quantity is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// How long somebody waits.
    Latency,
    /// How much is done in a second, operations or bytes.
    Rate,
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
    pub fn of(kind: &str, id: &str, measure: Measure) -> Aspect {
        let end = id.rsplit('.').next().unwrap_or_default();
        match measure {
            _ if kind == "replay" => Aspect::Modelled,
            Measure::Nanoseconds if CPU_ENDS.contains(&end) => Aspect::CpuTime,
            Measure::Nanoseconds => Aspect::Latency,
            Measure::PerSecond | Measure::BytesPerSecond => Aspect::Rate,
            Measure::Microwatts => Aspect::Power,
            Measure::PerJoule => Aspect::WorkPerEnergy,
            Measure::Number => Aspect::Figure,
        }
    }
}

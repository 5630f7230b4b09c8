//! How fast a CPU is after it slept: the way from idle to full speed, in fixed quanta of work.
//!
//! Three things slow the first microseconds and are kept apart: leaving the idle state (planned time to the first
//! instruction; the run queue is inside, because the thread is not real-time), cold caches and predictors (the first
//! quantum's excess), and the clock's ramp (the levels after it). Where the CPU has wide vectors, their licence is a
//! fourth, measured on a CPU that is already at speed.

use super::{Scheduling, Window};
use crate::covers::Covers;
use serde::{Deserialize, Serialize};

/// A median with its 95 % interval, or with the range of fewer than six values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Median {
    /// The median, in nanoseconds.
    pub median_ns: f64,
    /// Lower end of its 95 % interval, or the least value.
    pub low_ns: f64,
    /// Upper end of its 95 % interval, or the greatest value.
    pub high_ns: f64,
    /// What that interval covers: the repetitions of one measurement.
    #[serde(default)]
    pub covers: Covers,
    /// Were there fewer than six values, so that the ends are their range?
    #[serde(default)]
    pub is_range: bool,
}

/// One CPU's way to full speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpeedSample {
    /// The CPU that was measured.
    pub cpu: u32,
    /// Steps of the dependency chain in a quantum.
    pub steps_per_quantum: u64,
    /// Time of a quantum at full speed.
    pub quantum_ns: f64,
    /// How long each repetition worked.
    pub worked_ns: u64,
    /// By length of the idle time before.
    pub after: Vec<AfterIdle>,
    /// Wide vectors, where the CPU has them.
    pub vector: Option<VectorStart>,
    /// Why there is no effective frequency; none where there is one.
    pub no_counters: Option<String>,
    /// How the thread was scheduled.
    pub scheduling: Scheduling,
    /// From when to when it was measured.
    pub window: Window,
}

/// After one length of idle time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AfterIdle {
    /// How long the thread was planned to sleep before.
    pub idle_ns: u64,
    /// How many times it was repeated.
    pub n_repeats: u32,
    /// Those in which a ramp was seen.
    pub n_ramped: u32,
    /// Time until full speed, over the repetitions that ramped.
    pub ramp: Option<Median>,
    /// Slowest level before full speed, as a share of it; median over the repetitions that ramped.
    pub slowest_ratio: Option<f64>,
    /// Repetitions whose ramp filled half of the work: their time is a lower bound.
    pub n_unsteady: u32,
    /// Planned end of the idle time to the first instruction.
    pub exit: Median,
    /// What the first quantum took more than one at full speed.
    pub first_quantum_extra: Median,
    /// How many quanta of work were timed, over all repetitions.
    pub n_quanta: u64,
    /// Of which disturbed (steal, preemption, interrupts) and dropped.
    pub n_discarded: u64,
    /// A ramp shorter than this is not seen.
    pub resolution_ns: f64,
    /// Nor one by less than this share of speed.
    pub resolution_ratio: f64,
    /// Speed over time, medians over the repetitions.
    pub curve: Vec<SpeedPoint>,
}

impl AfterIdle {
    /// What work of the ramp's length loses: the ramp times the speed that is missing at its worst.
    pub fn lost_ns(&self) -> Option<f64> {
        Some(self.ramp?.median_ns * (1.0 - self.slowest_ratio?))
    }

    /// Was a ramp seen in most repetitions?
    pub fn is_ramp(&self) -> bool {
        self.n_ramped * 2 > self.n_repeats
    }
}

/// Speed at some time after the first instruction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SpeedPoint {
    /// Middle of the stretch, from the first instruction on.
    pub at_ns: f64,
    /// Speed there as a share of full speed, 0 to 1.
    pub speed_ratio: f64,
    /// Effective frequency by the cycle counter.
    pub khz: Option<u64>,
}

/// The start of wide vector work on a CPU at full scalar speed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VectorStart {
    /// The vectors' width: `AVX-512`, `AVX2`.
    pub width: String,
    /// Time of a quantum once steady.
    pub quantum_ns: f64,
    /// Repetitions, whose quanta were joined by their medians.
    pub n_repeats: u32,
    /// Time until vector work runs at its full speed; none where it does from the first quantum.
    pub slow_for_ns: Option<f64>,
    /// Its slowest level before, as a share of full speed.
    pub slowest_ratio: f64,
    /// Scalar speed just after, as a share of that just before: below 1 the clock was lowered for the vectors.
    pub scalar_after_ratio: f64,
    /// The smallest change of speed that would have been seen.
    pub resolution_ratio: f64,
    /// The shortest quantum, which is what the time can be told to.
    pub resolution_ns: f64,
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// CPU 3 after 100 ms of idle, ten times, of which so many had a ramp of this length from this share of full speed.
    pub(crate) fn ramped(n_ramped: u32, ramp_ns: f64, slowest_ratio: f64) -> SpeedSample {
        let at = |median_ns: f64| Median {
            median_ns,
            low_ns: median_ns,
            high_ns: median_ns,
            covers: Covers::Window,
            is_range: false,
        };
        let after = AfterIdle {
            idle_ns: 100_000_000,
            n_repeats: 10,
            n_ramped,
            ramp: (n_ramped > 0).then(|| at(ramp_ns)),
            slowest_ratio: (n_ramped > 0).then_some(slowest_ratio),
            n_unsteady: 0,
            exit: at(3e4),
            first_quantum_extra: at(1e3),
            n_quanta: 40_000,
            n_discarded: 3,
            resolution_ns: 4e4,
            resolution_ratio: 0.05,
            curve: Vec::new(),
        };
        SpeedSample {
            cpu: 3,
            steps_per_quantum: 1,
            quantum_ns: 1e4,
            worked_ns: 40_000_000,
            after: vec![after],
            vector: None,
            no_counters: None,
            scheduling: Scheduling::Fifo(1),
            window: Window::default(),
        }
    }
}

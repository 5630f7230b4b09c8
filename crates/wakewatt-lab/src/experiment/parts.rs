//! What an experiment is made of, as traits: settings and something to measure. Tests have their own, without a machine.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::sync::atomic::AtomicBool;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::IdleDelta;
use wakewatt_core::samples::experiment::{Arm, Metric};
use wakewatt_core::samples::load::Level;
use wakewatt_core::samples::rejection::Rejection;
use wakewatt_core::samples::waker::Waker;
use wakewatt_core::samples::woken::Woken;

/// The settings under test. Leaving must restore what was found, and dropping must too.
pub trait Arms {
    /// In order; the first is the baseline.
    fn arms(&self) -> Vec<Arm>;
    /// Makes arm number `index` effective.
    fn enter(&mut self, index: usize) -> Result<(), String>;
    /// Puts everything back.
    fn leave(&mut self) -> Result<(), String>;
    /// The settings as they are now, path and value.
    fn state(&self) -> Vec<(String, String)>;
    /// The settings as they were before anything was entered, a rehearsal included.
    fn found(&self) -> Vec<(String, String)> {
        self.state()
    }
    /// Is going from any arm to any other a matter of microseconds that moves nothing else? Then arms may be swapped often.
    fn is_instant(&self) -> bool {
        false
    }
    /// Do the idle counters contradict the arm? Then why.
    fn contradiction(&self, index: usize, idle: &[IdleDelta]) -> Option<String>;
}

/// One block's yield.
#[derive(Clone, Debug, Default)]
pub struct Yield {
    /// One per metric, in its unit.
    pub values: Vec<Option<f64>>,
    /// Samples to pool for drawing: id, title, histogram.
    pub latencies: Vec<(String, String, Option<Histogram<u64>>)>,
    /// Idle counters of the measured CPUs.
    pub idle: Vec<IdleDelta>,
    /// How the waker kept its plan, where one wakes.
    pub waker: Option<Waker>,
    /// Which CPU was waited for, and how often.
    pub woken: Option<Woken>,
    /// What the workload itself saw that may have spoiled the block.
    pub disturbances: Vec<String>,
    /// The workload's own reason why the block does not count.
    pub rejected: Option<Rejection>,
    /// Levels of the workloads that are loads, by the workload's id.
    pub levels: Vec<(String, Level)>,
}

/// What a load was found to be before the first block. A run that goes on has the same, or its blocks could not be paired.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibrated {
    /// The maximum per second; none where levels do not refer to one.
    pub per_s: Option<f64>,
    /// Units of work in a transaction.
    pub work_units: Option<u64>,
    /// The service time they were sized for.
    #[serde(default)]
    pub service_ns: Option<u64>,
    /// Each thread's part of the maximum.
    pub threads_per_s: Vec<f64>,
}

/// What is measured under each arm.
pub trait Workload {
    /// The first is primary.
    fn metrics(&self) -> Vec<Metric>;
    /// The CPUs it runs on.
    fn cpus(&self) -> CpuSet;
    /// Runs for a while and throws the result away.
    fn warm_up(&mut self, duration_ns: u64, stop: &AtomicBool);
    /// One block.
    fn measure(&mut self, stop: &AtomicBool) -> Result<Yield, String>;
    /// The load that its levels refer to: the one given, or measured now as found; none where there is no such thing.
    fn calibrate(&mut self, _known: Option<&Calibrated>, _stop: &AtomicBool) -> Result<Option<Calibrated>, String> {
        Ok(None)
    }
    /// A block of this round follows. What is drawn (arrivals) is drawn anew per round and is the same for all arms of it.
    fn begin_round(&mut self, _round: usize) {}
    /// Can its primary metric be measured within a fraction of a second? None where not.
    fn short(&mut self) -> Option<&mut dyn ShortMeasurement> {
        None
    }
    /// Does it keep CPUs busy from other processes? Then busy CPUs are no sign of somebody else.
    fn is_busy(&self) -> bool {
        false
    }
}

/// A workload whose primary metric needs only a fraction of a second, so that variants can be swapped several times a
/// second.
pub trait ShortMeasurement {
    /// Measures for so long, after a warm-up of its own: the first samples after a switch are discarded. Values that so few
    /// samples do not support are none.
    fn measure_for(&mut self, measure_ns: u64, stop: &AtomicBool) -> Result<Yield, String>;
}

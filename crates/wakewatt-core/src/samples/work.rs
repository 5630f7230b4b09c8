//! How much busy CPUs get done: instructions per cycle, as found, while the machine does its own work.
//!
//! A CPU that waits for memory is as busy, to the kernel, as one that computes. Case K1: 196 cores at over 90 % user time
//! did little more than 72; the only outward sign was that the fans were quieter, because stalled CPUs draw less power.
//! Instructions per cycle tell the two apart. It is a hint, not a proof: code differs, and so does the number of
//! instructions that a unit of work takes.

use super::Window;
use crate::units::Cpu;
use serde::{Deserialize, Serialize};

/// What one CPU did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuWork {
    /// Number of the CPU.
    pub cpu: Cpu,
    /// Neither idle nor taken by a hypervisor, by /proc/stat.
    pub busy_ratio: f64,
    /// Cycles while not halted, in the part of the window in which the PMU had room for both counters.
    pub n_cycles: u64,
    /// Instructions retired in the same.
    pub n_instructions: u64,
}

/// All CPUs in one window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkSample {
    /// From when to when it was counted.
    pub window: Window,
    /// Those that could be counted.
    pub cpus: Vec<CpuWork>,
}

impl WorkSample {
    /// CPUs that were at least this busy.
    pub fn n_busy(&self, least_busy_ratio: f64) -> usize {
        self.busy(least_busy_ratio).count()
    }

    /// Instructions per cycle of the CPUs that were at least this busy, all together, and how many those are. A busy CPU
    /// without cycles was not counted; none where no busy CPU was.
    pub fn ipc_of_busy(&self, least_busy_ratio: f64) -> Option<(f64, usize)> {
        let counted = || self.busy(least_busy_ratio).filter(|c| c.n_cycles > 0);
        let sum = |of: fn(&CpuWork) -> u64| counted().map(|c| of(c) as f64).sum::<f64>();
        let n_cycles = sum(|c| c.n_cycles);
        (n_cycles > 0.0).then(|| (sum(|c| c.n_instructions) / n_cycles, counted().count()))
    }

    fn busy(&self, least_busy_ratio: f64) -> impl Iterator<Item = &CpuWork> {
        self.cpus.iter().filter(move |c| c.busy_ratio >= least_busy_ratio)
    }
}

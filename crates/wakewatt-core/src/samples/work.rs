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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuWork {
    /// Which.
    pub cpu: Cpu,
    /// Neither idle nor taken by a hypervisor, by /proc/stat.
    pub busy_ratio: f64,
    /// Cycles while not halted.
    pub n_cycles: u64,
    /// Instructions retired.
    pub n_instructions: u64,
}

/// All CPUs in one window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkSample {
    /// When.
    pub window: Window,
    /// Those that could be counted.
    pub cpus: Vec<CpuWork>,
}

impl WorkSample {
    /// Instructions per cycle of the CPUs that were at least this busy, all together, and how many those are.
    pub fn ipc_of_busy(&self, least_busy_ratio: f64) -> Option<(f64, usize)> {
        let busy: Vec<&CpuWork> = self.cpus.iter().filter(|c| c.busy_ratio >= least_busy_ratio).collect();
        let sum = |of: fn(&CpuWork) -> u64| busy.iter().map(|c| of(c) as f64).sum::<f64>();
        let n_cycles = sum(|c| c.n_cycles);
        (n_cycles > 0.0).then(|| (sum(|c| c.n_instructions) / n_cycles, busy.len()))
    }
}

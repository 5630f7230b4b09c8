//! What others had of the CPUs while they were measured, and from when on it is in the numbers.

use serde::{Deserialize, Serialize};

/// Above this share of the window, what the hypervisor took is a disturbance.
pub const STEAL_RATIO: f64 = 0.005;
/// Above this share, other processes' CPU time is one.
pub const FOREIGN_RATIO: f64 = 0.05;

/// What others had of the measured CPUs' time in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Taken {
    /// By the hypervisor, of the window.
    pub steal_ratio: f64,
    /// By other processes, of the window; none where the workload itself keeps the CPUs busy and only it can tell.
    pub foreign_ratio: Option<f64>,
}

impl Taken {
    /// Is it enough to be in the numbers?
    pub fn is_disturbing(&self) -> bool {
        self.steal_ratio > STEAL_RATIO || self.foreign_ratio.is_some_and(|ratio| ratio > FOREIGN_RATIO)
    }
}

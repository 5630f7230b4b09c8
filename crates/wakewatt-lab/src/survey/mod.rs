//! What is measured of a machine as it is found: `measure` runs these one at a time, `doctor` one after the other.
//!
//! Each verb takes a [`Lab`] and a plan with every choice made or left open (`None`), chooses what was left open from the
//! machine, and returns the samples with what could not be had of them. Nothing here changes a setting; what does is in
//! `idle_cost` and in the experiments.

mod activity;
mod cores;
mod disk;
mod memory;
mod network;
mod power;
mod power_model;
mod speed;
mod wakeup;

pub use cores::{CoresPlan, cores, neighbourhood};
pub use disk::{DiskPlan, Reads, describe};
pub use memory::{memory, memory_as_found, nodes_of};
pub use network::{NetworkPlan, Peer, ping, round_trips};
pub use power::{CommandRun, PowerPlan, PowerSample, power};
pub use power_model::{ModelFile, calibrate, read_model};
pub use speed::{SpeedPlan, speeds};
pub use wakeup::{OneWakeup, Policy, WakeupPlan, one_wakeup, wakeups};

use crate::context::Lab;
use crate::refusal::Refusal;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::not_done::NotDone;
use wakewatt_host::affinity;

/// More CPUs than this are sampled when none are named: all of a big machine would take an hour.
const MAX_CPUS: usize = 8;

/// What was had, and what was not.
#[derive(Clone, Debug)]
pub struct Found<T> {
    /// In the order they were measured.
    pub samples: Vec<T>,
    /// What could not be measured, and why.
    pub not_done: Vec<NotDone>,
}

impl<T> Default for Found<T> {
    fn default() -> Found<T> {
        Found { samples: Vec::new(), not_done: Vec::new() }
    }
}

impl<T> Found<T> {
    /// One more, or the reason why there is none.
    fn add(&mut self, step: impl FnOnce() -> String, outcome: Result<T, impl std::fmt::Display>) {
        match outcome {
            Ok(sample) => self.samples.push(sample),
            Err(why) => self.not_done.push(NotDone::named(step(), why.to_string())),
        }
    }
}

/// The CPUs that this process may use.
pub fn allowed_cpus() -> Result<CpuSet, Refusal> {
    affinity::allowed_cpus()
        .map_err(|e| Refusal::Unavailable(format!("cannot ask which CPUs this process may use: {e}")))
}

/// Goes through jobs, saying which is done now, until it is told to end.
fn each<T>(lab: Lab<'_>, jobs: &[T], words: impl Fn(&T) -> String, mut run: impl FnMut(&T)) {
    for (at, job) in jobs.iter().enumerate() {
        if lab.is_stopped() {
            break;
        }
        lab.tell.progress(at as f64 / jobs.len() as f64, &words(job));
        run(job);
    }
}

//! A measurement of reading from a disk: how long one read takes, and what the CPUs did while it was under way.
//!
//! A read at queue depth 1 leaves its CPU with nothing to do until the disk answers, so the answer meets a sleeping CPU
//! and pays for waking it. At a low planned rate the sleep before the read is paid as well.

use super::{IdleDelta, Scheduling, Window};
use crate::distribution::Distribution;
use serde::{Deserialize, Serialize};

/// How reads reach the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DiskEngine {
    /// `pread`; more reads under way need more threads.
    Psync,
    /// `io_uring`: one thread, any number of reads under way, interrupts (no polling).
    IoUring,
}

impl DiskEngine {
    /// For tables and ids; also fio's names.
    pub fn word(self) -> &'static str {
        match self {
            DiskEngine::Psync => "psync",
            DiskEngine::IoUring => "io_uring",
        }
    }
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskTarget {
    /// The path as given; for a file made for the measurement its folder.
    pub path: String,
    /// `made` (a file made for this and gone again), `file` or `device`.
    pub kind: DiskTargetKind,
    /// File system, as far as its number is known: ext4, xfs …
    pub filesystem: Option<String>,
    /// The block device below: vda, nvme0n1p2.
    pub device: Option<String>,
    /// Bytes that were read from.
    pub size_bytes: u64,
    /// The page cache was bypassed (O_DIRECT). If not, memory may have answered.
    pub is_direct: bool,
}

/// What kind of file or device was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DiskTargetKind {
    /// Made for this measurement, with random content; it has no name and vanishes with the process.
    Made,
    /// Somebody's file, opened for reading only.
    File,
    /// A block device, opened for reading only.
    Device,
}

/// In which order blocks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DiskAccess {
    /// Every block once, in a seeded random order; then again in another.
    Random,
    /// One block after the other, from the beginning.
    Sequential,
}

impl DiskAccess {
    /// For tables.
    pub fn word(self) -> &'static str {
        match self {
            DiskAccess::Random => "random",
            DiskAccess::Sequential => "sequential",
        }
    }
}

/// One measured distribution of read latencies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskSample {
    /// How reads reach the kernel.
    pub engine: DiskEngine,
    /// The file or device that was read.
    pub target: DiskTarget,
    /// In which order the blocks were read.
    pub access: DiskAccess,
    /// Bytes of one read.
    pub block_bytes: u64,
    /// Reads under way at most (queue depth).
    pub depth: u32,
    /// Planned reads per second with random gaps (open loop); none where each read follows the one before (closed loop).
    pub planned_per_s: Option<f64>,
    /// CPUs the reading threads were pinned to.
    pub cpus: Vec<u32>,
    /// Were the reading threads real-time?
    pub scheduling: Scheduling,
    /// Open loop: planned start to the data being there, as seen by the thread, so a late read does not hide the next (no coordinated omission). Closed loop: submission to the data being there.
    pub latency: Distribution,
    /// Open loop only: submission to the data being there, without the wake-up before it and the wait behind other reads.
    pub service: Option<Distribution>,
    /// Planned starts that were over before the thread could submit; they are in `latency`, counted from the plan.
    pub n_late_starts: u64,
    /// Planned starts that were never reached: the disk could not keep the rate, so `latency` says too little.
    pub n_never_started: u64,
    /// Reads per second, counted part.
    pub reads_per_s: f64,
    /// Bytes per second, counted part.
    pub bytes_per_s: f64,
    /// CPU time of this process per read, warm-up included, interrupts not.
    pub cpu_ns_per_read: f64,
    /// Reads in all, warm-up included: what the idle counters below belong to.
    pub n_reads_with_warmup: u64,
    /// Seed of the order and of the gaps.
    pub seed: u64,
    /// Cost of one clock read, not subtracted.
    pub clock_read_ns: u64,
    /// From when to when reads were counted; the warm-up is before it.
    pub window: Window,
    /// Idle counters of all CPUs this process may use, warm-up included.
    pub idle: Vec<IdleDelta>,
    /// What must be known with the numbers.
    pub remarks: Vec<String>,
}

impl DiskSample {
    /// Entries into sleeping states of one CPU, per read: near 1 on the CPU that reads at depth 1 says it slept in each.
    pub fn sleeps_per_read(&self, cpu: u32) -> Option<f64> {
        let delta = self.idle.iter().find(|d| d.cpu == cpu)?;
        let n: u64 = delta.states.iter().filter(|s| s.name != "POLL").map(|s| s.n_usage).sum();
        (self.n_reads_with_warmup > 0).then(|| n as f64 / self.n_reads_with_warmup as f64)
    }
}

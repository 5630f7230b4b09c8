//! Disk reads as the workload of an idle experiment: what does a read take when its CPU may sleep, and when it may not?
//!
//! The primary metric, declared here and nowhere else, is the median read: it is what most requests see, and one slow
//! read of a disk's own doing does not move it. Mean and 99th percentile are secondary.

use crate::bench::{BenchError, DiskSpec, disk};
use crate::experiment::{ShortMeasurement, Workload, Yield};
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::disk::{DiskEngine, DiskTarget};
use wakewatt_core::samples::experiment::Metric;
use wakewatt_core::samples::woken::Woken;
use wakewatt_core::source::Source;
use wakewatt_host::disk::target::Target;

/// Discarded at the start of each measurement: the first reads after a switch.
const SHORT_WARMUP_NS: u64 = 10_000_000;

/// The workload.
pub struct DiskWorkload<'a> {
    src: &'a dyn Source,
    target: &'a Target,
    about: DiskTarget,
    spec: DiskSpec,
    n_blocks: u64,
}

impl<'a> DiskWorkload<'a> {
    /// Each block measures what `spec` says, in an order of its own.
    pub fn new(src: &'a dyn Source, target: &'a Target, about: DiskTarget, spec: DiskSpec) -> Self {
        DiskWorkload { src, target, about, spec, n_blocks: 0 }
    }

    fn id(&self) -> String {
        format!("disk.{}", self.spec.engine.word())
    }

    fn title(&self) -> String {
        format!("{} read, {}, depth {}", self.spec.access.word(), self.spec.engine.word(), self.spec.depth)
    }
}

/// Its metrics, known before anything is opened.
pub fn metrics_of(engine: DiskEngine, title: &str) -> Vec<Metric> {
    [("p50", "median"), ("mean", "mean"), ("p99", "99th percentile")]
        .map(|(q, words)| Metric::latency(format!("disk.{}.{q}", engine.word()), format!("{title}, {words}")))
        .to_vec()
}

impl Workload for DiskWorkload<'_> {
    fn metrics(&self) -> Vec<Metric> {
        metrics_of(self.spec.engine, &self.title())
    }

    fn cpus(&self) -> CpuSet {
        self.spec.cpus.iter().copied().collect()
    }

    fn warm_up(&mut self, duration_ns: u64, stop: &AtomicBool) {
        let spec = DiskSpec { duration_ns, warmup_ns: 0, ..self.spec.clone() };
        // What fails here fails again in the block, and is told there.
        let _ = disk(&spec, self.target, self.about.clone(), stop, self.src);
    }

    fn measure(&mut self, stop: &AtomicBool) -> Result<Yield, String> {
        self.measure_for(self.spec.duration_ns, stop)
    }

    fn short(&mut self) -> Option<&mut dyn ShortMeasurement> {
        Some(self)
    }
}

impl ShortMeasurement for DiskWorkload<'_> {
    fn measure_for(&mut self, duration_ns: u64, stop: &AtomicBool) -> Result<Yield, String> {
        self.n_blocks += 1;
        let spec = DiskSpec {
            seed: self.spec.seed.wrapping_add(self.n_blocks),
            duration_ns,
            warmup_ns: self.spec.warmup_ns.max(SHORT_WARMUP_NS),
            ..self.spec.clone()
        };
        match disk(&spec, self.target, self.about.clone(), stop, self.src) {
            Ok(slice) => {
                let latency = &slice.sample.latency;
                let at = |q: f64| latency.quantile(q).map(|v| v.value_ns as f64);
                let woken = slice.sample.cpus.first().map(|cpu| Woken::new(*cpu, latency.n));
                Ok(Yield {
                    woken: woken.filter(|_| slice.sample.depth == 1),
                    values: vec![at(0.5), Some(latency.mean_ns), at(0.99)],
                    latencies: vec![(self.id(), self.title(), Some(slice.hist.into_histogram()))],
                    idle: slice.sample.idle,
                    ..Yield::default()
                })
            }
            // An interrupt cuts a block short; it is then rejected, not an error.
            Err(BenchError::NoSamples) if stop.load(Ordering::Relaxed) => Ok(Yield::default()),
            Err(why) => Err(why.to_string()),
        }
    }
}

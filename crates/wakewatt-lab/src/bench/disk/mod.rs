//! Disk reads: how long one takes, at queue depth 1 and deeper, one after the other or at planned times.
//!
//! At depth 1 the reading CPU has nothing to do until the disk answers and goes to sleep; the answer then pays for
//! waking it. On the development VM 43 to 46 % of "disk latency" was that (docs/methods/disk.md). At low planned rates the
//! interrupt's CPU sleeps deeper and a read takes longer than at high ones (axboe/fio #1394). Latency is taken as fio
//! takes `lat`: before the submitting system call to the reading thread having the data.

mod offsets;
mod schedule;
mod psync;
mod tally;
mod uring;

use super::{BenchError, DEFAULT_FIFO_PRIORITY, IdleBaseline, check_cpu, idle_counters};
use offsets::Offsets;
use schedule::ReadSchedule;
use std::sync::atomic::AtomicBool;
use tally::{Read, Tally};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::disk::{DiskAccess, DiskEngine, DiskSample, DiskTarget};
use wakewatt_core::samples::{Scheduling, Window};
use wakewatt_core::source::Source;
use wakewatt_core::stats::distribution::{Distribution, Recorder};
use wakewatt_core::units::{Cpu, show_bytes};
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_host::clock;
use wakewatt_host::disk::target::Target;

/// Blocks from and to: below a page O_DIRECT may be refused, above 1 MiB reads are split by the kernel.
pub const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 4096..=1 << 20;
/// Reads under way at most.
pub const MAX_DEPTH: u32 = 256;
/// A smaller file says nothing of a disk.
pub const MIN_SIZE_BYTES: u64 = 1 << 20;

/// What to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskSpec {
    /// psync or io_uring.
    pub engine: DiskEngine,
    /// Random or sequential.
    pub access: DiskAccess,
    /// Bytes per read: a power of two.
    pub block_bytes: u64,
    /// Reads under way: threads of psync, slots of io_uring.
    pub depth: u32,
    /// Planned reads per second; none: closed loop.
    pub planned_per_s: Option<f64>,
    /// The CPUs of the reading threads, in turn; io_uring uses the first.
    pub cpus: Vec<Cpu>,
    /// Discarded first.
    pub warmup_ns: u64,
    /// Counted.
    pub duration_ns: u64,
    /// SCHED_FIFO priority to try; none for SCHED_OTHER.
    pub fifo_priority: Option<u8>,
    /// Of order and gaps.
    pub seed: u64,
}

impl DiskSpec {
    /// Random 4 KiB reads at depth 1, one after the other.
    pub fn on(engine: DiskEngine, cpu: Cpu, duration_ns: u64, seed: u64) -> DiskSpec {
        DiskSpec {
            engine,
            access: DiskAccess::Random,
            block_bytes: 4096,
            depth: 1,
            planned_per_s: None,
            cpus: vec![cpu],
            warmup_ns: super::DEFAULT_WARMUP_NS,
            duration_ns,
            fifo_priority: Some(DEFAULT_FIFO_PRIORITY),
            seed,
        }
    }
}

/// Some reads: the sample as reported, with the raw histogram, so that short slices can be pooled.
#[derive(Clone, Debug)]
pub struct DiskSlice {
    /// As reported; `latency` is made from `hist`.
    pub sample: DiskSample,
    /// Every counted read, in nanoseconds.
    pub hist: Recorder,
}

/// What all threads of one measurement share.
struct Job<'a> {
    spec: &'a DiskSpec,
    target: &'a Target,
    block_len: usize,
    start_at_ns: u64,
    count_from_ns: u64,
    end_at_ns: u64,
    stop: &'a AtomicBool,
}

/// Measures, until done or stopped. `about` is what the sample shall say of the target.
pub fn disk(
    spec: &DiskSpec,
    target: &Target,
    about: DiskTarget,
    stop: &AtomicBool,
    src: &dyn Source,
) -> Result<DiskSlice, BenchError> {
    check(spec, target)?;
    let mut spec = spec.clone();
    spec.fifo_priority = spec.fifo_priority.filter(|_| sleeps(&spec, target.is_direct));
    let spec = &spec;
    let allowed: CpuSet = allowed_cpus().map_err(|e| BenchError::system("asking which CPUs may be used", e))?;
    let cpus: Vec<Cpu> = allowed.iter().collect();
    let clock_read_ns = clock::read_cost_ns();
    let baseline = IdleBaseline::read(src, &cpus);
    let own_cpu_before_ns = clock::own_cpu_ns();
    // Threads need some time to start and to lock their memory; none of it is counted.
    let start_at_ns = clock::monotonic_ns() + 2_000_000;
    let count_from_ns = start_at_ns + spec.warmup_ns;
    let end_at_ns = count_from_ns + spec.duration_ns;
    let block_len = usize::try_from(spec.block_bytes).unwrap_or(usize::MAX);
    let job = Job { spec, target, block_len, start_at_ns, count_from_ns, end_at_ns, stop };
    let tally = run(&job)?;
    let own_cpu_ns = clock::own_cpu_ns() - own_cpu_before_ns;
    let idle = baseline.since(src);
    if tally.latency.is_empty() {
        return Err(BenchError::NoSamples);
    }
    let window = Window { start_at_ns: count_from_ns, end_at_ns: tally.last_at_ns };
    let reads_per_s = tally.latency.len() as f64 * 1e9 / window.length_ns().max(1) as f64;
    let sample = DiskSample {
        engine: spec.engine,
        target: about,
        access: spec.access,
        block_bytes: spec.block_bytes,
        depth: spec.depth,
        planned_per_s: spec.planned_per_s,
        cpus: threads(spec).map(|(_, cpu)| cpu).collect(),
        scheduling: tally.scheduling.clone(),
        latency: Distribution::recorded(&tally.latency),
        service: spec.planned_per_s.map(|_| Distribution::recorded(&tally.service)),
        n_late_starts: tally.n_late_starts,
        n_never_started: tally.n_never_started,
        reads_per_s,
        bytes_per_s: reads_per_s * spec.block_bytes as f64,
        cpu_ns_per_read: own_cpu_ns as f64 / tally.n_reads_with_warmup.max(1) as f64,
        n_reads_with_warmup: tally.n_reads_with_warmup,
        seed: spec.seed,
        clock_read_ns,
        window,
        idle,
        remarks: Vec::new(),
    };
    Ok(DiskSlice { sample, hist: tally.latency })
}

impl DiskSlice {
    /// Adds a later slice of the same arm.
    pub fn absorb(&mut self, later: DiskSlice) {
        self.hist.append(&later.hist);
        self.sample.latency = Distribution::recorded(&self.hist);
        self.sample.n_reads_with_warmup += later.sample.n_reads_with_warmup;
        idle_counters::add(&mut self.sample.idle, later.sample.idle);
    }
}

/// Threads that read: number and CPU.
fn threads(spec: &DiskSpec) -> impl Iterator<Item = (u32, Cpu)> + '_ {
    let n = if spec.engine == DiskEngine::Psync { spec.depth } else { 1 };
    (0..n).zip(spec.cpus.iter().copied().cycle())
}

fn run(job: &Job<'_>) -> Result<Tally, BenchError> {
    std::thread::scope(|scope| {
        let one = |(share, cpu)| {
            scope.spawn(move || match job.spec.engine {
                DiskEngine::Psync => psync::measure(job, share, cpu),
                DiskEngine::IoUring => uring::measure(job, cpu),
            })
        };
        let running: Vec<_> = threads(job.spec).map(one).collect();
        let mut sum = Tally::from(job.count_from_ns, Scheduling::Other("no thread ran".into()));
        for thread in running {
            let tally = thread.join().map_err(|_| BenchError::Crashed)??;
            sum.add(&tally);
            sum.scheduling = tally.scheduling;
        }
        Ok(sum)
    })
}

fn check(spec: &DiskSpec, target: &Target) -> Result<(), BenchError> {
    let refuse = |why: String| Err(BenchError::Unavailable(why));
    if !BLOCK_BYTES.contains(&spec.block_bytes) || !spec.block_bytes.is_power_of_two() {
        let text = show_bytes(spec.block_bytes);
        return refuse(format!("a block of {text} is no power of two from 4 KiB to 1 MiB; choose one"));
    }
    if !(1..=MAX_DEPTH).contains(&spec.depth) {
        return refuse(format!("a depth of {} is outside 1 to {MAX_DEPTH}; choose one within", spec.depth));
    }
    if spec.planned_per_s.is_some_and(|rate| !(0.1..=1e6).contains(&rate)) {
        return refuse("a rate must be between 0.1 and 1000000 reads per second; choose one within".into());
    }
    let needed_bytes = MIN_SIZE_BYTES.max(spec.block_bytes * u64::from(spec.depth));
    if target.size_bytes < needed_bytes {
        return refuse(format!(
            "what is to be read holds {}, and at least {} are needed; name a larger file or a smaller block",
            show_bytes(target.size_bytes),
            show_bytes(needed_bytes)
        ));
    }
    if spec.cpus.is_empty() {
        return refuse("no CPU was named to read from".into());
    }
    spec.cpus.iter().try_for_each(|cpu| check_cpu(*cpu))
}

fn pinning(cpu: Cpu, why: rustix::io::Errno) -> BenchError {
    BenchError::system(format!("pinning a thread to CPU {cpu}"), why)
}

/// Do the readers sleep? Reads out of the page cache, one after the other, never do: at real-time priority they would have the
/// CPU to themselves until the kernel takes it away from them, and then that is in the numbers.
fn sleeps(spec: &DiskSpec, is_direct: bool) -> bool {
    is_direct || spec.planned_per_s.is_some()
}

/// A read that failed or came back short.
fn broken(at_bytes: u64, length: usize, result: rustix::io::Result<usize>) -> BenchError {
    match result {
        Ok(n) => BenchError::Unavailable(format!(
            "reading {length} bytes at offset {at_bytes} gave {n}: the file became shorter while it was measured"
        )),
        Err(why) => {
            let hint =
                if why == rustix::io::Errno::INVAL { " (does the disk want larger blocks? see --block)" } else { "" };
            BenchError::system(format!("reading {length} bytes at offset {at_bytes}{hint}"), why)
        }
    }
}

#[cfg(test)]
mod tests;

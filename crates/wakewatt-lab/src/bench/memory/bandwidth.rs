//! Bandwidth: every thread runs one kernel through arrays of its own, all passes starting together.
//!
//! A pass lasts from the first thread's start to the last one's end, so a straggler counts. Threads meet in a spinning
//! barrier, because a sleeping one would add its wake-up to each pass. Each thread touches its own arrays first (or they
//! are bound to a node), and no two arrays begin at the same offset in a 4 KiB page: loads would wait for stores they only
//! look like (4K aliasing). The best pass is reported, as STREAM does, with the median beside it.

use super::latency::{MemoryPlace, huge_ratio, pin, region};
use crate::bench::BenchError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::memory::{Bandwidth, PageWish, Spread, Traffic};
use wakewatt_core::units::Cpu;
use wakewatt_host::clock;
use wakewatt_host::pages::{LINE_BYTES, Line};
use wakewatt_host::vector_loops::{Ranges, VectorLoop, Width};

/// Arrays begin this many lines apart within a page: half of 4 KiB, and its half.
const SKEW_LINES: usize = 32;
/// A pass is repeated until it takes this long, so that starting together does not count.
const PASS_NS: u64 = 10_000_000;

/// What to measure.
#[derive(Clone, Debug)]
pub struct BandwidthSpec {
    /// What is done.
    pub traffic: Traffic,
    /// With which registers.
    pub width: Width,
    /// One thread on each.
    pub cpus: CpuSet,
    /// Pages to ask for.
    pub pages: PageWish,
    /// Bind the memory here; each thread's first touch when none.
    pub node: Option<u32>,
    /// Bytes of each thread's each array.
    pub array_bytes: u64,
    /// Passes counted; one more goes before.
    pub n_passes: usize,
}

/// The kernel that makes this traffic.
pub fn kernel(traffic: Traffic) -> VectorLoop {
    match traffic {
        Traffic::Load => VectorLoop::Load,
        Traffic::Copy => VectorLoop::Copy,
        Traffic::CopyNonTemporal => VectorLoop::CopyNonTemporal,
        Traffic::Triad => VectorLoop::Triad,
    }
}

/// Arrays of one thread, in one region.
#[derive(Debug)]
pub struct Arrays {
    pages: wakewatt_host::pages::Pages,
    n_lines: usize,
}

impl Arrays {
    /// Takes and touches what the traffic needs.
    pub fn take(spec: &BandwidthSpec, cpu: Cpu) -> Result<Arrays, BenchError> {
        let n_lines = usize::try_from(spec.array_bytes / LINE_BYTES as u64).unwrap_or(0).max(64);
        let bytes = (n_lines + SKEW_LINES) as u64 * LINE_BYTES as u64 * spec.traffic.n_arrays();
        let place = MemoryPlace { cpu, node: spec.node, pages: spec.pages };
        Ok(Arrays { pages: region(&place, bytes)?, n_lines })
    }

    /// The share in huge pages.
    pub fn huge_ratio(&self) -> Option<f64> {
        huge_ratio(&self.pages)
    }

    /// As the kernels want them.
    pub fn ranges(&mut self, traffic: Traffic) -> Ranges<'_> {
        let n = self.n_lines;
        let whole = n + SKEW_LINES;
        let lines = self.pages.lines_mut();
        let none: &mut [Line] = &mut [];
        match traffic {
            Traffic::Load => Ranges { a: none, b: &lines[..n], c: &[] },
            Traffic::Copy | Traffic::CopyNonTemporal => {
                let (b, a) = lines.split_at_mut(whole);
                Ranges { a: &mut a[..n], b: &b[..n], c: &[] }
            }
            Traffic::Triad => {
                let (b, rest) = lines.split_at_mut(whole);
                let (c, a) = rest.split_at_mut(whole);
                Ranges { a: &mut a[..n], b: &b[..n], c: &c[..n] }
            }
        }
    }
}

/// Threads meet here, spinning; the first one decides for all whether to go on.
#[derive(Debug)]
struct Meeting {
    n_threads: usize,
    n_arrived: AtomicUsize,
    /// The round after which all leave. A mere flag would be seen by some one round early, and the rest wait for ever.
    last_round: AtomicUsize,
}

impl Meeting {
    /// All leave after this round; to be said before coming to it.
    fn end_with(&self, round: usize) {
        self.last_round.fetch_min(round, Ordering::AcqRel);
    }

    /// Waits for everyone, for the `round`-th time (from 1). False when all are to stop.
    fn wait(&self, round: usize) -> bool {
        self.n_arrived.fetch_add(1, Ordering::AcqRel);
        let mut n_spins = 0u32;
        while self.n_arrived.load(Ordering::Acquire) < self.n_threads * round {
            n_spins = n_spins.wrapping_add(1);
            // Somebody else's thread may have this one's partner's CPU: let it.
            if n_spins.is_multiple_of(1 << 16) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        }
        round < self.last_round.load(Ordering::Acquire)
    }
}

/// What one thread saw.
struct Seen {
    passes: Vec<(u64, u64)>,
    bytes_per_pass: u64,
    huge_ratio: Option<f64>,
}

/// Measures. A stop gives the passes made so far.
pub fn bandwidth(spec: &BandwidthSpec, stop: &AtomicBool) -> Result<Bandwidth, BenchError> {
    let meeting = Meeting {
        n_threads: spec.cpus.len(),
        n_arrived: AtomicUsize::new(0),
        last_round: AtomicUsize::new(usize::MAX),
    };
    let n_repeats = AtomicUsize::new(1);
    let seen: Vec<Result<Seen, BenchError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = spec
            .cpus
            .iter()
            .enumerate()
            .map(|(at, cpu)| {
                let (meeting, n_repeats) = (&meeting, &n_repeats);
                scope.spawn(move || thread(spec, cpu, at == 0, meeting, n_repeats, stop))
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap_or(Err(BenchError::Crashed))).collect()
    });
    let seen: Vec<Seen> = seen.into_iter().collect::<Result<_, _>>()?;
    let total_bytes: u64 = seen.iter().map(|s| s.bytes_per_pass).sum();
    let n_passes = seen.iter().map(|s| s.passes.len()).min().unwrap_or(0);
    let rates: Vec<f64> = (0..n_passes)
        .map(|pass| {
            let start = seen.iter().map(|s| s.passes[pass].0).min().unwrap_or(0);
            let end = seen.iter().map(|s| s.passes[pass].1).max().unwrap_or(0);
            total_bytes as f64 * 1e9 / end.saturating_sub(start).max(1) as f64
        })
        .collect();
    let spread = Spread::of(&rates).ok_or(BenchError::NoSamples)?;
    Ok(Bandwidth {
        traffic: spec.traffic,
        simd: spec.width.word().into(),
        pages: spec.pages,
        cpus: spec.cpus.clone(),
        node: spec.node,
        array_bytes: spec.array_bytes * spec.cpus.len() as u64,
        best_bytes_per_s: spread.max,
        median_bytes_per_s: spread.median,
        cv_ratio: spread.cv_ratio,
        n_passes: n_passes as u64,
        huge_ratio: seen.iter().filter_map(|s| s.huge_ratio).reduce(f64::min),
    })
}

fn thread(
    spec: &BandwidthSpec,
    cpu: Cpu,
    is_first: bool,
    meeting: &Meeting,
    n_repeats: &AtomicUsize,
    stop: &AtomicBool,
) -> Result<Seen, BenchError> {
    // A thread that cannot take part must still come to the meeting, or the others wait for ever.
    let prepared = pin(cpu).and_then(|pinned| Arrays::take(spec, cpu).map(|arrays| (pinned, arrays)));
    if prepared.is_err() {
        meeting.end_with(1);
    }
    let is_on = meeting.wait(1);
    let (_pinned, mut arrays) = prepared?;
    let huge_ratio = arrays.huge_ratio();
    let mut passes = Vec::with_capacity(spec.n_passes);
    if !is_on {
        return Ok(Seen { passes, bytes_per_pass: 0, huge_ratio });
    }
    let kernel = kernel(spec.traffic);
    let mut ranges = arrays.ranges(spec.traffic);
    let start_at_ns = clock::monotonic_ns();
    let mut bytes_per_pass = ranges.run(kernel, spec.width);
    if is_first {
        let spent_ns = (clock::monotonic_ns() - start_at_ns).max(1);
        n_repeats.store(usize::try_from(PASS_NS.div_ceil(spent_ns)).unwrap_or(1), Ordering::Release);
    }
    for pass in 0..spec.n_passes {
        // Only the first thread looks at the flag, so that all leave in the same round.
        if is_first && stop.load(Ordering::Relaxed) {
            meeting.end_with(2 + pass);
        }
        if !meeting.wait(2 + pass) {
            break;
        }
        let repeats = n_repeats.load(Ordering::Acquire);
        let start_at_ns = clock::monotonic_ns();
        bytes_per_pass = 0;
        for _ in 0..repeats {
            bytes_per_pass += ranges.run(kernel, spec.width);
        }
        passes.push((start_at_ns, clock::monotonic_ns()));
    }
    Ok(Seen { passes, bytes_per_pass, huge_ratio })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_host::affinity::allowed_cpus;

    #[test]
    fn all_kernels_on_all_cpus_give_a_rate_and_a_stop_ends_them() {
        let cpus = allowed_cpus().unwrap();
        for traffic in Traffic::ALL {
            let width = *Width::available().last().unwrap();
            let spec = BandwidthSpec {
                traffic,
                width,
                cpus: cpus.clone(),
                pages: PageWish::Huge,
                node: None,
                array_bytes: 1 << 20,
                n_passes: 3,
            };
            let seen = bandwidth(&spec, &AtomicBool::new(false)).unwrap();
            assert!(seen.best_bytes_per_s >= seen.median_bytes_per_s && seen.median_bytes_per_s > 1e6, "{seen:?}");
            assert_eq!((seen.n_passes, seen.array_bytes), (3, cpus.len() as u64 * (1 << 20)));
            assert!(matches!(bandwidth(&spec, &AtomicBool::new(true)), Err(BenchError::NoSamples)));
        }
    }

    #[test]
    fn one_thread_that_fails_does_not_hang_the_others() {
        let mut cpus = allowed_cpus().unwrap();
        cpus.insert(1020);
        let width = Width::Scalar;
        let spec = BandwidthSpec {
            traffic: Traffic::Load,
            width,
            cpus,
            pages: PageWish::Huge,
            node: None,
            array_bytes: 1 << 20,
            n_passes: 1,
        };
        assert!(bandwidth(&spec, &AtomicBool::new(false)).unwrap_err().to_string().contains("CPU 1020"));
    }
}

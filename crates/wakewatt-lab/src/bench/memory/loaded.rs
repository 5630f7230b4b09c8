//! Latency under load: one CPU chases while others read, pausing after every 4 KiB for a delay that shrinks to nothing.
//!
//! The curve that Intel's Memory Latency Checker made known: flat until the queues of the memory controller fill, then
//! steep. The readers only read (load kernel), in huge pages of their own; what they got is counted over the very window
//! in which the chaser's samples were taken. Without load the readers sleep: a spinning one would take frequency, and on
//! the chaser's core its units. Between bursts they must spin, because no sleep is that short.

use super::MemorySpec;
use super::bandwidth::{Arrays, BandwidthSpec};
use super::latency::{MemoryPlace, calibrate, pin, region, sample};
use super::order::order;
use crate::bench::BenchError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::memory::{LoadedCurve, LoadedPoint, PageWish, Spread, Traffic};
use wakewatt_host::chain::Chain;
use wakewatt_host::clock;
use wakewatt_host::vector_loops::{Ranges, VectorLoop, Width};

/// Lines read between two pauses: 4 KiB.
const LINES_PER_BURST: usize = 64;
/// From no readers to no pause.
pub const DELAYS_NS: [Option<u64>; 9] =
    [None, Some(20_000), Some(8_000), Some(3_000), Some(1_500), Some(700), Some(300), Some(100), Some(0)];
/// Readers run this long at a new delay before it is measured.
const SETTLE_NS: u64 = 20_000_000;
/// No reading: the readers sleep.
const RESTING: u64 = u64::MAX;
/// Between two looks at whether there is something to read: well below the time to settle.
const REST: Duration = Duration::from_millis(5);

/// One reader's count, alone on its lines so that counting disturbs nobody.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counter(AtomicU64);

/// Measures on the calling thread, with readers on the CPUs named.
pub fn loaded(
    spec: &MemorySpec,
    place: &MemoryPlace,
    array_bytes: u64,
    load_cpus: &CpuSet,
    width: Width,
    stop: &AtomicBool,
) -> Result<LoadedCurve, BenchError> {
    let size_bytes = spec.working_set_bytes();
    let counters: Vec<Counter> = load_cpus.iter().map(|_| Counter::default()).collect();
    let (delay_ns, is_over) = (AtomicU64::new(RESTING), AtomicBool::new(false));
    let reading = BandwidthSpec {
        traffic: Traffic::Load,
        width,
        cpus: load_cpus.clone(),
        pages: PageWish::Huge,
        node: place.node,
        array_bytes,
        n_passes: 0,
    };
    let (readers, points) = std::thread::scope(|scope| {
        let threads: Vec<_> = load_cpus
            .iter()
            .zip(&counters)
            .map(|(cpu, counter)| {
                let (reading, delay_ns, is_over) = (&reading, &delay_ns, &is_over);
                scope.spawn(move || {
                    let _pinned = pin(cpu)?;
                    let mut arrays = Arrays::take(reading, cpu)?;
                    // 1 marks a reader that is ready; bytes are told from the difference.
                    counter.0.store(1, Ordering::Release);
                    read(&mut arrays, width, delay_ns, is_over, &counter.0);
                    Ok::<(), BenchError>(())
                })
            })
            .collect();
        let is_ready =
            || counters.iter().all(|c| c.0.load(Ordering::Acquire) > 0) || threads.iter().any(|t| t.is_finished());
        let points = chase(spec, place, size_bytes, &counters, &delay_ns, &is_ready, stop);
        is_over.store(true, Ordering::Release);
        let readers: Vec<_> = threads.into_iter().map(|t| t.join().unwrap_or(Err(BenchError::Crashed))).collect();
        (readers, points)
    });
    readers.into_iter().collect::<Result<Vec<()>, _>>()?;
    Ok(LoadedCurve { cpu: place.cpu, load_cpus: load_cpus.clone(), size_bytes, points: points? })
}

fn chase(
    spec: &MemorySpec,
    place: &MemoryPlace,
    size_bytes: u64,
    counters: &[Counter],
    delay_ns: &AtomicU64,
    is_ready: &dyn Fn() -> bool,
    stop: &AtomicBool,
) -> Result<Vec<LoadedPoint>, BenchError> {
    let _pinned = pin(place.cpu)?;
    let mut pages = region(place, size_bytes)?;
    let order = order(size_bytes, spec.stride_bytes, spec.locality_bytes, spec.seed);
    let mut chain =
        Chain::write(&mut pages, &order).ok_or_else(|| BenchError::Unavailable("the working set is empty".into()))?;
    drop(order);
    while !is_ready() && !stop.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    let total_bytes = || counters.iter().map(|c| c.0.load(Ordering::Relaxed)).sum::<u64>();
    let block = calibrate(&mut chain);
    let mut points = Vec::with_capacity(DELAYS_NS.len());
    let mut samples = Vec::with_capacity(spec.n_samples);
    for delay in DELAYS_NS {
        delay_ns.store(delay.unwrap_or(RESTING), Ordering::Release);
        let settled_at_ns = clock::monotonic_ns() + SETTLE_NS;
        while clock::monotonic_ns() < settled_at_ns {
            chain.walk(block);
        }
        samples.clear();
        let (start_at_ns, start_bytes) = (clock::monotonic_ns(), total_bytes());
        for _ in 0..spec.n_samples {
            match sample(&mut chain, block, spec.sample_ns, stop) {
                Some((per_load_ns, _)) => samples.push(per_load_ns),
                None => return Ok(points),
            }
        }
        let bytes_per_s =
            (total_bytes() - start_bytes) as f64 * 1e9 / (clock::monotonic_ns() - start_at_ns).max(1) as f64;
        let Some(spread) = Spread::of(&samples) else { break };
        points.push(LoadedPoint { delay_ns: delay, bytes_per_s, best_ns: spread.min, median_ns: spread.median });
    }
    Ok(points)
}

/// A reader, until it is over. The pause is made of dependent additions, because the pause instruction may leave a guest.
fn read(arrays: &mut Arrays, width: Width, delay_ns: &AtomicU64, is_over: &AtomicBool, counter: &AtomicU64) {
    let additions_per_us = additions_per_us();
    let ranges = arrays.ranges(Traffic::Load);
    let (lines, mut n_bytes) = (ranges.b, 1);
    loop {
        for burst in lines.chunks_exact(LINES_PER_BURST) {
            let delay = delay_ns.load(Ordering::Relaxed);
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            if delay == RESTING {
                std::thread::sleep(REST);
                continue;
            }
            n_bytes += Ranges { a: &mut [], b: burst, c: &[] }.run(VectorLoop::Load, width);
            counter.store(n_bytes, Ordering::Relaxed);
            idle(delay * additions_per_us / 1000);
        }
    }
}

fn idle(n_additions: u64) {
    let mut sum = 0u64;
    for i in 0..n_additions {
        sum = std::hint::black_box(sum + i);
    }
    std::hint::black_box(sum);
}

fn additions_per_us() -> u64 {
    const N: u64 = 200_000;
    let best = (0..5).map(|_| {
        let start_at_ns = clock::monotonic_ns();
        idle(N);
        clock::monotonic_ns() - start_at_ns
    });
    N * 1000 / best.min().unwrap_or(N).max(1)
}

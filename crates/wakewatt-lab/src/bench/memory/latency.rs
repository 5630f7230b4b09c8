//! Latency against working set: a pointer chase through ever larger rings, best of some samples each.
//!
//! One region holds all sizes, so page size and node are the same for all. Each ring is walked once before its samples,
//! so that what can be cached is; samples then go on where the last one stopped. The sizes do not end where the reported
//! last-level cache does: while the curve still rises at the end, the next size is added, as far as memory allows.

use super::order::order;
use super::{MemorySpec, Room, step_up};
use crate::bench::BenchError;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::samples::memory::{LatencyCurve, LatencyPoint, PageWish, plateaus};
use wakewatt_core::units::{Cpu, show_bytes};
use wakewatt_host::affinity::Pinned;
use wakewatt_host::chain::Chain;
use wakewatt_host::clock;
use wakewatt_host::pages::{PageRequest, Pages};

/// Loads between two looks at the clock, once it is known how long they take.
const BLOCK_NS: u64 = 500_000;
/// A ring is walked at most this far before its samples; beyond, it is larger than any cache.
const MAX_WARM_LOADS: u64 = 1 << 22;

/// Bytes needed for a ring of this size: the region and the order.
pub fn needed_bytes(size_bytes: u64, stride_bytes: u64) -> u64 {
    size_bytes.saturating_add(size_bytes / stride_bytes.max(1) * 4).saturating_add(4 << 20)
}

/// What the curve is taken with.
#[derive(Clone, Copy, Debug)]
pub struct MemoryPlace {
    /// The chasing CPU.
    pub cpu: Cpu,
    /// The memory's node.
    pub node: Option<u32>,
    pub pages: PageWish,
}

/// A region for this place.
pub fn region(place: &MemoryPlace, bytes: u64) -> Result<Pages, BenchError> {
    let request = if place.pages == PageWish::Huge { PageRequest::Huge } else { PageRequest::Base };
    let len =
        usize::try_from(bytes).map_err(|_| BenchError::Unavailable("more than this processor addresses".into()))?;
    Pages::map(len, request, place.node)
        .map_err(|e| BenchError::system(format!("taking {} of memory", show_bytes(bytes)), e))
}

/// Pins the calling thread.
pub fn pin(cpu: Cpu) -> Result<Pinned, BenchError> {
    Pinned::to(cpu).map_err(|e| BenchError::system(format!("pinning a thread to CPU {cpu}"), e))
}

/// Takes one curve on the calling thread, which is pinned meanwhile. A stop gives what is known.
pub fn curve(
    spec: &MemorySpec,
    place: &MemoryPlace,
    room: &dyn Fn() -> Room,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(u64),
) -> Result<LatencyCurve, BenchError> {
    let _pinned = pin(place.cpu)?;
    let mut points: Vec<LatencyPoint> = Vec::new();
    let largest = *spec.sizes_bytes.iter().max().unwrap_or(&4096);
    if let Some(why) = room().refuse(needed_bytes(largest, spec.stride_bytes)) {
        return Err(BenchError::Unavailable(why));
    }
    let mut pages = region(place, largest)?;
    let mut huge = huge_ratio(&pages);
    for &size_bytes in &spec.sizes_bytes {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        progress(size_bytes);
        points.extend(point(spec, &mut pages, size_bytes, stop));
    }
    // Memory not reached: go on as long as it is allowed and each size is slower than the one before.
    while spec.may_grow && !plateaus(&points).1 && !stop.load(Ordering::Relaxed) {
        let Some(next) = points.last().map(|p| step_up(p.size_bytes)) else { break };
        if next > spec.largest_bytes {
            break;
        }
        // Given back first, so that it counts as room.
        drop(pages);
        if room().refuse(needed_bytes(next, spec.stride_bytes)).is_some() {
            break;
        }
        pages = region(place, next)?;
        huge = huge_ratio(&pages);
        progress(next);
        points.extend(point(spec, &mut pages, next, stop));
    }
    let (levels, is_settled) = plateaus(&points);
    Ok(LatencyCurve {
        pages: place.pages,
        huge_ratio: huge,
        cpu: place.cpu,
        node: place.node,
        stride_bytes: spec.stride_bytes,
        locality_bytes: spec.locality_bytes,
        points,
        plateaus: levels,
        is_settled,
    })
}

/// The share in huge pages.
pub fn huge_ratio(pages: &Pages) -> Option<f64> {
    pages.huge_bytes().map(|bytes| (bytes as f64 / pages.len_bytes() as f64).min(1.0))
}

pub fn point(spec: &MemorySpec, pages: &mut Pages, size_bytes: u64, stop: &AtomicBool) -> Option<LatencyPoint> {
    let order = order(size_bytes, spec.stride_bytes, spec.locality_bytes, spec.seed);
    let mut chain = Chain::write(pages, &order)?;
    drop(order);
    let mut samples = Vec::with_capacity(spec.n_samples);
    let mut n_loads = 0;
    chain.walk(chain.n().min(MAX_WARM_LOADS));
    let block = calibrate(&mut chain);
    for _ in 0..spec.n_samples {
        let (per_load_ns, n) = sample(&mut chain, block, spec.sample_ns, stop)?;
        samples.push(per_load_ns);
        n_loads += n;
    }
    LatencyPoint::of(size_bytes, &samples, n_loads)
}

/// Loads that take about a block of samples.
pub fn calibrate(chain: &mut Chain<'_>) -> u64 {
    let mut block = 256;
    loop {
        let start_at_ns = clock::monotonic_ns();
        chain.walk(block);
        if clock::monotonic_ns() - start_at_ns >= BLOCK_NS || block >= 1 << 24 {
            return block;
        }
        block *= 2;
    }
}

/// One sample: nanoseconds per load and loads. None when stopped.
pub fn sample(chain: &mut Chain<'_>, block: u64, sample_ns: u64, stop: &AtomicBool) -> Option<(f64, u64)> {
    let start_at_ns = clock::monotonic_ns();
    let mut n_loads = 0;
    loop {
        n_loads += chain.walk(block);
        let spent_ns = clock::monotonic_ns() - start_at_ns;
        if spent_ns >= sample_ns {
            return Some((spent_ns as f64 / n_loads as f64, n_loads));
        }
        if stop.load(Ordering::Relaxed) {
            return None;
        }
    }
}

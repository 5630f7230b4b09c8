//! Memory: latency against working set, under load, bandwidth, and all of it between nodes (docs/methods/memory.md).
//!
//! Threads are pinned but stay SCHED_OTHER: a real-time thread that computes without a pause is stopped by the kernel
//! for 50 ms of each second. Memory is not locked, because it is touched beforehand and the machine has no reason to
//! swap within seconds. Frequencies are brought up by a second of chasing that is not counted. Every step looks at the
//! stop flag within a millisecond or one pass; what is known by then is returned.

pub mod apart;
pub mod bandwidth;
pub mod enough;
pub mod latency;
pub mod loaded;
pub mod matrix;
pub mod order;
pub mod room;

pub use apart::memory_apart;
pub use enough::LastLevels;
pub use matrix::Nodes;
pub use room::Room;

use super::{BenchError, check_cpu};
use bandwidth::BandwidthSpec;
use enough::{Enough, held_bytes};
use latency::MemoryPlace;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::Window;
use wakewatt_core::samples::memory::{MemorySample, PageWish, Placement, Traffic};
use wakewatt_core::source::Source;
use wakewatt_core::units::{Cpu, show_bytes};
use wakewatt_host::clock;
use wakewatt_host::pages::LINE_BYTES;
use wakewatt_host::vector_loops::Width;

/// What to measure, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemorySpec {
    /// The chasing CPU, and the one of single-CPU bandwidth.
    pub cpu: Cpu,
    /// The CPUs of all-CPU bandwidth.
    pub cpus: CpuSet,
    /// Bind the memory of curves here.
    pub node: Option<u32>,
    /// Page sizes of the latency curves; none: no curve.
    pub pages: Vec<PageWish>,
    /// Working sets, rising.
    pub sizes_bytes: Vec<u64>,
    /// May sizes be added while the curve rises?
    pub may_grow: bool,
    /// But not beyond this.
    pub largest_bytes: u64,
    /// The working set of load and matrix; none: one that is surely in memory, found out by [`enough`].
    pub memory_bytes: Option<u64>,
    /// The last-level caches, as reported.
    pub last_levels: LastLevels,
    /// The CPUs of the chasing CPU's core: none of them reads while it chases.
    pub core_cpus: CpuSet,
    /// Bytes per element.
    pub stride_bytes: u64,
    /// Visit elements of such a range before the next.
    pub locality_bytes: Option<u64>,
    /// Samples per size; the best counts.
    pub n_samples: usize,
    /// Time per sample.
    pub sample_ns: u64,
    /// Chase uncounted before all else.
    pub warmup_ns: u64,
    /// Measure latency under load?
    pub is_loaded: bool,
    /// Kernels of bandwidth; none: no bandwidth.
    pub traffic: Vec<Traffic>,
    /// Pages for bandwidth, each measured.
    pub bandwidth_pages: Vec<PageWish>,
    /// Registers; the widest there are when none.
    #[serde(with = "apart::width")]
    pub width: Option<Width>,
    /// One array, all threads together; none: well beyond their caches.
    pub array_bytes: Option<u64>,
    /// Passes per bandwidth.
    pub n_passes: usize,
    /// Nodes for the matrix; none: no matrix.
    pub nodes: Option<Nodes>,
    /// Of the random order.
    pub seed: u64,
}

/// Two sizes per doubling: 4, 6, 8, 12, 16 KiB and so on.
pub fn sizes(from_bytes: u64, to_bytes: u64) -> Vec<u64> {
    std::iter::successors(Some(from_bytes), |size| Some(step_up(*size))).take_while(|size| *size <= to_bytes).collect()
}

/// The next size: a power of two, or half as much again.
pub(crate) fn step_up(size: u64) -> u64 {
    if size.is_power_of_two() { size.saturating_add(size / 2) } else { size.saturating_add(1).next_power_of_two() }
}

impl MemorySpec {
    /// The whole measurement, 20 to 40 s on a small machine.
    pub fn full(cpu: Cpu, cpus: CpuSet, nodes: Nodes) -> MemorySpec {
        MemorySpec {
            cpu,
            cpus,
            node: None,
            pages: vec![PageWish::Huge, PageWish::Base],
            sizes_bytes: sizes(4 << 10, 256 << 20),
            may_grow: true,
            largest_bytes: 4 << 30,
            memory_bytes: None,
            last_levels: LastLevels::default(),
            core_cpus: CpuSet::default(),
            stride_bytes: LINE_BYTES as u64,
            locality_bytes: None,
            n_samples: 15,
            sample_ns: 20_000_000,
            warmup_ns: 1_000_000_000,
            is_loaded: true,
            traffic: Traffic::ALL.to_vec(),
            bandwidth_pages: vec![PageWish::Huge, PageWish::Base],
            width: None,
            array_bytes: None,
            n_passes: 10,
            nodes: Some(nodes),
            seed: 20_261_121,
        }
    }

    /// What `doctor` has time for, under 4 s on a small machine: a few sizes, load bandwidth, the matrix.
    pub fn short(cpu: Cpu, cpus: CpuSet, nodes: Nodes) -> MemorySpec {
        let sizes_bytes = vec![16 << 10, 256 << 10, 4 << 20, 128 << 20, 256 << 20];
        MemorySpec {
            pages: vec![PageWish::Huge],
            sizes_bytes,
            may_grow: false,
            largest_bytes: 512 << 20,
            n_samples: 5,
            sample_ns: 10_000_000,
            warmup_ns: 200_000_000,
            is_loaded: false,
            traffic: vec![Traffic::Load],
            bandwidth_pages: vec![PageWish::Huge],
            n_passes: 5,
            ..MemorySpec::full(cpu, cpus, nodes)
        }
    }

    fn width(&self) -> Width {
        self.width.or(Width::available().last().copied()).unwrap_or(Width::Scalar)
    }
}

/// Measures. Progress is told as a share of all and what is done now.
pub fn memory(
    spec: &MemorySpec,
    src: &dyn Source,
    stop: &AtomicBool,
    progress: &dyn Fn(f64, &str),
) -> Result<MemorySample, BenchError> {
    check_cpu(spec.cpu)?;
    let width = spec.width();
    if !Width::available().contains(&width) {
        let words: Vec<&str> = Width::available().into_iter().map(Width::word).collect();
        let what = format!("this processor has no {}; it has {}", width.word(), words.join(", "));
        return Err(BenchError::Unavailable(what));
    }
    // Asked again before each region: others allocate meanwhile.
    let room = || Room::of(src, spec.node);
    let mut found = MemorySample::default();
    let mut spec = spec.clone().on(src, &room());
    found.not_done.extend(spec.shorten(&room()));
    let largest = spec.sizes_bytes.iter().copied().max().filter(|_| !spec.pages.is_empty()).unwrap_or(0);
    if let Some(why) = room().refuse(latency::needed_bytes(largest, spec.stride_bytes)) {
        return Err(BenchError::Unavailable(why));
    }
    let start_at_ns = clock::monotonic_ns();
    warm_up(&spec, stop)?;
    let is_over = || stop.load(Ordering::Relaxed);
    for (at, pages) in spec.pages.iter().enumerate() {
        let place = MemoryPlace { cpu: spec.cpu, node: spec.node, pages: *pages };
        let share = 0.6 * at as f64 / spec.pages.len() as f64;
        let mut tell = |size| progress(share, &format!("latency of {} in {} pages", show_bytes(size), pages.word()));
        match latency::curve(&spec, &place, &room, stop, &mut tell) {
            Ok(curve) => {
                if *pages == PageWish::Huge && curve.huge_ratio.is_none_or(|ratio| ratio < 0.95) {
                    found.not_done.push(few_huge(curve.huge_ratio));
                }
                found.latency.push(curve);
            }
            Err(why) => found.not_done.push(format!("latency in {} pages: {why}", pages.word())),
        }
    }
    let enough = Enough::of(&found.latency, &spec.last_levels, spec.cpu);
    let memory_bytes = spec.memory_bytes.unwrap_or_else(|| enough.within(&spec, &room_for_all(&spec, &enough, src)));
    spec.memory_bytes = Some(memory_bytes);
    let doubt = enough.doubt(memory_bytes);
    if (spec.is_loaded || spec.nodes.is_some()) && !is_over() {
        found.not_done.extend(doubt.clone());
    }
    let spec = &spec;
    if spec.is_loaded && !is_over() {
        progress(0.6, "latency under load");
        under_load(spec, &room(), width, stop, &mut found);
    }
    bandwidths(spec, &room, width, stop, progress, &mut found);
    if let Some(nodes) = spec.nodes.as_ref() {
        matrix_of(spec, nodes, src, width, stop, progress, &mut found);
    }
    found.matrix_bytes = (!found.matrix.is_empty()).then_some(memory_bytes);
    // A ratio of cache latencies would be a price of nothing.
    found.placement = if doubt.is_none() { Placement::of(&found.matrix) } else { None };
    found.window = Window { start_at_ns, end_at_ns: clock::monotonic_ns() };
    if is_over() {
        found.not_done.push("the rest: interrupted".into());
    }
    Ok(found)
}

fn few_huge(ratio: Option<f64>) -> String {
    let try_this = "look at /sys/kernel/mm/transparent_hugepage/enabled (madvise or always) and at free memory";
    match ratio {
        None => "whether huge pages were given: /proc/self/smaps does not say; latency may include translation".into(),
        Some(ratio) if ratio <= 0.0 => {
            format!("latency in huge pages: none were given, so address translation is included; {try_this}")
        }
        Some(ratio) => format!("latency in huge pages: only {:.0} % were given; {try_this}", ratio * 100.0),
    }
}

/// What bounds the working set of load and matrix: the former's room, and that of the latter's nodes.
fn room_for_all(spec: &MemorySpec, enough: &Enough, src: &dyn Source) -> Room {
    let own = Room::of(src, spec.node);
    let nodes = spec.nodes.iter().flat_map(|nodes| &nodes.with_memory);
    let rooms = nodes.map(|node| Room::of(src, Some(*node))).collect();
    let on_each = Room::on_each(rooms, latency::needed_bytes(enough.bytes, spec.stride_bytes));
    on_each.into_iter().chain([own.clone()]).min_by_key(|room| room.bytes).unwrap_or(own)
}

/// Chases in the smallest ring, so that the core is at its frequency.
fn warm_up(spec: &MemorySpec, stop: &AtomicBool) -> Result<(), BenchError> {
    let once = MemorySpec { n_samples: 1, sample_ns: spec.warmup_ns, ..spec.clone() };
    let place = MemoryPlace { cpu: spec.cpu, node: None, pages: PageWish::Base };
    let _pinned = latency::pin(spec.cpu)?;
    let mut pages = latency::region(&place, 1 << 20)?;
    latency::point(&once, &mut pages, 1 << 20, stop);
    Ok(())
}

fn under_load(spec: &MemorySpec, room: &Room, width: Width, stop: &AtomicBool, found: &mut MemorySample) {
    let chaser: CpuSet = [spec.cpu].into_iter().collect();
    // A reader on the chaser's own core takes its units and its L1, which is not the load of the memory controller.
    let load_cpus = spec.cpus.minus(&chaser).minus(&spec.core_cpus);
    if load_cpus.is_empty() {
        return found.not_done.push("latency under load: this process may use one core, and it chases".into());
    }
    let chased_bytes = latency::needed_bytes(spec.working_set_bytes(), spec.stride_bytes);
    let left = Room { bytes: room.bytes.saturating_sub(chased_bytes), limit: room.limit.clone() };
    let array_bytes = spec.array_bytes_for(&load_cpus, 1, &left);
    if let Some(why) = room.refuse(chased_bytes.saturating_add(held_bytes(&load_cpus, 1, array_bytes))) {
        return found.not_done.push(format!("latency under load: {why}"));
    }
    let place = MemoryPlace { cpu: spec.cpu, node: spec.node, pages: PageWish::Huge };
    match loaded::loaded(spec, &place, array_bytes, &load_cpus, width, stop) {
        Ok(curve) if curve.points.is_empty() => {}
        Ok(curve) => found.loaded = Some(curve),
        Err(why) => found.not_done.push(format!("latency under load: {why}")),
    }
}

fn bandwidths(
    spec: &MemorySpec,
    room: &dyn Fn() -> Room,
    width: Width,
    stop: &AtomicBool,
    progress: &dyn Fn(f64, &str),
    found: &mut MemorySample,
) {
    let one: CpuSet = [spec.cpu].into_iter().collect();
    let all: Vec<(&CpuSet, PageWish)> = [&one, &spec.cpus]
        .into_iter()
        .take(spec.cpus.len().min(2))
        .flat_map(|cpus| spec.bandwidth_pages.iter().map(move |pages| (cpus, *pages)))
        .collect();
    for (cpus, pages) in all {
        for traffic in &spec.traffic {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            progress(0.7, &format!("bandwidth: {} on {} CPUs", traffic.word(), cpus.len()));
            let what = format!("bandwidth of {} on CPUs {cpus}, {} pages", traffic.word(), pages.word());
            if width == Width::Scalar && *traffic == Traffic::CopyNonTemporal {
                found.not_done.push(format!("{what}: there are no non-temporal stores without vectors"));
                continue;
            }
            let room = room();
            let array_bytes = spec.array_bytes_for(cpus, traffic.n_arrays(), &room);
            let total_bytes = held_bytes(cpus, traffic.n_arrays(), array_bytes);
            let doubt = spec.array_doubt(cpus, array_bytes);
            let spec = BandwidthSpec {
                traffic: *traffic,
                width,
                cpus: cpus.clone(),
                pages,
                node: spec.node,
                array_bytes,
                n_passes: spec.n_passes,
            };
            match room
                .refuse(total_bytes)
                .map_or_else(|| bandwidth::bandwidth(&spec, stop), |w| Err(BenchError::Unavailable(w)))
            {
                Ok(rate) => {
                    found.bandwidth.push(rate);
                    found.not_done.extend(doubt.filter(|line| !found.not_done.contains(line)));
                }
                Err(BenchError::NoSamples) if stop.load(Ordering::Relaxed) => return,
                Err(why) => found.not_done.push(format!("{what}: {why}")),
            }
        }
    }
}

fn matrix_of(
    spec: &MemorySpec,
    nodes: &Nodes,
    src: &dyn Source,
    width: Width,
    stop: &AtomicBool,
    progress: &dyn Fn(f64, &str),
    found: &mut MemorySample,
) {
    let n_cells = nodes.with_cpus.len() * nodes.with_memory.len();
    let mut n_done = 0;
    for (cpu_node, cpus) in &nodes.with_cpus {
        for memory_node in &nodes.with_memory {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            progress(0.85 + 0.15 * f64::from(n_done) / n_cells as f64, &format!("node {cpu_node} to {memory_node}"));
            n_done += 1;
            let room = || Room::of(src, Some(*memory_node));
            let from = (*cpu_node, cpus);
            found.matrix.push(matrix::cell(spec, from, *memory_node, width, &room, stop, &mut found.not_done));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;
    use wakewatt_host::affinity::allowed_cpus;

    fn tiny() -> MemorySpec {
        let cpus = allowed_cpus().unwrap();
        let nodes = Nodes { with_cpus: vec![(0, cpus.clone())], with_memory: vec![0] };
        MemorySpec {
            sizes_bytes: vec![16 << 10, 1 << 20],
            may_grow: false,
            memory_bytes: Some(1 << 20),
            array_bytes: Some(1 << 20),
            n_samples: 2,
            sample_ns: 300_000,
            warmup_ns: 0,
            n_passes: 2,
            ..MemorySpec::full(cpus.first().unwrap(), cpus, nodes)
        }
    }

    #[test]
    fn a_tiny_run_measures_everything_and_a_stopped_one_says_so() {
        let src = Tree::from_text("");
        let found = memory(&tiny(), &src, &AtomicBool::new(false), &|_, _| ()).unwrap();
        assert_eq!(found.latency.len(), 2, "{:?}", found.not_done);
        assert!(found.latency.iter().all(|c| c.points.len() == 2 && c.points[0].best_ns > 0.1));
        // Kernels, page sizes, and one CPU or all.
        assert_eq!(found.bandwidth.len(), 4 * 2 * tiny().cpus.len().min(2), "{:?}", found.not_done);
        assert_eq!((found.matrix.len(), found.matrix_bytes), (1, Some(1 << 20)));
        assert!(
            found.not_done.iter().any(|l| l.contains("with 1MiB, which may lie in a cache")),
            "{:?}",
            found.not_done
        );
        if tiny().cpus.len() > 1 {
            let loaded = found.loaded.unwrap();
            assert_eq!((loaded.points[0].delay_ns, loaded.points[0].bytes_per_s), (None, 0.0));
            // Whether readers got a turn within a millisecond is up to whoever else uses the CPUs.
            assert_eq!(loaded.points.len(), loaded::DELAYS_NS.len());
        }
        let stopped = memory(&tiny(), &src, &AtomicBool::new(true), &|_, _| ()).unwrap();
        assert!(stopped.bandwidth.is_empty() && stopped.not_done.iter().any(|l| l.contains("interrupted")));
    }

    #[test]
    fn what_does_not_fit_is_refused_before_it_is_touched() {
        let src = Tree::from_text("//- /proc/meminfo\nMemAvailable: 1000 kB\n");
        let refused = memory(&tiny(), &src, &AtomicBool::new(false), &|_, _| ()).unwrap_err().to_string();
        assert!(refused.contains("--max-size") && refused.contains("MemAvailable"), "{refused}");
        // Sizes of our own choosing are left out instead, down to the one that fits.
        let untold = MemorySpec { sizes_bytes: vec![4096, 64 << 20, 256 << 20], memory_bytes: None, ..tiny() };
        let src = Tree::from_text("//- /proc/meminfo\nMemAvailable: 120000 kB\n");
        let found = memory(&MemorySpec { nodes: None, ..untold }, &src, &AtomicBool::new(false), &|_, _| ()).unwrap();
        let sizes: Vec<u64> = found.latency[0].points.iter().map(|point| point.size_bytes).collect();
        assert_eq!(sizes, [4096, 64 << 20]);
        let said = found.not_done.iter().find(|line| line.starts_with("latency of 256MiB"));
        assert!(said.is_some_and(|line| line.contains("MemAvailable")), "{:?}", found.not_done);
        let narrow = MemorySpec { width: Some(Width::Neon), ..tiny() };
        if !Width::available().contains(&Width::Neon) {
            let refused = memory(&narrow, &src, &AtomicBool::new(false), &|_, _| ()).unwrap_err().to_string();
            assert!(refused.starts_with("this processor has no neon"), "{refused}");
        }
    }

    #[test]
    fn sizes_rise_by_half_octaves() {
        let shown: Vec<u64> = sizes(4 << 10, 64 << 10).into_iter().map(|s| s >> 10).collect();
        assert_eq!(shown, [4, 6, 8, 12, 16, 24, 32, 48, 64]);
    }
}

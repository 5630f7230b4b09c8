//! Memory of a made-up server: curves with levels, bandwidth, and what another node costs.

use super::dice::window;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::memory::{
    Bandwidth, LatencyCurve, LatencyPoint, LoadedCurve, LoadedPoint, MatrixCell, MemorySample, PageWish, Placement,
    Traffic, plateaus,
};

/// Levels of 1.3, 4.2, 19 and 92 ns; base pages pay for translation.
pub(super) fn memory() -> MemorySample {
    let curve = |pages: PageWish, cost: f64| {
        let points: Vec<LatencyPoint> = (24..60)
            .filter_map(|half| {
                let size = (f64::from(half) / 2.0).exp2();
                let step = |at: f64, ns: f64| ns / (1.0 + (at / size).powi(4));
                let walk = cost * step(4_194_304.0, 14.0);
                let ns = 1.3 + step(40_000.0, 2.9) + step(1_400_000.0, 15.0) + step(30_000_000.0, 73.0) + walk;
                LatencyPoint::of(whole(size), &[ns, ns * 1.02, ns * 1.04], 100_000)
            })
            .collect();
        let (plateaus, is_settled) = plateaus(&points);
        LatencyCurve {
            pages,
            huge_ratio: Some(if pages == PageWish::Huge { 1.0 } else { 0.0 }),
            cpu: 0,
            node: Some(0),
            stride_bytes: 128,
            locality_bytes: None,
            points,
            plateaus,
            is_settled,
        }
    };
    let loaded = (0..10).map(|i| {
        let share = f64::from(i) / 9.3;
        let ns = 92.0 + 14.0 * share / (1.03 - share);
        LoadedPoint { delay_ns: Some(1 << (10 - i)), bytes_per_s: 118e9 * share, best_ns: ns, median_ns: ns * 1.06 }
    });
    let mut bandwidth = Vec::new();
    for (traffic, best) in Traffic::ALL.into_iter().zip([118e9, 74e9, 98e9, 81e9]) {
        for (pages, share) in [(PageWish::Huge, 1.0), (PageWish::Base, 0.86)] {
            for (n, per) in [(1u32, 0.11), (8, 1.0)] {
                bandwidth.push(Bandwidth {
                    traffic,
                    simd: "avx512".into(),
                    pages,
                    cpus: (0..n).collect::<CpuSet>(),
                    node: Some(0),
                    array_bytes: 1 << 30,
                    best_bytes_per_s: best * share * per,
                    median_bytes_per_s: best * share * per * 0.98,
                    cv_ratio: 0.007,
                    n_passes: 20,
                    huge_ratio: Some(if pages == PageWish::Huge { 1.0 } else { 0.0 }),
                });
            }
        }
    }
    let cell = |i: u32| {
        let (cpu_node, memory_node) = (i / 2, i % 2);
        let far = f64::from(u8::from(cpu_node != memory_node));
        MatrixCell {
            cpu_node,
            memory_node,
            on_node_ratio: Some(1.0),
            latency_ns: Some(92.0 + 51.0 * far + f64::from(cpu_node)),
            one_cpu_bytes_per_s: Some(12.9e9 - 4.2e9 * far),
            all_cpus_bytes_per_s: Some(118e9 - 61e9 * far),
        }
    };
    let matrix: Vec<MatrixCell> = (0..4).map(cell).collect();
    MemorySample {
        window: window(0, 20_000),
        latency: vec![curve(PageWish::Huge, 0.0), curve(PageWish::Base, 1.0)],
        loaded: Some(LoadedCurve {
            cpu: 0,
            load_cpus: (1..8).collect::<CpuSet>(),
            size_bytes: 1 << 28,
            points: loaded.collect(),
        }),
        bandwidth,
        placement: Placement::of(&matrix),
        matrix,
        matrix_bytes: Some(1 << 30),
        not_done: Vec::new(),
    }
}

/// A size as bytes.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes of memory")]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}

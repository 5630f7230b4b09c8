//! Samples of a made-up server with two sockets: memory, hand-overs, idle costs, ramp, disk, meters, before and after.

use super::{Dice, window};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::cores::{CoresSample, HandOver, Nearness, NearnessSummary};
use wakewatt_core::samples::disk::{DiskAccess, DiskEngine, DiskSample, DiskTarget, DiskTargetKind};
use wakewatt_core::samples::energy::{Channel, ChannelSample, Covers, EnergySample, Kind, MeterSample, Sense, Witness};
use wakewatt_core::samples::experiment::Unit;
use wakewatt_core::samples::memory::{
    Bandwidth, LatencyCurve, LatencyPoint, LoadedCurve, LoadedPoint, MatrixCell, MemorySample, PageWish, Placement,
    Traffic, plateaus,
};
use wakewatt_core::samples::speed::{AfterIdle, Median, SpeedPoint, SpeedSample};
use wakewatt_core::samples::state_cost::{StateCost, StateCosts, StateWake};
use wakewatt_core::samples::timeline::{Change, Moment, Timeline};
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_core::samples::{Label, Scheduling};

const N_CPUS: u32 = 16;

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

/// Two sockets of four cores with two threads.
pub(super) fn cores() -> CoresSample {
    let mut dice = Dice(5);
    let near = |a: u32, b: u32| match (a % 8 == b % 8, a % 8 / 4 == b % 8 / 4) {
        (true, _) => (Nearness::SameCore, 14.0),
        (_, true) => (Nearness::SameCache, 48.0),
        _ => (Nearness::OtherPackage, 131.0),
    };
    let mut pairs = Vec::new();
    for from_cpu in 0..N_CPUS {
        for to_cpu in (0..N_CPUS).filter(|to| *to != from_cpu) {
            let (nearness, ns) = near(from_cpu, to_cpu);
            let ns = ns * (1.0 + 0.04 * dice.normal());
            pairs.push(HandOver {
                covers: wakewatt_core::covers::Covers::Window,
                from_cpu,
                to_cpu,
                nearness,
                best_ns: ns * 0.96,
                median_ns: ns,
                low_ns: ns * 0.98,
                high_ns: ns * 1.03,
                n_batches: 40,
                line_node: Some(from_cpu % 8 / 4),
            });
        }
    }
    let summary = |nearness: Nearness| {
        let mut own: Vec<f64> = pairs.iter().filter(|p| p.nearness == nearness).map(|p| p.median_ns).collect();
        own.sort_by(f64::total_cmp);
        Some(NearnessSummary {
            nearness,
            n_pairs: own.len() as u64,
            n_pairs_all: own.len() as u64,
            median_ns: *own.get(own.len() / 2)?,
            least_ns: *own.first()?,
            most_ns: *own.last()?,
        })
    };
    CoresSample {
        cpus: (0..N_CPUS).collect::<CpuSet>(),
        by_nearness: Nearness::ALL.into_iter().filter_map(summary).collect(),
        pairs,
        hand_overs_per_batch: 1000,
        seed: None,
        scheduling: Scheduling::Fifo(80),
        window: window(30_000, 9_000),
    }
}

/// A claim that is far off, and one that holds.
pub(super) fn idle_costs() -> StateCosts {
    let mut dice = Dice(11);
    let table = [("POLL", 0, 1_900.0), ("C1", 2_000, 4_100.0), ("C1E", 4_000, 11_800.0), ("C6", 170_000, 93_000.0)];
    let mut state = |(index, (name, claimed, p50)): (u32, (&str, u64, f64))| {
        let mut wake = |(kind, more): (WakeKind, f64)| {
            let mut rounds = Vec::new();
            for _ in 0..6 {
                let scatter = 1.0 + 0.02 * dice.normal();
                rounds.push(dice.latency_ns((p50 + more) * scatter, 1.0));
            }
            let latency = Distribution::from_ns((0..4_000).map(|_| dice.latency_ns(p50 + more, 2.4)));
            StateWake { kind, n_entered: 4_010, n_entered_any: 4_012, latency, round_p50_ns: rounds, extra: None }
        };
        let kinds =
            [(WakeKind::Timer, 900.0), (WakeKind::Futex, 2_400.0), (WakeKind::Eventfd, 2_900.0), (WakeKind::Ipi, 0.0)];
        StateCost {
            index,
            name: name.into(),
            is_polling: index == 0,
            claimed_exit_ns: Some(claimed),
            claimed_residency_ns: Some(claimed * 3),
            allowed_by: "the state's own switch".into(),
            n_entered: 16_040,
            n_entered_any: 16_050,
            time_ns: 15_000_000_000,
            n_rejected: Some(0),
            not_entered: None,
            wakes: kinds.into_iter().map(&mut wake).collect(),
        }
    };
    let mut costs = StateCosts {
        cpu: 3,
        from_cpu: Some(2),
        set_cpus: [3, 11].into_iter().collect::<CpuSet>(),
        driver: None,
        governor: Some("menu".into()),
        gap_ns: 1_000_000,
        n_rounds: 6,
        seed: 0x5eed,
        scheduling: Some(Scheduling::Fifo(80)),
        window: window(40_000, 90_000),
        states: (0..).zip(table).map(&mut state).collect(),
        floor: None,
        not_restored: Vec::new(),
    };
    costs.compare_with_floor();
    costs
}

/// Slower the longer it slept.
pub(super) fn ramp() -> SpeedSample {
    let median = |ns: f64| Median {
        median_ns: ns,
        low_ns: ns * 0.9,
        high_ns: ns * 1.15,
        is_range: false,
        covers: wakewatt_core::covers::Covers::Window,
    };
    let after = |(idle_ns, ramp_ns, slowest): (u64, f64, f64)| AfterIdle {
        idle_ns,
        n_repeats: 30,
        n_ramped: if ramp_ns > 0.0 { 28 } else { 1 },
        ramp: (ramp_ns > 0.0).then(|| median(ramp_ns)),
        slowest_ratio: (ramp_ns > 0.0).then_some(slowest),
        n_unsteady: 0,
        exit: median(4_000.0 + idle_ns as f64 / 1e5),
        first_quantum_extra: median(2_100.0),
        n_quanta: 60_000,
        n_discarded: 120,
        resolution_ns: 20_000.0,
        resolution_ratio: 0.02,
        curve: (0..40)
            .map(|i| {
                let at_ns = 20_000.0 * 10f64.powf(f64::from(i) / 13.0);
                let speed_ratio = if at_ns < ramp_ns { slowest } else { 1.0 };
                SpeedPoint { at_ns, speed_ratio, khz: None }
            })
            .collect(),
    };
    SpeedSample {
        cpu: 3,
        steps_per_quantum: 2_000,
        quantum_ns: 5_100.0,
        worked_ns: 20_000_000,
        after: [(1_000_000, 0.0, 1.0), (10_000_000, 1_400_000.0, 0.74), (200_000_000, 6_200_000.0, 0.41)]
            .map(after)
            .to_vec(),
        vector: None,
        no_counters: Some("no cycle counter can be read here".into()),
        scheduling: Scheduling::Fifo(80),
        window: window(140_000, 12_000),
    }
}

/// Two engines at depth 1.
pub(super) fn disk() -> Vec<DiskSample> {
    let mut dice = Dice(21);
    let sample = |(engine, p50): (DiskEngine, f64)| DiskSample {
        engine,
        target: DiskTarget {
            path: "/var/tmp".into(),
            kind: DiskTargetKind::Made,
            filesystem: Some("ext4".into()),
            device: Some("nvme0n1p2".into()),
            size_bytes: 1 << 30,
            is_direct: true,
        },
        access: DiskAccess::Random,
        block_bytes: 4096,
        depth: 1,
        planned_per_s: None,
        cpus: vec![3],
        scheduling: Scheduling::Other("SCHED_FIFO refused".into()),
        latency: Distribution::from_ns((0..20_000).map(|_| dice.latency_ns(p50, 2.4))),
        service: None,
        n_late_starts: 0,
        n_never_started: 0,
        reads_per_s: 1e9 / p50,
        bytes_per_s: 4.096e12 / p50,
        cpu_ns_per_read: 7_100.0,
        n_reads_with_warmup: 21_000,
        seed: 0x5eed,
        clock_read_ns: 22,
        window: window(160_000, 5_000),
        idle: Vec::new(),
        remarks: Vec::new(),
    };
    [(DiskEngine::Psync, 80_000.0), (DiskEngine::IoUring, 66_000.0)].map(sample).to_vec()
}

/// Packages, memory, a supply and a dead counter; fans and temperatures beside them.
pub(super) fn energy() -> EnergySample {
    let channel = |name: &str, covers: Covers, is_part: bool, watts: u64| ChannelSample {
        channel: Channel { id: name.into(), name: name.into(), covers, is_part, kind: Kind::Power },
        label: if watts > 0 { Label::Measured } else { Label::PresentButDead },
        why: (watts == 0).then(|| "present but constant zero".into()),
        window: window(0, 60_000),
        covered_ns: 60_000_000_000,
        n: 60,
        n_gaps: 0,
        silences: Vec::new(),
        n_failed: 0,
        n_rejected: 0,
        n_resets: 0,
        mean_uw: (watts > 0).then_some(watts * 1_000_000),
        uncertainty_uw: (watts > 0).then_some(watts * 9_000),
        min_uw: (watts > 0).then_some(watts * 930_000),
        max_uw: (watts > 0).then_some(watts * 1_140_000),
        energy_uj: (watts > 0).then_some(watts * 60_000_000),
        doubts: Vec::new(),
    };
    let rapl = vec![
        channel("package-0", Covers::Package, false, 61),
        channel("package-1", Covers::Package, false, 57),
        channel("dram of package-0", Covers::Dram, false, 14),
        channel("dram of package-1", Covers::Dram, false, 13),
        channel("psys", Covers::Platform, false, 0),
    ];
    let supply = vec![channel("PSU1 input", Covers::Wall, false, 118), channel("PSU2 input", Covers::Wall, false, 121)];
    let witness = |name: &str, sense, first, last| Witness {
        name: name.into(),
        sense,
        first,
        last,
        min: first.min(last) - 100,
        max: first.max(last) + 150,
        n: 60,
    };
    EnergySample {
        window: window(0, 60_000),
        interval_ns: 1_000_000_000,
        chosen: Some("hwmon".into()),
        meters: vec![
            MeterSample::of("hwmon", "the management controller", Some(900_000), supply),
            MeterSample::of("powercap", "nothing", Some(21_000), rapl),
            MeterSample::unavailable("ipmi", "/dev/ipmi0: no such file"),
        ],
        witnesses: vec![
            witness("coretemp Package id 0", Sense::Temperature, 41_000, 52_000),
            witness("coretemp Package id 1", Sense::Temperature, 40_000, 49_000),
            witness("ipmi FAN1", Sense::Fan, 5_400, 6_900),
            witness("ipmi FAN2", Sense::Fan, 5_350, 6_850),
        ],
    }
}

/// Mean request time before and after a staged change: C1 on all hosts, then fixed clocks.
pub(super) fn timeline() -> Timeline {
    let mut dice = Dice(33);
    let mut moments = Vec::new();
    for i in 0..48u64 {
        for (series, factor) in [("mean", 1.0), ("p90", 2.3)] {
            let ms = if i < 20 {
                191.0
            } else if i < 34 {
                104.0
            } else {
                85.0
            };
            let value = ms * 1e6 * factor * (1.0 + 0.05 * dice.normal());
            let invalid_because = (i == 20).then(|| "the change was under way".to_string());
            let interval = (i % 6 == 0).then_some((value * 0.95, value * 1.06));
            moments.push(Moment {
                window: window(i * 60_000, 60_000),
                series: series.into(),
                value,
                interval,
                invalid_because,
            });
        }
    }
    let at = |minutes: u64| window(minutes * 60_000, 0).start_at_ns;
    Timeline {
        title: "request time".into(),
        unit: Unit::Nanoseconds,
        label: Label::Measured,
        moments,
        changes: vec![
            Change { at_ns: at(20), within_ns: 0, what: "C1 at most, on every host".into() },
            Change { at_ns: at(34), within_ns: 0, what: "clock fixed on the last three".into() },
        ],
    }
}

/// A size as bytes.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes of memory")]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}

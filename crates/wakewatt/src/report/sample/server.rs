//! Samples of a made-up server with two sockets: hand-overs, disk reads, and a change staged over an hour.

use super::dice::{Dice, window};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::cores::{CoresSample, HandOver, Nearness, NearnessSummary};
use wakewatt_core::samples::disk::{DiskAccess, DiskEngine, DiskSample, DiskTarget, DiskTargetKind};
use wakewatt_core::samples::experiment::Unit;
use wakewatt_core::samples::timeline::{Change, Moment, Timeline};
use wakewatt_core::samples::{Label, Scheduling};

const N_CPUS: u32 = 16;

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

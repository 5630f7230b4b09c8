//! Two moments of a machine of two CPUs, with everything that can go wrong between them.

use super::*;
use crate::watch::counters::Clocks;
use crate::watch::layout::{PackageInfo, SensorInfo, StateInfo};

const S: u64 = 1_000_000_000;

fn layout() -> Layout {
    let cpu = |cpu| CpuInfo { cpu, package: Some(0), states: vec![0], ..CpuInfo::default() };
    Layout {
        cpus: vec![cpu(0), cpu(1)],
        states: vec![StateInfo { name: "C6".into(), ..StateInfo::default() }],
        packages: vec![PackageInfo { cpus: [0, 1].into_iter().collect(), ..PackageInfo::default() }],
        zones: vec![ZoneInfo {
            id: "intel-rapl:0".into(),
            name: "package-0".into(),
            package: Some(0),
            max_energy_range_uj: Reading::Known(1000 * 1_000_000),
            ..ZoneInfo::default()
        }],
        sensors: vec![SensorInfo { kind: SensorKind::Power, ..SensorInfo::default() }],
        ..Layout::default()
    }
}

fn moment(at_ns: u64, busy_ns: u64, n_usage: u64, time_ns: u64, energy_uj: u64) -> Counters {
    let cpu = CpuCounters {
        is_online: true,
        busy_ns: Reading::Known(busy_ns),
        idle_ns: Reading::Known(at_ns - busy_ns),
        steal_ns: Reading::Known(0),
        n_throttles: Reading::Known(0),
        states: vec![[n_usage, time_ns, 0, 0, 0].map(Reading::Known).into()],
        ..CpuCounters::default()
    };
    Counters {
        clocks: Clocks { at_ns, boot_at_ns: at_ns, ..Clocks::default() },
        cpus: vec![cpu.clone(), cpu],
        energies_uj: vec![Reading::Known(energy_uj)],
        sensors: vec![Reading::Known(0)],
        n_package_throttles: vec![Reading::Known(0)],
        ..Counters::default()
    }
}

fn watts(then_uj: u64, now_uj: u64, window_ns: u64) -> Reading<f64> {
    let (then, now) = (moment(S, 0, 0, 0, then_uj), moment(S + window_ns, 0, 0, 0, now_uj));
    Rates::between(&layout(), &then, &now).machine.power_uw.map(|uw| uw / 1e6)
}

#[test]
fn an_ordinary_second() {
    let (then, now) = (moment(S, 0, 10, 0, 5), moment(2 * S, S / 4, 60, S / 2, 5 + 90_000_000));
    let rates = Rates::between(&layout(), &then, &now);
    let cpu = &rates.cpus[0];
    assert_eq!((cpu.busy_ratio, cpu.wakeups_per_s), (Reading::Known(0.25), Reading::Known(50.0)));
    assert_eq!((cpu.states[0].share_ratio, cpu.asleep_ratio), (Reading::Known(0.5), Reading::Known(0.25)));
    assert_eq!(rates.machine.power_uw, Reading::Known(90e6));
    assert_eq!(rates.machine.summary.wakeups_per_s, Reading::Known(100.0));
    assert_eq!(rates.machine.power_source.as_deref(), Some("RAPL: package-0"));
}

#[test]
fn energy_wraps_resets_and_dies() {
    assert_eq!(watts(990_000_000, 40_000_000, S), Reading::Known(50.0), "wrapped at 1000 J");
    assert_eq!(watts(7, 7, S), Reading::Missing(Why::Dead));
    assert_eq!(watts(2_000_000_000, 5, S), Reading::Missing(Why::Backwards), "beyond its own range: a reset");
    assert_eq!(watts(0, 0, 1_000_000), Reading::Known(0.0), "too short a window to call it dead");
}

#[test]
fn a_meter_at_zero_is_dead() {
    let rates = Rates::between(&layout(), &moment(S, 0, 0, 0, 1), &moment(2 * S, 0, 0, 0, 1));
    assert_eq!(rates.sensors[0].value, Reading::Missing(Why::Dead));
    assert_eq!(rates.machine.power_uw, Reading::Missing(Why::Dead));
}

#[test]
fn a_sleeper_is_asleep() {
    let rates = Rates::between(&layout(), &moment(S, 0, 5, 7, 1), &moment(2 * S, 0, 5, 7, 2));
    assert_eq!((rates.cpus[0].asleep_ratio, rates.cpus[0].busy_ratio), (Reading::Known(1.0), Reading::Known(0.0)));
    assert_eq!(rates.machine.summary.n_asleep_throughout, 2);
}

#[test]
fn cpus_go_and_come_back() {
    let (then, mut now) = (moment(S, 0, 5, 7, 1), moment(2 * S, S / 2, 9, 99, 2));
    let gone = Reading::Missing(Why::Offline);
    now.cpus[1] = CpuCounters {
        busy_ns: gone,
        idle_ns: gone,
        steal_ns: gone,
        n_throttles: gone,
        states: vec![[gone; 5].into()],
        ..CpuCounters::default()
    };
    let left = Rates::between(&layout(), &then, &now);
    assert_eq!((left.machine.n_online, left.cpus[1].busy_ratio), (1, Reading::Missing(Why::Offline)));
    assert_eq!(left.cpus[1].wakeups_per_s, Reading::Missing(Why::Offline));
    assert_eq!(left.machine.summary.busy_ratio, Reading::Known(0.5), "the mean is over those that run");
    assert!(left.notes.iter().any(|n| n == "offline: CPU 1"), "{:?}", left.notes);
    let back = Rates::between(&layout(), &now, &moment(3 * S, S, 20, 999, 3));
    assert_eq!(back.cpus[1].busy_ratio, Reading::Missing(Why::Offline), "it was offline at the start");
    assert_eq!(back.cpus[0].busy_ratio, Reading::Known(0.5));
}

#[test]
fn counters_that_run_backwards_are_not_numbers() {
    let rates = Rates::between(&layout(), &moment(S, S / 2, 500, S, 9), &moment(2 * S, 0, 3, 0, 10));
    let cpu = &rates.cpus[0];
    assert_eq!(
        (cpu.busy_ratio, cpu.wakeups_per_s),
        (Reading::Missing(Why::Backwards), Reading::Missing(Why::Backwards))
    );
    assert!(rates.notes.iter().any(|n| n.contains("backwards")));
}

#[test]
fn a_suspend_voids_what_the_hardware_counted() {
    let mut now = moment(2 * S, S / 2, 9, S / 4, 500);
    now.clocks.boot_at_ns += 3600 * S;
    let rates = Rates::between(&layout(), &moment(S, 0, 5, 0, 1), &now);
    assert_eq!(rates.suspended_ns, 3600 * S);
    assert_eq!(rates.zones[0].power_uw, Reading::Missing(Why::Suspended));
    assert_eq!(rates.cpus[0].busy_ratio, Reading::Known(0.5), "ticks stand still in suspend");
    assert!(rates.notes[0].contains("suspended for 3600.0 s"));
}

#[test]
fn one_reading_gives_means_since_boot_or_none() {
    let now = moment(100 * S, 25 * S, 1000, 50 * S, 500);
    let rates = Rates::since_boot(&layout(), &now, Some(100 * S));
    assert_eq!(rates.cpus[0].busy_ratio, Reading::Known(0.25));
    assert_eq!(rates.cpus[0].wakeups_per_s, Reading::Known(10.0));
    assert_eq!(rates.zones[0].power_uw, Reading::Missing(Why::First));
    let unknown = Rates::since_boot(&layout(), &now, None);
    assert_eq!(unknown.cpus[0].wakeups_per_s, Reading::Missing(Why::First));
}

#[test]
fn layouts_and_moments_of_other_sizes_do_not_panic() {
    let rates = Rates::between(&layout(), &Counters::default(), &Counters::default());
    assert_eq!(rates.cpus.len(), 2);
    assert!(rates.machine.summary.busy_ratio.get().is_none());
    let rates = Rates::between(&Layout::default(), &moment(1, 0, 0, 0, 0), &moment(2, 0, 0, 0, 0));
    assert!(rates.cpus.is_empty());
}

//! Machines for the tests: counters made up, rates computed as ever.

use super::state::{Look, State};
use super::update::{Event, update};
use wakewatt_core::units::LatencyLimit;
use wakewatt_core::watch::counters::{Clocks, CpuCounters, StateCounters};
use wakewatt_core::watch::layout::{
    CpuInfo, PackageInfo, PackageStateInfo, SensorInfo, SensorKind, StateInfo, ZoneInfo,
};
use wakewatt_core::watch::{Counters, Layout, Rates, Reading, Sources, Why};

const S: u64 = 1_000_000_000;

fn layout(n_cpus: u32, n_packages: u32, sources: Sources) -> Layout {
    let state = |index, name: &str, exit_ns, target_ns| StateInfo {
        index,
        name: name.into(),
        exit_latency_ns: Some(exit_ns),
        target_residency_ns: Some(target_ns),
        lets_package: Some(if name == "C6" { "PC6" } else { "PC0" }.into()),
    };
    let counted = |name: &str, register| PackageStateInfo { name: name.into(), register };
    let package_of = |cpu: u32| cpu % (n_cpus / 2).max(1) * n_packages / (n_cpus / 2).max(1);
    let not_read = (sources < Sources::Package).then_some(Why::NotAsked);
    Layout {
        origin: "this machine".into(),
        hostname: Some("db7".into()),
        kernel: Some("6.12.0".into()),
        idle_driver: Some("intel_idle".into()),
        idle_governor: Some("menu".into()),
        sources,
        cpus: (0..n_cpus)
            .map(|cpu| CpuInfo {
                cpu,
                package: Some(package_of(cpu)),
                node: Some(package_of(cpu)),
                core: Some(cpu % (n_cpus / 2)),
                states: vec![0, 1, 2, 3],
                ..CpuInfo::default()
            })
            .collect(),
        states: vec![
            state(0, "POLL", 0, 0),
            state(1, "C1", 1_000, 1_000),
            state(2, "C1E", 2_000, 4_000),
            state(3, "C6", 290_000, 800_000),
        ],
        packages: (0..n_packages)
            .map(|package| PackageInfo {
                package,
                cpus: (0..n_cpus).filter(|cpu| package_of(*cpu) == package).collect(),
                no_uncore: Some(Why::Denied),
                states: vec![counted("PC2", 0x60d), counted("PC6", 0x3f9)],
                no_states: not_read,
                ..PackageInfo::default()
            })
            .collect(),
        zones: (0..n_packages)
            .map(|package| ZoneInfo {
                id: format!("intel-rapl:{package}"),
                name: format!("package-{package}"),
                package: Some(package),
                max_energy_range_uj: Reading::Known(262_143_328_850),
                not_read,
                ..ZoneInfo::default()
            })
            .collect(),
        sensors: vec![
            SensorInfo {
                chip: "coretemp".into(),
                label: "Package id 0".into(),
                package: Some(0),
                not_read,
                ..SensorInfo::default()
            },
            SensorInfo { chip: "nct6798".into(), label: "fan1".into(), kind: SensorKind::Fan, ..SensorInfo::default() },
        ],
        ..Layout::default()
    }
}

/// Counters after `t` seconds: CPU n is busy n/16 of the time (in a circle), every seventh sleeps all through.
fn moment(layout: &Layout, t: u64) -> Counters {
    let is_read = layout.sources >= Sources::Package;
    let cpu = |info: &CpuInfo| {
        let part = u64::from(info.cpu % 16);
        let is_asleep = info.cpu % 7 == 3;
        let busy = if is_asleep { 0 } else { part * S / 16 };
        let idle = S - busy;
        let left = |n: u64, ns: u64| StateCounters {
            n_usage: Reading::Known(if is_asleep { 9 } else { n * t }),
            time_ns: Reading::Known(if is_asleep { 7 } else { ns * t }),
            n_above: Reading::Known(if is_asleep { 0 } else { n / 9 * t }),
            n_below: Reading::Known(if is_asleep { 0 } else { n / 20 * t }),
            n_rejected: Reading::Known(0),
        };
        CpuCounters {
            is_online: true,
            busy_ns: Reading::Known(busy * t),
            idle_ns: Reading::Known(idle * t),
            steal_ns: Reading::Known(0),
            freq_khz: Reading::Known(800_000 + part * 150_000),
            limit: Reading::Known(if info.cpu == 1 { LatencyLimit::AtMostNs(30_000) } else { LatencyLimit::None }),
            n_throttles: Reading::Known(0),
            states: vec![left(3, idle / 100), left(200, idle / 5), left(50, idle / 10), left(100, idle / 2)],
        }
    };
    Counters {
        clocks: Clocks {
            at_ns: t * S,
            boot_at_ns: t * S,
            wall_at_ns: t * S,
            own_cpu_ns: t * S / 500,
            n_own_wakeups: t,
        },
        took_ns: 8_000_000,
        package_ticks: layout
            .packages
            .iter()
            .map(|p| {
                [5, 20, 200]
                    .map(|n| {
                        if is_read { Reading::Known(n * t) } else { Reading::Missing(p.no_states.unwrap_or_default()) }
                    })
                    .to_vec()
            })
            .collect(),
        n_remote_interrupts: if is_read { layout.packages.len() as u64 } else { 0 },
        global_limit: Reading::Known(LatencyLimit::None),
        n_interrupts: Reading::Known(4321 * t),
        n_context_switches: Reading::Known(9876 * t),
        cpus: layout.cpus.iter().map(cpu).collect(),
        energies_uj: (0..layout.zones.len() as u64)
            .map(
                |z| {
                    if is_read {
                        Reading::Known((180 + 20 * z) * 1_000_000 * t)
                    } else {
                        Reading::Missing(Why::NotAsked)
                    }
                },
            )
            .collect(),
        sensors: vec![
            if is_read { Reading::Known(61_000) } else { Reading::Missing(Why::NotAsked) },
            Reading::Known(4200),
        ],
        n_package_throttles: vec![Reading::Known(0); layout.packages.len()],
        uncore_khz: vec![Reading::Missing(Why::Denied); layout.packages.len()],
        ..Counters::default()
    }
}

fn screen(layout: &Layout, size: (u16, u16)) -> State {
    let mut state = State::new(layout, Look { is_coloured: true, is_unicode: true }, size, S);
    for t in 1..8 {
        let rates = Rates::between(layout, &moment(layout, t), &moment(layout, t + 1));
        update(&mut state, Event::Rates(Box::new(rates)));
    }
    state
}

/// Four CPUs, quiet.
pub(crate) fn small(size: (u16, u16)) -> State {
    screen(&layout(4, 1, Sources::Quiet), size)
}

/// 512 CPUs in two packages, with watts.
pub(crate) fn large(size: (u16, u16)) -> State {
    screen(&layout(512, 2, Sources::Package), size)
}

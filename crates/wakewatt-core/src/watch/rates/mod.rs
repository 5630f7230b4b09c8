//! Rates: what happened between two moments.
//!
//! Pure arithmetic on two [`Counters`] of one [`Layout`]. Counters that ran backwards are a reason, not a number; energy
//! wraps at `max_energy_range_uj`; an energy counter that does not move in a window is dead (a guest may show one that
//! counts nothing); a suspend in between voids what the hardware counted. The window is CLOCK_MONOTONIC, which stands
//! still in suspend, as do the kernel's tick counts.

use super::counters::{Counters, CpuCounters, StateCounters};
use super::document::{Cost, CpuRate, Machine, PackageRate, Rates, SensorRate, StateRate, Summary, ZoneRate};
use super::layout::{CpuInfo, Layout, SensorKind, ZoneInfo};
use super::reading::{Reading, Why, sum};
use super::{package_residency, residency};
use crate::cpuset::CpuSet;
use crate::samples::Window;
use crate::samples::energy::{MOST_UW, counter};
use wakewatt_words::{say, word};

/// Shorter windows say nothing about a counter that stands still.
const SHORTEST_FOR_DEAD_NS: u64 = 50_000_000;
/// CLOCK_BOOTTIME may run ahead of CLOCK_MONOTONIC by less than this without a suspend.
const SUSPEND_NS: u64 = 20_000_000;

impl Rates {
    /// From two moments of one layout.
    pub fn between(layout: &Layout, then: &Counters, now: &Counters) -> Rates {
        let window = Window { start_at_ns: then.clocks.at_ns, end_at_ns: now.clocks.at_ns };
        let length_ns = window.length_ns();
        let booted_ns = now.clocks.boot_at_ns.saturating_sub(then.clocks.boot_at_ns);
        let suspended_ns = Some(booted_ns.saturating_sub(length_ns)).filter(|ns| *ns > SUSPEND_NS).unwrap_or(0);
        let cpus: Vec<CpuRate> = layout
            .cpus
            .iter()
            .enumerate()
            .map(|(i, info)| cpu_rate(layout, info, then.cpus.get(i), now.cpus.get(i), length_ns))
            .collect();
        let gone = Reading::Missing(Why::Absent);
        let energy = |i: usize, zone: &ZoneInfo| {
            let at = |c: &Counters| c.energies_uj.get(i).copied().unwrap_or(gone);
            if suspended_ns > 0 && at(now).get().is_some() {
                return Reading::Missing(Why::Suspended);
            }
            power(zone.max_energy_range_uj, at(then), at(now), length_ns)
        };
        let zones: Vec<ZoneRate> = layout
            .zones
            .iter()
            .enumerate()
            .map(|(i, z)| ZoneRate {
                id: z.id.clone(),
                name: z.name.clone(),
                package: z.package,
                power_uw: energy(i, z),
            })
            .collect();
        let sensors: Vec<SensorRate> = layout
            .sensors
            .iter()
            .enumerate()
            .map(|(i, s)| SensorRate {
                chip: s.chip.clone(),
                label: s.label.clone(),
                kind: s.kind,
                package: s.package,
                value: sensor(s.kind, now.sensors.get(i).copied().unwrap_or(Reading::Missing(Why::Absent))),
            })
            .collect();
        let packages: Vec<PackageRate> = layout
            .packages
            .iter()
            .enumerate()
            .map(|(i, p)| {
                let at = |c: &Counters| c.n_package_throttles.get(i).copied().unwrap_or(gone);
                let zone = |is_wanted: &dyn Fn(&ZoneRate) -> bool| {
                    let found = zones.iter().find(|z| z.package == Some(p.package) && is_wanted(z));
                    found.map_or(Reading::Missing(layout.no_zones.unwrap_or(Why::Absent)), |z| z.power_uw)
                };
                PackageRate {
                    package: p.package,
                    cpus: p.cpus.clone(),
                    power_uw: zone(&|z| z.name.starts_with("package-")),
                    dram_uw: zone(&|z| z.name == "dram"),
                    temperature_mc: temperature(layout, &sensors, Some(p.package)),
                    throttles_per_s: at(now).since(at(then)).per_second(length_ns),
                    uncore_khz: now.uncore_khz.get(i).copied().unwrap_or(gone),
                    states: match suspended_ns {
                        0 => {
                            let ticks = |c: &'_ Counters| c.package_ticks.get(i).cloned().unwrap_or_default();
                            package_residency::shares(&p.states, p.no_states, &ticks(then), &ticks(now))
                        }
                        _ => package_residency::shares(&p.states, Some(Why::Suspended), &[], &[]),
                    },
                }
            })
            .collect();
        let rate = |f: fn(&Counters) -> Reading<u64>| f(now).since(f(then)).per_second(length_ns);
        let (power_uw, power_source) = machine_power(layout, &zones, &sensors);
        let own_cpu_ns = now.clocks.own_cpu_ns.saturating_sub(then.clocks.own_cpu_ns);
        let n_own = now.clocks.n_own_wakeups.saturating_sub(then.clocks.n_own_wakeups);
        let is_live = now.clocks.own_cpu_ns > 0;
        let own = |n: u64| if is_live { Reading::Known(n) } else { Reading::Missing(Why::NotRecorded) };
        Rates {
            wake_latency: None,
            origin: layout.origin.clone(),
            hostname: layout.hostname.clone(),
            window,
            wall_at_ns: now.clocks.wall_at_ns,
            suspended_ns,
            cost: Cost {
                sources: layout.sources,
                n_remote_interrupts: now.n_remote_interrupts,
                own_wakeups_per_s: own(n_own).per_second(length_ns),
                own_cpu_ratio: own(own_cpu_ns).per_second(length_ns).map(|ns_per_s| ns_per_s / 1e9),
                reading_ns: now.took_ns,
            },
            machine: Machine {
                n_online: cpus.iter().filter(|c| c.is_online).count(),
                summary: Summary::of(cpus.iter(), &layout.states),
                power_uw,
                power_source,
                temperature_mc: hottest(packages.iter().map(|p| p.temperature_mc)),
                interrupts_per_s: rate(|c| c.n_interrupts),
                context_switches_per_s: rate(|c| c.n_context_switches),
                global_limit: now.global_limit,
                limit_holders: Vec::new(),
            },
            packages,
            zones,
            sensors,
            notes: notes(layout, &cpus, suspended_ns),
            cpus,
            places: Vec::new(),
            states: layout.states.clone(),
        }
    }

    /// Of one moment only (a recorded host does not move): means since boot, if it is known when that was.
    pub fn since_boot(layout: &Layout, now: &Counters, uptime_ns: Option<u64>) -> Rates {
        let zero = |r: Reading<u64>| r.map(|_| 0);
        let mut boot = now.clone();
        let end = uptime_ns.unwrap_or(0);
        let mut now = now.clone();
        boot.clocks = super::counters::Clocks::default();
        now.clocks.at_ns = end;
        now.clocks.boot_at_ns = end;
        // Watching a recording wakes nobody, and nobody asks what reading it costs.
        (now.clocks.own_cpu_ns, now.clocks.n_own_wakeups) = (0, 0);
        boot.n_interrupts = zero(boot.n_interrupts);
        boot.package_ticks.iter_mut().flatten().for_each(|ticks| *ticks = zero(*ticks));
        boot.n_context_switches = zero(boot.n_context_switches);
        for cpu in &mut boot.cpus {
            for counter in [&mut cpu.busy_ns, &mut cpu.idle_ns, &mut cpu.steal_ns, &mut cpu.n_throttles] {
                *counter = zero(*counter);
            }
            for state in &mut cpu.states {
                *state = <[Reading<u64>; 5]>::from(*state).map(zero).into();
            }
        }
        boot.n_package_throttles.iter_mut().for_each(|r| *r = zero(*r));
        // Where energy stood at boot nobody knows.
        boot.energies_uj.iter_mut().filter(|r| r.get().is_some()).for_each(|r| *r = Reading::Missing(Why::First));
        let mut rates = Rates::between(layout, &boot, &now);
        let note = match uptime_ns {
            Some(_) => word!("one reading: means since boot"),
            None => word!("one reading, and the uptime is not recorded: there are no rates"),
        };
        rates.notes.insert(0, note.into());
        rates
    }
}

fn cpu_rate(
    layout: &Layout,
    info: &CpuInfo,
    then: Option<&CpuCounters>,
    now: Option<&CpuCounters>,
    window_ns: u64,
) -> CpuRate {
    let mut rate =
        CpuRate { cpu: info.cpu, package: info.package, node: info.node, core: info.core, ..CpuRate::default() };
    let Some(now) = now else { return rate };
    let absent = CpuCounters {
        busy_ns: Reading::Missing(Why::First),
        idle_ns: Reading::Missing(Why::First),
        steal_ns: Reading::Missing(Why::First),
        n_throttles: Reading::Missing(Why::First),
        ..CpuCounters::default()
    };
    let then = then.unwrap_or(&absent);
    rate.is_online = now.is_online;
    rate.freq_khz = now.freq_khz;
    rate.limit = now.limit;
    rate.throttles_per_s = now.n_throttles.since(then.n_throttles).per_second(window_ns);
    let (busy, steal) = (now.busy_ns.since(then.busy_ns), now.steal_ns.since(then.steal_ns));
    // Ticks are compared with ticks: the sum of all kinds is the window as the tick saw it. Idle may step back a little
    // when the kernel corrects an estimate; that is no reason to throw the rest away.
    let idle = match now.idle_ns.since(then.idle_ns) {
        Reading::Missing(Why::Backwards) if busy.get().is_some() => Reading::Known(0),
        other => other,
    };
    let share = |part: Reading<u64>| match (part, busy, idle, steal) {
        (Reading::Known(part), Reading::Known(b), Reading::Known(i), Reading::Known(s)) => {
            let total = b.saturating_add(i).saturating_add(s);
            // Idle time runs on in a sleeping CPU: where no kind of time moves, nothing counts.
            match total {
                0 if window_ns >= SHORTEST_FOR_DEAD_NS => Reading::Missing(Why::Dead),
                0 => Reading::Missing(Why::First),
                _ => Reading::Known(part as f64 / total as f64),
            }
        }
        (Reading::Missing(why), ..) | (_, _, Reading::Missing(why), _) => Reading::Missing(why),
        (_, Reading::Missing(why), ..) | (.., Reading::Missing(why)) => Reading::Missing(why),
    };
    (rate.busy_ratio, rate.steal_ratio) = (share(busy), share(steal));
    let taken = super::reading::sum([rate.busy_ratio, rate.steal_ratio]);
    let first = [Reading::Missing(Why::First); 5].into();
    let deltas: Vec<[Reading<u64>; 5]> = now
        .states
        .iter()
        .enumerate()
        .map(|(k, state)| delta(*state, then.states.get(k).copied().unwrap_or(first)))
        .collect();
    let times: Vec<Reading<u64>> = deltas.iter().map(|d| d[1]).collect();
    let residency = residency::split(window_ns, taken, &times);
    rate.asleep_ratio = residency.asleep_ratio;
    rate.late_ns = residency.late_ns;
    let offline = !now.is_online;
    rate.states = info
        .states
        .iter()
        .zip(deltas.iter().zip(residency.shares))
        .filter_map(|(at, (d, share_ratio))| {
            let state = layout.states.get(*at)?;
            let per_s = |r: Reading<u64>| r.per_second(window_ns);
            Some(StateRate {
                index: state.index,
                name: state.name.clone(),
                share_ratio,
                wakeups_per_s: per_s(d[0]),
                above_per_s: per_s(d[2]),
                below_per_s: per_s(d[3]),
                rejected_per_s: per_s(d[4]),
            })
        })
        .collect();
    rate.wakeups_per_s = match offline {
        true => Reading::Missing(Why::Offline),
        false => sum(rate.states.iter().map(|s| s.wakeups_per_s)),
    };
    rate
}

fn delta(now: StateCounters, then: StateCounters) -> [Reading<u64>; 5] {
    let (now, then): ([Reading<u64>; 5], [Reading<u64>; 5]) = (now.into(), then.into());
    std::array::from_fn(|i| now[i].since(then[i]))
}

/// Mean power of an energy counter that wraps.
fn power(range: Reading<u64>, then: Reading<u64>, now: Reading<u64>, window_ns: u64) -> Reading<f64> {
    let moved = match (then, now) {
        (Reading::Known(a), Reading::Known(b)) => {
            counter::step(range.get(), a, b).map_or(Reading::Missing(Why::Backwards), Reading::Known)
        }
        _ => now.since(then),
    };
    match moved {
        Reading::Known(0) if window_ns >= SHORTEST_FOR_DEAD_NS => Reading::Missing(Why::Dead),
        moved => match moved.per_second(window_ns) {
            Reading::Known(uw) if uw > MOST_UW as f64 => Reading::Missing(Why::Backwards),
            power => power,
        },
    }
}

/// A machine that runs draws power: a meter at 0 measures nothing. A fan may stand still.
fn sensor(kind: SensorKind, value: Reading<i64>) -> Reading<i64> {
    match (kind, value) {
        (SensorKind::Power, Reading::Known(0)) => Reading::Missing(Why::Dead),
        _ => value,
    }
}

fn hottest(all: impl Iterator<Item = Reading<i64>>) -> Reading<i64> {
    let mut found: Reading<i64> = Reading::Missing(Why::Absent);
    for (at, reading) in all.enumerate() {
        found = match (found, reading) {
            (Reading::Known(a), Reading::Known(b)) => Reading::Known(a.max(b)),
            (Reading::Missing(_), Reading::Known(b)) => Reading::Known(b),
            (Reading::Missing(_), missing) if at == 0 => missing,
            (found, _) => found,
        };
    }
    found
}

fn temperature(layout: &Layout, sensors: &[SensorRate], package: Option<u32>) -> Reading<i64> {
    let of = |is_core: bool| {
        let all = layout.sensors.iter().zip(sensors);
        hottest(
            all.filter(move |(info, s)| {
                s.kind == SensorKind::Temperature && s.package == package && info.is_core == is_core
            })
            .map(|(_, s)| s.value),
        )
    };
    match (of(false), of(true)) {
        (Reading::Known(t), _) | (_, Reading::Known(t)) => Reading::Known(t),
        (Reading::Missing(Why::Absent), Reading::Missing(Why::Absent)) => {
            Reading::Missing(layout.no_sensors.unwrap_or(Why::Absent))
        }
        (Reading::Missing(Why::Absent), other) => other,
        (other, _) => other,
    }
}

/// RAPL's packages and memory summed; else the first power meter that lives.
fn machine_power(layout: &Layout, zones: &[ZoneRate], sensors: &[SensorRate]) -> (Reading<f64>, Option<String>) {
    let whole = || layout.zones.iter().zip(zones).filter(|(info, _)| !info.is_part).map(|(_, z)| z);
    let rapl = sum(whole().map(|z| z.power_uw));
    if rapl.get().is_some() {
        let names: Vec<&str> = whole().filter(|z| z.power_uw.get().is_some()).map(|z| z.name.as_str()).collect();
        return (rapl, Some(format!("RAPL: {}", names.join(", "))));
    }
    let meter = sensors.iter().find(|s| s.kind == SensorKind::Power && s.value.get().is_some_and(|v| v > 0));
    if let Some((meter, uw)) = meter.and_then(|m| Some((m, m.value.get()?))) {
        return (Reading::Known(uw as f64), Some(format!("{} {}", meter.chip, meter.label)));
    }
    let dead_meter = sensors.iter().any(|s| s.kind == SensorKind::Power && s.value.why() == Some(Why::Dead));
    let why = match (rapl.why(), layout.no_zones) {
        (_, Some(_)) if dead_meter => Why::Dead,
        (_, Some(why)) => why,
        (Some(why), None) => why,
        (None, None) => Why::Absent,
    };
    (Reading::Missing(why), None)
}

fn notes(layout: &Layout, cpus: &[CpuRate], suspended_ns: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if suspended_ns > 0 {
        notes.push(say!("suspended for {:.1} s in this interval", suspended_ns as f64 / 1e9));
    }
    if layout.states.is_empty() {
        notes.push(word!("no idle states: idle time is not split and wake-ups are not counted").into());
    }
    let offline: CpuSet = cpus.iter().filter(|c| !c.is_online).map(|c| c.cpu).collect();
    if !offline.is_empty() {
        notes.push(say!("offline: {offline}", offline = offline.named()));
    }
    let reset: CpuSet = cpus.iter().filter(|c| c.wakeups_per_s.why() == Some(Why::Backwards)).map(|c| c.cpu).collect();
    if !reset.is_empty() {
        notes.push(say!("counters ran backwards on {reset}", reset = reset.named()));
    }
    notes
}

#[cfg(test)]
mod tests;

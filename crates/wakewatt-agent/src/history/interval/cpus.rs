//! CPUs of an interval: idle states, shares and counts, of all of them, of those of a place, of each where each was kept.

use super::Between;
use crate::history::series::Series;
use crate::metric::names;
use std::collections::{BTreeMap, BTreeSet};
use wakewatt_core::cpuset::MAX_CPUS;
use wakewatt_core::watch::document::{CpuRate, PlaceRate, StateRate, Summary};
use wakewatt_core::watch::layout::StateInfo;
use wakewatt_core::watch::reading::sum;
use wakewatt_core::watch::{Reading, Why};

const NOT_KEPT: Reading<f64> = Reading::Missing(Why::NotRecorded);

/// The idle states, as the kernel's table claimed them then.
pub(super) fn states(between: &Between<'_>) -> Vec<StateInfo> {
    let mut found: BTreeMap<(u32, String), StateInfo> = BTreeMap::new();
    for (series, _) in between.of(&names::IDLE_TIME) {
        let _ = entry(&mut found, series);
    }
    // Kept in whole nanoseconds.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ns = |seconds: f64| Some((seconds * 1e9).round() as u64);
    for (series, seconds) in between.of(&names::EXIT_LATENCY).filter(|(s, _)| s.label("source") == Some("claimed")) {
        if let Some(info) = entry(&mut found, series) {
            info.exit_latency_ns = ns(seconds);
        }
    }
    for (series, seconds) in between.of(&names::TARGET_RESIDENCY) {
        if let Some(info) = entry(&mut found, series) {
            info.target_residency_ns = ns(seconds);
        }
    }
    found.into_values().collect()
}

fn entry<'a>(found: &'a mut BTreeMap<(u32, String), StateInfo>, series: &Series) -> Option<&'a mut StateInfo> {
    let key = (series.number("index")?, series.label("state")?.to_string());
    let info = StateInfo { index: key.0, name: key.1.clone(), ..StateInfo::default() };
    Some(found.entry(key).or_insert(info))
}

/// How many of the CPUs ran whose series `wanted` takes.
// A count of CPUs.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn n_online(between: &Between<'_>, wanted: &dyn Fn(&Series) -> bool) -> usize {
    let all = between.of(&names::CPUS_ONLINE).filter(|(series, _)| wanted(series));
    all.fold(0, |sum: usize, (_, n)| sum.saturating_add(n as usize))
}

/// The CPUs whose series `wanted` takes, as one row.
pub(super) fn summary(between: &Between<'_>, states: &[StateInfo], wanted: &dyn Fn(&Series) -> bool) -> Summary {
    let online = || between.of(&names::CPUS_ONLINE).filter(|(series, _)| wanted(series));
    let n_cpus = n_online(between, wanted);
    let idle = idle(between, states, n_cpus as f64, wanted);
    let mode =
        |mode: &str| between.growth(&names::CPU_TIME, |series| series.label("mode") == Some(mode) && wanted(series));
    let (busy, steal, at_rest) = (mode("busy"), mode("steal"), mode("idle"));
    let share = |part: Reading<f64>| match sum([busy, steal, at_rest]) {
        Reading::Known(total) if total > 0.0 => part.map(|seconds| seconds / total),
        Reading::Known(_) => Reading::Missing(Why::Dead),
        Reading::Missing(why) => Reading::Missing(why),
    };
    // A clock is kept as the mean of its place: each counts as often as it has CPUs.
    let at = |series: &Series| (series.label("node").map(str::to_string), series.label("package").map(str::to_string));
    let clocks = between.of(&names::FREQUENCY).filter(|(s, _)| s.label("stat") == Some("mean") && wanted(s));
    let (hertz, n) = clocks.fold((0.0, 0.0), |(hertz, n), (series, clock)| {
        let of_place: f64 = online().filter(|(other, _)| at(other) == at(series)).map(|(_, n)| n).sum();
        (hertz + clock * of_place, n + of_place)
    });
    let total = |of: fn(&StateRate) -> Reading<f64>| sum(idle.iter().map(of));
    let none_kept = |reading: Reading<f64>| if idle.is_empty() { NOT_KEPT } else { reading };
    Summary {
        n_cpus,
        busy_ratio: share(busy),
        steal_ratio: share(steal),
        freq_khz: if n > 0.0 { Reading::Known(hertz / n / 1e3) } else { NOT_KEPT },
        is_freq_stale: false,
        wakeups_per_s: none_kept(total(|s| s.wakeups_per_s)),
        asleep_ratio: NOT_KEPT,
        n_asleep_throughout: 0,
        above_per_s: none_kept(total(|s| s.above_per_s)),
        below_per_s: none_kept(total(|s| s.below_per_s)),
        throttles_per_s: between
            .per_s(&names::THROTTLES, |series| series.label("scope") == Some("core") && wanted(series)),
        cpu_limit: Reading::Missing(Why::NotRecorded),
        idle,
    }
}

fn idle(between: &Between<'_>, states: &[StateInfo], n_cpus: f64, wanted: &dyn Fn(&Series) -> bool) -> Vec<StateRate> {
    let rate = |info: &StateInfo| {
        let is_it = |series: &Series| {
            series.number("index") == Some(info.index)
                && series.label("state") == Some(info.name.as_str())
                && wanted(series)
        };
        let per_s = |metric| between.per_s(metric, is_it);
        StateRate {
            index: info.index,
            name: info.name.clone(),
            // A long sleep is booked where it ends, so a short interval may hold more of it than there was time.
            share_ratio: match per_s(&names::IDLE_TIME) {
                Reading::Known(_) if n_cpus < 1.0 => NOT_KEPT,
                share => share.map(|seconds| (seconds / n_cpus).min(1.0)),
            },
            wakeups_per_s: per_s(&names::IDLE_ENTRIES),
            above_per_s: per_s(&names::IDLE_ABOVE),
            below_per_s: per_s(&names::IDLE_BELOW),
            rejected_per_s: per_s(&names::IDLE_REJECTED),
        }
    };
    states.iter().map(rate).collect()
}

/// Node and package whose CPUs were summed.
pub(super) fn places(between: &Between<'_>, states: &[StateInfo]) -> Vec<PlaceRate> {
    let at = |series: &Series| (series.number("node"), series.number("package"));
    let found: BTreeSet<_> = between.of(&names::CPUS_ONLINE).map(|(series, _)| at(series)).collect();
    let place = |(node, package)| {
        let is_there = |series: &Series| at(series) == (node, package);
        PlaceRate { node, package, summary: summary(between, states, &is_there) }
    };
    found.into_iter().map(place).collect()
}

/// CPUs one by one, where the agent ran with `--per-cpu`.
pub(super) fn each(between: &Between<'_>, states: &[StateInfo]) -> Vec<CpuRate> {
    let cpu_of = |series: &Series| series.number("cpu").filter(|cpu| *cpu < MAX_CPUS);
    let mut found = BTreeMap::new();
    for (series, _) in between.of(&names::CPU_TIME) {
        found.extend(cpu_of(series).map(|cpu| (cpu, (series.number("node"), series.number("package")))));
    }
    let rate = |(cpu, (node, package))| {
        let is_it = |series: &Series| cpu_of(series) == Some(cpu);
        let all = summary(between, states, &is_it);
        CpuRate {
            cpu,
            node,
            package,
            core: None,
            is_online: all.busy_ratio.get().is_some(),
            busy_ratio: all.busy_ratio,
            steal_ratio: all.steal_ratio,
            freq_khz: Reading::Missing(Why::NotRecorded),
            wakeups_per_s: all.wakeups_per_s,
            asleep_ratio: NOT_KEPT,
            late_ns: 0,
            throttles_per_s: NOT_KEPT,
            limit: Reading::Missing(Why::NotRecorded),
            states: idle(between, states, 1.0, &is_it),
        }
    };
    found.into_iter().map(rate).collect()
}

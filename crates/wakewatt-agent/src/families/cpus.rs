//! CPUs: where their time went, which are online, how fast they run, how often they were throttled.

use super::{Known, Place, pressure};
use crate::metric::{Page, names};
use crate::totals::{CpuTotals, Running, Seat};
use compact_str::ToCompactString as _;
use std::collections::BTreeMap;

/// One kind of a CPU's time.
type Part = fn(&CpuTotals) -> Running;
/// Least, sum, largest and number of clocks in a place, in kHz.
type Clocks = (u64, u64, u64, u64);

pub(super) fn add(page: &mut Page, known: &Known<'_>) {
    let modes: [(&str, Part); 3] = [("busy", |t| t.busy_ns), ("idle", |t| t.idle_ns), ("steal", |t| t.steal_ns)];
    for (mode, of) in modes {
        let mut sums: BTreeMap<Place, u64> = BTreeMap::new();
        for (seat, total) in known.totals.cpus.iter() {
            if let Some(ns) = of(total).so_far() {
                *sums.entry(Place::of(*seat, known.is_per_cpu)).or_default() += ns;
            }
        }
        for (place, ns) in sums {
            page.number(&names::CPU_TIME, place.after([("mode", mode.into())]), ns as f64 / 1e9);
        }
    }
    let mut online: BTreeMap<Place, u32> = BTreeMap::new();
    let mut clocks: BTreeMap<Place, Clocks> = BTreeMap::new();
    for (info, now) in known.layout.cpus.iter().zip(&known.now.cpus) {
        let place = Place::of(Seat::of(info), false);
        *online.entry(place.clone()).or_default() += u32::from(now.is_online);
        if let Some(khz) = now.freq_khz.get() {
            let (least, sum, most, n) = clocks.entry(place).or_insert((u64::MAX, 0, 0, 0));
            (*least, *sum, *most, *n) = ((*least).min(khz), sum.saturating_add(khz), (*most).max(khz), *n + 1);
        }
    }
    for (place, n) in online {
        page.number(&names::CPUS_ONLINE, place.after([]), f64::from(n));
    }
    for (place, (least, sum, most, n)) in clocks {
        for (stat, khz) in [("min", least as f64), ("mean", sum as f64 / n as f64), ("max", most as f64)] {
            let mut labels = place.after([]);
            labels.push(("stat", stat.into()));
            page.number(&names::FREQUENCY, labels, khz * 1e3);
        }
    }
    throttles(page, known);
    page.known(&names::INTERRUPTS, Vec::new(), known.totals.n_interrupts.get().map(|n| n as f64));
    page.known(&names::SWITCHES, Vec::new(), known.totals.n_context_switches.get().map(|n| n as f64));
    pressure::add(page, known.pressures);
}

fn throttles(page: &mut Page, known: &Known<'_>) {
    let of = |package: Option<u32>| package.map(|p| ("package", p.to_compact_string()));
    let mut cores: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    for (seat, total) in known.totals.cpus.iter() {
        // One counter per core: of its first CPU.
        let is_first = total.core.is_none_or(|core| core == seat.cpu);
        if let Some(n) = total.n_throttles.so_far().filter(|_| is_first) {
            *cores.entry(seat.package).or_default() += n;
        }
    }
    for (package, n) in cores {
        let labels = [Some(("scope", "core".into())), of(package)].into_iter().flatten().collect();
        page.number(&names::THROTTLES, labels, n as f64);
    }
    for (package, total) in known.totals.n_package_throttles.iter() {
        let labels = [Some(("scope", "package".into())), of(Some(*package))].into_iter().flatten().collect();
        page.known(&names::THROTTLES, labels, total.get().map(|n| n as f64));
    }
}

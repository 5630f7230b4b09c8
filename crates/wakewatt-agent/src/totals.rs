//! Counters that never step back: what the kernel counted since the agent started.
//!
//! The kernel's own counters wrap (energy), start again (a driver that was loaded anew) and vanish for a while (a CPU that went offline). A store takes any
//! step back for a restart and adds the whole new value, which would be a month of idle time in one second. So the agent adds up what moved while it
//! looked, from 0 at its own start, which formats that can also say. What it did not see it does not count: after a time in which a counter could not be read, or
//! energy was not for as long as a counter may take to turn, it begins anew from what is found.
//!
//! A counter belongs to what it is of (a CPU in its place, a state by name and index), not to a place in a list: where the machine is found to be another one,
//! what goes on goes on, what is new begins at 0, and what went keeps what it had, because sums over it must not step back.

use std::collections::BTreeMap;
use wakewatt_core::samples::energy::counter;
use wakewatt_core::units::Cpu;
use wakewatt_core::watch::counters::CpuCounters;
use wakewatt_core::watch::layout::{CpuInfo, StateInfo, ZoneInfo};
use wakewatt_core::watch::{Counters, Layout, Reading, Why};

/// A CPU where it sits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seat {
    /// Its number.
    pub cpu: Cpu,
    /// NUMA node.
    pub node: Option<u32>,
    /// Package.
    pub package: Option<u32>,
}

impl Seat {
    pub(crate) fn of(info: &CpuInfo) -> Seat {
        Seat { cpu: info.cpu, node: info.node, package: info.package }
    }
}

/// One such counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Running {
    total: u64,
    /// What the next reading is compared with.
    last: Option<u64>,
    /// Could it be read last time?
    is_known: bool,
    /// Could it ever?
    was_known: bool,
}

impl Running {
    /// Takes the next reading; true if it ran backwards, which counts nothing.
    pub(crate) fn advance(&mut self, now: Reading<u64>) -> bool {
        self.advance_by(now, |then, now| now.checked_sub(then))
    }

    /// The same for a counter that the kernel corrects downwards now and then: what it takes back is not counted again. A larger step back is a
    /// restart.
    fn advance_corrected(&mut self, now: Reading<u64>) {
        const MOST_CORRECTED_NS: u64 = 1_000_000_000;
        let is_corrected = |then: u64, now: u64| now < then && then - now <= MOST_CORRECTED_NS;
        match (self.last, now.get()) {
            (Some(then), Some(now)) if is_corrected(then, now) => self.is_known = true,
            _ => drop(self.advance(now)),
        }
    }

    fn advance_by(&mut self, now: Reading<u64>, step: impl Fn(u64, u64) -> Option<u64>) -> bool {
        let Some(now) = now.get() else {
            (self.is_known, self.last) = (false, None);
            return false;
        };
        let moved = self.last.map(|then| step(then, now));
        (self.last, self.is_known, self.was_known) = (Some(now), true, true);
        match moved {
            Some(Some(moved)) => self.total = self.total.saturating_add(moved),
            Some(None) => return true,
            None => {}
        }
        false
    }

    /// What it counted; none while it cannot be read, or never could.
    pub(crate) fn get(&self) -> Option<u64> {
        self.is_known.then_some(self.total)
    }

    /// What it counted so far, also while it cannot be read; none if it never could. For sums over CPUs, of which one may be
    /// offline: the sum must not step back.
    pub(crate) fn so_far(&self) -> Option<u64> {
        self.was_known.then_some(self.total)
    }

    /// From now on it is counted by something else: what that counted before is not ours.
    fn forget(&mut self) {
        self.last = None;
    }
}

/// Counters with what each is of: those of the layout first and in its order, behind them those of what went.
#[derive(Clone, Debug)]
pub(crate) struct Followed<K, V>(Vec<(K, V)>);

impl<K, V> Default for Followed<K, V> {
    fn default() -> Self {
        Followed(Vec::new())
    }
}

impl<K: Ord, V: Default> Followed<K, V> {
    fn follow(&mut self, keys: impl IntoIterator<Item = K>) {
        let mut before: BTreeMap<K, V> = std::mem::take(&mut self.0).into_iter().collect();
        let found = keys.into_iter().map(|key| {
            let counted = before.remove(&key).unwrap_or_default();
            (key, counted)
        });
        self.0 = found.collect();
        self.0.extend(before);
    }

    /// All, those of what went too.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &(K, V)> {
        self.0.iter()
    }

    fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.0.iter_mut().map(|(_, counted)| counted)
    }
}

/// Usage, time, above, below, rejected.
type StateTotals = [Running; 5];

/// Of one CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuTotals {
    /// The core, named by its first CPU.
    pub core: Option<Cpu>,
    /// Neither idle nor stolen.
    pub busy_ns: Running,
    /// Idle by the tick.
    pub idle_ns: Running,
    /// Taken by the hypervisor.
    pub steal_ns: Running,
    /// Times its core was throttled.
    pub n_throttles: Running,
    /// By place in [`Totals::states`].
    pub states: Followed<usize, StateTotals>,
}

/// An energy counter.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Zone {
    /// `intel-rapl:0:1`.
    pub id: String,
    /// package-0, dram.
    pub name: String,
    /// The package it counts.
    pub package: Option<u32>,
}

/// Of the machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    /// Every idle state that there was; of two with the same name and index what was claimed last.
    pub states: Vec<StateInfo>,
    idle_driver: Option<String>,
    /// Per CPU.
    pub cpus: Followed<Seat, CpuTotals>,
    /// When the last moment was, suspends counted.
    at_ns: Option<u64>,
    /// Per RAPL zone.
    pub energies_uj: Followed<Zone, Running>,
    /// Throttling per package.
    pub n_package_throttles: Followed<u32, Running>,
    /// Interrupts of the machine.
    pub n_interrupts: Running,
    /// Context switches of the machine.
    pub n_context_switches: Running,
    /// Counters that ran backwards so far.
    pub n_resets: u64,
    /// Interrupts of other CPUs that reading caused so far.
    pub n_remote_interrupts: u64,
}

impl Totals {
    /// Of a machine that was just looked at.
    pub(crate) fn of(layout: &Layout) -> Totals {
        let mut totals = Totals::default();
        totals.follow(layout);
        totals
    }

    /// From now on moments are of this layout.
    pub(crate) fn follow(&mut self, layout: &Layout) {
        let is_other_driver = self.idle_driver != layout.idle_driver;
        self.idle_driver.clone_from(&layout.idle_driver);
        // Where each state of the layout is, and whether another one goes by its name now.
        let of: Vec<(usize, bool)> = layout.states.iter().map(|state| self.state(state, is_other_driver)).collect();
        self.cpus.follow(layout.cpus.iter().map(Seat::of));
        for (info, total) in layout.cpus.iter().zip(self.cpus.values_mut()) {
            total.core = info.core.or(total.core);
            let own = || info.states.iter().filter_map(|at| of.get(*at));
            total.states.follow(own().map(|(at, _)| *at));
            for ((_, is_other), counters) in own().zip(total.states.values_mut()) {
                if *is_other {
                    counters.iter_mut().for_each(Running::forget);
                }
            }
        }
        let zone = |zone: &ZoneInfo| Zone { id: zone.id.clone(), name: zone.name.clone(), package: zone.package };
        self.energies_uj.follow(layout.zones.iter().map(zone));
        self.n_package_throttles.follow(layout.packages.iter().map(|info| info.package));
    }

    fn state(&mut self, state: &StateInfo, is_other_driver: bool) -> (usize, bool) {
        let is_it = |known: &StateInfo| (known.index, &known.name) == (state.index, &state.name);
        match self.states.iter().position(is_it) {
            Some(at) => {
                let is_other = is_other_driver || self.states[at] != *state;
                self.states[at].clone_from(state);
                (at, is_other)
            }
            None => {
                self.states.push(state.clone());
                (self.states.len() - 1, true)
            }
        }
    }

    /// Do stays in a state run backwards, or can they not be told any more although the CPU runs? So it is when another driver's states took their place.
    pub(crate) fn is_broken_by(&self, now: &Counters) -> bool {
        let is_broken = |(total, cpu): (&(Seat, CpuTotals), &CpuCounters)| {
            let stays = total.1.states.iter().map(|(_, counters)| counters[0].last);
            stays.zip(&cpu.states).any(|(then, now)| match (then, now.n_usage) {
                (Some(then), Reading::Known(now)) => now < then,
                (Some(_), Reading::Missing(why)) => why != Why::Offline,
                (None, _) => false,
            })
        };
        self.cpus.iter().zip(&now.cpus).any(is_broken)
    }

    /// Takes the next moment.
    pub(crate) fn advance(&mut self, layout: &Layout, now: &Counters) {
        let then_ns = self.at_ns.replace(now.clocks.boot_at_ns);
        let since_ns = then_ns.map_or(0, |then_ns| u128::from(now.clocks.boot_at_ns.saturating_sub(then_ns)));
        let mut n_resets = 0;
        let mut count = |is_backwards: bool| n_resets += u64::from(is_backwards);
        for (total, cpu) in self.cpus.values_mut().zip(&now.cpus) {
            count(total.busy_ns.advance(cpu.busy_ns));
            // The kernel corrects estimates of idle and stolen time downwards by a tick; that is no reset.
            total.idle_ns.advance_corrected(cpu.idle_ns);
            total.steal_ns.advance_corrected(cpu.steal_ns);
            count(total.n_throttles.advance(cpu.n_throttles));
            for (counters, state) in total.states.values_mut().zip(&cpu.states) {
                let readings: [Reading<u64>; 5] = (*state).into();
                let backwards =
                    counters.iter_mut().zip(readings).filter_map(|(c, r)| c.advance(r).then_some(())).count();
                count(backwards > 0);
            }
        }
        for ((total, energy), zone) in self.energies_uj.values_mut().zip(&now.energies_uj).zip(&layout.zones) {
            let range = zone.max_energy_range_uj.get();
            if range.is_some_and(|range| since_ns > 2 * u128::from(counter::longest_interval_ns(range))) {
                total.forget();
            }
            count(total.advance_by(*energy, |then, now| counter::step(range, then, now)));
        }
        for (total, throttles) in self.n_package_throttles.values_mut().zip(&now.n_package_throttles) {
            count(total.advance(*throttles));
        }
        count(self.n_interrupts.advance(now.n_interrupts));
        count(self.n_context_switches.advance(now.n_context_switches));
        self.n_resets += n_resets;
        self.n_remote_interrupts += now.n_remote_interrupts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::watch::counters::{Clocks, StateCounters};
    use wakewatt_core::watch::layout::CpuInfo;

    fn after(readings: &[Reading<u64>]) -> (Running, usize) {
        let mut total = Running::default();
        let n = readings.iter().filter(|r| total.advance(**r)).count();
        (total, n)
    }

    #[test]
    fn it_never_steps_back_and_counts_only_what_it_saw() {
        let known = Reading::Known;
        let offline = Reading::Missing(Why::Offline);
        assert_eq!(after(&[known(1_000_000)]).0.get(), Some(0), "what was before is not ours");
        assert_eq!(after(&[known(10), known(15), known(15)]).0.get(), Some(5));
        let (total, n) = after(&[known(10), known(15), known(3), known(7)]);
        assert_eq!((total.get(), n), (Some(9), 1), "a restart loses what it counted up to the first look");
        let (total, n) = after(&[known(10), known(15), offline]);
        assert_eq!((total.get(), total.so_far(), n), (None, Some(5), 0));
        assert_eq!(after(&[known(10), offline, known(12), known(13)]).0.get(), Some(1), "nothing over a gap");
        assert_eq!((after(&[offline]).0.get(), after(&[offline]).0.so_far()), (None, None));
    }

    #[test]
    fn a_correction_is_not_counted_twice() {
        let mut total = Running::default();
        [100, 90, 100, 130].into_iter().for_each(|ns| total.advance_corrected(Reading::Known(ns)));
        assert_eq!(total.get(), Some(30));
    }

    /// What a counter of a range comes to that is read at these seconds.
    fn energy(range_uj: u64, readings: &[(u64, Reading<u64>)]) -> (Option<u64>, u64) {
        let zone = ZoneInfo { max_energy_range_uj: Reading::Known(range_uj), ..ZoneInfo::default() };
        let layout = Layout { zones: vec![zone], ..Layout::default() };
        let mut totals = Totals::of(&layout);
        for (at_s, uj) in readings {
            let clocks = Clocks { boot_at_ns: at_s * 1_000_000_000, ..Clocks::default() };
            totals.advance(&layout, &Counters { clocks, energies_uj: vec![*uj], ..Counters::default() });
        }
        (totals.energies_uj.iter().next().unwrap().1.get(), totals.n_resets)
    }

    #[test]
    fn energy_wraps_at_its_range_and_not_over_a_gap() {
        const RANGE_UJ: u64 = 65_532_610_987;
        let known = Reading::Known;
        let (uj, n_resets) =
            energy(RANGE_UJ, &[(0, known(RANGE_UJ - 100)), (10, known(RANGE_UJ - 10)), (20, known(40))]);
        assert!((140..=141).contains(&uj.unwrap()) && n_resets == 0, "{uj:?}");
        let gap = Reading::Missing(Why::Denied);
        assert_eq!(
            energy(RANGE_UJ, &[(0, known(5)), (10, known(7)), (20, gap), (30, known(3)), (40, known(4))]),
            (Some(3), 0)
        );
        // After a suspend, say: it may have turned, or begun anew.
        assert_eq!(energy(RANGE_UJ, &[(0, known(5)), (10, known(7)), (80, known(1)), (90, known(2))]), (Some(3), 0));
    }

    fn machine(driver: &str, states: &[&str], cpus: &[Cpu]) -> Layout {
        let state = |(index, name): (u32, &&str)| StateInfo { index, name: (*name).into(), ..StateInfo::default() };
        let cpu = |cpu: &Cpu| CpuInfo { cpu: *cpu, states: (0..states.len()).collect(), ..CpuInfo::default() };
        Layout {
            idle_driver: Some(driver.into()),
            states: (0..).zip(states).map(state).collect(),
            cpus: cpus.iter().map(cpu).collect(),
            ..Layout::default()
        }
    }

    /// Every CPU has the same counts.
    fn moment(layout: &Layout, usages: &[u64]) -> Counters {
        let state = |n: &u64| StateCounters { n_usage: Reading::Known(*n), ..StateCounters::default() };
        let cpu = CpuCounters { is_online: true, states: usages.iter().map(state).collect(), ..CpuCounters::default() };
        Counters { cpus: vec![cpu; layout.cpus.len()], ..Counters::default() }
    }

    /// Stays by CPU, name and index.
    fn told(totals: &Totals) -> Vec<(Cpu, String, u32, Option<u64>)> {
        let of = |(seat, total): &(Seat, CpuTotals)| {
            let state = |(at, counters): &(usize, StateTotals)| {
                let info = &totals.states[*at];
                (seat.cpu, info.name.clone(), info.index, counters[0].so_far())
            };
            total.states.iter().map(state).collect::<Vec<_>>()
        };
        let mut told: Vec<_> = totals.cpus.iter().flat_map(of).collect();
        told.sort();
        told
    }

    #[test]
    fn a_count_stays_with_its_name_whatever_the_driver() {
        let halting = machine("haltpoll", &["POLL", "haltpoll"], &[0, 1]);
        let idling = machine("intel_idle", &["POLL", "C1E", "C6"], &[0, 2]);
        let mut totals = Totals::of(&halting);
        [[10, 100], [11, 105]].iter().for_each(|usages| totals.advance(&halting, &moment(&halting, usages)));
        totals.follow(&idling);
        // POLL of another driver began anew, and is not counted from where the first one's was.
        [[900, 7, 3], [902, 8, 5]].iter().for_each(|usages| totals.advance(&idling, &moment(&idling, usages)));
        let state = |cpu, name: &str, index, n| (cpu, name.to_string(), index, Some(n));
        let mut expected = vec![
            state(0, "C1E", 1, 1),
            state(0, "C6", 2, 2),
            state(0, "POLL", 0, 3),
            state(0, "haltpoll", 1, 5),
            state(1, "POLL", 0, 1),
            state(1, "haltpoll", 1, 5),
            state(2, "C1E", 1, 1),
            state(2, "C6", 2, 2),
            state(2, "POLL", 0, 2),
        ];
        assert_eq!(told(&totals), expected);
        // Back, and what had gone goes on.
        totals.follow(&halting);
        [[5, 200], [5, 201]].iter().for_each(|usages| totals.advance(&halting, &moment(&halting, usages)));
        (expected[3].3, expected[5].3) = (Some(6), Some(6));
        assert_eq!((told(&totals), totals.n_resets), (expected, 0));
    }

    #[test]
    fn a_cpu_that_comes_disturbs_no_count() {
        let (one, two) = (machine("menu", &["C1"], &[0]), machine("menu", &["C1"], &[0, 1]));
        let mut totals = Totals::of(&one);
        totals.advance(&one, &moment(&one, &[10]));
        totals.follow(&two);
        totals.advance(&two, &moment(&two, &[14]));
        assert_eq!(told(&totals), [(0, "C1".into(), 0, Some(4)), (1, "C1".into(), 0, Some(0))]);
    }

    #[test]
    fn stays_that_run_backwards_or_vanish_are_a_sign() {
        let layout = machine("haltpoll", &["POLL", "haltpoll"], &[0]);
        let mut totals = Totals::of(&layout);
        totals.advance(&layout, &moment(&layout, &[10, 100]));
        let is_sign = |usages: &[u64]| totals.is_broken_by(&moment(&layout, usages));
        assert_eq!([is_sign(&[10, 100]), is_sign(&[11, 101]), is_sign(&[11, 0])], [false, false, true]);
        let mut gone = moment(&layout, &[10, 100]);
        gone.cpus[0].states[1].n_usage = Reading::Missing(Why::Absent);
        assert!(totals.is_broken_by(&gone));
        gone.cpus[0].states[1].n_usage = Reading::Missing(Why::Offline);
        assert!(!totals.is_broken_by(&gone));
    }
}

//! Counters that never step back: what the kernel counted since the agent started.
//!
//! The kernel's own counters wrap (energy), start again (a driver that was loaded anew) and vanish for a while (a CPU that went offline). A store takes any
//! step back for a restart and adds the whole new value, which would be a month of idle time in one second. So the agent adds up what moved while it
//! looked, from 0 at its own start, which formats that can also say. What it did not see it does not count.

use wakewatt_core::samples::energy::counter;
use wakewatt_core::watch::{Counters, Layout, Reading};

/// One such counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Running {
    total: u64,
    last: Option<u64>,
    /// Could it be read last time?
    is_known: bool,
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
            self.is_known = false;
            return false;
        };
        let moved = self.last.map(|then| step(then, now));
        (self.last, self.is_known) = (Some(now), true);
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
        self.last.map(|_| self.total)
    }
}

/// Of one CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct CpuTotals {
    /// Neither idle nor stolen.
    pub busy_ns: Running,
    /// Idle by the tick.
    pub idle_ns: Running,
    /// Taken by the hypervisor.
    pub steal_ns: Running,
    /// Times its core was throttled.
    pub n_throttles: Running,
    /// By state as [`wakewatt_core::watch::CpuInfo::states`] lists them: usage, time, above, below, rejected.
    pub states: Vec<[Running; 5]>,
}

/// Of the machine; lists are parallel to those of the layout.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    /// Per CPU.
    pub cpus: Vec<CpuTotals>,
    /// Per RAPL zone.
    pub energies_uj: Vec<Running>,
    /// Throttling per package.
    pub n_package_throttles: Vec<Running>,
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
    /// Takes the next moment.
    pub(crate) fn advance(&mut self, layout: &Layout, now: &Counters) {
        self.cpus.resize_with(now.cpus.len(), CpuTotals::default);
        self.energies_uj.resize(now.energies_uj.len(), Running::default());
        self.n_package_throttles.resize(now.n_package_throttles.len(), Running::default());
        let mut n_resets = 0;
        let mut count = |is_backwards: bool| n_resets += u64::from(is_backwards);
        for (total, cpu) in self.cpus.iter_mut().zip(&now.cpus) {
            count(total.busy_ns.advance(cpu.busy_ns));
            // The kernel corrects estimates of idle and stolen time downwards by a tick; that is no reset.
            total.idle_ns.advance_corrected(cpu.idle_ns);
            total.steal_ns.advance_corrected(cpu.steal_ns);
            count(total.n_throttles.advance(cpu.n_throttles));
            total.states.resize(cpu.states.len(), [Running::default(); 5]);
            for (counters, state) in total.states.iter_mut().zip(&cpu.states) {
                let readings: [Reading<u64>; 5] = (*state).into();
                let backwards =
                    counters.iter_mut().zip(readings).filter_map(|(c, r)| c.advance(r).then_some(())).count();
                count(backwards > 0);
            }
        }
        for (i, (total, energy)) in self.energies_uj.iter_mut().zip(&now.energies_uj).enumerate() {
            let range = layout.zones.get(i).and_then(|zone| zone.max_energy_range_uj.get());
            count(total.advance_by(*energy, |then, now| counter::step(range, then, now)));
        }
        for (total, throttles) in self.n_package_throttles.iter_mut().zip(&now.n_package_throttles) {
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
    use wakewatt_core::watch::Why;
    use wakewatt_core::watch::layout::ZoneInfo;

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
        assert_eq!(after(&[known(10), offline, known(12)]).0.get(), Some(2));
        assert_eq!((after(&[offline]).0.get(), after(&[offline]).0.so_far()), (None, None));
    }

    #[test]
    fn a_correction_is_not_counted_twice() {
        let mut total = Running::default();
        [100, 90, 100, 130].into_iter().for_each(|ns| total.advance_corrected(Reading::Known(ns)));
        assert_eq!(total.get(), Some(30));
    }

    #[test]
    fn energy_wraps_at_its_range() {
        let zone = ZoneInfo { max_energy_range_uj: Reading::Known(1000), ..ZoneInfo::default() };
        let layout = Layout { zones: vec![zone], ..Layout::default() };
        let mut totals = Totals::default();
        for uj in [900, 990, 40] {
            let now = Counters { energies_uj: vec![Reading::Known(uj)], ..Counters::default() };
            totals.advance(&layout, &now);
        }
        let uj = totals.energies_uj[0].get().unwrap();
        assert!((140..=141).contains(&uj) && totals.n_resets == 0, "{uj}");
    }
}

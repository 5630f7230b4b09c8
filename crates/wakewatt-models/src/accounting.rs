//! What the cpuidle core counts when a state is left: the numbers under `cpuidle/stateN/` in sysfs.
//!
//! *Above*: the sleep was shorter than the state's residency, and a shallower one was enabled. *Below*: less the exit, it was
//! long enough for the next deeper one enabled. Both are the core's, whichever governor chose. An entry that was refused counts as
//! rejected and as no sleep. Up to 5.4 all of it is in whole microseconds.

use crate::kernel::Release;
use crate::table::{Disabled, MOST_STATES, Table};
use crate::units::residency_us;

/// Whether a state was the wrong one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// It fitted, or nothing else was enabled.
    None,
    /// Too deep.
    Above,
    /// Too shallow.
    Below,
}

/// The verdict on a sleep of so many nanoseconds in a state.
#[inline]
pub fn miss(table: &Table, disabled: Disabled, entered: usize, residency_ns: i64) -> Miss {
    let state = table.at(entered);
    let is_enabled = |i: &usize| !disabled.has(*i);
    if residency_ns < state.target_residency_ns {
        return if (0..entered.min(table.n())).any(|i| is_enabled(&i)) { Miss::Above } else { Miss::None };
    }
    let beyond_ns = residency_ns.saturating_sub(state.exit_latency_ns);
    let deeper = (entered + 1..table.n()).find(is_enabled);
    let fitted = beyond_ns > 0 && deeper.is_some_and(|i| beyond_ns >= table.at(i).target_residency_ns);
    if fitted { Miss::Below } else { Miss::None }
}

/// Counts of one state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Times entered.
    pub usage: u64,
    /// Time spent in it, in nanoseconds.
    pub time_ns: u64,
    /// Times it was too deep.
    pub above: u64,
    /// Times it was too shallow.
    pub below: u64,
    /// Entries refused; kernels before 5.10 do not count them.
    pub rejected: u64,
}

/// Counts of one CPU.
#[derive(Clone, Debug)]
pub struct Account {
    in_us: bool,
    counts_rejected: bool,
    states: [Counts; MOST_STATES],
}

impl Account {
    /// As a release's kernel counts.
    pub fn new(release: Release) -> Account {
        let series = (release.major, release.minor);
        let states = [Counts::default(); MOST_STATES];
        Account { in_us: series < (5, 5), counts_rejected: series >= (5, 10), states }
    }

    /// A state was left.
    pub fn left(&mut self, table: &Table, disabled: Disabled, entered: usize, residency_ns: i64) {
        let residency_ns = if self.in_us { i64::from(residency_us(residency_ns)) * 1000 } else { residency_ns };
        let Some(counts) = self.states.get_mut(entered) else { return };
        counts.usage += 1;
        counts.time_ns = counts.time_ns.saturating_add(u64::try_from(residency_ns).unwrap_or(0));
        match miss(table, disabled, entered, residency_ns) {
            Miss::None => {}
            Miss::Above => counts.above += 1,
            Miss::Below => counts.below += 1,
        }
    }

    /// An entry was refused.
    pub fn rejected(&mut self, requested: usize) {
        if let Some(counts) = self.states.get_mut(requested).filter(|_| self.counts_rejected) {
            counts.rejected += 1;
        }
    }

    /// Of a state.
    pub fn of(&self, state: usize) -> Counts {
        self.states.get(state).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::State;

    fn acpi4() -> Table {
        let rows = [(1, 2), (41, 82), (100, 200)].map(|(l, t)| State::sleeping_us(l, t));
        Table::new(&[&[State::POLL], &rows[..]].concat()).unwrap()
    }

    #[test]
    fn sleeps_are_judged_by_the_states_around() {
        let said = |e, us: i64, off: &[usize]| miss(&acpi4(), Disabled::of(off.iter().copied()), e, us * 1000);
        assert_eq!(said(2, 60, &[]), Miss::Above);
        assert_eq!(said(2, 350, &[]), Miss::Below);
        assert_eq!((said(1, 84, &[]), said(1, 82, &[])), (Miss::Below, Miss::None));
        assert_eq!((said(3, 199, &[1, 2]), said(3, 199, &[0, 1, 2])), (Miss::Above, Miss::None));
        assert_eq!((said(3, 9000, &[]), said(2, 350, &[3]), said(9, 1, &[])), (Miss::None, Miss::None, Miss::None));
    }

    #[test]
    fn counts_add_up_in_the_kernels_unit() {
        let release = |major, minor| Release { major, minor, patch: 0 };
        let (mut old, mut new) = (Account::new(release(5, 3)), Account::new(release(6, 1)));
        for account in [&mut old, &mut new] {
            account.left(&acpi4(), Disabled::NONE, 2, 60_900);
            account.rejected(2);
        }
        assert_eq!(new.of(2), Counts { usage: 1, time_ns: 60_900, above: 1, below: 0, rejected: 1 });
        assert_eq!(old.of(2).time_ns, 60_000);
    }
}

//! What idle time came to, recorded or predicted: the same sums, so that they can stand side by side.
//!
//! Energy is a model's: idle time in a state at its power (`power_model` of core: awake while polling, shallow up to 20 us of exit, next to
//! nothing below), and each exit awake. It is of CPUs in idle only, and half to twice is its range.

use super::policy::Policy;
use crate::accounting::{Miss, miss};
use crate::table::MOST_STATES;
use wakewatt_core::samples::kernel_histogram::KernelHistogram;
use wakewatt_core::samples::power_model;

/// A state that wakes within this is shallow in the power model.
const SHALLOW_NS: i64 = 20_000;

/// Sums of one state.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StateSums {
    /// Stays.
    pub n: u64,
    /// Time in it, in nanoseconds.
    pub time_ns: u64,
    /// Too deep.
    pub n_above: u64,
    /// Too shallow.
    pub n_below: u64,
    /// Wake-ups out of it: stays that something other than the tick or the poll limit ended.
    pub n_wakes: u64,
}

/// Sums over the stays of one or more CPUs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By index.
    pub states: [StateSums; MOST_STATES],
    /// What wake-ups paid for leaving the state they found.
    pub wake_cost: KernelHistogram,
    /// In microjoules.
    pub energy_uj: f64,
}

/// One stay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay {
    pub(super) state: usize,
    pub(super) residency_ns: i64,
    /// Something other than the tick or the poll limit ended it.
    pub(super) is_wake: bool,
}

impl Tally {
    pub(super) fn stay(&mut self, policy: &Policy, stay: Stay) {
        let state = stay.state.min(MOST_STATES - 1);
        let Some(sums) = self.states.get_mut(state) else { return };
        let time_ns = u64::try_from(stay.residency_ns).unwrap_or(0);
        sums.n += 1;
        sums.time_ns = sums.time_ns.saturating_add(time_ns);
        match miss(&policy.table, policy.disabled, state, stay.residency_ns) {
            Miss::None => {}
            Miss::Above => sums.n_above += 1,
            Miss::Below => sums.n_below += 1,
        }
        let exit_ns = policy.exit_ns.get(state).copied().unwrap_or(0).min(stay.residency_ns).max(0);
        if stay.is_wake {
            sums.n_wakes += 1;
            self.wake_cost.add(exit_ns.cast_unsigned());
        }
        let parameters = power_model::starting(1.0);
        let awake_uw = parameters.awake_uw + parameters.dynamic_uw;
        let here = policy.table.at(state);
        let asleep_uw = match here {
            s if s.is_polling => awake_uw,
            s if s.exit_latency_ns <= SHALLOW_NS => parameters.shallow_uw,
            _ => 0.0,
        };
        let rest_ns = time_ns.saturating_sub(exit_ns.cast_unsigned());
        // Microwatts times seconds.
        self.energy_uj += (asleep_uw * rest_ns as f64 + awake_uw * exit_ns as f64) / 1e9;
    }

    /// Adds another CPU's.
    pub(super) fn add(&mut self, other: &Tally) {
        for (mine, theirs) in self.states.iter_mut().zip(&other.states) {
            mine.n += theirs.n;
            mine.time_ns = mine.time_ns.saturating_add(theirs.time_ns);
            mine.n_above += theirs.n_above;
            mine.n_below += theirs.n_below;
            mine.n_wakes += theirs.n_wakes;
        }
        self.wake_cost.merge(&other.wake_cost);
        self.energy_uj += other.energy_uj;
    }

    /// Time in all states, in nanoseconds.
    pub fn time_ns(&self) -> u64 {
        self.states.iter().fold(0, |sum, s| sum.saturating_add(s.time_ns))
    }
}

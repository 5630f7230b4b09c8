//! teo as 5.14 to 6.4 had it: the timers propose, the statistics may object.
//!
//! 6.3 and 6.4 also look at how much the CPU is used: above a sixty-fourth of its capacity, one state shallower.

use super::bins::{Bins, Sums, TO_THE_TIMER, slept_ns};
use super::search::{Why, search};
use super::steps::{end, shallower, span_ns};
use crate::idle::{Decision, Left, Moment};
use crate::table::Table;
use crate::tick::Tick;
use std::sync::Arc;

/// Utilisation above this means that the CPU is in use: a sixty-fourth of 1024.
pub(super) const IN_USE: u32 = 16;
/// More recent intercepts than this ask for a second thought.
pub(super) const MANY_RECENT: u32 = 4;

/// The teo governor of one CPU.
#[derive(Clone, Debug)]
pub(super) struct TimersFirst {
    uses_utilisation: bool,
    table: Arc<Table>,
    tick: Tick,
    bins: Bins,
    total: u32,
    span_ns: i64,
    sleep_ns: i64,
    selected_at_ns: i64,
    last: Option<usize>,
    residency_ns: i64,
}

impl TimersFirst {
    pub(super) fn new(uses_utilisation: bool, table: Table, tick: Tick) -> TimersFirst {
        TimersFirst {
            uses_utilisation,
            table: Arc::new(table),
            tick,
            bins: Bins::default(),
            total: 0,
            span_ns: 0,
            sleep_ns: 0,
            selected_at_ns: 0,
            // The core's last state is the first until something was entered, and that is learned.
            last: Some(0),
            residency_ns: 0,
        }
    }

    pub(super) fn reflect(&mut self, left: &Left) {
        self.last = Some(left.state);
        self.residency_ns = left.residency_ns;
        self.span_ns = span_ns(left, self.sleep_ns, self.tick.ns(), self.selected_at_ns);
    }

    fn learn(&mut self, last: usize) {
        let slept = if self.span_ns >= self.sleep_ns {
            TO_THE_TIMER
        } else {
            slept_ns(self.residency_ns, self.table.at(last).exit_latency_ns)
        };
        self.total = self.bins.decay(self.table.n()).wrapping_add(super::bins::PULSE);
        let (timers, right) = Bins::fitting(&self.table, self.sleep_ns, slept);
        self.bins.forget();
        self.bins.count(timers, right);
        self.bins.remember(timers, right);
    }

    pub(super) fn select(&mut self, m: &Moment) -> Decision {
        if let Some(last) = self.last.take() {
            self.learn(last);
        }
        self.selected_at_ns = m.clock_ns;
        self.sleep_ns = m.sleep_ns;
        let table = &self.table;
        let (sleep_ns, n) = (m.sleep_ns, table.n());
        let residency = |i: usize| table.at(i).target_residency_ns;
        let tick_ns = self.tick.ns();
        let done = |state, first, sleep_ns| end(table, m, state, first, sleep_ns >= tick_ns, m.next_event_ns);
        if n < 2 {
            return done(0, 0, sleep_ns);
        }
        let is_used = self.uses_utilisation && m.utilisation > IN_USE;
        if is_used && n < 3 {
            let sleeps = |i: &usize| !m.disabled.has(*i) && !table.at(*i).is_polling;
            return done((0..n).find(sleeps).unwrap_or(0), 0, sleep_ns);
        }
        let (mut chosen, mut first, mut fits) = (None, 0, 0);
        if !m.disabled.has(0) {
            chosen = Some(0);
            if residency(1) > sleep_ns {
                return done(0, 0, sleep_ns);
            }
        }
        let (mut sums, mut below) = (Sums::default(), Sums::default());
        for i in 1..n {
            sums.add(self.bins.of[i - 1]);
            if m.disabled.has(i) {
                continue;
            }
            if chosen.is_none() {
                chosen = Some(i);
                first = i;
            }
            if residency(i) > sleep_ns {
                break;
            }
            chosen = Some(i);
            if table.at(i).exit_latency_ns <= m.latency_limit_ns {
                fits = i;
            }
            below = sums;
        }
        let Some(candidate) = chosen else { return done(0, 0, sleep_ns) };
        if candidate == first {
            return done(candidate, first, sleep_ns);
        }
        let why = Why {
            intercepts: below.intercepts.wrapping_mul(2) > self.total.wrapping_sub(below.hits),
            recent: below.recent > MANY_RECENT,
        };
        let (mut state, mut expected_ns) = (candidate, sleep_ns);
        if why.intercepts || why.recent {
            let middle = |i: usize| residency(i).wrapping_add(residency(i + 1)) / 2;
            let may = |i: usize| (!m.disabled.has(i), !m.is_tick_stopped || middle(i) >= tick_ns);
            state = search(&self.bins, why, below, candidate, may);
            if state != candidate {
                expected_ns = middle(state);
            }
        }
        state = state.min(fits);
        if is_used {
            state = shallower(table, m.disabled, state, expected_ns, true);
        }
        done(state, first, expected_ns)
    }
}

//! teo as 6.5 to 6.13 had it: the statistics propose, and the timers are looked at only where they could change something.
//!
//! To look at the timers is dear, and for a state that pays within 15 us useless. A sleep that reached the tick is counted apart,
//! because it says only that nothing came until then. 6.6 still counts recent intercepts and the CPU's utilisation; 6.12 dropped both.

use super::bins::{Bins, DECAY, PULSE, TO_THE_TIMER, slept_ns};
use super::search::{Deepest, Why, deepest, search};
use super::steps::{end, shallower, span_ns};
use super::timers_first::{IN_USE, MANY_RECENT};
use crate::idle::{Decision, Left, Moment};
use crate::table::Table;
use crate::tick::Tick;
use crate::units::FOREVER_NS;
use std::sync::Arc;

/// A state that pays within this needs no look at the timers.
pub(super) const SHORT_NS: i64 = 15_000;

/// The teo governor of one CPU.
#[derive(Clone, Debug)]
pub(super) struct TimersLate {
    /// 6.5 to 6.10.
    is_first: bool,
    always_yields: bool,
    table: Arc<Table>,
    tick: Tick,
    bins: Bins,
    total: u32,
    tick_hits: u32,
    span_ns: i64,
    sleep_ns: i64,
    selected_at_ns: i64,
    last: Option<usize>,
    residency_ns: i64,
}

impl TimersLate {
    pub(super) fn new(is_first: bool, always_yields: bool, table: Table, tick: Tick) -> TimersLate {
        TimersLate {
            is_first,
            always_yields,
            table: Arc::new(table),
            tick,
            bins: Bins::default(),
            total: 0,
            tick_hits: 0,
            span_ns: 0,
            sleep_ns: 0,
            selected_at_ns: 0,
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
        let n = self.table.n();
        let slept = if self.span_ns >= self.sleep_ns {
            TO_THE_TIMER
        } else {
            slept_ns(self.residency_ns, self.table.at(last).exit_latency_ns)
        };
        self.total = self.bins.decay(n);
        let (mut timers, right) = Bins::fitting(&self.table, self.sleep_ns, slept);
        if self.is_first {
            self.bins.forget();
        }
        let deepest_ns = self.table.at(n.saturating_sub(1)).target_residency_ns;
        if deepest_ns < self.tick.ns() {
            self.tick_hits -= self.tick_hits >> DECAY;
            self.total = self.total.wrapping_add(self.tick_hits);
            if self.sleep_ns >= self.tick.ns() {
                timers = n;
                if slept >= self.tick.ns().cast_unsigned() {
                    self.tick_hits = self.tick_hits.wrapping_add(PULSE);
                    self.total = self.total.wrapping_add(PULSE);
                    // The place of the oldest recent sleep was forgotten and stays unwritten.
                    return;
                }
            }
        }
        self.bins.count(timers, right);
        if self.is_first {
            self.bins.remember(timers, right);
        }
        self.total = self.total.wrapping_add(PULSE);
    }

    pub(super) fn select(&mut self, m: &Moment) -> Decision {
        if let Some(last) = self.last.take() {
            self.learn(last);
        }
        self.selected_at_ns = m.clock_ns;
        self.sleep_ns = FOREVER_NS;
        let (state, first) = match self.candidate(m) {
            Ok(found) => found,
            Err(said) => return said,
        };
        let table = &self.table;
        let residency = |i: usize| table.at(i).target_residency_ns;
        let unasked = |state| Decision { state, stop_tick: false, asked_timers: false };
        if state == 0 || (table.at(0).is_polling && residency(state) < SHORT_NS) {
            return unasked(state);
        }
        self.sleep_ns = m.sleep_ns;
        let (mut state, mut sleep_ns) = (state, m.sleep_ns);
        if residency(state) > sleep_ns {
            let to = shallower(table, m.disabled, state, sleep_ns, false);
            if self.always_yields || self.allows(m, to) {
                state = to;
            }
        }
        // Mostly woken before the tick: as if this sleep were short too.
        let all = self.bins.of[..table.n()].iter().fold(0u32, |sum, bin| sum.wrapping_add(bin.intercepts));
        if residency(state) < self.tick.ns() && all > (self.total / 2).wrapping_add(self.total / 8) {
            sleep_ns = self.tick.ns() / 2;
        }
        end(table, m, state, first, sleep_ns >= self.tick.ns(), m.next_event_ns)
    }

    /// A stopped tick allows only states that pay for as long as a tick.
    fn allows(&self, m: &Moment, state: usize) -> bool {
        !m.is_tick_stopped || self.table.at(state).target_residency_ns >= self.tick.ns()
    }

    /// What the statistics propose, and the shallowest enabled state; or the decision at once.
    fn candidate(&mut self, m: &Moment) -> Result<(usize, usize), Decision> {
        let table = &self.table;
        let n = table.n();
        let unasked = |state| Decision { state, stop_tick: false, asked_timers: false };
        if n < 2 {
            return Err(unasked(0));
        }
        let half_tick_ns = self.tick.ns() / 2;
        let end_unasked = |state: usize, first: usize| {
            let is_long = table.at(state).target_residency_ns >= self.tick.ns();
            Decision { asked_timers: false, ..end(table, m, state, first, is_long, half_tick_ns) }
        };
        let is_used = self.is_first && m.utilisation > IN_USE;
        if is_used && n < 3 {
            let first_will_do = !m.disabled.has(0) && !table.at(0).is_polling && self.allows(m, 0);
            return Err(if first_will_do || m.disabled.has(1) { unasked(0) } else { end_unasked(1, 0) });
        }
        let Some(deepest) = deepest(&self.bins, table, m) else { return Err(unasked(0)) };
        let Deepest { state: candidate, first, fits, below } = deepest;
        if candidate == first {
            return Err(end_unasked(candidate, first));
        }
        let why = Why {
            intercepts: below.intercepts.wrapping_mul(2) > self.total.wrapping_sub(below.hits),
            recent: self.is_first && below.recent > MANY_RECENT,
        };
        let mut state = candidate;
        if why.intercepts || why.recent {
            state = search(&self.bins, why, below, candidate, |i| (!m.disabled.has(i), self.allows(m, i)));
            if state == 0 && !self.is_first {
                // Looked at only so that the next sleep can be learned from.
                self.sleep_ns = m.sleep_ns;
                return Err(Decision { state: 0, stop_tick: false, asked_timers: true });
            }
        }
        state = state.min(fits);
        if is_used {
            let to = shallower(table, m.disabled, state, FOREVER_NS, true);
            if self.allows(m, to) {
                state = to;
            }
        }
        Ok((state, first))
    }
}

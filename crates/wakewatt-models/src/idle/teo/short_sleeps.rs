//! teo as 6.14 to 6.18 has it: where most sleeps are very short, the timers are not looked at.
//!
//! Sleeps below 15 us, and those shorter than the exit they took, are counted apart. While they are the half of all sleeps (or the limit
//! allows nothing deep anyway) a shallow proposal stands as it is. Intercepts after the tick are counted too: the comment of the
//! kernel says before, the code after, and the code is mirrored. The total decays by itself, so that the sums can exceed it
//! and the comparison wraps.

use super::bins::{Bins, DECAY, PULSE, TO_THE_TIMER};
use super::search::{Deepest, Why, deepest, search};
use super::steps::{end, shallower};
use super::timers_late::SHORT_NS;
use crate::idle::{Decision, Left, Moment};
use crate::table::Table;
use crate::tick::Tick;
use crate::units::FOREVER_NS;
use std::sync::Arc;

/// A limit below this allows nothing that the timers could change.
const STRICT_NS: i64 = 7_500;

/// The teo governor of one CPU.
#[derive(Clone, Debug)]
pub(super) struct ShortSleeps {
    always_yields: bool,
    table: Arc<Table>,
    tick: Tick,
    bins: Bins,
    total: u32,
    short: u32,
    after_tick: u32,
    sleep_ns: i64,
    is_to_the_timer: bool,
    last: Option<usize>,
    residency_ns: i64,
}

impl ShortSleeps {
    pub(super) fn new(always_yields: bool, table: Table, tick: Tick) -> ShortSleeps {
        ShortSleeps {
            always_yields,
            table: Arc::new(table),
            tick,
            bins: Bins::default(),
            total: 0,
            short: 0,
            after_tick: 0,
            sleep_ns: 0,
            is_to_the_timer: false,
            last: Some(0),
            residency_ns: 0,
        }
    }

    pub(super) fn reflect(&mut self, left: &Left) {
        self.last = Some(left.state);
        self.residency_ns = left.residency_ns;
        self.is_to_the_timer = left.is_poll_limit_hit || (left.is_tick_fired && self.sleep_ns > self.tick.ns());
    }

    fn learn(&mut self, last: usize) {
        self.short -= self.short >> DECAY;
        let slept = if self.is_to_the_timer {
            TO_THE_TIMER
        } else {
            let (residency, latency) = (self.residency_ns, self.table.at(last).exit_latency_ns);
            let slept = super::bins::slept_ns(residency, latency);
            if residency.cast_unsigned() < latency.cast_unsigned() || slept < SHORT_NS.cast_unsigned() {
                self.short += PULSE;
            }
            slept
        };
        self.bins.decay(self.table.n());
        let (timers, right) = Bins::fitting(&self.table, self.sleep_ns, slept);
        self.after_tick -= self.after_tick >> DECAY;
        self.bins.count(timers, right);
        if timers != right && slept >= self.tick.ns().cast_unsigned() {
            self.after_tick += PULSE;
        }
        self.total = self.total - (self.total >> DECAY) + PULSE;
    }

    /// A stopped tick allows only states that pay for as long as a tick.
    fn allows(&self, m: &Moment, state: usize) -> bool {
        !m.is_tick_stopped || self.table.at(state).target_residency_ns >= self.tick.ns()
    }

    pub(super) fn select(&mut self, m: &Moment) -> Decision {
        if let Some(last) = self.last.take() {
            self.learn(last);
        }
        self.sleep_ns = FOREVER_NS;
        let unasked = |state| Decision { state, stop_tick: false, asked_timers: false };
        let table = &self.table;
        let n = table.n();
        if n < 2 {
            return unasked(0);
        }
        let Some(deepest) = deepest(&self.bins, table, m) else { return unasked(0) };
        let Deepest { state: candidate, first, fits, below } = deepest;
        let residency = |i: usize| table.at(i).target_residency_ns;
        let tick_ns = self.tick.ns();
        if candidate == first {
            let said = end(table, m, candidate, first, residency(candidate) >= tick_ns, tick_ns / 2);
            return Decision { asked_timers: false, ..said };
        }
        let mut state = candidate;
        if below.intercepts.wrapping_mul(2) > self.total.wrapping_sub(below.hits) {
            let why = Why { intercepts: true, recent: false };
            state = search(&self.bins, why, below, candidate, |i| (!m.disabled.has(i), self.allows(m, i)));
        }
        state = state.min(fits);
        let is_mostly_short = self.short.wrapping_mul(2) >= self.total || m.latency_limit_ns < STRICT_NS;
        if (state == 0 || residency(state) < SHORT_NS) && is_mostly_short {
            return unasked(state);
        }
        self.sleep_ns = m.sleep_ns;
        if state == 0 {
            return Decision { state: 0, stop_tick: false, asked_timers: true };
        }
        let mut sleep_ns = m.sleep_ns;
        if residency(state) > sleep_ns {
            let to = shallower(table, m.disabled, state, sleep_ns, false);
            if self.always_yields || self.allows(m, to) {
                state = to;
            }
        }
        if residency(state) < tick_ns && self.after_tick > (self.total / 2).wrapping_add(self.total / 8) {
            sleep_ns = tick_ns / 2;
        }
        end(table, m, state, first, sleep_ns >= tick_ns, m.next_event_ns)
    }
}

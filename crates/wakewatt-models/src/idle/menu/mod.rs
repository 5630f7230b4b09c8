//! menu: guess how long the CPU will sleep, and take the deepest state that pays within that.
//!
//! Mirrors 5.3 to 7.2 by the rows of `form.rs`. The guess is the smaller of two: the next timer, corrected by how much of such a
//! timer's distance was really slept before (`correction.rs`), and the typical one of the last eight sleeps (`typical.rs`). What
//! came of a choice is learned at the beginning of the next, so a choice that was never entered teaches nothing, or,
//! in later kernels, counts as a long sleep. `walk.rs` turns the guess into a state; `microseconds.rs` is the whole rule as 5.3 had it.

mod correction;
mod form;
mod microseconds;
#[cfg(test)]
mod tests;
mod typical;
mod walk;

pub use form::{Form, Typical, Walk, form_in};

use super::{Decision, Left, Moment};
use crate::table::{State, Table};
use crate::tick::Tick;
use crate::units::{FOREVER_NS, unsigned as ns};
use correction::{Bucket, Correction, bucket};
use std::sync::Arc;
use typical::{Intervals, NONE_US};
use walk::Guess;

/// A sleep to a stopped tick that fired for a timer of its wheel is learned as this long.
const TICK_AGAIN_NS: u64 = 45_000_000;
/// Sleeps from here on prove the timer right.
const LONG_NS: u64 = 50_000_000;
/// A typical interval above this has the timers looked at, in forms that avoid it.
const WORTH_ASKING_NS: u64 = 15_000;

/// The menu governor of one CPU: two lines of cache, because a simulated server has a thousand. Clones share the table.
#[derive(Clone, Debug)]
pub struct Menu {
    form: Form,
    table: Arc<Table>,
    tick: Tick,
    intervals: Intervals,
    correction: Correction,
    /// Time to the next timer at the last choice, in nanoseconds; in whole microseconds for 5.3.
    timer: u64,
    bucket: Bucket,
    is_pending: bool,
    is_tick_fired: bool,
    is_poll_limit_hit: bool,
    /// The core's: last state entered, and for how long; zero after a refusal.
    last: u8,
    residency_ns: i64,
}

impl Menu {
    /// As right after it was enabled.
    pub fn new(form: Form, table: Table, tick: Tick) -> Menu {
        Menu {
            form,
            table: Arc::new(table),
            tick,
            intervals: Intervals::default(),
            correction: Correction::default(),
            timer: 0,
            bucket: Bucket::default(),
            is_pending: false,
            is_tick_fired: false,
            is_poll_limit_hit: false,
            last: 0,
            residency_ns: 0,
        }
    }

    /// Hears what came of a choice.
    #[inline]
    pub fn reflect(&mut self, left: &Left) {
        self.is_pending = true;
        self.is_tick_fired = left.is_tick_fired;
        self.is_poll_limit_hit = left.is_poll_limit_hit;
        self.last = index(left.state);
        self.residency_ns = left.residency_ns;
    }

    /// The core's memory of the last stay, of another governor's time.
    pub fn take_over(&mut self, state: usize, residency_ns: i64) {
        self.last = index(state);
        self.residency_ns = residency_ns;
    }

    /// The state was not entered.
    pub fn reject(&mut self) {
        self.residency_ns = 0;
    }

    /// Chooses.
    #[inline]
    pub fn select(&mut self, m: &Moment) -> Decision {
        if self.form.in_us {
            return microseconds::select(self, m);
        }
        if self.is_pending {
            self.learn();
            self.is_pending = false;
        } else if self.form.remembers_refusal && self.residency_ns == 0 {
            self.intervals.push(NONE_US);
        }
        let (mut guess, asked_timers) = if self.form.late_query { self.guess_late(m) } else { self.guess(m) };
        if let Some(state) = self.shallow_at_once(m, guess.timer_ns) {
            return Decision { state, stop_tick: !self.table.at(0).is_polling, asked_timers };
        }
        if m.is_tick_stopped {
            // Without a tick nothing corrects a guess that was too short.
            if !self.form.query_when_stopped && guess.sleep_ns < ns(self.tick.ns()) {
                guess.sleep_ns = guess.timer_ns;
            }
        } else if self.form.lowers_limit {
            let weight = if self.form.iowait { 1 + 10 * u64::from(m.n_iowait) } else { 1 };
            guess.limit_ns = guess.limit_ns.min((guess.sleep_ns / weight).try_into().unwrap_or(i64::MAX));
        }
        Decision { asked_timers, ..walk::walk(self.form.walk, &self.table, self.tick.ns(), m, guess) }
    }

    /// Limit zero, or no time for anything but the first state.
    #[inline]
    fn shallow_at_once(&self, m: &Moment, timer_ns: u64) -> Option<usize> {
        if m.latency_limit_ns == 0 || self.table.n() <= 1 {
            return Some(0);
        }
        let State { exit_latency_ns, target_residency_ns, .. } = self.table.at(1);
        let is_shallow = timer_ns < ns(target_residency_ns) || m.latency_limit_ns < exit_latency_ns;
        (is_shallow && !m.disabled.has(0)).then_some(0)
    }

    /// Looks at the timers: the guess of them alone.
    #[inline]
    fn ask(&mut self, m: &Moment) -> (Guess, u32) {
        let (timer_ns, next_event_ns) = if m.sleep_ns < 0 { (0, 0) } else { (ns(m.sleep_ns), m.next_event_ns) };
        self.timer = timer_ns;
        self.bucket = bucket(timer_ns, self.form.iowait && m.n_iowait > 0);
        let estimate_us = self.correction.estimate_us::<1000>(self.bucket, timer_ns);
        (Guess { timer_ns, sleep_ns: 0, limit_ns: m.latency_limit_ns, next_event_ns }, estimate_us)
    }

    /// The timers first, as up to 6.5.
    #[inline]
    fn guess(&mut self, m: &Moment) -> (Guess, bool) {
        let (guess, estimate_us) = self.ask(m);
        // What decides at once needs no history.
        if self.shallow_at_once(m, guess.timer_ns).is_some() {
            return (guess, true);
        }
        let typical_us = self.intervals.typical(self.form.typical, self.form.longest_of_four, estimate_us);
        (Guess { sleep_ns: u64::from(estimate_us.min(typical_us)) * 1000, ..guess }, true)
    }

    /// The history first, and the timers only where it matters.
    #[inline]
    fn guess_late(&mut self, m: &Moment) -> (Guess, bool) {
        let typical_us = self.intervals.typical(self.form.typical, self.form.longest_of_four, 0);
        let typical_ns = u64::from(typical_us) * 1000;
        if typical_ns <= WORTH_ASKING_NS && !(self.form.query_when_stopped && m.is_tick_stopped) {
            self.timer = ns(FOREVER_NS);
            self.bucket = bucket(self.timer, self.form.iowait && m.n_iowait > 0);
            let guess = Guess {
                timer_ns: self.timer,
                sleep_ns: typical_ns,
                limit_ns: m.latency_limit_ns,
                next_event_ns: self.tick.ns() / 2,
            };
            return (guess, false);
        }
        let (mut guess, estimate_us) = self.ask(m);
        guess.sleep_ns = (u64::from(estimate_us) * 1000).min(typical_ns);
        let is_far = !self.form.stopped_needs_two_ticks || guess.timer_ns > 2 * ns(self.tick.ns());
        if self.form.query_when_stopped && m.is_tick_stopped && guess.sleep_ns < ns(self.tick.ns()) && is_far {
            guess.sleep_ns = guess.timer_ns;
        }
        (guess, true)
    }

    /// What came of the last choice.
    #[inline]
    fn learn(&mut self) {
        let state = self.table.at(usize::from(self.last));
        let (timer, residency, latency) = (self.timer, ns(self.residency_ns), ns(state.exit_latency_ns));
        let slept = if self.is_tick_fired && timer > ns(self.tick.ns()) {
            TICK_AGAIN_NS
        } else if state.is_polling && self.is_poll_limit_hit {
            timer
        } else if residency > latency.wrapping_mul(2) {
            residency.wrapping_sub(latency)
        } else {
            residency / 2
        };
        let slept = slept.min(timer);
        self.correction.learn(self.bucket, slept, timer, LONG_NS);
        // Cut on purpose: the kernel keeps 32 bits of microseconds.
        #[allow(clippy::cast_possible_truncation)]
        self.intervals.push((slept / 1000) as u32);
    }
}

/// A state as it is remembered; one that no table has stays one.
fn index(state: usize) -> u8 {
    u8::try_from(state).unwrap_or(u8::MAX)
}

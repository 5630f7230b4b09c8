//! teo as 5.1 to 5.13 had it: hits, misses and early hits of each state, and the last eight early wake-ups.
//!
//! A sleep that lasts to the timer's state is a hit of it; one that ends earlier is a miss of it and an early hit of the state
//! that would have been right. A state that misses more than it hits gives way to the one with the most early hits. Checked for 5.3,
//! in microseconds; from 5.5 the core counts in nanoseconds, which is assumed to decide alike. The ring of wake-ups loses every ninth:
//! its end is looked for one place too late, a quirk of the kernel.

use super::steps::{end, shallower};
use crate::idle::{Decision, Left, Moment};
use crate::table::{MOST_STATES, Table};
use crate::tick::Tick;
use crate::units::whole_us as us;
use std::sync::Arc;

/// Weight of one sleep.
const PULSE: u32 = 1024;
/// Wake-ups that are looked at.
const RING: usize = 8;
/// The timer was right: no early wake-up.
const TO_THE_TIMER: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    early: u32,
    hit: u32,
    miss: u32,
}

/// The teo governor of one CPU.
#[derive(Clone, Debug)]
pub(super) struct EarlyHits {
    table: Arc<Table>,
    tick: Tick,
    counts: [Counts; MOST_STATES],
    ring: [u32; RING],
    cursor: usize,
    span_ns: i64,
    sleep_ns: i64,
    last: Option<usize>,
}

impl EarlyHits {
    pub(super) fn new(table: Table, tick: Tick) -> EarlyHits {
        EarlyHits {
            table: Arc::new(table),
            tick,
            counts: [Counts::default(); MOST_STATES],
            ring: [TO_THE_TIMER; RING],
            cursor: 0,
            span_ns: 0,
            sleep_ns: 0,
            last: Some(0),
        }
    }

    pub(super) fn reflect(&mut self, left: &Left) {
        self.last = Some(left.state);
        let to_the_timer = left.is_poll_limit_hit || (left.is_tick_fired && self.sleep_ns > self.tick.ns());
        self.span_ns = if to_the_timer { self.sleep_ns } else { left.clock_ns.wrapping_sub(self.span_ns) };
    }

    fn residency_us(&self, state: usize) -> u32 {
        us(self.table.at(state).target_residency_ns)
    }

    fn learn(&mut self, last: usize) {
        let sleep_us = us(self.sleep_ns);
        let is_to_the_timer = self.span_ns >= self.sleep_ns;
        let measured_us = if is_to_the_timer {
            sleep_us
        } else {
            let (span, latency) = (us(self.span_ns), us(self.table.at(last).exit_latency_ns));
            if span >= latency { span - latency / 2 } else { span / 2 }
        };
        let (mut timers, mut right) = (None, None);
        for i in 0..self.table.n() {
            self.counts[i].early -= self.counts[i].early >> 3;
            let residency = self.residency_us(i);
            if residency <= sleep_us {
                timers = Some(i);
                if residency <= measured_us {
                    right = Some(i);
                }
            }
        }
        if let Some(timers) = timers {
            let counts = &mut self.counts[timers];
            counts.hit -= counts.hit >> 3;
            counts.miss -= counts.miss >> 3;
            if right < Some(timers) {
                counts.miss += PULSE;
                if let Some(right) = right {
                    self.counts[right].early += PULSE;
                }
            } else {
                counts.hit += PULSE;
            }
        }
        if let Some(slot) = self.ring.get_mut(self.cursor) {
            *slot = if is_to_the_timer { TO_THE_TIMER } else { measured_us };
        }
        self.cursor = if self.cursor < RING { self.cursor + 1 } else { 0 };
    }

    pub(super) fn select(&mut self, m: &Moment) -> Decision {
        if let Some(last) = self.last.take() {
            self.learn(last);
        }
        self.span_ns = m.clock_ns;
        self.sleep_ns = m.sleep_ns;
        let tick_us = self.tick.us();
        let limit = us(m.latency_limit_ns);
        let mut sleep = us(m.sleep_ns);
        let (mut best, mut best_at, mut chosen) = (0, None, None::<usize>);
        let mut is_limited = false;
        for i in 0..self.table.n() {
            let early = self.counts[i].early;
            if m.disabled.has(i) {
                if best_at.is_some() && best < early {
                    best = early;
                }
                continue;
            }
            let at = *chosen.get_or_insert(i);
            let residency = self.residency_us(i);
            if residency > sleep {
                break;
            }
            if us(self.table.at(i).exit_latency_ns) > limit {
                sleep = self.residency_us(at);
                is_limited = true;
                break;
            }
            chosen = Some(i);
            if best < early && !(m.is_tick_stopped && residency < tick_us) {
                best = early;
                best_at = Some(i);
            }
        }
        let mut state = chosen.unwrap_or(0);
        if !is_limited && chosen.is_some() && self.counts[state].hit <= self.counts[state].miss {
            if let Some(at) = best_at {
                state = at;
                sleep = self.residency_us(at);
            }
        }
        if state > 0 {
            let bound = self.residency_us(state);
            let (n, sum) = self
                .ring
                .iter()
                .filter(|us| **us < bound)
                .fold((0u64, 0u64), |(n, sum), us| (n + 1, sum + u64::from(*us)));
            if n > 4 {
                let mean = u32::try_from(sum / n).unwrap_or(u32::MAX);
                if !(m.is_tick_stopped && mean < tick_us) {
                    state = shallower(&self.table, m.disabled, state, i64::from(mean) * 1000, false);
                    sleep = mean;
                }
            }
        }
        let first = (0..self.table.n()).find(|i| !m.disabled.has(*i)).unwrap_or(0);
        // Whole microseconds against whole microseconds, as multiples of a thousand nanoseconds.
        let is_long = sleep >= tick_us;
        let next_event_ns = i64::from(us(m.next_event_ns)) * 1000;
        end(&self.table, m, state, first, is_long, next_event_ns)
    }
}

//! Menu's walk: from a guess of the sleep to a state, and the last word on the tick.
//!
//! The deepest state is taken whose residency fits into the guess and whose exit fits into the limit. Around that stand three
//! cares: not to spin where even a shallow sleep would do until the next timer; not to stop the tick for a short sleep, nor,
//! with the tick kept, to take a state that the tick will cut short; and, once the tick is stopped, not to be caught in a shallow
//! state for long, because no tick will come to correct it.

use super::form::Walk;
use crate::idle::{Decision, Moment};
use crate::table::Table;
use crate::units::unsigned as ns;

/// From this residency on, polling does not give way to a state (6.12.64 and later).
const SHORT_NS: i64 = 15_000;

/// What has been found out so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Guess {
    /// Time to the next timer, in nanoseconds.
    pub(super) timer_ns: u64,
    /// The sleep that is guessed, in nanoseconds.
    pub(super) sleep_ns: u64,
    /// Exits may take so long, in nanoseconds.
    pub(super) limit_ns: i64,
    /// Time to the next event with the tick kept, in nanoseconds.
    pub(super) next_event_ns: i64,
}

/// The state and whether the tick may stop.
#[inline]
pub(super) fn walk(form: Walk, table: &Table, tick_ns: i64, m: &Moment, mut g: Guess) -> Decision {
    let mut chosen: Option<usize> = None;
    let tick = ns(tick_ns);
    for (i, state) in table.states().iter().enumerate() {
        if m.disabled.has(i) {
            continue;
        }
        let at = *chosen.get_or_insert(i);
        let (latency, residency) = (state.exit_latency_ns, state.target_residency_ns);
        if form != Walk::ResidencyFirst && latency > g.limit_ns {
            break;
        }
        if ns(residency) <= g.sleep_ns {
            if form == Walk::ResidencyFirst && latency > g.limit_ns {
                break;
            }
            chosen = Some(i);
            continue;
        }
        let here = table.at(at);
        if here.is_polling && ns(residency) <= g.timer_ns && gives_way(form, latency, residency, &g) {
            g.sleep_ns = ns(residency);
            chosen = Some(i);
            break;
        }
        if g.sleep_ns < tick {
            break;
        }
        if !m.is_tick_stopped {
            g.sleep_ns = ns(here.target_residency_ns);
            break;
        }
        let deeper = ns(here.target_residency_ns) < tick && residency <= g.next_event_ns;
        return Decision { state: if deeper { i } else { at }, stop_tick: true, asked_timers: false };
    }
    let state = chosen.unwrap_or(0);
    if (!table.at(state).is_polling && g.sleep_ns >= tick) || m.is_tick_stopped {
        return Decision { state, stop_tick: true, asked_timers: false };
    }
    Decision { state: before_the_tick(table, m, state, g.next_event_ns), stop_tick: false, asked_timers: false }
}

/// Does spinning give way to this state, which the guess says is too deep?
#[inline]
fn gives_way(form: Walk, latency: i64, residency: i64, g: &Guess) -> bool {
    match form {
        Walk::ResidencyFirst => latency <= g.limit_ns,
        Walk::LatencyFirst => ns(latency) <= g.sleep_ns,
        Walk::LatencyFirstShort => ns(latency) <= g.sleep_ns && residency < SHORT_NS,
    }
}

/// With the tick kept, a state that pays before it comes.
#[inline]
fn before_the_tick(table: &Table, m: &Moment, mut state: usize, next_event_ns: i64) -> usize {
    if state == 0 || table.at(state).target_residency_ns <= next_event_ns {
        return state;
    }
    for i in (0..state).rev() {
        if m.disabled.has(i) {
            continue;
        }
        state = i;
        if table.at(i).target_residency_ns <= next_event_ns {
            break;
        }
    }
    state
}

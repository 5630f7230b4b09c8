//! Steps that every generation of teo takes alike: to a shallower state, and to the last word on the tick.

use crate::idle::{Decision, Left, Moment};
use crate::table::{Disabled, Table};

/// The next shallower state that pays within a time, or the shallowest there is; the same one where there is none.
pub(super) fn shallower(table: &Table, disabled: Disabled, from: usize, within_ns: i64, spares_polling: bool) -> usize {
    let mut state = from;
    for i in (0..from).rev() {
        let here = table.at(i);
        if disabled.has(i) || (spares_polling && here.is_polling) {
            continue;
        }
        state = i;
        if here.target_residency_ns <= within_ns {
            break;
        }
    }
    state
}

/// Stops the tick for a long sleep; keeps it for a short one, and then takes a state that pays before it comes.
pub(super) fn end(
    table: &Table,
    m: &Moment,
    state: usize,
    first: usize,
    is_long: bool,
    next_event_ns: i64,
) -> Decision {
    if (!table.at(state).is_polling && is_long) || m.is_tick_stopped {
        return Decision { state, stop_tick: true, asked_timers: true };
    }
    let is_cut_short = state > first && table.at(state).target_residency_ns > next_event_ns;
    let state = if is_cut_short { shallower(table, m.disabled, state, next_event_ns, false) } else { state };
    Decision { state, stop_tick: false, asked_timers: true }
}

/// How long the last sleep is taken to have been: to its timer where that, or the tick in its place, ended it.
pub(super) fn span_ns(left: &Left, sleep_ns: i64, tick_ns: i64, selected_at_ns: i64) -> i64 {
    let to_the_timer = left.is_poll_limit_hit || (left.is_tick_fired && sleep_ns > tick_ns);
    if to_the_timer { sleep_ns } else { left.clock_ns.wrapping_sub(selected_at_ns) }
}

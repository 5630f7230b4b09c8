//! menu as 5.3 had it: the same rule in whole microseconds.
//!
//! Until 5.4 the core counted in microseconds, and cut everything to 32 bits. Besides the rounding, three things differ: a limit
//! of zero or a timer too near never stops the tick, with the tick stopped a short guess becomes the next event (not the next timer),
//! and a state whose exit is too slow ends the walk with the residency of the last that fitted as the guess.

use super::correction::bucket;
use super::{Decision, Menu, Moment};
use crate::table::State;
use crate::units::{residency_us, whole_us as us};

/// Sleeps are learned in these: a stopped tick that fired again, and what proves the timer right.
const TICK_AGAIN_US: u32 = 45_000;
const LONG_US: u64 = 50_000;

fn claims_us(state: State) -> (u32, u32) {
    (us(state.exit_latency_ns), us(state.target_residency_ns))
}

pub(super) fn select(menu: &mut Menu, m: &Moment) -> Decision {
    if menu.is_pending {
        learn(menu);
        menu.is_pending = false;
    }
    let mut limit = u64::from(us(m.latency_limit_ns));
    let (timer, next_event) = (us(m.sleep_ns), us(m.next_event_ns));
    menu.timer = u64::from(timer);
    menu.bucket = bucket(u64::from(timer) * 1000, m.n_iowait > 0);
    let said = |state, stop_tick| Decision { state, stop_tick, asked_timers: true };
    if limit == 0 || menu.table.n() <= 1 {
        return said(0, false);
    }
    let (latency, residency) = claims_us(menu.table.at(1));
    if (timer < residency || limit < u64::from(latency)) && !m.disabled.has(0) {
        return said(0, false);
    }
    let estimate = menu.correction.estimate_us::<1>(menu.bucket, menu.timer);
    let mut sleep = estimate.min(menu.intervals.typical(menu.form.typical, false, estimate));
    let tick = menu.tick.us();
    if m.is_tick_stopped {
        if sleep < tick {
            sleep = next_event;
        }
    } else {
        limit = limit.min(u64::from(sleep) / (1 + 10 * u64::from(m.n_iowait)));
    }

    let mut chosen: Option<usize> = None;
    for (i, state) in menu.table.states().iter().enumerate() {
        if m.disabled.has(i) {
            continue;
        }
        let at = *chosen.get_or_insert(i);
        let here = menu.table.at(at);
        let (latency, residency) = claims_us(*state);
        let here_residency = us(here.target_residency_ns);
        if residency > sleep {
            if here.is_polling && u64::from(latency) <= limit && residency <= timer {
                sleep = residency;
                chosen = Some(i);
                break;
            }
            if sleep < tick {
                break;
            }
            if !m.is_tick_stopped {
                sleep = here_residency;
                break;
            }
            return said(if here_residency < tick && residency <= next_event { i } else { at }, true);
        }
        if u64::from(latency) > limit {
            sleep = here_residency;
            break;
        }
        chosen = Some(i);
    }
    let mut state = chosen.unwrap_or(0);
    if m.is_tick_stopped || (!menu.table.at(state).is_polling && sleep >= tick) {
        return said(state, true);
    }
    if state > 0 && us(menu.table.at(state).target_residency_ns) > next_event {
        for i in (0..state).rev().filter(|i| !m.disabled.has(*i)) {
            state = i;
            if us(menu.table.at(i).target_residency_ns) <= next_event {
                break;
            }
        }
    }
    said(state, false)
}

fn learn(menu: &mut Menu) {
    let state = menu.table.at(usize::from(menu.last));
    let timer = u32::try_from(menu.timer).unwrap_or(u32::MAX);
    let (residency, latency) = (residency_us(menu.residency_ns), us(state.exit_latency_ns));
    let slept = if menu.is_tick_fired && timer > menu.tick.us() {
        TICK_AGAIN_US
    } else if state.is_polling && menu.is_poll_limit_hit {
        timer
    } else if residency > latency.wrapping_mul(2) {
        residency.wrapping_sub(latency)
    } else {
        residency / 2
    };
    let slept = slept.min(timer);
    menu.correction.learn(menu.bucket, u64::from(slept), u64::from(timer), LONG_US);
    menu.intervals.push(slept);
}

//! teo's second thought: where sleeps shallower than the candidate are usually cut short, find the state they were cut to.
//!
//! If intercepts of shallower states outweigh everything of the candidate and deeper ones, walk down from it and add them up; where
//! more than half of them lie at or below a state, that state it is. A state that may not be chosen is stepped over, and remembered is
//! the last one that could have been.

use super::bins::{Bins, Sums};
use crate::idle::Moment;
use crate::table::Table;

/// Where the walk over the states ends where the timers were not asked: at the deepest enabled one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deepest {
    pub(super) state: usize,
    /// The shallowest enabled one; 0 where state 0 is.
    pub(super) first: usize,
    /// The deepest that the latency limit lets in; 0 where it lets none in.
    pub(super) fits: usize,
    /// Of the states shallower than `state`.
    pub(super) below: Sums,
}

/// None where every state is disabled.
pub(super) fn deepest(bins: &Bins, table: &Table, m: &Moment) -> Option<Deepest> {
    let (mut chosen, mut first, mut fits) = ((!m.disabled.has(0)).then_some(0), 0, 0);
    let (mut sums, mut below) = (Sums::default(), Sums::default());
    for i in 1..table.n() {
        sums.add(bins.of[i - 1]);
        if m.disabled.has(i) {
            continue;
        }
        if chosen.is_none() {
            first = i;
        }
        chosen = Some(i);
        if table.at(i).exit_latency_ns <= m.latency_limit_ns {
            fits = i;
        }
        below = sums;
    }
    chosen.map(|state| Deepest { state, first, fits, below })
}

/// Which counts ask for a second thought.
#[derive(Clone, Copy, Debug)]
pub(super) struct Why {
    /// Intercepts at all times.
    pub(super) intercepts: bool,
    /// Intercepts among the last nine sleeps.
    pub(super) recent: bool,
}

/// The state found, or the candidate. `may` says of a state whether it is enabled, and whether a stopped tick allows it.
pub(super) fn search(
    bins: &Bins,
    why: Why,
    below: Sums,
    candidate: usize,
    may: impl Fn(usize) -> (bool, bool),
) -> usize {
    let (mut intercepts, mut recent) = (0u32, 0u32);
    let mut spare = candidate;
    for i in (0..candidate).rev() {
        intercepts = intercepts.wrapping_add(bins.of[i].intercepts);
        recent = recent.wrapping_add(bins.of[i].recent);
        let (is_enabled, is_allowed) = may(i);
        let is_half = (!why.recent || recent.wrapping_mul(2) > below.recent)
            && (!why.intercepts || intercepts.wrapping_mul(2) > below.intercepts);
        if is_half {
            return if is_enabled && is_allowed { i } else { spare };
        }
        if !is_enabled {
            continue;
        }
        if is_allowed {
            spare = i;
        } else if spare == candidate {
            return candidate;
        }
    }
    candidate
}

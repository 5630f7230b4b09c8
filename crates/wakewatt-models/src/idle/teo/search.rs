//! teo's second thought: where sleeps shallower than the candidate are usually cut short, find the state they were cut to.
//!
//! If intercepts of shallower states outweigh everything of the candidate and deeper ones, walk down from it and add them up; where
//! more than half of them lie at or below a state, that state it is. A state that may not be chosen is stepped over, and remembered is
//! the last one that could have been.

use super::bins::{Bins, Sums};

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

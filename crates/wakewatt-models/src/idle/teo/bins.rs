//! The statistics of teo since 5.14: sleeps by the state that would have been right.
//!
//! A *hit* is a sleep that lasted as the timers said it would, an *intercept* one that something ended earlier. Both are counted
//! with a weight of 1024 that decays by an eighth each time. The first two generations also count the last nine sleeps,
//! where an intercept counts whole, so that a change is noticed at once.

use crate::table::{MOST_STATES, Table};

/// Weight of one sleep.
pub(super) const PULSE: u32 = 1024;
/// A count loses an eighth with each sleep.
pub(super) const DECAY: u32 = 3;
/// Sleeps that count as recent.
const RECENT: usize = 9;

/// Longer than any timer: the sleep lasted to it.
pub(super) const TO_THE_TIMER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bin {
    pub(super) hits: u32,
    pub(super) intercepts: u32,
    pub(super) recent: u32,
}

/// The counts of one CPU.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    pub(super) of: [Bin; MOST_STATES],
    ring: [Option<u8>; RECENT],
    at: usize,
}

/// Sums over the states shallower than one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) intercepts: u32,
    pub(super) hits: u32,
    pub(super) recent: u32,
}

impl Sums {
    pub(super) fn add(&mut self, bin: Bin) {
        self.intercepts = self.intercepts.wrapping_add(bin.intercepts);
        self.hits = self.hits.wrapping_add(bin.hits);
        self.recent = self.recent.wrapping_add(bin.recent);
    }
}

impl Default for Bins {
    fn default() -> Bins {
        Bins { of: [Bin::default(); MOST_STATES], ring: [None; RECENT], at: 0 }
    }
}

impl Bins {
    /// All counts lose an eighth; what is left of them together.
    pub(super) fn decay(&mut self, n: usize) -> u32 {
        let mut total = 0u32;
        for bin in &mut self.of[..n] {
            bin.hits -= bin.hits >> DECAY;
            bin.intercepts -= bin.intercepts >> DECAY;
            total = total.wrapping_add(bin.hits).wrapping_add(bin.intercepts);
        }
        total
    }

    /// The deepest state that the timers allowed, and the deepest that the sleep was long enough for.
    pub(super) fn fitting(table: &Table, sleep_ns: i64, slept_ns: u64) -> (usize, usize) {
        let (mut timers, mut right) = (0, 0);
        for (i, state) in table.states().iter().enumerate() {
            if state.target_residency_ns <= sleep_ns {
                timers = i;
                if state.target_residency_ns.cast_unsigned() <= slept_ns {
                    right = i;
                }
            }
        }
        (timers, right)
    }

    /// Counts a sleep.
    pub(super) fn count(&mut self, timers: usize, right: usize) {
        let bin = &mut self.of[right];
        let count = if timers == right { &mut bin.hits } else { &mut bin.intercepts };
        *count = count.wrapping_add(PULSE);
    }

    /// The oldest recent sleep is forgotten, and its place is the next to be written.
    pub(super) fn forget(&mut self) {
        self.at = (self.at + 1) % RECENT;
        if let Some(old) = self.ring[self.at] {
            // Below zero where a place was forgotten and not written again: the kernel wraps too.
            let recent = &mut self.of[usize::from(old)].recent;
            *recent = recent.wrapping_sub(1);
        }
    }

    /// The newest recent sleep.
    pub(super) fn remember(&mut self, timers: usize, right: usize) {
        let is_intercept = timers != right;
        if is_intercept {
            self.of[right].recent = self.of[right].recent.wrapping_add(1);
        }
        self.ring[self.at] = if is_intercept { u8::try_from(right).ok() } else { None };
    }
}

/// How long a CPU really slept, less what leaving the state is thought to have taken.
pub(super) fn slept_ns(residency_ns: i64, exit_latency_ns: i64) -> u64 {
    let (residency, latency) = (residency_ns.cast_unsigned(), exit_latency_ns.cast_unsigned());
    if residency >= latency { residency - latency / 2 } else { residency / 2 }
}

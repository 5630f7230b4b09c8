//! haltpoll: in a guest, spin a while before halting, because to halt is to leave for the host.
//!
//! Mirrors 5.4 to 6.18 (read, not held against compiled code). The window grows after sleeps that a little more spinning would have
//! covered, and shrinks after sleeps that no spinning could. Window zero means halt at once; otherwise spin, and halt
//! in the next pass if the spin ended at its limit. It never lets the tick stop while it spins.

use super::{Decision, Left, Moment};
use crate::kernel::{Basis, Release, Row, row_of};
use Basis::{Assumed, Inferred};

/// Module parameters, as shipped. Times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Longest window.
    pub most_ns: u64,
    /// The window is divided by this; zero closes it.
    pub shrink: u64,
    /// The window is multiplied by this.
    pub grow: u64,
    /// Smallest window that is open.
    pub grow_start_ns: u64,
    /// May it shrink at all?
    pub may_shrink: bool,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { most_ns: 200_000, shrink: 2, grow: 2, grow_start_ns: 50_000, may_shrink: true }
    }
}

/// One kernel's haltpoll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// A window that shrank below the smallest closes.
    closes_below_start: bool,
}

const ROWS: &[Row<Form>] = &[
    Row::new((0, 0, 0), "haltpoll of 5.4", Assumed, Form { closes_below_start: false }),
    Row::new((5, 4, 0), "haltpoll of 5.4", Inferred, Form { closes_below_start: false }),
    Row::new((6, 7, 0), "haltpoll of 6.7", Inferred, Form { closes_below_start: true }),
    Row::new((6, 19, 0), "haltpoll of 6.7", Assumed, Form { closes_below_start: true }),
];

/// The form a release has.
pub fn form_in(release: Release) -> Row<Form> {
    row_of(ROWS, release)
}

/// The haltpoll governor of one CPU.
#[derive(Clone, Debug)]
pub struct Haltpoll {
    form: Form,
    parameters: Parameters,
    window_ns: u64,
    last: usize,
    is_poll_limit_hit: bool,
}

impl Haltpoll {
    /// As right after it was enabled, with the parameters as shipped.
    pub fn new(form: Form) -> Haltpoll {
        Haltpoll::with(form, Parameters::default())
    }

    /// With other parameters.
    pub fn with(form: Form, parameters: Parameters) -> Haltpoll {
        Haltpoll { form, parameters, window_ns: 0, last: 0, is_poll_limit_hit: false }
    }

    /// Sets `guest_halt_poll_ns`; zero: it never spins.
    pub fn set_longest_window(&mut self, most_ns: u64) {
        self.parameters.most_ns = most_ns;
    }

    /// How long the polling state may spin now, in nanoseconds.
    pub fn window_ns(&self) -> u64 {
        self.window_ns
    }

    /// Chooses.
    #[inline]
    pub fn select(&mut self, m: &Moment) -> Decision {
        let said = |state, stop_tick| Decision { state, stop_tick, asked_timers: false };
        if m.latency_limit_ns == 0 {
            return said(0, false);
        }
        if self.window_ns == 0 {
            return said(1, true);
        }
        // Spun to the limit: halt; anything else: spin.
        if self.last == 0 && self.is_poll_limit_hit { said(1, true) } else { said(0, false) }
    }

    /// Hears what came of a choice.
    #[inline]
    pub fn reflect(&mut self, left: &Left) {
        self.last = left.state;
        self.is_poll_limit_hit = left.is_poll_limit_hit;
        if left.state == 0 {
            return;
        }
        let (p, blocked_ns) = (self.parameters, left.residency_ns.cast_unsigned());
        if blocked_ns > self.window_ns && blocked_ns <= p.most_ns {
            self.window_ns = self.window_ns.saturating_mul(p.grow).max(p.grow_start_ns).min(p.most_ns);
        } else if blocked_ns > p.most_ns && p.may_shrink {
            self.window_ns = self.window_ns.checked_div(p.shrink).unwrap_or(0);
            if self.form.closes_below_start && self.window_ns < p.grow_start_ns {
                self.window_ns = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(closes_below_start: bool, lasted_us: &[i64]) -> Vec<u64> {
        let mut governor = Haltpoll::new(Form { closes_below_start });
        let after = |us: &i64| {
            governor.reflect(&Left { state: 1, residency_ns: us * 1000, ..Left::default() });
            governor.window_ns()
        };
        lasted_us.iter().map(after).collect()
    }

    #[test]
    fn windows_grow_and_shrink() {
        let lasted = [30, 120, 150, 1000, 1000, 1000];
        assert_eq!(windows(false, &lasted), [50_000, 100_000, 200_000, 100_000, 50_000, 25_000]);
        assert_eq!(windows(true, &lasted), [50_000, 100_000, 200_000, 100_000, 50_000, 0]);
    }

    #[test]
    fn a_longest_window_of_nothing_never_opens() {
        let mut governor = Haltpoll::new(Form { closes_below_start: true });
        governor.set_longest_window(0);
        for us in [0, 1, 30, 5000] {
            governor.reflect(&Left { state: 1, residency_ns: us * 1000, ..Left::default() });
            assert_eq!(governor.window_ns(), 0);
        }
    }

    #[test]
    fn it_spins_first_and_halts_after_the_limit() {
        let free = Moment { latency_limit_ns: 2_000_000_000_000, ..Moment::default() };
        let mut governor = Haltpoll::new(Form { closes_below_start: true });
        let mut said = |left: Option<Left>| {
            left.iter().for_each(|l| governor.reflect(l));
            let d = governor.select(&free);
            (d.state, d.stop_tick)
        };
        assert_eq!(said(None), (1, true));
        let halted = Left { state: 1, residency_ns: 30_000, ..Left::default() };
        assert_eq!(said(Some(halted)), (0, false));
        let spun = Left { state: 0, residency_ns: 50_000, is_poll_limit_hit: true, ..Left::default() };
        assert_eq!(said(Some(spun)), (1, true));
        assert_eq!(said(Some(Left { is_poll_limit_hit: false, ..spun })), (0, false));
        assert_eq!(governor.select(&Moment::default()).state, 0);
    }
}

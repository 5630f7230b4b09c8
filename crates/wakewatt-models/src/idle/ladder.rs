//! ladder: one step deeper after four sleeps that were long enough, one step back after one that was not.
//!
//! Mirrors 5.3 to 7.2; only the unit changed (whole microseconds in 32 bits up to 5.4, nanoseconds in 64 since). The sleep less
//! the exit latency is compared *without a sign*: a sleep shorter than the exit latency becomes a huge number, so it votes
//! for going deeper and never for going back. That is a quirk of the kernel, and it is why ladder drifts into the deepest state on busy
//! servers; it is reproduced here. It looks at no timer, and always lets the tick stop.

use super::{Decision, Left, Moment};
use crate::kernel::{Basis, Release, Row, row_of};
use crate::table::{MOST_STATES, State, Table};
use crate::units;
use Basis::{Assumed, Checked, Inferred};
use std::sync::Arc;

/// Votes for a step down the ladder, that is deeper.
const VOTES_DEEPER: u32 = 4;

/// One kernel's ladder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Whole microseconds in 32 bits.
    in_us: bool,
}

const ROWS: &[Row<Form>] = &[
    Row::new((0, 0, 0), "ladder of 5.3", Assumed, Form { in_us: true }),
    Row::new((5, 3, 0), "ladder of 5.3", Checked, Form { in_us: true }),
    Row::new((5, 4, 0), "ladder of 5.3", Assumed, Form { in_us: true }),
    Row::new((5, 5, 0), "ladder of 5.14", Assumed, Form { in_us: false }),
    Row::new((5, 14, 0), "ladder of 5.14", Checked, Form { in_us: false }),
    Row::new((5, 15, 0), "ladder of 5.14", Inferred, Form { in_us: false }),
    Row::new((6, 1, 0), "ladder of 5.14", Checked, Form { in_us: false }),
    Row::new((6, 2, 0), "ladder of 5.14", Inferred, Form { in_us: false }),
    Row::new((6, 12, 0), "ladder of 5.14", Checked, Form { in_us: false }),
    Row::new((6, 13, 0), "ladder of 5.14", Inferred, Form { in_us: false }),
    Row::new((6, 18, 0), "ladder of 5.14", Checked, Form { in_us: false }),
    Row::new((6, 19, 0), "ladder of 5.14", Inferred, Form { in_us: false }),
    Row::new((7, 2, 0), "ladder of 5.14", Checked, Form { in_us: false }),
    Row::new((7, 3, 0), "ladder of 5.14", Assumed, Form { in_us: false }),
];

/// The form a release has.
pub fn form_in(release: Release) -> Row<Form> {
    row_of(ROWS, release)
}

/// Votes of a state since it was last moved from.
#[derive(Clone, Copy, Debug, Default)]
struct Votes {
    deeper: u32,
    back: u32,
}

/// The ladder governor of one CPU.
#[derive(Clone, Debug)]
pub struct Ladder {
    form: Form,
    table: Arc<Table>,
    /// The state below which it does not step: the first that does not spin.
    first: usize,
    last: usize,
    votes: [Votes; MOST_STATES],
    residency_ns: i64,
}

impl Ladder {
    /// As right after it was enabled.
    pub fn new(form: Form, table: Table) -> Ladder {
        // Where it can only spin, it spins; kernels since 6.1.165 do not ask then.
        let first = usize::from(table.at(0).is_polling && table.n() > 1);
        Ladder {
            form,
            table: Arc::new(table),
            first,
            last: first,
            votes: [Votes::default(); MOST_STATES],
            residency_ns: 0,
        }
    }

    /// Hears what came of a choice.
    #[inline]
    pub fn reflect(&mut self, left: &Left) {
        if left.state > 0 {
            self.last = left.state.min(MOST_STATES - 1);
        }
        self.residency_ns = left.residency_ns;
    }

    /// The kernel's moved to another state than this one.
    pub fn follow(&mut self, state: usize) {
        if state < self.table.n() {
            self.move_to(state);
            self.votes[state] = Votes::default();
        }
    }

    /// The core's memory of the last stay, of another governor's time.
    pub fn take_over(&mut self, residency_ns: i64) {
        self.residency_ns = residency_ns;
    }

    /// The state was not entered.
    pub fn reject(&mut self) {
        self.residency_ns = 0;
    }

    /// Chooses.
    #[inline]
    pub fn select(&mut self, m: &Moment) -> Decision {
        let state = self.step(m);
        Decision { state, stop_tick: true, asked_timers: false }
    }

    /// A time in the unit of this form.
    fn unit(&self, ns: i64) -> u64 {
        if self.form.in_us { u64::from(units::whole_us(ns)) } else { ns.cast_unsigned() }
    }

    /// How much longer than the exit it slept; a shorter sleep wraps.
    fn beyond_exit(&self, exit: u64) -> u64 {
        if self.form.in_us {
            return u64::from(
                units::residency_us(self.residency_ns).wrapping_sub(u32::try_from(exit).unwrap_or(u32::MAX)),
            );
        }
        self.residency_ns.cast_unsigned().wrapping_sub(exit)
    }

    fn move_to(&mut self, state: usize) -> usize {
        self.votes[self.last] = Votes::default();
        self.last = state;
        state
    }

    fn step(&mut self, m: &Moment) -> usize {
        let (last, first) = (self.last, self.first);
        let limit = self.unit(m.latency_limit_ns);
        if limit == 0 {
            return self.move_to(0);
        }
        let exit_of = |state: State| state.exit_latency_ns;
        let exit = self.unit(exit_of(self.table.at(last)));
        let beyond = self.beyond_exit(exit);
        let (deeper_beyond, votes_needed) = if last < first { (0, 0) } else { (exit, VOTES_DEEPER) };
        let next = last + 1;
        let next_exit = self.unit(exit_of(self.table.at(next)));
        if next < self.table.n() && !m.disabled.has(next) && beyond > deeper_beyond && next_exit <= limit {
            let votes = &mut self.votes[last];
            votes.deeper = votes.deeper.saturating_add(1);
            votes.back = 0;
            if votes.deeper >= votes_needed {
                return self.move_to(next);
            }
        }
        if last > first && (m.disabled.has(last) || exit > limit) {
            let fits = |state: &usize| self.unit(exit_of(self.table.at(*state))) <= limit;
            // The state it lands on may be disabled itself.
            let to = (first + 1..last).rev().find(fits).unwrap_or(first);
            return self.move_to(to);
        }
        if last > first && beyond < exit {
            // One vote is enough.
            return self.move_to(last - 1);
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Disabled;

    const NS: Form = Form { in_us: false };
    const FREE: Moment = Moment {
        sleep_ns: 0,
        next_event_ns: 0,
        is_tick_stopped: false,
        latency_limit_ns: 2_000_000_000_000,
        n_iowait: 0,
        utilisation: 0,
        disabled: Disabled::NONE,
        clock_ns: 0,
    };

    fn acpi4() -> Table {
        let rows = [(1, 2), (41, 82), (100, 200)].map(|(l, t)| State::sleeping_us(l, t));
        Table::new(&[&[State::POLL], &rows[..]].concat()).unwrap()
    }

    /// What it chooses when each choice lasts as long as the list says, the first choice coming first.
    fn chosen(form: Form, lasted_us: &[i64]) -> Vec<usize> {
        let mut ladder = Ladder::new(form, acpi4());
        let mut all = vec![ladder.select(&FREE).state];
        for us in lasted_us {
            let state = all[all.len() - 1];
            ladder.reflect(&Left { state, residency_ns: us * 1000, ..Left::default() });
            all.push(ladder.select(&FREE).state);
        }
        all
    }

    #[test]
    fn four_long_sleeps_deepen_and_one_short_one_climbs_back() {
        assert_eq!(chosen(NS, &[500, 500, 500, 500, 500, 20, 60]), [1, 1, 1, 2, 2, 2, 2, 1]);
        assert_eq!(chosen(Form { in_us: true }, &[500, 500, 500, 500, 500, 20, 60]), [1, 1, 1, 2, 2, 2, 2, 1]);
    }

    #[test]
    fn a_sleep_shorter_than_the_exit_votes_for_deeper() {
        // To C3 first: four votes each in C1 and C2.
        let deep = [500; 7];
        let told = |us: i64| chosen(NS, &[&deep[..], &[us]].concat());
        assert_eq!(told(500)[7], 3);
        assert_eq!((told(150)[8], told(80)[8]), (2, 3));
    }

    #[test]
    fn one_that_begins_late_falls_in_with_the_kernel() {
        // The kernel's had three votes before the recording began.
        let (mut kernel, mut model) = (Ladder::new(NS, acpi4()), Ladder::new(NS, acpi4()));
        let long = |state| Left { state, residency_ns: 500_000, ..Left::default() };
        for _ in 0..3 {
            let state = kernel.select(&FREE).state;
            kernel.reflect(&long(state));
        }
        let mut n_other = 0;
        for i in 0..60 {
            let (is, said) = (kernel.select(&FREE).state, model.select(&FREE).state);
            n_other += usize::from(is != said);
            if is != said {
                model.follow(is);
            }
            // Now and then too short for C3, so that it falls back.
            let residency_ns = if is == 3 && i % 7 == 0 { 150_000 } else { 500_000 };
            kernel.reflect(&Left { state: is, residency_ns, ..Left::default() });
            model.reflect(&Left { state: is, residency_ns, ..Left::default() });
        }
        assert!(n_other <= 2, "{n_other}");
    }

    #[test]
    fn limits_and_disabled_states_move_it() {
        let mut ladder = Ladder::new(NS, acpi4());
        ladder.reflect(&Left { state: 3, residency_ns: 500_000, ..Left::default() });
        assert_eq!(ladder.select(&Moment { latency_limit_ns: 50_000, ..FREE }).state, 2);
        assert_eq!(ladder.select(&Moment { disabled: Disabled::of([2]), ..FREE }).state, 1);
        assert_eq!(ladder.select(&Moment { latency_limit_ns: 0, ..FREE }).state, 0);
    }
}

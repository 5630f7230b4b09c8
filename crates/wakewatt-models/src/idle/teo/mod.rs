//! teo: ask which state would have been right lately, instead of how long the sleep will be.
//!
//! Timers are the only wake-ups known beforehand, so they bound the choice; what ends sleeps earlier is learned as statistics
//! per state, not as times. Mirrors 5.3 to 6.18 by the rows of `form.rs`, a file per generation: they share the steps (`steps.rs`),
//! the counts (`bins.rs`) and the second thought (`search.rs`), and little else.

mod bins;
mod early_hits;
mod form;
mod search;
mod short_sleeps;
mod steps;
#[cfg(test)]
mod tests;
mod timers_first;
mod timers_late;

pub use form::{Form, form_in};

use super::{Decision, Left, Moment};
use crate::table::Table;
use crate::tick::Tick;

/// The teo governor of one CPU.
#[derive(Clone, Debug)]
pub struct Teo(Generation);

#[derive(Clone, Debug)]
enum Generation {
    EarlyHits(early_hits::EarlyHits),
    TimersFirst(timers_first::TimersFirst),
    TimersLate(timers_late::TimersLate),
    ShortSleeps(short_sleeps::ShortSleeps),
}

impl Teo {
    /// As right after it was enabled.
    pub fn new(form: Form, table: Table, tick: Tick) -> Teo {
        Teo(match form {
            Form::EarlyHits => Generation::EarlyHits(early_hits::EarlyHits::new(table, tick)),
            Form::TimersFirst { uses_utilisation } => {
                Generation::TimersFirst(timers_first::TimersFirst::new(uses_utilisation, table, tick))
            }
            Form::TimersLate { is_first, always_yields } => {
                Generation::TimersLate(timers_late::TimersLate::new(is_first, always_yields, table, tick))
            }
            Form::ShortSleeps { always_yields } => {
                Generation::ShortSleeps(short_sleeps::ShortSleeps::new(always_yields, table, tick))
            }
        })
    }

    /// Chooses.
    #[inline]
    pub fn select(&mut self, m: &Moment) -> Decision {
        match &mut self.0 {
            Generation::EarlyHits(g) => g.select(m),
            Generation::TimersFirst(g) => g.select(m),
            Generation::TimersLate(g) => g.select(m),
            Generation::ShortSleeps(g) => g.select(m),
        }
    }

    /// Hears what came of a choice.
    #[inline]
    pub fn reflect(&mut self, left: &Left) {
        match &mut self.0 {
            Generation::EarlyHits(g) => g.reflect(left),
            Generation::TimersFirst(g) => g.reflect(left),
            Generation::TimersLate(g) => g.reflect(left),
            Generation::ShortSleeps(g) => g.reflect(left),
        }
    }

    /// The state was not entered. The next choice then has nothing to learn from: only `reflect` says what was last.
    pub fn reject(&mut self) {}
}

//! The words of a comparison for a ratio and its interval.

use crate::covers::Covers;
use crate::samples::experiment::Verdict;
use crate::stats::discoveries;
use crate::stats::paired::NEGLIGIBLE_RATIO;
use crate::stats::sessions::{LEVEL, Shift};
use wakewatt_words::{say, word};

/// The house's words for an interval. Below 5 % either way is not worth a word, however sure: two runs drift by that.
pub(super) fn verdict((low, high): (f64, f64)) -> Verdict {
    if low >= 1.0 / NEGLIGIBLE_RATIO && high <= NEGLIGIBLE_RATIO {
        Verdict::NoDifference
    } else if low > 1.0 {
        Verdict::Higher
    } else if high < 1.0 {
        Verdict::Lower
    } else {
        Verdict::Undecided
    }
}

/// Three digits that still show a small difference from 1.
pub(super) fn show(ratio: f64) -> String {
    if ratio >= 10.0 { format!("{ratio:.1}") } else { format!("{ratio:.2}") }
}

/// `95 % interval 1.10 to 1.30, adjusted for 12 comparisons, covers these two runs`.
pub(super) fn interval((low, high): (f64, f64), page: Page, covers: Covers) -> String {
    let (low, high, both) = (show(low), show(high), both(covers));
    match page.n_compared {
        0 | 1 => say!("95 % interval {low} to {high}, covers {both}"),
        n => say!("95 % interval {low} to {high}, adjusted for {n} comparisons, covers {both}"),
    }
}

/// What is compared at once on a page, and the level that follows for each interval: of what is called different at most 5 % is not,
/// expected over pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Page {
    /// Comparisons that have an interval.
    pub(super) n_compared: usize,
    /// The error rate of each of these intervals.
    pub(super) level: f64,
}

impl Page {
    /// Of the p-values of everything on it.
    pub(super) fn of(p_values: &[f64]) -> Page {
        Page { n_compared: p_values.len(), level: discoveries::level(p_values, LEVEL) }
    }

    /// One comparison on it: what may be said, the interval beside it, and what that is adjusted for. That nothing differs needs no
    /// adjusting: it is said of what is not selected, by the interval of the comparison alone.
    pub(super) fn judge(self, shift: Shift) -> (Verdict, (f64, f64), Page) {
        let alone = Page { n_compared: 1, level: LEVEL };
        let plain = alone.interval(shift);
        if verdict(plain) == Verdict::NoDifference {
            return (Verdict::NoDifference, plain, alone);
        }
        let ends = self.interval(shift);
        (verdict(ends), ends, self)
    }

    /// Two runs may leave anything open, and a document has no number for that: a billion times stands for it.
    fn interval(self, shift: Shift) -> (f64, f64) {
        let (low, high) = shift.at(self.level);
        let most = 1e9f64.ln();
        (low.max(-most).exp(), high.min(most).exp())
    }
}

/// What a difference of two sides is about: both windows, runs or machines, which need not be one machine.
pub(super) fn both(covers: Covers) -> &'static str {
    match covers {
        Covers::Window => word!("these two windows"),
        Covers::Run => word!("these two runs"),
        Covers::Hours => word!("these hours only, because the sides did not take turns"),
        Covers::Machine | Covers::Machines => word!("the machines, over the sessions given"),
    }
}

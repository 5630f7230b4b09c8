//! The words of a comparison for a ratio and its interval.

use crate::covers::Covers;
use crate::samples::experiment::Verdict;
use crate::stats::paired::NEGLIGIBLE_RATIO;
use wakewatt_words::{say, word};

/// The house's words for an interval. Below 5 % either way is not worth a word, however sure: two runs drift by that.
pub(super) fn verdict(low: f64, high: f64) -> Verdict {
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

/// `95 % interval 1.10 to 1.30, covers these two runs`.
pub(super) fn interval(low: f64, high: f64, covers: Covers) -> String {
    say!("95 % interval {} to {}, covers {both}", show(low), show(high), both = both(covers))
}

/// What a difference of two sides is about: both windows, runs or machines, which need not be one machine.
pub(super) fn both(covers: Covers) -> &'static str {
    match covers {
        Covers::Window => word!("these two windows"),
        Covers::Run => word!("these two runs"),
        Covers::Machine | Covers::Machines => word!("the machines, over the sessions given"),
    }
}

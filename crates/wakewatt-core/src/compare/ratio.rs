//! The words of a comparison for a ratio and its interval.

use crate::samples::experiment::Verdict;
use crate::stats::paired::NEGLIGIBLE_RATIO;

/// The house's words for an interval, with a test where there is one. Below 5 % either way is not worth a word, however
/// sure: two runs drift by that.
pub(super) fn verdict(low: f64, high: f64, p_value: Option<f64>) -> Verdict {
    let is_proven = p_value.is_none_or(|p| p <= 0.05);
    if low >= 1.0 / NEGLIGIBLE_RATIO && high <= NEGLIGIBLE_RATIO {
        Verdict::NoDifference
    } else if low > 1.0 && is_proven {
        Verdict::Higher
    } else if high < 1.0 && is_proven {
        Verdict::Lower
    } else {
        Verdict::Undecided
    }
}

/// Three digits that still show a small difference from 1.
pub(super) fn show(ratio: f64) -> String {
    if ratio >= 10.0 { format!("{ratio:.1}") } else { format!("{ratio:.2}") }
}

/// `95 % interval 1.10 to 1.30`.
pub(super) fn interval(low: f64, high: f64) -> String {
    format!("95 % interval {} to {}", show(low), show(high))
}

//! A difference in a sentence, or why it is none.

use super::{Basis, Decider, SampleDifference, Undecided};
use crate::compare::quantities::WindowInterval;
use crate::compare::ratio::{self, Page};
use crate::samples::experiment::Verdict;
use crate::samples::titles;
use crate::stats::sessions::MIN_WINDOWS;
use wakewatt_words::{say, word};

/// The sentence.
pub(super) fn of(d: &SampleDifference, page: Page) -> String {
    // In an open loop the latency counts from the plan, which is more than the service time.
    let is_service = d.kind == "disk" && (d.id.contains(".closed") || d.id.contains(".service"));
    let name = if is_service { word!("service time") } else { word!("it") };
    let size = d.measure.show(two_digits(d.difference.abs()));
    let says = match (d.verdict, d.is_steady) {
        (Verdict::Higher, Some(true)) => say!("{name} grew by a steady {size}"),
        (Verdict::Lower, Some(true)) => say!("{name} shrank by a steady {size}"),
        (Verdict::Higher, _) => say!("higher in B by {size}"),
        (Verdict::Lower, _) => say!("lower in B by {size}"),
        (Verdict::NoDifference, _) => word!("no difference worth a word").into(),
        (Verdict::Undecided, _) => why(d),
    };
    let (a, b) = (value(d, d.a, d.a_window), value(d, d.b, d.b_window));
    let ratio = ratio::show(d.ratio);
    let interval = match (d.ratio_low, d.ratio_high, d.covers) {
        (Some(low), Some(high), Some(covers)) => say!(", {}", ratio::interval((low, high), page, covers)),
        _ => word!(", without an interval").into(),
    };
    say!("{}: {says} ({a} in A, {b} in B; B is {ratio} times A{interval}; {})", titles::shown(&d.title), windows(d))
}

fn value(d: &SampleDifference, value: f64, window: Option<WindowInterval>) -> String {
    let show = |value| d.measure.show(value);
    let interval = |w: WindowInterval| say!(" [{} to {}, covers {}]", show(w.low), show(w.high), w.covers);
    format!("{}{}", show(value), window.map_or(String::new(), interval))
}

fn why(d: &SampleDifference) -> String {
    let how = match d.decided_by {
        Some(Decider::RepeatLoad) => word!("load --repeat 4 would decide"),
        Some(Decider::RepeatRuns) => word!("several runs on each side would decide"),
        None => return word!("undecided").into(),
    };
    match d.undecided_because {
        Some(Undecided::FewWindows) => say!("undecided with fewer than {MIN_WINDOWS} windows on a side; {how}"),
        _ => say!("undecided; {how}"),
    }
}

fn windows(d: &SampleDifference) -> String {
    let [a, b] = d.n_windows;
    let [runs_a, runs_b] = d.n_runs;
    match d.basis {
        Basis::Sessions => say!("{a} and {b} windows in {runs_a} and {runs_b} runs"),
        _ if d.n_windows == [1, 1] && d.a_window.is_some() => word!("one window each").into(),
        _ if d.n_windows == [1, 1] => word!("one number each").into(),
        Basis::Windows | Basis::FewWindows => say!("{a} and {b} windows"),
    }
}

/// A difference of two rounded numbers has no third digit.
fn two_digits(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return value;
    }
    let step = 10f64.powf(value.log10().floor() - 1.0);
    (value / step).round() * step
}

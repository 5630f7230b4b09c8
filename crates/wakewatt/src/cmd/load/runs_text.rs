//! Runs of a command in words: how many, and the median of what they achieved.

use super::words::rate;
use wakewatt_core::samples::load::{Level, LoadRun};

/// What ran how often.
pub(super) fn head(run: &LoadRun) -> Vec<String> {
    let n = run.levels.len();
    vec![format!("Load, measured: {n} {} of {:?}", if n == 1 { "run" } else { "runs" }, run.title)]
}

/// What they achieved in the middle.
pub(super) fn end(run: &LoadRun) -> Vec<String> {
    let n = run.levels.len();
    let mut figures: Vec<f64> = run.levels.iter().map(Level::achieved).collect();
    figures.sort_by(f64::total_cmp);
    let (Some(first), Some(middle), Some(last)) = (figures.first(), middle(&figures), figures.last()) else {
        return Vec::new();
    };
    let watts = if run.levels.iter().any(|l| l.mean_uw().is_some()) { "" } else { "; watts are unmeasured" };
    vec![format!("Figure: median {} (from {} to {}, n = {n}){watts}.", rate(middle), rate(*first), rate(*last))]
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    let upper = *sorted.get(n / 2)?;
    Some(if n % 2 == 1 { upper } else { f64::midpoint(*sorted.get(n / 2 - 1)?, upper) })
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_has_no_middle() {
        assert_eq!(super::middle(&[]), None);
        assert_eq!(super::middle(&[1.0, 2.0, 3.0, 8.0]), Some(2.5));
    }
}

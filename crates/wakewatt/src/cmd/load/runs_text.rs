//! Runs of a command as text: a line per run, and the median of what they achieved.

use super::words::{rate, watts};
use std::fmt::Write as _;
use wakewatt_core::samples::load::{Level, LoadRun};
use wakewatt_core::units::show_ns;

/// The table.
pub(super) fn table(out: &mut String, run: &LoadRun) {
    let n = run.levels.len();
    let _ = writeln!(out, "Load, measured: {n} {} of {:?}\n", if n == 1 { "run" } else { "runs" }, run.title);
    let _ = writeln!(
        out,
        "{:>5} {:>10} {:>10} {:>10} {:>5} {:>16} {:>10} {:>10}",
        "run", "wall", "CPU", "kernel", "busy", "watts", "figure", "per W"
    );
    for (nth, level) in run.levels.iter().enumerate() {
        let _ = writeln!(
            out,
            "{:>5} {:>10} {:>10} {:>10} {:>5} {:>16} {:>10} {:>10}",
            nth + 1,
            show_ns(level.window.length_ns()),
            show_ns(level.cpu_ns),
            show_ns(level.system_ns),
            level.busy_ratio().map_or("-".into(), |r| format!("{:.0} %", r * 100.0)),
            watts(level),
            rate(level.achieved()),
            level.per_joule().map_or("-".into(), rate)
        );
        level.disturbances.iter().for_each(|what| _ = writeln!(out, "{:>5} {what}", ""));
    }
    let mut figures: Vec<f64> = run.levels.iter().map(Level::achieved).collect();
    figures.sort_by(f64::total_cmp);
    if let (Some(first), Some(middle), Some(last)) = (figures.first(), middle(&figures), figures.last()) {
        let watts = if run.levels.iter().any(|l| l.mean_uw().is_some()) { "" } else { "; watts are unmeasured" };
        let _ = writeln!(
            out,
            "\nFigure: median {} (from {} to {}, n = {n}){watts}.\n",
            rate(middle),
            rate(*first),
            rate(*last)
        );
    }
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

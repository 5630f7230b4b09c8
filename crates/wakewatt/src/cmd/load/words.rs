//! Words that all kinds of load share: why watts have no interval, rates.

use wakewatt_core::samples::load::LoadRun;
use wakewatt_core::units::three_digits;

/// Why levels have no interval: each reason once.
pub(super) fn no_interval(run: &LoadRun) -> Option<String> {
    let mut whys: Vec<String> = run.levels.iter().filter_map(|l| l.half_width_uw()?.err()).map(|w| w.words()).collect();
    whys.sort();
    whys.dedup();
    (!whys.is_empty()).then(|| format!("±? means no interval of the watts: {}.", whys.join("; ")))
}

/// Whole numbers where three digits would hide what matters.
pub(super) fn rate(per_s: f64) -> String {
    if (1000.0..1e9).contains(&per_s.abs()) { format!("{per_s:.0}") } else { three_digits(per_s) }
}

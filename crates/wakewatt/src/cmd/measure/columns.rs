//! A distribution as columns of a table: the median with its interval, and the tail.

use wakewatt_core::distribution::Distribution;
use wakewatt_core::units::show_ns;

/// Median, interval, 90th, 99th, 99.9th percentile, and how many there are.
pub(super) fn columns(latency: &Distribution) -> String {
    let at = |q: f64| latency.quantile(q).map_or("-".into(), |v| show_ns(v.value_ns));
    let interval =
        latency.quantile(0.5).map_or(String::new(), |v| format!("[{}, {}]", show_ns(v.low_ns), show_ns(v.high_ns)));
    format!("{:>8} {interval:<19} {:>8} {:>8} {:>8} {:>8}", at(0.5), at(0.9), at(0.99), at(0.999), latency.n)
}

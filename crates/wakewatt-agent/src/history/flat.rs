//! A page as numbers with names: what is kept of it.
//!
//! Whole numbers in the finest unit that anybody can want of a sum over ten seconds (microseconds, millijoules, kilohertz), because whole numbers that grow
//! slowly are short. Of a histogram its count, its sum and each classic bucket by itself: cumulative counts would all change with one value.

use crate::format::series_name;
use crate::metric::{Kind, Labels, Metric, Page, Value};
use compact_str::format_compact;

/// Stands for +Inf: a limit that nobody set.
const ENDLESS: i64 = i64::MAX;

/// Name with labels, tens, number.
pub(super) type Number = (String, i8, i64);

/// All numbers of a page.
pub(super) fn numbers(page: &Page) -> Vec<Number> {
    let mut out = Vec::with_capacity(page.n_series());
    for family in &page.families {
        let metric = family.metric;
        let name = metric.sample_name();
        for sample in &family.samples {
            match &sample.value {
                Value::Number(value) => {
                    out.push((series_name(&name, &sample.labels), tens(metric), whole(*value, tens(metric))))
                }
                Value::Histogram(histogram) => {
                    let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX - 1);
                    let mut part = |end: &str, labels: &Labels, tens: i8, number: i64| {
                        out.push((series_name(&format!("{name}{end}"), labels), tens, number));
                    };
                    part("_count", &sample.labels, 0, count(histogram.n));
                    part("_sum", &sample.labels, -6, whole(histogram.sum_s, -6));
                    let mut below = 0;
                    for (bound_s, n) in &histogram.classic {
                        let mut labels = sample.labels.clone();
                        labels.push(("le", format_compact!("{bound_s}")));
                        part("_in", &labels, 0, count(n.saturating_sub(below)));
                        below = *n;
                    }
                    let mut labels = sample.labels.clone();
                    labels.push(("le", "+Inf".into()));
                    part("_in", &labels, 0, count(histogram.n.saturating_sub(below)));
                }
            }
        }
    }
    out
}

/// So many tens a number is kept in.
fn tens(metric: &Metric) -> i8 {
    match (metric.unit, metric.kind) {
        (Some("seconds"), Kind::Counter) => -6,
        (Some("seconds"), _) => -9,
        (Some("joules" | "watts" | "celsius"), _) => -3,
        (Some("hertz"), _) => 3,
        _ => 0,
    }
}

fn whole(value: f64, tens: i8) -> i64 {
    if value == f64::INFINITY {
        return ENDLESS;
    }
    // A cast of a number beyond the range ends at the range.
    #[allow(clippy::cast_possible_truncation)]
    let number = (value / 10f64.powi(i32::from(tens))).round() as i64;
    number
}

/// The number in its base unit again.
pub(super) fn value(number: i64, tens: i8) -> f64 {
    if number == ENDLESS { f64::INFINITY } else { number as f64 * 10f64.powi(i32::from(tens)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::names;

    #[test]
    fn numbers_keep_what_matters() {
        let mut page = Page::default();
        page.number(&names::IDLE_TIME, vec![("state", "C6".into())], 12_345.678_901);
        page.number(&names::LATENCY_LIMIT, Vec::new(), f64::INFINITY);
        page.number(&names::FREQUENCY, vec![("stat", "mean".into())], 2_345_678_000.0);
        page.number(&names::EXIT_LATENCY, vec![("state", "C1".into())], 2e-6);
        let found = numbers(&page);
        assert_eq!(found[0], ("wakewatt_cpuidle_time_seconds_total{state=\"C6\"}".into(), -6, 12_345_678_901));
        assert_eq!(value(found[1].2, found[1].1), f64::INFINITY);
        assert_eq!((found[2].1, found[2].2), (3, 2_345_678));
        assert_eq!(found[3].2, 2000);
    }
}

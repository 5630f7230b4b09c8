//! The two texts: Prometheus 0.0.4 and OpenMetrics 1.0.0.
//!
//! They differ in little: OpenMetrics names a counter's family without `_total`, knows units, infos and when a counter began, and ends with
//! a line. Only label values can hold what must be escaped; names and helps are our own words.

use crate::histogram::Histogram;
use crate::metric::{Family, Kind, Labels, Page, Value};
use std::fmt::Write as _;
use wakewatt_core::visible;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    Prometheus,
    OpenMetrics,
}

pub(super) fn write(page: &Page, flavour: Flavour) -> String {
    let mut out = String::with_capacity(16 * 1024);
    // Written once, although it stands behind each counter; and the labels once for all lines of a sample.
    let (mut start, mut labels) = (String::new(), String::new());
    number(&mut start, page.start_s);
    for family in &page.families {
        head(&mut out, family, flavour);
        let name = family.metric.sample_name();
        let is_begun = flavour == Flavour::OpenMetrics && matches!(family.metric.kind, Kind::Counter | Kind::Histogram);
        let created = is_begun.then(|| format!("{}_created", family.metric.name));
        for sample in &family.samples {
            labels.clear();
            list(&mut labels, &sample.labels);
            match &sample.value {
                Value::Number(value) => line(&mut out, &name, &labels, None, *value),
                Value::Histogram(histogram) => buckets(&mut out, &name, &labels, histogram),
            }
            if let Some(created) = &created {
                open(&mut out, created, &labels, None);
                [" ", &start, "\n"].iter().for_each(|part| out.push_str(part));
            }
        }
    }
    if flavour == Flavour::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

fn head(out: &mut String, family: &Family, flavour: Flavour) {
    let metric = family.metric;
    let (name, kind) = match (flavour, metric.kind) {
        (Flavour::OpenMetrics, kind) => (metric.name.to_string(), kind.word()),
        // This text knows no infos.
        (Flavour::Prometheus, Kind::Info) => (metric.sample_name(), Kind::Gauge.word()),
        (Flavour::Prometheus, kind) => (metric.sample_name(), kind.word()),
    };
    let mut say =
        |what: &str, words: &str| ["# ", what, " ", &name, " ", words, "\n"].iter().for_each(|w| out.push_str(w));
    say("HELP", metric.help);
    say("TYPE", kind);
    if let (Flavour::OpenMetrics, Some(unit)) = (flavour, metric.unit) {
        say("UNIT", unit);
    }
}

fn buckets(out: &mut String, name: &str, labels: &str, histogram: &Histogram) {
    let bucket = format!("{name}_bucket");
    for (bound_s, n) in &histogram.classic {
        line(out, &bucket, labels, Some(*bound_s), *n as f64);
    }
    line(out, &bucket, labels, Some(f64::INFINITY), histogram.n as f64);
    line(out, &format!("{name}_sum"), labels, None, histogram.sum_s);
    line(out, &format!("{name}_count"), labels, None, histogram.n as f64);
}

fn line(out: &mut String, name: &str, labels: &str, bound_s: Option<f64>, value: f64) {
    open(out, name, labels, bound_s);
    out.push(' ');
    number(out, value);
    out.push('\n');
}

/// Labels, without what stands around them.
fn list(out: &mut String, labels: &Labels) {
    for (at, (label, text)) in labels.iter().enumerate() {
        [if at > 0 { "," } else { "" }, label, "=\""].iter().for_each(|part| out.push_str(part));
        escaped(out, text);
        out.push('"');
    }
}

/// What stands before the value; the labels as a list.
fn open(out: &mut String, name: &str, labels: &str, bound_s: Option<f64>) {
    out.push_str(name);
    if labels.is_empty() && bound_s.is_none() {
        return;
    }
    out.push('{');
    out.push_str(labels);
    if let Some(bound_s) = bound_s {
        out.push_str(if labels.is_empty() { "le=\"" } else { ",le=\"" });
        number(out, bound_s);
        out.push('"');
    }
    out.push('}');
}

fn number(out: &mut String, value: f64) {
    // Counts are whole: an integer needs none of what prints fractions.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = value as u64;
    let _ = match value {
        v if whole as f64 == v && whole < 1 << 53 && v.is_sign_positive() => write!(out, "{whole}"),
        v if v == f64::INFINITY => out.write_str("+Inf"),
        v if v != 0.0 && v.abs() < 1e-4 => write!(out, "{v:e}"),
        v => write!(out, "{v}"),
    };
}

/// Name and labels.
pub(super) fn series(name: &str, labels: &Labels) -> String {
    let (mut listed, mut out) = (String::new(), String::new());
    list(&mut listed, labels);
    open(&mut out, name, &listed, None);
    out
}

/// Backslash, quote and line feed by the rules of the format. What controls, hides or reorders on a terminal stands as its
/// number, whose backslash is escaped like any other: the terminal's filter finds nothing to change.
pub(super) fn escaped(out: &mut String, text: &str) {
    if !text.bytes().any(|b| matches!(b, b'\\' | b'"' | 0..32 | 127..)) {
        return out.push_str(text);
    }
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c if visible::is_hidden(c) => {
                let mut number = String::new();
                visible::show(c, &mut number);
                out.push('\\');
                out.push_str(&number);
            }
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::names;
    use wakewatt_core::samples::kernel_histogram::KernelHistogram;

    fn page() -> Page {
        let mut page = Page { start_s: 1000.5, ..Page::default() };
        let labels = vec![("state", "C1 \"x\\\n\u{1b}".into()), ("index", "1".into())];
        page.number(&names::IDLE_ENTRIES, labels, 12.0);
        page.number(&names::LATENCY_LIMIT, Vec::new(), f64::INFINITY);
        page.number(&names::BUILD, vec![("version", "1".into())], 1.0);
        let mut counted = KernelHistogram::default();
        counted.add(5_000);
        page.add(&names::WAKEUP_LATENCY, vec![("state", "C1".into())], Value::Histogram(Histogram::of(&counted)));
        page
    }

    #[test]
    fn prometheus() {
        let text = write(&page(), Flavour::Prometheus);
        assert!(text.contains("# TYPE wakewatt_cpuidle_entries_total counter\n"), "{text}");
        assert!(
            text.contains("wakewatt_cpuidle_entries_total{state=\"C1 \\\"x\\\\\\n\\\\x1b\",index=\"1\"} 12\n"),
            "{text}"
        );
        assert!(text.contains("wakewatt_latency_limit_seconds +Inf\n"), "{text}");
        assert!(text.contains("# TYPE wakewatt_build_info gauge\nwakewatt_build_info{version=\"1\"} 1\n"), "{text}");
        assert!(
            text.contains("_bucket{state=\"C1\",le=\"8.192e-6\"} 1\n")
                && text.contains("_bucket{state=\"C1\",le=\"4.096e-6\"} 0\n"),
            "{text}"
        );
        assert!(text.contains("_bucket{state=\"C1\",le=\"+Inf\"} 1\n") && !text.contains("EOF"), "{text}");
    }

    #[test]
    fn openmetrics() {
        let text = write(&page(), Flavour::OpenMetrics);
        assert!(text.contains("# TYPE wakewatt_cpuidle_entries counter\n") && text.ends_with("# EOF\n"), "{text}");
        assert!(text.contains("wakewatt_cpuidle_entries_created{") && text.contains(" 1000.5\n"), "{text}");
        assert!(
            text.contains("# TYPE wakewatt_build info\n")
                && text.contains("# UNIT wakewatt_wakeup_latency_seconds seconds\n"),
            "{text}"
        );
    }
}

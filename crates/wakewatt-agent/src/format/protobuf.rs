//! Delimited messages of `io.prometheus.client`: the wire format that carries native histograms.
//!
//! The messages are declared by hand from the published numbers of the fields (client_model, metrics.proto); only what the agent writes. A test reads them back.

use crate::histogram::{Histogram, SCHEMA, ZERO_BELOW_S};
use crate::metric::{Family, Kind, Page, Sample, Value};
use prost::Message;

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Timestamp {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

#[derive(Clone, PartialEq, Message)]
struct GaugeMessage {
    #[prost(double, optional, tag = "1")]
    value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct CounterMessage {
    #[prost(double, optional, tag = "1")]
    value: Option<f64>,
    #[prost(message, optional, tag = "3")]
    created: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    n_below: Option<u64>,
    #[prost(double, optional, tag = "2")]
    bound: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(sint32, optional, tag = "1")]
    offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    length: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct HistogramMessage {
    #[prost(uint64, optional, tag = "1")]
    n: Option<u64>,
    #[prost(double, optional, tag = "2")]
    sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    buckets: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    n_zero: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    spans: Vec<Span>,
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    deltas: Vec<i64>,
    #[prost(message, optional, tag = "15")]
    created: Option<Timestamp>,
}

#[derive(Clone, PartialEq, Message)]
struct MetricMessage {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<LabelPair>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<GaugeMessage>,
    #[prost(message, optional, tag = "3")]
    counter: Option<CounterMessage>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<HistogramMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct FamilyMessage {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    help: String,
    #[prost(int32, optional, tag = "3")]
    kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    metrics: Vec<MetricMessage>,
    #[prost(string, tag = "5")]
    unit: String,
}

pub(super) fn write(page: &Page) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 * 1024);
    for family in &page.families {
        // A vector grows as needed.
        let _ = message(family, page.start_s).encode_length_delimited(&mut out);
    }
    out
}

fn message(family: &Family, start_s: f64) -> FamilyMessage {
    let metric = family.metric;
    let kind = match metric.kind {
        Kind::Counter => 0,
        Kind::Gauge | Kind::Info => 1,
        Kind::Histogram => 4,
    };
    FamilyMessage {
        name: metric.sample_name(),
        help: metric.help.into(),
        kind: Some(kind),
        metrics: family.samples.iter().map(|sample| one(sample, metric.kind, start_s)).collect(),
        unit: metric.unit.unwrap_or_default().into(),
    }
}

fn one(sample: &Sample, kind: Kind, start_s: f64) -> MetricMessage {
    let labels =
        sample.labels.iter().map(|(name, value)| LabelPair { name: (*name).into(), value: value.as_str().into() });
    let mut found = MetricMessage { labels: labels.collect(), ..MetricMessage::default() };
    match (&sample.value, kind) {
        (Value::Histogram(histogram), _) => found.histogram = Some(native(histogram, start_s)),
        (Value::Number(value), Kind::Counter) => {
            found.counter = Some(CounterMessage { value: Some(*value), created: Some(timestamp(start_s)) });
        }
        (Value::Number(value), _) => found.gauge = Some(GaugeMessage { value: Some(*value) }),
    }
    found
}

fn timestamp(seconds: f64) -> Timestamp {
    // Seconds since 1970 fit, and their part does too.
    #[allow(clippy::cast_possible_truncation)]
    let (whole, nanos) = (seconds.floor() as i64, (seconds.fract() * 1e9) as i32);
    Timestamp { seconds: whole, nanos }
}

/// Spans of neighbouring buckets, and in them how each count differs from the one before.
fn native(histogram: &Histogram, start_s: f64) -> HistogramMessage {
    let (mut spans, mut deltas): (Vec<Span>, Vec<i64>) = (Vec::new(), Vec::new());
    let (mut next, mut before) = (0, 0);
    for &(index, n) in &histogram.native {
        let gap = index - next;
        match spans.last_mut() {
            Some(span) if gap == 0 => span.length = span.length.map(|l| l + 1),
            _ => spans.push(Span { offset: Some(gap), length: Some(1) }),
        }
        let n = i64::try_from(n).unwrap_or(i64::MAX);
        deltas.push(n - before);
        (next, before) = (index + 1, n);
    }
    let bucket = |(bound, n): &(f64, u64)| Bucket { n_below: Some(*n), bound: Some(*bound) };
    HistogramMessage {
        n: Some(histogram.n),
        sum: Some(histogram.sum_s),
        buckets: histogram.classic.iter().map(bucket).collect(),
        schema: Some(SCHEMA),
        zero_threshold: Some(ZERO_BELOW_S),
        n_zero: Some(histogram.n_zero),
        spans,
        deltas,
        created: Some(timestamp(start_s)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::names;
    use wakewatt_core::samples::kernel_histogram::KernelHistogram;

    #[test]
    fn what_is_written_reads_back() {
        let mut counted = KernelHistogram::default();
        for ns in [5_000, 5_100, 70_000, 80_000, 3_000_000] {
            counted.add(ns);
        }
        let histogram = Histogram::of(&counted);
        let mut page = Page { start_s: 1.5, ..Page::default() };
        page.number(&names::IDLE_TIME, vec![("state", "C1".into())], 0.0);
        page.number(&names::SETTINGS, vec![("kernel", "6.1".into())], 1.0);
        page.add(&names::WAKEUP_LATENCY, Vec::new(), Value::Histogram(histogram.clone()));
        let bytes = write(&page);
        let mut rest = &bytes[..];
        let mut read = || FamilyMessage::decode_length_delimited(&mut rest).unwrap();
        let time = read();
        assert_eq!((time.name.as_str(), time.kind), ("wakewatt_cpuidle_time_seconds_total", Some(0)));
        let counter = time.metrics[0].counter.clone().unwrap();
        assert_eq!((counter.value, counter.created.unwrap().nanos), (Some(0.0), 500_000_000));
        assert_eq!(read().name, "wakewatt_settings_info");
        let latency = read().metrics[0].histogram.clone().unwrap();
        assert!(rest.is_empty());
        // The buckets again, from spans and deltas.
        let (mut index, mut n, mut found) = (0, 0, Vec::new());
        let mut deltas = latency.deltas.iter();
        for span in &latency.spans {
            index += span.offset.unwrap();
            for _ in 0..span.length.unwrap() {
                n += deltas.next().unwrap();
                found.push((index, u64::try_from(n).unwrap()));
                index += 1;
            }
        }
        assert_eq!(found, histogram.native);
        assert_eq!((latency.n, latency.schema), (Some(5), Some(3)));
    }
}

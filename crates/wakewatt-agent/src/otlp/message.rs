//! The request of OTLP as protobuf: `ExportMetricsServiceRequest`, declared by hand from the published numbers of its fields (opentelemetry-proto 1.x); only what the agent writes.
//!
//! Counters are cumulative sums that began when the agent did. A histogram is an exponential one: bucket `i` of Prometheus' native schema ends where bucket `i - 1` of
//! OpenTelemetry's scale does, so counts move over as they are.

use super::attribute::{Attribute, text};
use super::{Sender, names};
use crate::histogram::{Histogram, SCHEMA, ZERO_BELOW_S};
use crate::metric::{Kind, Page, Sample, Value};
use prost::Message;

/// AGGREGATION_TEMPORALITY_CUMULATIVE
const CUMULATIVE: i32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(super) struct Request {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<MetricMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct MetricMessage {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    unit: String,
    #[prost(message, optional, tag = "5")]
    gauge: Option<Numbers>,
    #[prost(message, optional, tag = "7")]
    sum: Option<Numbers>,
    #[prost(message, optional, tag = "10")]
    histogram: Option<Histograms>,
}

/// A gauge, or with what follows its points a sum.
#[derive(Clone, PartialEq, Message)]
struct Numbers {
    #[prost(message, repeated, tag = "1")]
    points: Vec<NumberPoint>,
    #[prost(int32, tag = "2")]
    temporality: i32,
    #[prost(bool, tag = "3")]
    is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
struct NumberPoint {
    #[prost(fixed64, tag = "2")]
    start_ns: u64,
    #[prost(fixed64, tag = "3")]
    at_ns: u64,
    #[prost(double, optional, tag = "4")]
    value: Option<f64>,
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct Histograms {
    #[prost(message, repeated, tag = "1")]
    points: Vec<HistogramPoint>,
    #[prost(int32, tag = "2")]
    temporality: i32,
}

#[derive(Clone, PartialEq, Message)]
struct HistogramPoint {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<Attribute>,
    #[prost(fixed64, tag = "2")]
    start_ns: u64,
    #[prost(fixed64, tag = "3")]
    at_ns: u64,
    #[prost(fixed64, tag = "4")]
    n: u64,
    #[prost(double, optional, tag = "5")]
    sum: Option<f64>,
    #[prost(sint32, tag = "6")]
    scale: i32,
    #[prost(fixed64, tag = "7")]
    n_zero: u64,
    #[prost(message, optional, tag = "8")]
    positive: Option<Buckets>,
    #[prost(double, tag = "14")]
    zero_threshold: f64,
}

#[derive(Clone, PartialEq, Message)]
struct Buckets {
    #[prost(sint32, tag = "1")]
    offset: i32,
    #[prost(uint64, repeated, tag = "2")]
    counts: Vec<u64>,
}

/// What a server answers.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Answer {
    #[prost(message, optional, tag = "1")]
    pub(super) partial: Option<Partial>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Partial {
    #[prost(int64, tag = "1")]
    pub(super) n_rejected: i64,
    #[prost(string, tag = "2")]
    pub(super) why: String,
}

pub(super) fn of(page: &Page, sender: &Sender, wall_ns: u64) -> Request {
    let times = Times { start_ns: nanoseconds(page.start_s), at_ns: wall_ns };
    let mut metrics: Vec<MetricMessage> = Vec::new();
    for family in &page.families {
        for sample in &family.samples {
            let named = names::of(family.metric, sample);
            let is_it = |one: &MetricMessage| one.name == named.name;
            let at = metrics.iter().rposition(is_it).unwrap_or_else(|| {
                let (unit, description) = (named.unit.into(), family.metric.help.into());
                metrics.push(MetricMessage { name: named.name, description, unit, ..MetricMessage::default() });
                metrics.len() - 1
            });
            metrics[at].add(family.metric.kind, sample, named.attributes, times);
        }
    }
    let mut attributes = vec![text("service.name", "wakewatt-agent"), text("service.version", sender.version)];
    attributes.extend(sender.host.as_deref().map(|host| text("host.name", host)));
    let scope = Scope { name: "wakewatt".into(), version: sender.version.into() };
    let scopes = vec![ScopeMetrics { scope: Some(scope), metrics }];
    Request { resources: vec![ResourceMetrics { resource: Some(Resource { attributes }), scopes }] }
}

#[derive(Clone, Copy)]
struct Times {
    start_ns: u64,
    at_ns: u64,
}

impl MetricMessage {
    fn add(&mut self, kind: Kind, sample: &Sample, attributes: Vec<Attribute>, times: Times) {
        match (&sample.value, kind) {
            (Value::Histogram(histogram), _) => {
                let all = self.histogram.get_or_insert_with(Histograms::default);
                all.temporality = CUMULATIVE;
                all.points.push(exponential(histogram, attributes, times));
            }
            (Value::Number(value), Kind::Counter) => {
                let all = self.sum.get_or_insert_with(Numbers::default);
                (all.temporality, all.is_monotonic) = (CUMULATIVE, true);
                let Times { start_ns, at_ns } = times;
                all.points.push(NumberPoint { start_ns, at_ns, value: Some(*value), attributes });
            }
            (Value::Number(value), _) => {
                let all = self.gauge.get_or_insert_with(Numbers::default);
                all.points.push(NumberPoint { start_ns: 0, at_ns: times.at_ns, value: Some(*value), attributes });
            }
        }
    }
}

/// All buckets from the first to the last, also the empty ones between: that is how this form has it.
fn exponential(histogram: &Histogram, attributes: Vec<Attribute>, times: Times) -> HistogramPoint {
    let first = histogram.native.first().map(|(index, _)| *index);
    let positive = first.map(|first| {
        let mut counts = Vec::new();
        for (index, n) in &histogram.native {
            // Ascending, and within a few hundred of each other.
            counts.resize(usize::try_from(index - first).unwrap_or(counts.len()), 0);
            counts.push(*n);
        }
        Buckets { offset: first - 1, counts }
    });
    HistogramPoint {
        attributes,
        start_ns: times.start_ns,
        at_ns: times.at_ns,
        n: histogram.n,
        sum: Some(histogram.sum_s),
        scale: SCHEMA,
        n_zero: histogram.n_zero,
        positive,
        zero_threshold: ZERO_BELOW_S,
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    // Since 1970: fits until 2554.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ns = (seconds * 1e9) as u64;
    ns
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::kernel_histogram::KernelHistogram;

    /// Each value lies in the bucket whose edges OpenTelemetry computes for it: (base^i, base^(i+1)], base = 2^(2^-scale).
    #[test]
    fn buckets_lie_where_the_data_model_has_them() {
        let values_ns = [1_000u64, 5_000, 70_000, 70_001, 3_000_000, 900_000_000];
        let mut counted = KernelHistogram::default();
        values_ns.iter().for_each(|ns| counted.add(*ns));
        let point = exponential(&Histogram::of(&counted), Vec::new(), Times { start_ns: 1, at_ns: 2 });
        let buckets = point.positive.unwrap();
        assert_eq!((point.n, point.n_zero, buckets.counts.iter().sum::<u64>()), (6, 0, 6));
        assert!(buckets.counts.first() != Some(&0) && buckets.counts.last() != Some(&0));
        let base = 2f64.powf(2f64.powi(-point.scale));
        for ns in values_ns {
            let index = (ns as f64 / 1e9).log(base).ceil() - 1.0;
            let at = index - f64::from(buckets.offset);
            // A kernel bucket may lie one beside its own.
            let is_near = |(place, _): &(usize, &u64)| (*place as f64 - at).abs() < 1.5;
            let n: u64 = buckets.counts.iter().enumerate().filter(is_near).map(|(_, n)| n).sum();
            assert!(n > 0, "{ns}: {at} of {:?}", buckets.counts);
        }
        let empty = exponential(&Histogram::default(), Vec::new(), Times { start_ns: 1, at_ns: 2 });
        assert!(empty.positive.is_none() && empty.n == 0);
    }
}

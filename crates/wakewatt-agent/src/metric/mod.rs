//! A page of metrics as data: families with their samples, before anybody asks for a format.
//!
//! Names follow the conventions of Prometheus and OpenMetrics: base units (seconds, joules, hertz, celsius), the unit at the end of
//! the name, counters end in `_total` where they are written, settings are info metrics with the value 1. What is not known is not
//! there: a sample that could not be read is left out, never 0.

pub mod names;

use crate::histogram::Histogram;

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Grows; starts at 0 when the agent does.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Words as labels; always 1.
    Info,
    /// Counted values by size.
    Histogram,
}

impl Kind {
    /// As the formats call it.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Info => "info",
            Kind::Histogram => "histogram",
        }
    }
}

/// What a metric is called and what it means: one line of the reference.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    /// Without `_total` and `_info`, which the formats add.
    pub name: &'static str,
    /// Counter, gauge, info or histogram.
    pub kind: Kind,
    /// Base unit, which is also the end of the name; none for counts, shares and words.
    pub unit: Option<&'static str>,
    /// Labels it may have, in the order of the samples'.
    pub labels: &'static [&'static str],
    /// What it says, in one sentence.
    pub help: &'static str,
}

impl Metric {
    /// The name of its samples: with `_total` or `_info` where the kind asks for it.
    pub fn sample_name(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Info => format!("{}_info", self.name),
            Kind::Gauge | Kind::Histogram => self.name.into(),
        }
    }
}

/// A label's value. Nearly all are a name or a number of a few letters, which lie in place: a page of a hundred samples has hundreds, made anew with each reading.
pub type Word = compact_str::CompactString;

/// Labels of a sample; a label whose value is not known is left out.
pub type Labels = Vec<(&'static str, Word)>;

/// What a sample says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A counter, a gauge or the 1 of an info.
    Number(f64),
    /// Counted values.
    Histogram(Histogram),
}

/// One line of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// What tells it from its siblings.
    pub labels: Labels,
    /// What was read.
    pub value: Value,
}

/// A metric with all its samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Name, kind, help.
    pub metric: &'static Metric,
    /// At least one.
    pub samples: Vec<Sample>,
}

/// Everything that a scrape gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// When counters began, in seconds since 1970.
    pub start_s: f64,
    /// In the order of the reference.
    pub families: Vec<Family>,
}

impl Page {
    /// Adds a number to its family, which need not be there yet.
    pub fn number(&mut self, metric: &'static Metric, labels: Labels, value: f64) {
        self.add(metric, labels, Value::Number(value));
    }

    /// Adds a number where there is one.
    pub fn known(&mut self, metric: &'static Metric, labels: Labels, value: Option<f64>) {
        if let Some(value) = value {
            self.number(metric, labels, value);
        }
    }

    /// Adds a sample to its family.
    pub fn add(&mut self, metric: &'static Metric, labels: Labels, value: Value) {
        debug_assert!(labels.iter().all(|(name, _)| metric.labels.contains(name)), "{}: {labels:?}", metric.name);
        let sample = Sample { labels, value };
        // Samples of a family come one after the other, so it is the last one or a new one.
        match self.families.iter_mut().rev().find(|family| std::ptr::eq(family.metric, metric)) {
            Some(family) => family.samples.push(sample),
            None => self.families.push(Family { metric, samples: vec![sample] }),
        }
    }

    /// Time series it makes in a store, counting a histogram as one.
    pub fn n_series(&self) -> usize {
        self.families.iter().map(|family| family.samples.len()).sum()
    }
}

//! What is asked of a history: the numbers of some series over a time, as they are, as rates, or as percentiles of a histogram.
//!
//! A step gathers moments: of a gauge its mean, of a counter how much it grew over the step divided by the time in which it was seen. Growth is never counted over a gap
//! (the agent did not run, the series was not known) nor over a start of the agent, where counters begin at 0 again.

use super::change::Change;
use super::flat::value;
use super::format::{Reader, Trouble};
use super::interval::are_enough;
use super::series::pairs;
use serde::Serialize;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use wakewatt_core::arrange::Arrange as _;

/// What is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// Sample names, any of them: `wakewatt_cpuidle_time_seconds_total`.
    pub names: Vec<String>,
    /// Labels that must be so.
    pub labels: Vec<(String, String)>,
    /// From when, in milliseconds since 1970.
    pub from_ms: u64,
    /// Until when.
    pub to_ms: u64,
    /// Length of a step.
    pub step_ms: u64,
    /// Growth per second, or the value.
    pub is_rate: bool,
}

/// What a series was in one step of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Begin of the step, in milliseconds since 1970.
    pub wall_ms: u64,
    /// Mean, or growth per second, in base units.
    pub value: f64,
    /// Milliseconds of the step in which it was seen.
    pub seen_ms: u64,
    /// The least and the largest of its intervals, or moments; none of a percentile.
    pub range: Option<(f64, f64)>,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    /// Points by series, in order of time.
    pub series: BTreeMap<String, Vec<Point>>,
    /// Settings that changed within the time.
    #[serde(skip)]
    pub changes: Vec<Change>,
    /// Moments that were read.
    pub n_moments: u64,
    /// Segments that are not whole, and why.
    #[serde(skip)]
    pub troubles: Vec<(usize, Trouble)>,
}

/// Sums within a step.
#[derive(Clone, Copy, Debug)]
struct Step {
    sum: f64,
    seen_ms: u64,
    n: u64,
    least: f64,
    most: f64,
}

impl Step {
    const NONE: Step = Step { sum: 0.0, seen_ms: 0, n: 0, least: f64::INFINITY, most: f64::NEG_INFINITY };

    /// One more moment or interval: what it adds to the sum, and what it was.
    fn add(&mut self, sum: f64, seen_ms: u64, value: f64) {
        (self.sum, self.seen_ms, self.n) = (self.sum + sum, self.seen_ms + seen_ms, self.n + 1);
        (self.least, self.most) = (self.least.min(value), self.most.max(value));
    }

    fn join(&mut self, other: Step) {
        (self.sum, self.seen_ms, self.n) = (self.sum + other.sum, self.seen_ms + other.seen_ms, self.n + other.n);
        (self.least, self.most) = (self.least.min(other.least), self.most.max(other.most));
    }
}

/// A series of a segment that is asked for: its last number, and the step it is in.
struct Wanted {
    id: usize,
    then: Option<i64>,
    begin_ms: u64,
    step: Step,
}

/// Asks segments with their numbers, oldest first, taken one after the other, so that a large history need not fit into memory;
/// `at_most_gap_ms` is the longest time between two moments that is no gap.
pub fn ask<B: Borrow<Vec<u8>>>(
    query: &Query,
    segments: impl IntoIterator<Item = (usize, B)>,
    at_most_gap_ms: u64,
) -> Answer {
    let mut answer = Answer::default();
    let mut steps: BTreeMap<(String, u64), Step> = BTreeMap::new();
    for (number, bytes) in segments {
        let bytes: &Vec<u8> = bytes.borrow();
        let mut reader = match Reader::new(bytes) {
            Ok(reader) => reader,
            Err(trouble) => {
                answer.troubles.push((number, trouble));
                continue;
            }
        };
        let mut wanted: Vec<Wanted> = Vec::new();
        let mut n_looked = 0;
        let mut before_ms: Option<u64> = None;
        let mut keep = |name: &String, begin_ms: u64, step: Step| {
            if step.n > 0 {
                steps.entry((name.clone(), begin_ms)).or_insert(Step::NONE).join(step);
            }
        };
        while reader.next_moment().is_some() {
            for (id, name) in reader.names.iter().enumerate().skip(n_looked) {
                if query.is_about(name) {
                    wanted.push(Wanted { id, then: None, begin_ms: 0, step: Step::NONE });
                }
            }
            n_looked = reader.names.len();
            answer.n_moments += 1;
            let moment = reader.latest();
            let wall_ms = moment.wall_ms;
            let is_within = (query.from_ms..query.to_ms).contains(&wall_ms);
            // A clock that was set back gives moments no length.
            let interval_ms =
                before_ms.and_then(|at| wall_ms.checked_sub(at)).filter(|ms| *ms > 0 && *ms <= at_most_gap_ms);
            for series in &mut wanted {
                let now = moment.values[series.id];
                let then = std::mem::replace(&mut series.then, now);
                let Some(now) = now.filter(|_| is_within) else { continue };
                let begin_ms = wall_ms - (wall_ms - query.from_ms) % query.step_ms.max(1);
                if begin_ms != series.begin_ms {
                    keep(&reader.names[series.id], series.begin_ms, std::mem::replace(&mut series.step, Step::NONE));
                    series.begin_ms = begin_ms;
                }
                let tens = reader.tens[series.id];
                let interval_ms = then.and(interval_ms);
                if !query.is_rate {
                    let now = value(now, tens);
                    series.step.add(now, interval_ms.unwrap_or(0), now);
                } else if let (Some(then), Some(ms)) = (then.filter(|then| *then <= now), interval_ms) {
                    let grown = value(now.saturating_sub(then), tens);
                    series.step.add(grown, ms, grown * 1e3 / ms as f64);
                }
            }
            before_ms = Some(wall_ms);
        }
        for series in wanted {
            keep(&reader.names[series.id], series.begin_ms, series.step);
        }
        answer.troubles.extend(reader.trouble.map(|trouble| (number, trouble)));
        let within = |change: &Change| (query.from_ms..query.to_ms).contains(&change.wall_ms);
        answer.changes.extend(reader.changes.into_iter().filter(within));
    }
    for ((name, wall_ms), step) in steps {
        let value = match query.is_rate {
            true if step.seen_ms == 0 => continue,
            true => step.sum / (step.seen_ms as f64 / 1e3),
            false => step.sum / step.n as f64,
        };
        answer.series.entry(name).or_default().push(Point {
            wall_ms,
            value,
            seen_ms: step.seen_ms,
            range: Some((step.least, step.most)),
        });
    }
    answer
}

impl Query {
    /// Is it about this series?
    fn is_about(&self, series: &str) -> bool {
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let has = |(label, value): &(String, String)| {
            let pair = format!("{label}=\"{}\"", crate::format::escaped_label(value));
            labels.strip_suffix('}').is_some_and(|labels| pairs(labels).any(|p| p == pair))
        };
        self.names.iter().any(|own| own == name) && self.labels.iter().all(has)
    }
}

/// A percentile of each step from the growth of a histogram's buckets (`NAME_in{…,le=…}`): upper bound of the bucket it falls into, by labels without
/// `le`; none of a step with too few. Values beyond the last bound are told as that bound.
pub fn percentile(answer: &Answer, q: f64) -> BTreeMap<String, Vec<Point>> {
    /// Bound and rate of each bucket, and how much of the step was seen.
    type Buckets = (Vec<(f64, f64)>, u64);
    let mut by_time: BTreeMap<(String, u64), Buckets> = BTreeMap::new();
    for (series, points) in &answer.series {
        let Some((name, labels)) = series.split_once('{') else { continue };
        let all: Vec<&str> = pairs(labels.trim_end_matches('}')).collect();
        let bound = all.iter().find_map(|p| p.strip_prefix("le=\"")?.strip_suffix('"')?.parse::<f64>().ok());
        let Some(bound) = bound else { continue };
        let rest: Vec<&str> = all.into_iter().filter(|p| !p.starts_with("le=")).collect();
        let key = format!("{}{{{}}}", name.trim_end_matches("_in"), rest.join(","));
        for point in points {
            let entry = by_time.entry((key.clone(), point.wall_ms)).or_default();
            entry.0.push((bound, point.value));
            entry.1 = entry.1.max(point.seen_ms);
        }
    }
    let mut found: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    for ((series, wall_ms), (mut buckets, seen_ms)) in by_time {
        buckets.arrange_by(|a, b| a.0.total_cmp(&b.0));
        let last = buckets.iter().rev().map(|(bound, _)| *bound).find(|bound| bound.is_finite()).unwrap_or_default();
        let total: f64 = buckets.iter().map(|(_, n)| n).sum();
        if !are_enough(total * seen_ms as f64 / 1e3, q) {
            continue;
        }
        let mut below = 0.0;
        let at = buckets.iter().find(|(_, n)| {
            below += n;
            below >= q * total
        });
        if let Some((bound, _)) = at.or(buckets.last()) {
            found.entry(series).or_default().push(Point { wall_ms, value: bound.min(last), seen_ms, range: None });
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::format::{MAGIC, Writer};
    use super::*;

    const NAME: &str = "wakewatt_cpuidle_entries_total";

    fn query(is_rate: bool) -> Query {
        Query {
            names: vec![NAME.into()],
            labels: vec![("state".into(), "C6".into())],
            from_ms: 0,
            to_ms: 1_000_000,
            step_ms: 60_000,
            is_rate,
        }
    }

    fn segment(numbers: &[(u64, i64)]) -> Vec<u8> {
        let (mut writer, mut bytes) = (Writer::default(), MAGIC.to_vec());
        let (series, other) =
            (format!("{NAME}{{state=\"C6\",node=\"0\"}}"), format!("{NAME}{{state=\"C1\",node=\"0\"}}"));
        for (at, n) in numbers {
            bytes.extend(writer.moment(*at, &[(&series, 0, *n), (&other, 0, 5)]));
        }
        bytes
    }

    #[test]
    fn rates_are_growth_over_the_time_that_was_seen() {
        // Two starts of the agent: counters begin again, and nothing is counted in between.
        let segments = [segment(&[(0, 0), (10_000, 100), (20_000, 200)]), segment(&[(40_000, 0), (50_000, 300)])];
        let answer = ask(&query(true), segments.iter().enumerate(), 30_000);
        let points = &answer.series[&format!("{NAME}{{state=\"C6\",node=\"0\"}}")];
        assert_eq!(points.len(), 1);
        assert_eq!((points[0].seen_ms, points[0].value), (30_000, 500.0 / 30.0));
        assert_eq!(points[0].range, Some((10.0, 30.0)), "the least and the largest interval");
        assert_eq!((answer.series.len(), answer.n_moments), (1, 5), "C1 was not asked for");
        let gap = ask(&query(true), [(0, segment(&[(0, 0), (100_000, 1_000)]))], 30_000);
        assert!(gap.series.is_empty(), "growth over a gap is no rate");
    }

    #[test]
    fn values_are_means_of_steps() {
        let answer = ask(&query(false), [(0, segment(&[(0, 10), (30_000, 20), (60_000, 40)]))], 30_000);
        let points = answer.series.values().next().unwrap();
        assert_eq!(points.iter().map(|p| (p.wall_ms, p.value)).collect::<Vec<_>>(), [(0, 15.0), (60_000, 40.0)]);
    }

    #[test]
    fn labels_are_compared_whole() {
        let query = Query { labels: vec![("state".into(), "C1,\"x".into())], ..query(false) };
        assert!(query.is_about(&format!("{NAME}{{state=\"C1,\\\"x\",node=\"1\"}}")));
        assert!(!query.is_about(&format!("{NAME}{{state=\"C1\",node=\"1\"}}")) && !query.is_about(NAME));
    }

    #[test]
    fn a_percentile_is_the_bound_of_its_bucket() {
        let point = |value: f64| vec![Point { wall_ms: 0, value, seen_ms: 10_000, range: None }];
        let series = [
            ("x_in{state=\"C6\",le=\"0.001\"}", 900.0),
            ("x_in{state=\"C6\",le=\"0.002\"}", 90.0),
            ("x_in{state=\"C6\",le=\"0.004\"}", 10.0),
        ];
        let answer =
            Answer { series: series.iter().map(|(n, v)| ((*n).to_string(), point(*v))).collect(), ..Answer::default() };
        let at = |q: f64| percentile(&answer, q).get("x{state=\"C6\"}").map(|points| points[0].value);
        assert_eq!((at(0.5), at(0.95), at(0.999)), (Some(0.001), Some(0.002), Some(0.004)));
        // Ten thousand in ten seconds: one of them is beyond that.
        assert_eq!(at(0.9999), None);
    }
}

//! The last hours of a node, from its history: shares of idle states, wake-up latency, watts, and what was changed.
//!
//! Two questions to [`query`](crate::history::query), one for what grows and one for what stands; steps are wide enough that a phone can show them. A step in
//! which nothing was seen has no value: the agent did not run, or the series was not known.

use crate::history::query::{Answer, Query, ask, percentile};
use crate::history::{Change, MOST_GAP_MS, Series, read_own, segments, segments_since};
use crate::metric::names;
use serde::Serialize;
use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use wakewatt_core::arrange::Arrange as _;

/// Of a history that is long enough.
const LONG_MS: u64 = 6 * 3_600_000;
/// Of one that has just begun.
const SHORT_MS: u64 = 3_600_000;
/// Changes that are told; a drawing with more lines shows nothing else.
const MOST_CHANGES: usize = 40;
/// Steps of either.
const N_STEPS: usize = 60;

/// What a node has been.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Past {
    /// Why nothing is known.
    pub none_because: Option<String>,
    /// Begin of the first step, in milliseconds since 1970.
    pub from_ms: u64,
    /// Length of a step, in milliseconds.
    pub step_ms: u64,
    /// How many steps there are; the last one may not be over.
    pub n_steps: u64,
    /// Share of the CPUs' time in each idle state, 0 to 1, shallowest first; `busy` before them.
    pub shares: Vec<Line>,
    /// Watts of each meter.
    pub watts: Vec<Line>,
    /// 99th percentile of wake-up latency from idle states, in seconds: the upper bound of its bucket; none of a step with fewer than a thousand.
    pub p99_s: Line,
    /// Wake-ups from idle states by latency.
    pub latency: Heat,
    /// Settings that changed, in order of time: the newest forty.
    pub changes: Vec<Change>,
    /// How many changed before these.
    pub n_older_changes: u64,
}

/// A number over time, one for each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Line {
    /// Which number it is.
    pub name: String,
    /// By step; none where it was not seen.
    pub values: Vec<Option<f64>>,
}

/// Wake-ups per second by latency and step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Heat {
    /// Upper bound of each row in seconds, ascending; a row without one is the last and holds the rest.
    pub bounds_s: Vec<f64>,
    /// By row (as many as there are bounds, or one more) and step; none where nothing was seen.
    pub per_s: Vec<Vec<Option<f64>>>,
}

/// A grid of steps.
#[derive(Clone, Copy, Debug)]
struct Steps {
    from_ms: u64,
    step_ms: u64,
}

impl Steps {
    fn at(self, wall_ms: u64) -> Option<usize> {
        let at = wall_ms.checked_sub(self.from_ms)? / self.step_ms;
        usize::try_from(at).ok().filter(|at| *at < N_STEPS)
    }
}

/// Sums by name and step.
type Sums = BTreeMap<String, Vec<Option<f64>>>;

impl Past {
    /// There is none, because.
    pub fn none(because: impl Into<String>) -> Past {
        Past { none_because: Some(because.into()), ..Past::default() }
    }

    /// Of a folder, up to now. What is damaged is passed over; what cannot be read at all is the reason for none.
    pub fn read(folder: &Path, now_ms: u64) -> Past {
        let all = segments(folder);
        let Some(first_ms) = all.first().and_then(|path| crate::history::began_ms(path)) else {
            return Past::none("the history begins with the first interval; look again then");
        };
        let span_ms = if now_ms.saturating_sub(first_ms) > SHORT_MS { LONG_MS } else { SHORT_MS };
        let step_ms = span_ms / N_STEPS as u64;
        // Whole steps, so that the drawing stands still between two looks.
        let to_ms = (now_ms / step_ms + 1) * step_ms;
        let from_ms = to_ms.saturating_sub(span_ms);
        let files = segments_since(folder, from_ms);
        let unread = RefCell::new(Vec::new());
        // One after the other: together they may be larger than what the service may hold.
        let held = || {
            unread.borrow_mut().clear();
            files.iter().filter_map(|path| read_own(path).map_err(|why| unread.borrow_mut().push(why)).ok())
        };
        let past = Past::of(held, from_ms, step_ms);
        let mut unread = unread.into_inner();
        if unread.len() < files.len() { past } else { unread.pop().map_or(past, Past::none) }
    }

    fn of<I: IntoIterator<Item: Borrow<Vec<u8>>>>(held: impl Fn() -> I, from_ms: u64, step_ms: u64) -> Past {
        let steps = Steps { from_ms, step_ms };
        let latency_in = format!("{}_in", names::WAKEUP_LATENCY.name);
        let (idle, cpu, joules) =
            (names::IDLE_TIME.sample_name(), names::CPU_TIME.sample_name(), names::ENERGY.sample_name());
        let (power, online) = (names::POWER.sample_name(), names::CPUS_ONLINE.sample_name());
        let asked = |names: &[&String], is_rate: bool| {
            let names = names.iter().map(|name| (*name).clone()).collect();
            let query = Query {
                names,
                labels: Vec::new(),
                from_ms,
                to_ms: from_ms + N_STEPS as u64 * step_ms,
                step_ms,
                is_rate,
            };
            ask(&query, held().into_iter().enumerate(), MOST_GAP_MS)
        };
        let grown = asked(&[&idle, &cpu, &joules, &latency_in], true);
        let stood = asked(&[&power, &online], false);
        let n_online = sums(&stood, &online, steps, |_| Some(String::new())).remove("").unwrap_or_default();
        let share = |sums: Sums| sums.into_iter().map(|(name, values)| (name, over(&values, &n_online)));
        let busy = sums(&grown, &cpu, steps, |series| (series.label("mode")? == "busy").then(|| "busy".to_string()));
        let by_state = sums(&grown, &idle, steps, |series| {
            let index = series.number("index")?;
            Some(format!("{index:04} {}", series.label("state")?))
        });
        // The index has ordered them and is not needed any more.
        let states = share(by_state).map(|(name, values)| (name.get(5..).unwrap_or_default().to_string(), values));
        let line = |(name, values): (String, Vec<Option<f64>>)| Line { name, values };
        let mut watts = sums(&grown, &joules, steps, |series| series.label("meter").map(str::to_string));
        watts.extend(sums(&stood, &power, steps, |series| {
            Some(format!("{} {}", series.label("meter")?, series.label("sensor")?))
        }));
        let mut changes = stood.changes;
        let n_older = changes.len().saturating_sub(MOST_CHANGES);
        changes.drain(..n_older);
        let mut from_idle = grown;
        from_idle.series.retain(|name, _| name.starts_with(&latency_in) && !name.contains("class=\"busy\""));
        Past {
            none_because: None,
            from_ms,
            step_ms,
            n_steps: N_STEPS as u64,
            shares: share(busy).chain(states).map(line).collect(),
            watts: watts.into_iter().map(line).collect(),
            latency: heat(&from_idle, &latency_in, steps),
            p99_s: p99(&from_idle, &latency_in, steps),
            changes,
            n_older_changes: n_older as u64,
        }
    }
}

/// Adds up the series of a metric that belong together.
fn sums(answer: &Answer, metric: &str, steps: Steps, group: impl Fn(&Series) -> Option<String>) -> Sums {
    let mut found = Sums::new();
    for (series, points) in &answer.series {
        let series = Series::parse(series);
        let Some(group) = group(&series).filter(|_| series.name == metric) else { continue };
        let values = found.entry(group).or_insert_with(|| vec![None; N_STEPS]);
        for point in points {
            if let Some(value) = steps.at(point.wall_ms).and_then(|at| values.get_mut(at)) {
                *value = Some(value.unwrap_or_default() + point.value);
            }
        }
    }
    found
}

/// One divided by the other, where both are known.
fn over(values: &[Option<f64>], by: &[Option<f64>]) -> Vec<Option<f64>> {
    let one = |(value, by): (&Option<f64>, &Option<f64>)| Some((*value)? / by.filter(|by| *by > 0.0)?);
    values.iter().zip(by).map(one).collect()
}

fn heat(answer: &Answer, metric: &str, steps: Steps) -> Heat {
    let by_bound = sums(answer, metric, steps, |series| series.label("le").map(str::to_string));
    let mut rows: Vec<(f64, Vec<Option<f64>>)> =
        by_bound.into_iter().filter_map(|(bound, values)| Some((bound.parse().ok()?, values))).collect();
    rows.arrange_by(|a, b| a.0.total_cmp(&b.0));
    // Rows that nobody ever fell into say nothing, at either end.
    let is_used = |(_, values): &(f64, Vec<Option<f64>>)| values.iter().flatten().any(|n| *n > 0.0);
    let Some(first) = rows.iter().position(is_used) else { return Heat::default() };
    let last = rows.iter().rposition(is_used).unwrap_or(first);
    let kept = &rows[first..=last];
    Heat {
        bounds_s: kept.iter().map(|(bound, _)| *bound).filter(|bound| bound.is_finite()).collect(),
        per_s: kept.iter().map(|(_, values)| values.clone()).collect(),
    }
}

/// Over all states and classes together.
fn p99(answer: &Answer, metric: &str, steps: Steps) -> Line {
    let mut joined = Answer::default();
    let mut seen_ms = [0; N_STEPS];
    for point in answer.series.values().flatten() {
        if let Some(seen) = steps.at(point.wall_ms).and_then(|at| seen_ms.get_mut(at)) {
            *seen = point.seen_ms.max(*seen);
        }
    }
    for (bound, values) in sums(answer, metric, steps, |series| series.label("le").map(str::to_string)) {
        let point = |(at, value): (usize, &Option<f64>)| {
            let wall_ms = steps.from_ms + at as u64 * steps.step_ms;
            Some(crate::history::query::Point { wall_ms, value: (*value)?, seen_ms: seen_ms[at], range: None })
        };
        let points = values.iter().enumerate().filter_map(point).collect();
        joined.series.insert(format!("{metric}{{le=\"{bound}\"}}"), points);
    }
    let mut values = vec![None; N_STEPS];
    for point in percentile(&joined, 0.99).into_values().flatten() {
        if let Some(value) = steps.at(point.wall_ms).and_then(|at| values.get_mut(at)) {
            *value = Some(point.value);
        }
    }
    Line { name: "p99".into(), values }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::history::{Limits, Ring};
    use crate::metric::{Page, Value};
    use wakewatt_core::samples::kernel_histogram::KernelHistogram;

    const MINUTE_MS: u64 = 60_000;

    /// Two CPUs: C1 a quarter of the time on either node, half of it busy; ten watts; wake-ups of 50 us.
    fn page(second: u64, governor: &str) -> Page {
        let mut page = Page::default();
        for node in ["0", "1"] {
            let labels = vec![("state", "C1 \"x\"".into()), ("index", "1".into()), ("node", node.into())];
            page.number(&names::IDLE_TIME, labels, second as f64 * 0.25);
            page.number(&names::CPUS_ONLINE, vec![("node", node.into())], 1.0);
            page.number(&names::CPU_TIME, vec![("mode", "busy".into()), ("node", node.into())], second as f64 * 0.5);
        }
        page.number(&names::ENERGY, vec![("meter", "package-0".into()), ("zone", "z".into())], second as f64 * 10.0);
        page.number(&names::SETTINGS, vec![("idle_governor", governor.into())], 1.0);
        let mut counted = KernelHistogram::default();
        (0..second * 100).for_each(|_| counted.add(50_000));
        for class in ["remote", "busy"] {
            let labels = vec![("state", "C1".into()), ("index", "1".into()), ("class", class.into())];
            page.add(&names::WAKEUP_LATENCY, labels, Value::Histogram(Histogram::of(&counted)));
        }
        page
    }

    #[test]
    fn an_hour_reads_back_as_what_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let start_ms = 1_700_000_000_000;
        let limits = Limits { most_bytes: 16 << 20, free_share: 0.0 };
        let mut ring = Ring::open(dir.path(), limits).unwrap();
        for second in (0..600).step_by(10) {
            let governor = if second < 300 { "menu" } else { "teo" };
            ring.push(start_ms + second * 1000, &page(second, governor)).unwrap();
        }
        let past = Past::read(dir.path(), start_ms + 600_000);
        assert_eq!((past.none_because.as_deref(), past.step_ms, past.n_steps), (None, MINUTE_MS, N_STEPS as u64));
        let middle = usize::try_from((start_ms + 300_000 - past.from_ms) / MINUTE_MS).unwrap();
        let near = |value: Option<f64>, expected: f64| value.is_some_and(|v| (v - expected).abs() < 1e-6);
        let names: Vec<&str> = past.shares.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["busy", "C1 \"x\""]);
        assert!(
            near(past.shares[0].values[middle], 0.5) && near(past.shares[1].values[middle], 0.25),
            "{:?}",
            past.shares
        );
        assert!(near(past.watts[0].values[middle], 10.0) && past.watts[0].name == "package-0");
        assert_eq!(past.shares[0].values[0], None, "before the history began");
        assert_eq!((past.latency.per_s.len(), past.latency.bounds_s.len()), (1, 1), "one row holds them all");
        assert!(near(past.latency.per_s[0][middle], 100.0), "busy CPUs are not idle ones: {:?}", past.latency);
        assert!(near(past.p99_s.values[middle], 65.536e-6), "{:?}", past.p99_s.values[middle]);
        assert_eq!(past.changes.len(), 1);
        assert_eq!((past.changes[0].from.as_str(), past.changes[0].to.as_str()), ("menu", "teo"));
    }

    #[test]
    fn without_a_history_it_says_so() {
        assert!(Past::read(Path::new("/proc/nothing"), 5).none_because.is_some());
    }
}

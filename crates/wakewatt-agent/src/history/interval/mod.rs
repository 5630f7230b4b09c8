//! Two moments of a history as `watch` would have told the time between them.
//!
//! A history holds sums: what is not in it (a CPU by itself, unless the agent ran with `--per-cpu`; sleeps that had not ended; the host's name) is told as not
//! recorded, never as 0. Counters are compared within one segment only, where one agent counted on. `Between` is how numbers are found, `cpus`, `meters` and
//! `woken` what is made of them.

mod cpus;
mod meters;
mod woken;

pub(crate) use woken::{Buckets, are_enough, at_most_s};

use super::change::{Settings, limit};
use super::flat::value;
use super::format::{Moment, Reader};
use super::series::Series;
use crate::metric::names::{self, METRICS};
use crate::metric::{Kind, Metric};
use wakewatt_core::samples::Window;
use wakewatt_core::watch::document::{Cost, Machine, Summary};
use wakewatt_core::watch::layout::StateInfo;
use wakewatt_core::watch::{Rates, Reading, Sources, Why};

/// A series of a segment, taken apart once.
#[derive(Debug)]
pub(crate) struct Known {
    series: Series,
    tens: i8,
    metric: Option<&'static Metric>,
    /// The bucket, sum or count of a histogram: `_in`, `_sum`, `_count`.
    part: &'static str,
}

/// The series that a reader has met since.
pub(crate) fn meet(known: &mut Vec<Known>, reader: &Reader<'_>) {
    for (name, tens) in reader.names.iter().zip(&reader.tens).skip(known.len()) {
        let series = Series::parse(name);
        let parts = |metric: &Metric| -> &'static [&'static str] {
            if metric.kind == Kind::Histogram { &["_in", "_sum", "_count"] } else { &[""] }
        };
        let is = |metric: &Metric, part: &str| series.name.strip_suffix(part) == Some(metric.sample_name().as_str());
        let all = METRICS.iter().flat_map(|metric| parts(metric).iter().map(move |part| (*metric, *part)));
        let found = all.into_iter().find(|(metric, part)| is(metric, part));
        let (metric, part) = found.map_or((None, ""), |(metric, part)| (Some(metric), part));
        known.push(Known { series, tens: *tens, metric, part });
    }
}

/// What was set at a moment.
pub(crate) fn settings(reader: &Reader<'_>, moment: &Moment) -> Settings {
    let known = moment.values.iter().zip(reader.names.iter().zip(&reader.tens));
    let known = known.filter_map(|(number, (name, tens))| Some((name.as_str(), value((*number)?, *tens))));
    Settings::of(moment.wall_ms, known)
}

/// Two moments of one segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between<'a> {
    pub known: &'a [Known],
    pub then: &'a Moment,
    pub now: &'a Moment,
}

impl<'a> Between<'a> {
    fn seconds(&self) -> f64 {
        self.now.wall_ms.saturating_sub(self.then.wall_ms) as f64 / 1e3
    }

    /// Series of a metric that are known at the end.
    fn of(&self, metric: &'static Metric) -> impl Iterator<Item = (&'a Series, f64)> + use<'a> {
        self.part(metric, "").map(|(known, _, now)| (&known.series, value(now, known.tens)))
    }

    /// How far each series of a counter went; none where it was not known before, or began anew.
    fn grown(
        &self,
        metric: &'static Metric,
        part: &'static str,
    ) -> impl Iterator<Item = (&'a Series, Option<f64>)> + use<'a> {
        self.part(metric, part).map(|(known, then, now)| {
            let grown = then.filter(|then| *then <= now).map(|then| value(now.saturating_sub(then), known.tens));
            (&known.series, grown)
        })
    }

    fn part(
        &self,
        metric: &'static Metric,
        part: &'static str,
    ) -> impl Iterator<Item = (&'a Known, Option<i64>, i64)> + use<'a> {
        let Between { known, then, now } = *self;
        let is_it = move |known: &Known| known.part == part && known.metric.is_some_and(|m| std::ptr::eq(m, metric));
        known.iter().enumerate().filter(move |(_, known)| is_it(known)).filter_map(move |(id, known)| {
            let now = now.values.get(id).copied().flatten()?;
            Some((known, then.values.get(id).copied().flatten(), now))
        })
    }

    /// Was anything of a histogram kept?
    fn has(&self, histogram: &'static Metric) -> bool {
        self.part(histogram, "_count").next().is_some()
    }

    /// Growth of the series that `wanted` takes, all together, per second.
    fn per_s(&self, metric: &'static Metric, wanted: impl Fn(&Series) -> bool) -> Reading<f64> {
        self.growth(metric, wanted).map(|grown| grown / self.seconds())
    }

    /// The same as a sum.
    fn growth(&self, metric: &'static Metric, wanted: impl Fn(&Series) -> bool) -> Reading<f64> {
        let mut found = Reading::Missing(Why::NotRecorded);
        for (_, grown) in self.grown(metric, "").filter(|(series, _)| wanted(series)) {
            found = match (found, grown) {
                (Reading::Known(sum), Some(grown)) => Reading::Known(sum + grown),
                (Reading::Missing(Why::NotRecorded), Some(grown)) => Reading::Known(grown),
                _ => return Reading::Missing(Why::First),
            };
        }
        found
    }

    /// The only series of a metric.
    fn single(&self, metric: &'static Metric) -> Reading<f64> {
        self.of(metric).next().map_or(Reading::Missing(Why::NotRecorded), |(_, value)| Reading::Known(value))
    }

    /// CPUs that ran at the end.
    pub(crate) fn n_online(&self) -> usize {
        cpus::n_online(self, &|_| true)
    }

    /// The idle states that were kept.
    pub(crate) fn states(&self) -> Vec<StateInfo> {
        cpus::states(self)
    }

    /// What `watch` says of it.
    pub(crate) fn rates(&self, origin: &str) -> Rates {
        let states = cpus::states(self);
        let all = cpus::summary(self, &states, &|_| true);
        let (zones, sensors) = (meters::zones(self), meters::sensors(self));
        let packages = meters::packages(self, &zones);
        let (power_uw, power_source) = meters::power(&zones, &sensors);
        let nanoseconds = |moment: &Moment| moment.wall_ms.saturating_mul(1_000_000);
        let whole = |reading: Reading<f64>, scale: f64| match reading {
            // Counts and nanoseconds of less than a day.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Reading::Known(value) => (value * scale) as u64,
            Reading::Missing(_) => 0,
        };
        Rates {
            origin: origin.into(),
            window: Window { start_at_ns: nanoseconds(self.then), end_at_ns: nanoseconds(self.now) },
            wall_at_ns: nanoseconds(self.now),
            cost: Cost {
                sources: Sources::Quiet,
                n_remote_interrupts: whole(self.growth(&names::OWN_INTERRUPTS, |_| true), 1.0),
                own_wakeups_per_s: self.per_s(&names::OWN_WAKEUPS, |_| true),
                own_cpu_ratio: self.per_s(&names::OWN_CPU, |_| true),
                reading_ns: whole(self.single(&names::READING_TIME), 1e9),
            },
            machine: Machine {
                n_online: all.n_cpus,
                summary: all,
                power_uw,
                power_source,
                temperature_mc: meters::hottest(self, &|series| series.label("package").is_some()),
                interrupts_per_s: self.per_s(&names::INTERRUPTS, |_| true),
                context_switches_per_s: self.per_s(&names::SWITCHES, |_| true),
                global_limit: match self.single(&names::LATENCY_LIMIT) {
                    Reading::Known(limit_s) => Reading::Known(limit(limit_s)),
                    Reading::Missing(why) => Reading::Missing(why),
                },
                limit_holders: self
                    .of(&names::LIMIT_HOLDER)
                    .filter_map(|(series, _)| Some(series.label("holder")?.to_string()))
                    .collect(),
            },
            packages,
            zones,
            sensors,
            cpus: cpus::each(self, &states),
            places: cpus::places(self, &states),
            states,
            wake_latency: woken::rows(self),
            ..Rates::default()
        }
    }
}

/// A time of which nothing was kept.
pub(crate) fn gap(origin: &str, from_ms: u64, to_ms: u64, why: String) -> Rates {
    let gone = Reading::Missing(Why::NotRecorded);
    Rates {
        origin: origin.into(),
        window: Window { start_at_ns: from_ms.saturating_mul(1_000_000), end_at_ns: to_ms.saturating_mul(1_000_000) },
        wall_at_ns: to_ms.saturating_mul(1_000_000),
        cost: Cost { own_wakeups_per_s: gone, own_cpu_ratio: gone, ..Cost::default() },
        machine: Machine {
            summary: Summary {
                busy_ratio: gone,
                steal_ratio: gone,
                freq_khz: gone,
                wakeups_per_s: gone,
                asleep_ratio: gone,
                above_per_s: gone,
                below_per_s: gone,
                throttles_per_s: gone,
                cpu_limit: Reading::Missing(Why::NotRecorded),
                ..Summary::default()
            },
            power_uw: gone,
            temperature_mc: Reading::Missing(Why::NotRecorded),
            interrupts_per_s: gone,
            context_switches_per_s: gone,
            global_limit: Reading::Missing(Why::NotRecorded),
            ..Machine::default()
        },
        notes: vec![why],
        ..Rates::default()
    }
}

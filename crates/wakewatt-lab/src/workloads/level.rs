//! Load at stated levels as a workload: what a [`Level`] says, as metrics.
//!
//! One adapter for graduated load and for the online shop. Per level: rate, median and 99th percentile from the planned
//! start, CPU time per operation and the kernel's part of it, watts and work per energy. The maximum that shares refer to is
//! calibrated once, as found, and kept with the run: all arms are asked for the same load, or watts could not be compared.
//! A level that fell short of its rate is noted and kept: where an arm cannot keep up, that is its result, and leaving such
//! blocks out would praise it. What the surroundings did (firmware, a silent meter, heat that drifts) is no arm's result, and
//! the block does not count; nor where other processes had more of the CPUs than the plan allows (`reject.others_percent`),
//! which the level itself tells from the load's own work.

use crate::experiment::{Calibrated, Workload, Yield};
use crate::load::rules::{by_surroundings, is_saturated};
use crate::load::schedule::stream_seed;
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::distribution::{Distribution, histogram};
use wakewatt_core::samples::experiment::{Better, Metric, Unit};
use wakewatt_core::samples::load::{Ask, Level};

/// What makes load: the engine of `load steps`, the shop.
pub trait LevelSource {
    /// In front of ids: `steps`.
    fn id(&self) -> &'static str;
    /// For people: "graduated load".
    fn title(&self) -> String;
    /// The CPUs it loads.
    fn cpus(&self) -> CpuSet;
    /// The load: the one given, or measured now.
    fn calibrate(&mut self, known: Option<&Calibrated>, stop: &AtomicBool) -> Result<Calibrated, String>;
    /// From now on arrivals are drawn from this seed.
    fn reseed(&mut self, seed: u64);
    /// The seed it began with.
    fn seed(&self) -> u64;
    /// One level; phases are settle, ramp up, recorded, ramp down.
    fn level(&mut self, ask: Ask, phases_ns: [u64; 4], stop: &AtomicBool) -> Result<Level, String>;
}

/// The workload.
pub struct LevelWorkload<S> {
    source: S,
    asks: Vec<Ask>,
    phases_ns: [u64; 4],
    foreign_ratio: f64,
}

/// What a level is called: `50`, `idle`, `500`.
fn word(ask: Ask) -> String {
    match ask {
        Ask::Share(share) => format!("{:.0}", share * 100.0),
        Ask::Idle => "idle".into(),
        Ask::Clients(n) => n.to_string(),
        Ask::Rate(rate) => format!("{rate:.0}-per-s"),
        Ask::Run => "run".into(),
    }
}

fn words(ask: Ask) -> String {
    match ask {
        Ask::Share(_) => format!("at {ask}"),
        Ask::Run => "one run".into(),
        _ => ask.to_string(),
    }
}

/// A number of a level that is compared.
type Row = (&'static str, &'static str, Unit, Better, fn(&Level) -> Option<f64>);

const ROWS: &[Row] = &[
    ("p99", "99th percentile", Unit::Nanoseconds, Better::Lower, |l| at(l, 0.99)),
    ("p50", "median", Unit::Nanoseconds, Better::Lower, |l| at(l, 0.5)),
    ("rate", "work done", Unit::PerSecond, Better::Higher, |l| Some(l.per_s)),
    ("cpu", "CPU time per operation", Unit::Nanoseconds, Better::Lower, Level::cpu_ns_per_op),
    ("system", "kernel time per operation", Unit::Nanoseconds, Better::Lower, Level::system_ns_per_op),
    ("watts", "mean power", Unit::Microwatts, Better::Lower, |l| l.mean_uw().map(|uw| uw as f64)),
    ("per-joule", "work per energy", Unit::PerJoule, Better::Higher, Level::per_joule),
];
/// Idle has power and nothing else.
const IDLE_ROW: &str = "watts";
const QUANTILE_ROWS: [&str; 2] = ["p99", "p50"];

fn at(level: &Level, q: f64) -> Option<f64> {
    Some(level.latency.as_ref()?.quantile(q)?.value_ns as f64)
}

/// Idle has power only; at 100 % there is no latency to compare, since a full queue has no steady state.
fn rows(ask: Ask) -> impl Iterator<Item = &'static Row> {
    let is_there = move |row: &&Row| match ask {
        Ask::Idle => row.0 == IDLE_ROW,
        _ => !(is_saturated(ask) && QUANTILE_ROWS.contains(&row.0)),
    };
    ROWS.iter().filter(is_there)
}

/// The metrics of these levels, known before anything is started; ids begin with `id`, titles with `title`.
pub fn metrics_of(id: &str, title: &str, asks: &[Ask]) -> Vec<Metric> {
    let of = |ask: Ask| {
        rows(ask).map(move |(row, what, unit, better, _)| Metric {
            clock_bound_ns: None,
            id: format!("{id}.{}.{row}", word(ask)),
            title: format!("{title} {}, {what}", words(ask)),
            unit: *unit,
            better: *better,
        })
    };
    asks.iter().flat_map(|ask| of(*ask)).collect()
}

impl<S: LevelSource> LevelWorkload<S> {
    /// These levels, in this order; each recorded for `measure_ns` after `settle_ns` and ramps of a tenth. Where other
    /// processes had more than `foreign_ratio` of the CPUs' time, the block does not count.
    pub fn new(source: S, asks: Vec<Ask>, settle_ns: u64, measure_ns: u64, foreign_ratio: f64) -> LevelWorkload<S> {
        let ramp_ns = measure_ns / 10;
        LevelWorkload { source, asks, phases_ns: [settle_ns, ramp_ns, measure_ns, ramp_ns], foreign_ratio }
    }

    fn id(&self, ask: Ask) -> String {
        format!("{}.{}", self.source.id(), word(ask))
    }
}

impl<S: LevelSource> Workload for LevelWorkload<S> {
    fn metrics(&self) -> Vec<Metric> {
        metrics_of(self.source.id(), &self.source.title(), &self.asks)
    }

    fn cpus(&self) -> CpuSet {
        self.source.cpus()
    }

    /// Every level settles by itself.
    fn warm_up(&mut self, _: u64, _: &AtomicBool) {}

    fn calibrate(&mut self, known: Option<&Calibrated>, stop: &AtomicBool) -> Result<Option<Calibrated>, String> {
        self.source.calibrate(known, stop).map(Some)
    }

    fn begin_round(&mut self, round: usize) {
        self.source.reseed(round_seed(self.source.seed(), round));
    }

    fn measure(&mut self, stop: &AtomicBool) -> Result<Yield, String> {
        let mut all = Yield::default();
        for ask in self.asks.clone() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let level = match self.source.level(ask, self.phases_ns, stop) {
                Ok(level) => level,
                // An interrupt cuts a block short; it is then rejected, not an error.
                Err(_) if stop.load(Ordering::Relaxed) => break,
                Err(why) => return Err(format!("{} {}: {why}", self.source.title(), words(ask))),
            };
            all.values.extend(rows(ask).map(|row| (row.4)(&level)));
            if let Some(latency) = &level.latency {
                let title = format!("{} {}", self.source.title(), words(ask));
                all.latencies.push((self.id(ask), title, Some(counted(latency))));
            }
            let spoilt = by_surroundings(&level, self.foreign_ratio).into_iter().next();
            all.rejected = all.rejected.or(spoilt.map(|why| format!("{}: {why}", words(ask)).into()));
            let rules = level.broken_rules.iter().map(ToString::to_string);
            let notes = level.disturbances.iter().cloned().chain(rules).chain(open_ended(&level));
            all.disturbances.extend(notes.map(|note| format!("{}: {note}", words(ask))));
            all.idle.extend(level.idle.iter().cloned());
            all.levels.push((self.source.id().into(), level));
        }
        Ok(all)
    }

    fn is_busy(&self) -> bool {
        true
    }
}

/// Which percentiles are only known from below: so many requests failed or were not done that they lie among those.
fn open_ended(level: &Level) -> Option<String> {
    let latency = level.latency.as_ref()?;
    let is_open = |q: &f64| latency.quantile(*q).is_some_and(|v| latency.is_at_least(v.value_ns));
    let open: Vec<&str> = [(0.5, "the median"), (0.99, "the 99th percentile")]
        .iter()
        .filter_map(|(q, word)| is_open(q).then_some(*word))
        .collect();
    let n = latency.censored?.n;
    (!open.is_empty()).then(|| {
        format!("{n} of {} failed or were not done, so {} is a lower bound", latency.n, open.join(" as well as "))
    })
}

/// All arms of a round meet the same arrivals, and every round others: else a whole run would rest on one draw.
fn round_seed(seed: u64, round: usize) -> u64 {
    stream_seed(seed, 0x0f0f, round as u64)
}

/// A distribution's buckets as samples again, to pool them for drawing.
fn counted(latency: &Distribution) -> Histogram<u64> {
    let mut hist = histogram();
    latency.buckets.iter().for_each(|b| hist.saturating_record_n(b.upto_ns, b.n));
    hist
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::distribution::Censored;
    use wakewatt_core::samples::Window;
    use wakewatt_core::samples::broken_rule::BrokenRule;

    struct Fake {
        max_per_s: Option<f64>,
        drawn_from: Vec<u64>,
        has_smis: bool,
        others: Option<f64>,
    }

    impl LevelSource for Fake {
        fn id(&self) -> &'static str {
            "steps"
        }
        fn title(&self) -> String {
            "graduated load".into()
        }
        fn cpus(&self) -> CpuSet {
            CpuSet::new()
        }
        fn calibrate(&mut self, known: Option<&Calibrated>, _: &AtomicBool) -> Result<Calibrated, String> {
            self.max_per_s = known.and_then(|known| known.per_s).or(Some(2000.0));
            Ok(Calibrated { per_s: self.max_per_s, ..Calibrated::default() })
        }
        fn reseed(&mut self, seed: u64) {
            self.drawn_from.push(seed);
        }
        fn seed(&self) -> u64 {
            7
        }
        fn level(&mut self, ask: Ask, phases_ns: [u64; 4], _: &AtomicBool) -> Result<Level, String> {
            let share = if let Ask::Share(share) = ask { share } else { 0.0 };
            let per_s = share * self.max_per_s.ok_or("not calibrated")?;
            Ok(Level {
                ask,
                phases_ns,
                window: Window { start_at_ns: 0, end_at_ns: 1_000_000_000 },
                target_per_s: Some(per_s),
                n_planned: 1000,
                n_done: if ask == Ask::Idle { 0 } else { 1000 },
                per_s,
                latency: (ask != Ask::Idle).then(|| Distribution::from_ns((0..2000).map(|i| 1000 + i))),
                cpu_ns: 5_000_000,
                system_ns: 1_000_000,
                broken_rules: match () {
                    () if self.has_smis => vec!["fell short".into(), BrokenRule::FirmwareInterrupted { n: 3 }],
                    () if share > 0.9 => vec!["fell short".into()],
                    () => vec![],
                },
                foreign_ratio: self.others,
                ..Level::default()
            })
        }
    }

    #[test]
    fn a_level_becomes_metrics_and_watts_without_a_meter_are_absent() {
        let asks = vec![Ask::Share(1.0), Ask::Share(0.5), Ask::Idle];
        let fake = Fake { max_per_s: None, drawn_from: vec![], has_smis: false, others: None };
        let mut load = LevelWorkload::new(fake, asks, 1, 10, 0.5);
        let stop = AtomicBool::new(false);
        assert!(load.measure(&stop).is_err(), "levels refer to a maximum");
        let known = Calibrated { per_s: Some(1000.0), ..Calibrated::default() };
        assert_eq!(
            load.calibrate(Some(&known), &stop).unwrap(),
            Some(known),
            "one that is known is not measured again"
        );
        [0, 1, 0].iter().for_each(|round| load.begin_round(*round));
        let drawn = &load.source.drawn_from;
        assert!(drawn[0] == drawn[2] && drawn[0] != drawn[1], "the same within a round, another in the next");
        let metrics = load.metrics();
        let measured = load.measure(&stop).unwrap();
        assert_eq!((metrics.len(), measured.values.len()), (13, 13));
        assert_eq!(metrics[0].id, "steps.100.rate", "the first metric must be one that can be had");
        let value = |id: &str| measured.values[metrics.iter().position(|m| m.id == id).unwrap()];
        assert_eq!((value("steps.50.rate"), value("steps.100.rate")), (Some(500.0), Some(1000.0)));
        assert_eq!((value("steps.100.cpu"), value("steps.100.system")), (Some(5000.0), Some(1000.0)));
        assert!(value("steps.50.p50").is_some_and(|ns| (1990.0..2010.0).contains(&ns)));
        assert_eq!((value("steps.idle.watts"), value("steps.100.per-joule")), (None, None));
        assert_eq!(measured.disturbances, ["at 100 %: fell short"], "noted, and kept");
        assert_eq!(measured.rejected, None);
        assert_eq!(measured.latencies.len(), 2);
        load.source.has_smis = true;
        let why = load.measure(&stop).unwrap().rejected.unwrap().to_string();
        assert_eq!(why, "at 100 %: the firmware interrupted 3 times (SMI)", "no arm's own result");
    }

    #[test]
    fn a_percentile_among_the_failed_is_a_bound_and_says_so() {
        let censored = Some(Censored { n: 40, from_ns: 5_000_000_000 });
        let samples = (0..1960u64).map(|i| 1000 + i).chain((0..40).map(|_| 5_000_000_000));
        let latency = Distribution::from_ns(samples).with_censored(censored);
        let level = Level { latency: Some(latency.clone()), ..Level::default() };
        let said = open_ended(&level).unwrap();
        assert_eq!(said, "40 of 2000 failed or were not done, so the 99th percentile is a lower bound");
        assert!(at(&level, 0.99).is_some_and(|ns| ns >= 5e9), "an arm that fails is not the faster one");
        let level = Level { latency: Some(latency.with_censored(None)), ..Level::default() };
        assert_eq!(open_ended(&level), None);
    }

    #[test]
    fn the_plan_says_how_much_others_may_have() {
        let stop = AtomicBool::new(false);
        let spoilt = |others, limit| {
            let fake = Fake { max_per_s: Some(1.0), drawn_from: vec![], has_smis: false, others };
            LevelWorkload::new(fake, vec![Ask::Share(0.5)], 1, 10, limit).measure(&stop).unwrap().rejected
        };
        assert_eq!(spoilt(Some(0.3), 0.5), None, "more than a level may have in `load`, less than the plan says");
        assert_eq!(spoilt(None, 0.0), None, "unknown is no reason");
        let why = spoilt(Some(0.3), 0.1).unwrap().to_string();
        assert_eq!(why, "at 50 %: other processes used at least 30.0 % of the CPUs' time (10 % are allowed)");
    }
}

//! What of an interval is compared, and what a window of intervals comes to.

use crate::history::interval::{Between, Buckets, at_most_s};
use serde::Serialize;
use std::collections::BTreeMap;
use wakewatt_core::watch::layout::SensorKind;
use wakewatt_core::watch::{Rates, Reading};

/// What a number is counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A share, 0 to 1.
    #[default]
    Ratio,
    /// Times per second, all CPUs together.
    PerSecond,
    /// Power in watts.
    Watts,
    /// Temperature in degrees Celsius.
    Celsius,
    /// A clock in hertz.
    Hertz,
    /// A time in seconds.
    Seconds,
}

/// A number of both windows; measured, where there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Number {
    /// A stable name: `idle.C6.share`.
    pub id: String,
    /// The same for people.
    pub name: String,
    /// What it is counted in.
    pub unit: Unit,
    /// Around the first moment; none where it was not kept.
    pub a: Option<Spread>,
    /// Around the second moment; none where it was not kept.
    pub b: Option<Spread>,
    /// The second mean over the first; none where one is missing or the first is 0.
    pub ratio: Option<f64>,
    /// Does every interval of one window lie above every interval of the other?
    pub is_apart: bool,
}

/// A number over a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spread {
    /// Mean, each interval by its length; of a percentile, that of all wake-ups of the intervals that have one.
    pub mean: f64,
    /// The least of its intervals.
    pub least: f64,
    /// The largest of its intervals.
    pub most: f64,
    /// How many intervals there are.
    pub n: u64,
}

/// Sums of a window, by rank (for the order of reading) and id.
#[derive(Debug, Default)]
pub(super) struct Sums {
    by_id: BTreeMap<(u32, String), Sum>,
    /// For each of [`PERCENTILES`], wake-ups of the intervals that have it: with others it could lie outside of their range.
    woken: [Buckets; 2],
}

/// Rank, share and id.
const PERCENTILES: [(u32, f64, &str); 2] = [(60, 0.5, "wakeup.p50"), (61, 0.99, "wakeup.p99")];

#[derive(Debug)]
struct Sum {
    name: String,
    unit: Unit,
    weighted: f64,
    seconds: f64,
    least: f64,
    most: f64,
    n: u64,
}

impl Sums {
    /// One more interval.
    pub(super) fn add(&mut self, between: &Between<'_>, seconds: f64) {
        let rates = between.rates("");
        for (rank, id, name, unit, value) in told(&rates) {
            self.put((rank, id), name, unit, value, seconds);
        }
        if let Some(woken) = at_most_s(between) {
            for (at, (rank, q, id)) in PERCENTILES.into_iter().enumerate() {
                if let Some(value) = woken.quantile_s(q) {
                    let name = format!("{} wake-up, at most", id.trim_start_matches("wakeup."));
                    self.put((rank, id.into()), name, Unit::Seconds, value, seconds);
                    self.woken[at].join(&woken);
                }
            }
        }
    }

    fn put(&mut self, key: (u32, String), name: String, unit: Unit, value: f64, seconds: f64) {
        let none = Sum { name, unit, weighted: 0.0, seconds: 0.0, least: f64::INFINITY, most: f64::NEG_INFINITY, n: 0 };
        let sum = self.by_id.entry(key).or_insert(none);
        (sum.weighted, sum.seconds, sum.n) = (sum.weighted + value * seconds, sum.seconds + seconds, sum.n + 1);
        (sum.least, sum.most) = (sum.least.min(value), sum.most.max(value));
    }

    fn spread(&self, key: &(u32, String)) -> Option<Spread> {
        let sum = self.by_id.get(key)?;
        let of_all = PERCENTILES.iter().zip(&self.woken).find(|((_, _, id), _)| *id == key.1);
        let of_all = of_all.and_then(|((_, q, _), woken)| woken.quantile_s(*q));
        let mean = of_all.unwrap_or(sum.weighted / sum.seconds);
        Some(Spread { mean, least: sum.least, most: sum.most, n: sum.n })
    }
}

/// Both windows, in the order of reading.
pub(super) fn beside(a: &Sums, b: &Sums) -> Vec<Number> {
    let keys: BTreeMap<&(u32, String), &Sum> = a.by_id.iter().chain(&b.by_id).collect();
    let number = |(key, sum): (&(u32, String), &Sum)| {
        let (a, b) = (a.spread(key), b.spread(key));
        let both = a.zip(b);
        Number {
            id: key.1.clone(),
            name: sum.name.clone(),
            unit: sum.unit,
            ratio: both.filter(|(a, _)| a.mean != 0.0).map(|(a, b)| b.mean / a.mean),
            is_apart: both.is_some_and(|(a, b)| a.most < b.least || b.most < a.least),
            a,
            b,
        }
    };
    keys.into_iter().map(number).collect()
}

type Told = (u32, String, String, Unit, f64);

/// The numbers of an interval.
fn told(rates: &Rates) -> Vec<Told> {
    let (machine, summary) = (&rates.machine, &rates.machine.summary);
    let mut out: Vec<Told> = Vec::new();
    let mut put = |rank: u32, id: String, name: String, unit: Unit, value: Reading<f64>| {
        out.extend(value.get().map(|value| (rank, id, name, unit, value)));
    };
    let mut plain = |rank: u32, id: &str, name: &str, unit: Unit, value: Reading<f64>| {
        put(rank, id.into(), name.into(), unit, value);
    };
    plain(0, "cpu.busy", "CPUs busy", Unit::Ratio, summary.busy_ratio);
    plain(1, "cpu.steal", "taken by the hypervisor", Unit::Ratio, summary.steal_ratio);
    plain(2, "cpu.clock", "clock", Unit::Hertz, summary.freq_khz.map(|khz| khz * 1e3));
    plain(40, "wakes", "stays in idle states", Unit::PerSecond, summary.wakeups_per_s);
    plain(41, "wakes.above", "too short for their state", Unit::PerSecond, summary.above_per_s);
    plain(42, "wakes.below", "long enough for a deeper one", Unit::PerSecond, summary.below_per_s);
    plain(43, "interrupts", "interrupts", Unit::PerSecond, machine.interrupts_per_s);
    plain(44, "switches", "context switches", Unit::PerSecond, machine.context_switches_per_s);
    plain(45, "throttles", "throttling of cores", Unit::PerSecond, summary.throttles_per_s);
    for state in &summary.idle {
        let (rank, id) = (10 + state.index.min(20), format!("idle.{}.share", state.name));
        put(rank, id, format!("share of {}", state.name), Unit::Ratio, state.share_ratio);
    }
    for zone in &rates.zones {
        // A package's name has its number already.
        let (id, name) = match zone.package.filter(|_| !zone.name.starts_with("package-")) {
            Some(package) => {
                (format!("power.{package}.{}", zone.name), format!("power, {} of package {package}", zone.name))
            }
            None => (format!("power.{}", zone.name), format!("power, {}", zone.name)),
        };
        put(70, id, name, Unit::Watts, zone.power_uw.map(|uw| uw / 1e6));
    }
    for sensor in &rates.sensors {
        // Sensors of two packages may have one name; some labels say the package themselves.
        let package = sensor.package.filter(|_| !sensor.label.starts_with("Package"));
        let place = package.map(|package| format!(" of package {package}")).unwrap_or_default();
        let name = format!("{} {}{place}", sensor.chip, sensor.label);
        let id = name.clone();
        let value = sensor.value.map(|value| value as f64);
        match sensor.kind {
            SensorKind::Power => {
                put(71, format!("power.{id}"), format!("power, {name}"), Unit::Watts, value.map(|uw| uw / 1e6))
            }
            SensorKind::Temperature => put(80, format!("heat.{id}"), name, Unit::Celsius, value.map(|mc| mc / 1e3)),
            SensorKind::Fan => {}
        }
    }
    out
}

//! Meters and sensors of an interval.

use super::Between;
use crate::history::series::Series;
use crate::metric::names;
use std::collections::BTreeSet;
use wakewatt_core::watch::document::{PackageRate, SensorRate, ZoneRate};
use wakewatt_core::watch::layout::SensorKind;
use wakewatt_core::watch::reading::sum;
use wakewatt_core::watch::{Reading, Why};

const NOT_KEPT: Reading<f64> = Reading::Missing(Why::NotRecorded);

/// Energy counters as watts; one that did not move stands for nothing.
pub(super) fn zones(between: &Between<'_>) -> Vec<ZoneRate> {
    let zone = |(series, joules): (&Series, Option<f64>)| ZoneRate {
        id: series.label("zone").unwrap_or_default().into(),
        name: series.label("meter").unwrap_or_default().into(),
        package: series.number("package"),
        power_uw: match joules {
            None => Reading::Missing(Why::First),
            Some(0.0) => Reading::Missing(Why::Dead),
            Some(joules) => Reading::Known(joules * 1e6 / between.seconds()),
        },
    };
    between.grown(&names::ENERGY, "").map(zone).collect()
}

/// What sensors read at the end.
pub(super) fn sensors(between: &Between<'_>) -> Vec<SensorRate> {
    let kinds = [
        (&names::TEMPERATURE, "chip", SensorKind::Temperature, 1e3),
        (&names::FAN, "chip", SensorKind::Fan, 1.0),
        (&names::POWER, "meter", SensorKind::Power, 1e6),
    ];
    let of = |(metric, chip, kind, scale): (&'static crate::metric::Metric, &'static str, SensorKind, f64)| {
        between.of(metric).map(move |(series, value)| SensorRate {
            chip: series.label(chip).unwrap_or_default().into(),
            label: series.label("sensor").unwrap_or_default().into(),
            kind,
            package: series.number("package"),
            value: Reading::Known(rounded(value * scale)),
        })
    };
    kinds.into_iter().flat_map(of).collect()
}

/// Thousandths of a degree, turns, microwatts.
#[allow(clippy::cast_possible_truncation)]
fn rounded(value: f64) -> i64 {
    value.round() as i64
}

/// The hottest of the sensors that `wanted` takes.
pub(super) fn hottest(between: &Between<'_>, wanted: &dyn Fn(&Series) -> bool) -> Reading<i64> {
    let all = between.of(&names::TEMPERATURE).filter(|(series, _)| wanted(series)).map(|(_, celsius)| celsius);
    all.reduce(f64::max).map_or(Reading::Missing(Why::NotRecorded), |celsius| Reading::Known(rounded(celsius * 1e3)))
}

/// Packages that anything was kept of.
pub(super) fn packages(between: &Between<'_>, zones: &[ZoneRate]) -> Vec<PackageRate> {
    let found: BTreeSet<u32> =
        between.of(&names::CPUS_ONLINE).filter_map(|(series, _)| series.number("package")).collect();
    let package = |package: u32| {
        let is_here = |series: &Series| series.number("package") == Some(package);
        let zone = |is_it: &dyn Fn(&str) -> bool| {
            let zone = zones.iter().find(|zone| zone.package == Some(package) && is_it(&zone.name));
            zone.map_or(NOT_KEPT, |zone| zone.power_uw)
        };
        let uncore = between.of(&names::UNCORE).find(|(series, _)| is_here(series));
        PackageRate {
            package,
            power_uw: zone(&|name| name.starts_with("package-")),
            dram_uw: zone(&|name| name == "dram"),
            temperature_mc: hottest(between, &is_here),
            throttles_per_s: between
                .per_s(&names::THROTTLES, |series| series.label("scope") == Some("package") && is_here(series)),
            // A clock.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            uncore_khz: uncore
                .map_or(Reading::Missing(Why::NotRecorded), |(_, hertz)| Reading::Known((hertz / 1e3) as u64)),
            ..PackageRate::default()
        }
    };
    found.into_iter().map(package).collect()
}

/// Packages and their memory, or what a power meter read; a zone within another is not counted twice.
pub(super) fn power(zones: &[ZoneRate], sensors: &[SensorRate]) -> (Reading<f64>, Option<String>) {
    let whole = || zones.iter().filter(|zone| zone.name.starts_with("package-") || zone.name == "dram");
    let known: Vec<&str> =
        whole().filter(|zone| zone.power_uw.get().is_some()).map(|zone| zone.name.as_str()).collect();
    if !known.is_empty() {
        return (sum(whole().map(|zone| zone.power_uw)), Some(format!("RAPL: {}", known.join(", "))));
    }
    let meter = sensors.iter().find(|sensor| sensor.kind == SensorKind::Power);
    match meter.and_then(|meter| Some((meter, meter.value.get()?))) {
        Some((meter, uw)) => (Reading::Known(uw as f64), Some(format!("{} {}", meter.chip, meter.label))),
        None => (NOT_KEPT, None),
    }
}

//! Meters and sensors: energy, power, heat, fans, the uncore's clock.

use super::Known;
use crate::metric::{Labels, Page, names};
use compact_str::ToCompactString as _;
use wakewatt_core::watch::layout::SensorKind;

pub(super) fn add(page: &mut Page, known: &Known<'_>) {
    let layout = known.layout;
    let with_package = |mut labels: Labels, package: Option<u32>| {
        labels.extend(package.map(|p| ("package", p.to_compact_string())));
        labels
    };
    for (zone, total) in known.totals.energies_uj.iter() {
        let labels = vec![("meter", zone.name.as_str().into()), ("zone", zone.id.as_str().into())];
        page.known(&names::ENERGY, with_package(labels, zone.package), total.get().map(|uj| uj as f64 / 1e6));
    }
    for (info, uncore) in layout.packages.iter().zip(&known.now.uncore_khz) {
        let labels = vec![("package", info.package.to_compact_string())];
        page.known(&names::UNCORE, labels, uncore.get().map(|khz| khz as f64 * 1e3));
    }
    for (sensor, value) in layout.sensors.iter().zip(&known.now.sensors) {
        let named = |first: &'static str| -> Labels {
            vec![(first, sensor.chip.as_str().into()), ("sensor", sensor.label.as_str().into())]
        };
        // One core's temperature is a detail of its package's.
        let value = value.get().filter(|_| !sensor.is_core);
        match sensor.kind {
            SensorKind::Temperature => {
                let labels = with_package(named("chip"), sensor.package);
                page.known(&names::TEMPERATURE, labels, value.map(|mc| mc as f64 / 1e3));
            }
            SensorKind::Fan => page.known(&names::FAN, named("chip"), value.map(|rpm| rpm as f64)),
            // A machine that runs draws power: a meter at 0 measures nothing.
            SensorKind::Power => {
                page.known(&names::POWER, named("meter"), value.filter(|uw| *uw > 0).map(|uw| uw as f64 / 1e6));
            }
        }
    }
}

//! What a metric of the page is called in OpenTelemetry: by the semantic conventions where they have it, else as `wakewatt.` with the words of its own name.
//!
//! Of the conventions (opentelemetry.io/docs/specs/semconv, hardware and system, status Development): `hw.energy`, `hw.power`, `hw.temperature`,
//! `hw.fan.speed`, `system.cpu.time`, `system.cpu.frequency`. What they do not have, or mean otherwise, keeps our name: a core's part of
//! a package's energy (summing `hw.energy` would count it twice), least and largest clocks. A store that makes names of Prometheus of `wakewatt.cpuidle.time` and `s`
//! gets `wakewatt_cpuidle_time_seconds_total` again, as on the page.

use super::attribute::{Attribute, number, text};
use crate::metric::{Metric, Sample, names};

/// Name, unit (UCUM) and attributes of a sample.
#[derive(Debug, PartialEq)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) attributes: Vec<Attribute>,
}

pub(super) fn of(metric: &'static Metric, sample: &Sample) -> Named {
    let label = |name: &str| sample.labels.iter().find(|(l, _)| *l == name).map(|(_, value)| value.as_str());
    let is = |one: &'static Metric| std::ptr::eq(metric, one);
    let named = |name: &str, unit: &'static str, own: Vec<Attribute>, rest: &[&str]| {
        let rest = sample.labels.iter().filter(|(label, _)| rest.contains(label));
        let rest = rest.map(|(label, value)| attribute(label, value));
        Named { name: name.into(), unit, attributes: own.into_iter().chain(rest).collect() }
    };
    let hardware =
        |id: String, kind: &str, called: &str| vec![text("hw.id", &id), text("hw.type", kind), text("hw.name", called)];
    let sensor = |chip: &str| {
        let (chip, sensor) = (label(chip).unwrap_or_default(), label("sensor").unwrap_or_default());
        (format!("{chip}/{sensor}"), sensor)
    };
    if is(&names::ENERGY) {
        let (meter, zone) = (label("meter").unwrap_or_default(), label("zone").unwrap_or_default());
        let kind = if meter.starts_with("package-") { Some("cpu") } else { (meter == "dram").then_some("memory") };
        if let Some(kind) = kind {
            return named("hw.energy", "J", hardware(zone.into(), kind, meter), &["package"]);
        }
    } else if is(&names::POWER) {
        let (id, called) = sensor("meter");
        // Which part of the machine a sensor of power is at is not known; conventions allow words of one's own.
        return named("hw.power", "W", hardware(id, "sensor", called), &[]);
    } else if is(&names::TEMPERATURE) {
        let (id, called) = sensor("chip");
        return named("hw.temperature", "Cel", hardware(id, "temperature", called), &["package"]);
    } else if is(&names::FAN) {
        let (id, called) = sensor("chip");
        return named("hw.fan.speed", "rpm", hardware(id, "fan", called), &[]);
    } else if is(&names::CPU_TIME) {
        let mode = vec![text("cpu.mode", label("mode").unwrap_or_default())];
        return named("system.cpu.time", "s", mode, &["node", "package", "cpu"]);
    } else if is(&names::FREQUENCY) && label("stat") == Some("mean") {
        return named("system.cpu.frequency", "Hz", Vec::new(), &["node", "package"]);
    }
    let attributes = sample.labels.iter().map(|(label, value)| attribute(label, value)).collect();
    Named { name: own(metric), unit: unit(metric), attributes }
}

/// `wakewatt_cpuidle_time_seconds` is `wakewatt.cpuidle.time`: the unit stands by itself.
fn own(metric: &Metric) -> String {
    let end = metric.unit.map(|unit| format!("_{unit}")).unwrap_or_default();
    let name = metric.name.strip_suffix(end.as_str()).unwrap_or(metric.name);
    let info = if metric.kind == crate::metric::Kind::Info { ".info" } else { "" };
    format!("{}{info}", name.replace('_', "."))
}

/// As UCUM writes it; counts and words have none.
fn unit(metric: &Metric) -> &'static str {
    match metric.unit {
        Some("seconds") => "s",
        Some("joules") => "J",
        Some("watts") => "W",
        Some("hertz") => "Hz",
        Some("celsius") => "Cel",
        Some("bytes") => "By",
        _ => "",
    }
}

fn attribute(label: &str, value: &str) -> Attribute {
    match (label, value.parse()) {
        ("cpu", Ok(cpu)) => number("cpu.logical_number", cpu),
        _ => text(label, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::{Kind, Value, names::METRICS};

    fn sample(labels: &[(&'static str, &str)]) -> Sample {
        Sample { labels: labels.iter().map(|(n, v)| (*n, (*v).into())).collect(), value: Value::Number(1.0) }
    }

    #[test]
    fn what_the_conventions_have_is_called_by_them() {
        let zone = |meter| of(&names::ENERGY, &sample(&[("meter", meter), ("zone", "intel-rapl:0"), ("package", "0")]));
        let package = zone("package-0");
        assert_eq!((package.name.as_str(), package.unit), ("hw.energy", "J"));
        let attributes =
            [text("hw.id", "intel-rapl:0"), text("hw.type", "cpu"), text("hw.name", "package-0"), text("package", "0")];
        assert_eq!(package.attributes, attributes);
        assert_eq!(zone("dram").attributes[1], text("hw.type", "memory"));
        assert_eq!((zone("core").name.as_str(), zone("psys").name.as_str()), ("wakewatt.energy", "wakewatt.energy"));
        let time = of(&names::CPU_TIME, &sample(&[("mode", "idle"), ("node", "1"), ("cpu", "7")]));
        assert_eq!(time.name, "system.cpu.time");
        assert_eq!(time.attributes, [text("cpu.mode", "idle"), text("node", "1"), number("cpu.logical_number", 7)]);
        let clock = |stat| of(&names::FREQUENCY, &sample(&[("stat", stat)])).name;
        assert_eq!((clock("mean").as_str(), clock("max").as_str()), ("system.cpu.frequency", "wakewatt.cpu.frequency"));
    }

    /// With the rules by which a store of Prometheus takes OTLP: dots to underscores, the unit's word, `_total` for counters.
    #[test]
    fn our_own_names_come_back_as_they_are_on_the_page() {
        for metric in METRICS.iter().filter(|metric| metric.kind != Kind::Histogram) {
            let (name, unit) = (own(metric), unit(metric));
            let word = match unit {
                "s" => "_seconds",
                "J" => "_joules",
                "W" => "_watts",
                "Hz" => "_hertz",
                "Cel" => "_celsius",
                "By" => "_bytes",
                _ => "",
            };
            let total = if metric.kind == Kind::Counter { "_total" } else { "" };
            assert_eq!(format!("{}{word}{total}", name.replace('.', "_")), metric.sample_name());
        }
    }
}

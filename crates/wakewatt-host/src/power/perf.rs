//! RAPL through perf: the `power` PMU, where powercap is closed but CAP_PERFMON is there.
//!
//! Source: arch/x86/events/rapl.c. `/sys/bus/event_source/devices/power` has `type`, `cpumask` (one CPU per package, or
//! die) and per event `events/energy-pkg` ("event=0x02"), `.scale` (joules per count, 2^-32) and `.unit`. The kernel
//! extends the hardware's 32 bits, so counts do not wrap. A guest may offer `energy-psys` that counts nothing: its
//! readings tell. It is the same hardware as powercap: never added to it.

use super::{Machine, Meter, MetersWanted, Say, stamped};
use crate::ipi::RemoteCounter;
use wakewatt_core::facts::power::Power;
use wakewatt_core::facts::{Cpus, Domain};
use wakewatt_core::samples::energy::MeterGap;
use wakewatt_core::samples::energy::{Channel, Covers, Kind};
use wakewatt_core::source::Source;

pub const NAME: &str = "perf";

const PMU: &str = "/sys/bus/event_source/devices/power";

/// One event on one CPU, before it is opened.
#[derive(Debug, PartialEq)]
struct Event {
    channel: Channel,
    cpu: u32,
    kind: u32,
    config: u64,
    scale_uj: f64,
}

struct Perf {
    events: Vec<(Event, RemoteCounter)>,
}

/// Opens every event on every CPU of the mask.
pub fn find(wanted: &MetersWanted) -> Result<Box<dyn Meter>, MeterGap> {
    let machine = super::machine(wanted)?;
    let mut out = Perf { events: Vec::new() };
    let mut why = None;
    for event in events(&machine)? {
        match RemoteCounter::of(event.kind, event.config, event.cpu) {
            Ok(counter) => out.events.push((event, counter)),
            Err(error) => why = Some(format!("{}: {error}", event.channel.name)),
        }
    }
    match (out.events.is_empty(), why) {
        (true, Some(why)) => Err(format!("{why} (CAP_PERFMON or perf_event_paranoid of 0 is needed)").into()),
        (true, None) => Err(format!("{PMU}: no event of energy").into()),
        (false, _) => Ok(Box::new(out)),
    }
}

fn events(machine: &Machine) -> Result<Vec<Event>, String> {
    let power = Power::read(machine.as_ref(), &Cpus::default());
    let pmu = power.pmu("power").ok_or_else(|| format!("{PMU}: no such folder"))?;
    let names = pmu.events.get().ok_or("its events cannot be listed")?;
    let cpus = pmu.cpumask.get().ok_or("its cpumask cannot be read")?;
    let kind = text(machine.as_ref(), &format!("{PMU}/type"))?;
    let kind = kind.parse().map_err(|_| format!("{PMU}/type: holds no number"))?;
    let mut out = Vec::new();
    for name in names.iter().filter(|name| name.starts_with("energy-")) {
        let path = format!("{PMU}/events/{name}");
        // An event whose unit or number is not understood is left out: a wrong scale is worse than none.
        let Ok(unit) = text(machine.as_ref(), &format!("{path}.unit")) else { continue };
        let scale = text(machine.as_ref(), &format!("{path}.scale")).ok().and_then(|s| s.parse::<f64>().ok());
        let config = text(machine.as_ref(), &path).ok().and_then(|t| number_of(&t));
        let (Some(scale), Some(config), "Joules") =
            (scale.filter(|s| s.is_finite() && *s > 0.0), config, unit.as_str())
        else {
            continue;
        };
        for cpu in cpus.iter() {
            let what = name.trim_start_matches("energy-");
            let (covers, is_part) = match what {
                "pkg" => (Covers::Package, false),
                "ram" => (Covers::Dram, false),
                "psys" => (Covers::Platform, false),
                _ => (Covers::Other, true),
            };
            let channel = Channel {
                id: format!("{name}@{cpu}"),
                name: format!("{what} at CPU {cpu}"),
                covers,
                is_part,
                kind: Kind::Energy { range_uj: None },
            };
            out.push(Event { channel, cpu, kind, config, scale_uj: scale * 1e6 });
        }
    }
    Ok(out)
}

fn text(machine: &dyn Source, path: &str) -> Result<String, String> {
    let bytes = machine.read(path).map_err(|e| format!("{path}: {e}"))?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_string())
}

/// `event=0x02`, alone.
fn number_of(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("event=0x")?, 16).ok()
}

impl Meter for Perf {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reach(&self) -> &'static str {
        "interrupts one CPU of each package per event"
    }

    fn channels(&self) -> Vec<Channel> {
        self.events.iter().map(|(event, _)| event.channel.clone()).collect()
    }

    fn read(&mut self, say: &mut Say<'_>) {
        for (at, (event, counter)) in self.events.iter().enumerate() {
            let (at_ns, value) = stamped(|| counter.read());
            #[allow(clippy::cast_possible_truncation)] // Saturates; 2^63 uJ are 292 years of 1 kW.
            let value = value.map(|n| (n as f64 * event.scale_uj) as i64).map_err(|e| e.to_string());
            say(at, at_ns, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use wakewatt_core::source::Tree;

    #[test]
    fn events_come_with_their_scale_one_per_package() {
        let tree = Tree::from_text(&format!(
            "//- {PMU}/type\n19\n//- {PMU}/cpumask\n0,16\n//- {PMU}/events/energy-pkg\nevent=0x02\n
             //- {PMU}/events/energy-pkg.scale\n2.3283064365386962890625e-10\n//- {PMU}/events/energy-pkg.unit\nJoules\n
             //- {PMU}/events/energy-cores\nevent=0x01\n//- {PMU}/events/energy-cores.unit\nFurlongs\n"
        ));
        let machine: Machine = Arc::new(tree);
        let found = events(&machine).unwrap();
        assert_eq!(found.iter().map(|e| (e.cpu, e.kind, e.config)).collect::<Vec<_>>(), [(0, 19, 2), (16, 19, 2)]);
        assert!((found[0].scale_uj * 4_294_967_296.0 - 1e6).abs() < 1.0, "2^32 counts are a joule");
        let none: Machine = Arc::new(Tree::default());
        assert!(events(&none).unwrap_err().contains("no such folder"));
    }
}

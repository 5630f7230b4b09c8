//! RAPL through powercap: energy counters of packages, memory and platform.
//!
//! Source: Documentation/power/powercap/powercap.rst, drivers/powercap. A zone's counter wraps at its
//! `max_energy_range_uj`; sub-zones (`core`, `uncore`) are inside their package and never added, `dram` lies beside it,
//! `psys` is the platform and stands apart. `intel-rapl-mmio` counts the same packages through another door and is left
//! out where the first one is there. Files are root's since PLATYPUS (CVE-2020-8694). RAPL leaves out power supply, fans
//! and disks: a machine of 34 W at the wall was 12 to 15 W here (scaphandre issue 241).

use super::{Machine, Meter, MetersWanted, Say, number_in, stamped};
use wakewatt_core::facts::power::{Power, Zone};
use wakewatt_core::facts::{Cpus, Domain};
use wakewatt_core::samples::energy::MeterGap;
use wakewatt_core::samples::energy::{Channel, Covers, Kind, counter};

pub const NAME: &str = "powercap";

const ZONES: &str = "/sys/class/powercap";

struct Powercap {
    machine: Machine,
    channels: Vec<Channel>,
}

/// Finds the zones.
pub fn find(wanted: &MetersWanted) -> Result<Box<dyn Meter>, MeterGap> {
    let machine = super::machine(wanted)?;
    let power = Power::read(machine.as_ref(), &Cpus::default());
    if power.is_masked() {
        return Err("the zones are hidden from this container; mount the host's /sys".into());
    }
    let is_mmio = |zone: &&Zone| zone.id.starts_with("intel-rapl-mmio");
    // dtpm zones have power and limits of their own making, and no counter.
    let counts = |zone: &&Zone| !zone.id.starts_with("dtpm") && !is_absent(zone);
    let (twins, first): (Vec<&Zone>, Vec<&Zone>) = power.zones.iter().filter(counts).partition(is_mmio);
    let zones = if first.is_empty() { twins } else { first };
    if zones.is_empty() {
        return Err(match power.none_because {
            Some(gap) => gap.to_string().into(),
            None => "no zone of powercap counts energy".into(),
        });
    }
    let refused = |zone: &&Zone| zone.energy_uj.gap().map(ToString::to_string);
    if let (true, Some(why)) = (zones.iter().all(|z| !z.energy_uj.is_known()), zones.iter().find_map(refused)) {
        return Err(format!("{why} (only root may read it)").into());
    }
    let channels = zones.iter().map(|zone| channel(zone, &power.zones)).collect();
    Ok(Box::new(Powercap { machine, channels }))
}

fn is_absent(zone: &Zone) -> bool {
    zone.energy_uj.gap().is_some_and(|gap| gap.kind == wakewatt_core::fact::GapKind::Absent)
}

fn channel(zone: &Zone, all: &[Zone]) -> Channel {
    let own = zone.name.get().cloned().unwrap_or_else(|| zone.id.clone());
    let parent = zone.parent().and_then(|id| all.iter().find(|z| z.id == id)).and_then(|z| z.name.get());
    let (covers, is_part) = match own.as_str() {
        name if name.starts_with("package-") => (Covers::Package, false),
        "dram" => (Covers::Dram, false),
        "psys" => (Covers::Platform, false),
        _ => (Covers::Other, true),
    };
    let name = parent.map_or(own.clone(), |parent| format!("{own} of {parent}"));
    let range_uj = zone.max_energy_range_uj.get().copied();
    Channel { id: zone.id.clone(), name, covers, is_part, kind: Kind::Energy { range_uj } }
}

impl Meter for Powercap {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reach(&self) -> &'static str {
        "interrupts one CPU of each package per zone"
    }

    fn channels(&self) -> Vec<Channel> {
        self.channels.clone()
    }

    fn longest_interval_ns(&self) -> u64 {
        let range = |c: &Channel| match c.kind {
            Kind::Energy { range_uj } => range_uj,
            Kind::Power => None,
        };
        self.channels.iter().filter_map(range).map(counter::longest_interval_ns).min().unwrap_or(u64::MAX)
    }

    fn read(&mut self, say: &mut Say<'_>) {
        for (at, channel) in self.channels.iter().enumerate() {
            let path = format!("{ZONES}/{}/energy_uj", channel.id);
            let (at_ns, value) = stamped(|| number_in(self.machine.as_ref(), &path));
            say(at, at_ns, value);
        }
    }
}

//! Power limits of RAPL: `constraint_N_power_limit_uw` and `constraint_N_time_window_us`, found by the constraint's name.
//!
//! `power.limit.long` (PL1, averaged over `power.window.long`) and `power.limit.short` (PL2). N is no fixed number,
//! the names long_term and short_term are. Hardware rounds both: power to 1/8W or so, windows to (1 + x/4) 2^y units, so a
//! value that reads back near is legal. Firmware may lock the register until reboot (MSR 0x610 bit 63; the write then
//! fails or does nothing), a limit in a zone with `enabled` 0 is not in force, and AMD's zones have no limits. thermald and
//! the BMC write them as well. Sources: power/powercap/powercap.rst, SDM volume 3 (RAPL).

use super::one_file;
use crate::knob::{About, Host, Kept, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::power::{ZONES, Zone};
use wakewatt_core::units::{parse_ns, show_ns, show_uw};
use wakewatt_words::{say, word};

/// The limits, or the windows they are averaged over.
pub struct PowerLimit {
    about: &'static About,
    file: &'static str,
}

const ABOUT: About = About {
    id: "power.limit",
    title: "power limit of a package or part of it",
    unit: "watts (150W)",
    scope: Scope::Package,
    io_scope: Scope::Package,
    stage: Stage::Power,
    reversible: Reversible::Exactly,
    price: Price { up: "the fans and the supply must carry it", down: "slower under load, cooler" },
    risk: "locked by firmware; rounded by hardware; too low a limit makes the machine very slow",
    overlaps: &["power limits"],
    moves: &[],
    source: "Documentation/power/powercap/powercap.rst; SDM volume 3, Power Limit",
};

/// `power.limit`.
pub static LIMIT: PowerLimit = PowerLimit { about: &ABOUT, file: "power_limit_uw" };

/// `power.window`.
pub static WINDOW: PowerLimit = PowerLimit {
    about: &About {
        id: "power.window",
        title: "time over which a power limit is averaged",
        unit: "a time with its unit (28s, 2.4ms)",
        price: Price { up: "more and longer bursts above the limit", down: "fewer and shorter bursts above the limit" },
        risk: "locked by firmware; rounded down by hardware by up to a fifth",
        ..ABOUT
    },
    file: "time_window_us",
};

/// MSR_PKG_POWER_LIMIT and its lock.
const PKG_POWER_LIMIT: u32 = 0x610;
const LOCK: u64 = 1 << 63;
/// Less than this is a typing error.
const MIN_UW: u64 = 1_000_000;
/// The longest window a register can hold is about 14 hours on no machine; this is for typing errors too.
const MAX_WINDOW_US: u64 = 3_600_000_000;

/// `150W`, `500mW` in microwatts.
fn parse_uw(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit.trim() {
        "W" | "w" => 1e6,
        "mW" => 1e3,
        "kW" => 1e9,
        "" => return Err(say!("{text:?} has no unit: write {text}W")),
        _ => return Err(say!("{unit:?} is not a unit of power: use W or mW")),
    };
    match number.parse::<f64>() {
        Ok(value) if value.is_finite() && value * scale < 1e15 =>
        {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Ok((value * scale).round() as u64)
        }
        _ => Err(say!("{text:?} is not a power such as 150W")),
    }
}

/// The CPUs of `package-1` (and of a child such as its dram, by its parent's name).
fn cpus(host: &Host<'_>, zone: &Zone) -> CpuSet {
    let zones = &host.facts.power.zones;
    let owner = zone.parent().and_then(|id| zones.iter().find(|z| z.id == id)).unwrap_or(zone);
    let number = |name: &String| name.strip_prefix("package-")?.split('-').next()?.parse().ok();
    let id = owner.name.get().and_then(number);
    id.map_or_else(|| host.online(), |id| one_file::package(host, id))
}

/// Is the package's register locked? One read on one CPU.
fn is_locked(host: &Host<'_>, zone: &Zone, cpus: &CpuSet) -> bool {
    let has_register = zone.id.starts_with("intel-rapl:") && zone.name.get().is_some_and(|n| n.starts_with("package-"));
    let register = || host.source.msr(cpus.first()?, PKG_POWER_LIMIT).ok();
    has_register && register().is_some_and(|value| value & LOCK != 0)
}

fn range(zone: &Zone, word: &str) -> (u64, u64) {
    let constraint = zone.constraint(word);
    let max = constraint.and_then(|c| c.max_uw.get()).copied().unwrap_or(0);
    let now = constraint.and_then(|c| c.limit_uw.get()).copied().unwrap_or(0);
    // Firmware often names no maximum, or one below what it has set itself.
    (MIN_UW, if max == 0 { 10_000_000_000 } else { max.max(now) })
}

impl PowerLimit {
    fn is_window(&self) -> bool {
        self.file == WINDOW.file
    }
}

impl Knob for PowerLimit {
    fn about(&self) -> &'static About {
        self.about
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let mut sites = Vec::new();
        for zone in &host.facts.power.zones {
            for (name, word) in [("long", "long_term"), ("short", "short_term")] {
                let Some(constraint) = zone.constraint(word) else { continue };
                let cpus = cpus(host, zone);
                let locked = is_locked(host, zone, &cpus);
                let label = zone.name.get().map_or(zone.id.as_str(), String::as_str);
                let (min, max) = range(zone, word);
                let range = if self.is_window() {
                    say!("a time up to {}", show_ns(MAX_WINDOW_US * 1000))
                } else {
                    say!("{} to {}", show_uw(min), show_uw(max))
                };
                let full = format!("{}.{name}", self.about.id);
                let path = format!("{ZONES}/{}/constraint_{}_{}", zone.id, constraint.index, self.file);
                let valid = Valid::Text(format!("{label}: {range}"));
                let site = one_file::find(host, &full, zone.id.clone(), cpus, path, valid);
                let refusal =
                    locked.then(|| word!("firmware has locked it until reboot (MSR 0x610 bit 63)").to_string());
                sites.extend(site.map(|site| Site { refusal, ..site }));
            }
        }
        if sites.is_empty() {
            let because = word!("no zone has limits: AMD, a guest, or a masked container");
            return Err(one_file::missing(host, ZONES, because));
        }
        Ok(sites)
    }
    fn encode(&self, host: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        let fail = |why: String| format!("{}: {why}", site.name);
        if self.is_window() {
            let us = parse_ns(word).map_err(fail)? / 1000;
            let is_fit = (1..=MAX_WINDOW_US).contains(&us);
            return if is_fit { Ok(us.to_string()) } else { Err(fail(say!("{word:?} is not 1us to 1h"))) };
        }
        let uw = parse_uw(word.trim()).map_err(fail)?;
        let name = if site.name.ends_with(".long") { "long_term" } else { "short_term" };
        let zone = host.facts.power.zones.iter().find(|z| z.id == site.place);
        let (min, max) = zone.map_or((MIN_UW, u64::MAX), |zone| range(zone, name));
        if (min..=max).contains(&uw) {
            Ok(uw.to_string())
        } else {
            Err(fail(say!("{} is outside {} to {}", show_uw(uw), show_uw(min), show_uw(max))))
        }
    }
    fn decode(&self, _: &Site, text: &str) -> String {
        match text.parse::<u64>() {
            Ok(us) if self.is_window() => show_ns(us.saturating_mul(1000)),
            Ok(uw) => show_uw(uw),
            Err(_) => text.into(),
        }
    }
    fn kept(&self, requested: &str, read_back: &str) -> Kept {
        // A step of a window is a quarter of its power of two, a step of power 1/8W; a locked register keeps what it had.
        let slack = |asked: u64| if self.is_window() { asked / 4 } else { 500_000 };
        match (requested.parse::<u64>(), read_back.parse::<u64>()) {
            _ if requested == read_back => Kept::Exactly,
            (Ok(asked), Ok(now)) if now > 0 && now.abs_diff(asked) <= slack(asked) => {
                Kept::Legally(say!("rounded by hardware to {now}"))
            }
            _ => Kept::Not,
        }
    }
    fn effective(&self, host: &Host<'_>, site: &Site) -> Option<String> {
        let zone = host.facts.power.zones.iter().find(|z| z.id == site.place)?;
        (zone.is_enabled.get() == Some(&false)).then(|| "not in force: the zone's enabled is 0".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    fn tree(more: &str) -> Tree {
        let at = format!("{ZONES}/intel-rapl:0");
        Tree::from_text(&format!(
            "//- /sys/devices/system/cpu/online\n0-1\n//- /sys/devices/system/cpu/present\n0-1\n
             //- /sys/devices/system/cpu/cpu0/topology/physical_package_id\n0\n//- /sys/devices/system/cpu/cpu1/topology/physical_package_id\n0\n
             //- {at}/name\npackage-0\n//- {at}/enabled\n0\n//- {at}/constraint_1_name\nlong_term\n//- {at}/constraint_1_power_limit_uw\n150000000\n
             //- {at}/constraint_1_time_window_us\n27983872\n//- {at}/constraint_1_max_power_uw\n205000000\n{more}"
        ))
    }

    #[test]
    fn watts_in_microwatts_out_by_the_constraints_name() {
        let tree = tree("");
        let host = Host::read(&tree);
        let site = LIMIT.sites(&host).unwrap().remove(0);
        let window = WINDOW.sites(&host).unwrap().remove(0);
        assert_eq!((site.name.as_str(), window.name.as_str()), ("power.limit.long", "power.window.long"));
        assert!(site.path.ends_with("constraint_1_power_limit_uw") && site.refusal.is_none());
        assert_eq!(LIMIT.encode(&host, &site, "120.5W").unwrap(), "120500000");
        assert!(LIMIT.encode(&host, &site, "300W").unwrap_err().contains("205W"));
        assert!(LIMIT.encode(&host, &site, "150").unwrap_err().contains("150W"));
        assert_eq!(WINDOW.encode(&host, &window, "28s").unwrap(), "28000000");
        assert_eq!(
            (LIMIT.decode(&site, "150000000"), WINDOW.decode(&window, "27983872")),
            ("150W".into(), "28s".into())
        );
        assert!(matches!(WINDOW.kept("28000000", "27983872"), Kept::Legally(_)));
        assert_eq!(LIMIT.kept("150000000", "140000000"), Kept::Not);
        assert!(LIMIT.effective(&host, &site).unwrap().contains("enabled"));
    }

    #[test]
    fn a_locked_register_refuses() {
        let locked = tree("//- msr 0x610 cpu0 8000000000000000\n");
        assert!(LIMIT.sites(&Host::read(&locked)).unwrap()[0].refusal.as_ref().unwrap().contains("locked"));
        assert!(LIMIT.sites(&Host::read(&Tree::default())).is_err());
    }
}

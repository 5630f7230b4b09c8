//! Power: RAPL and other powercap zones with their limits, and which energy and C-state counters perf offers.
//!
//! `/sys/class/powercap` (Documentation/power/powercap/powercap.rst) lists every zone flat; `intel-rapl:0:1` is a child
//! of `intel-rapl:0`. `energy_uj` is root's since PLATYPUS (CVE-2020-8694) and wraps at `max_energy_range_uj`, within
//! minutes on a loaded server. A write to `enabled` or a limit may succeed and do nothing: firmware can lock them.
//! Container runtimes mask the zones behind the links: then the names are here and nothing in them is
//! ([`Power::is_masked`]).
//!
//! The perf PMUs `power`, `cstate_core`, `cstate_pkg`, `msr` are listed by presence only. **Presence is no proof**: a
//! guest may offer `energy-psys` and count nothing. Whoever uses one must see it move first.

use super::{Cpus, Domain};
use crate::cpuset::CpuSet;
use crate::fact::{Fact, Gap, parse};
use crate::folder::{Folder, numbered};
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use serde::Serialize;
use wakewatt_words::{say, word};

/// Where the zones are.
pub const ZONES: &str = "/sys/class/powercap";
const PMUS: &str = "/sys/bus/event_source/devices";

/// Power zones and counters.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Power {
    /// Zones by their kernel id, parents before children.
    pub zones: Vec<Zone>,
    /// Why there are none, when there are none.
    pub none_because: Option<Gap>,
    /// perf PMUs that count energy or residency, as far as present.
    pub pmus: Vec<Pmu>,
}

/// One powercap zone.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Zone {
    /// The folder: `intel-rapl:0`, `intel-rapl-mmio:0`, `dtpm:1`.
    pub id: String,
    /// package-0, dram, core, uncore, psys.
    pub name: Fact<String>,
    /// Energy so far; root only, wraps.
    pub energy_uj: Fact<u64>,
    /// The value at which the counter starts again at zero.
    pub max_energy_range_uj: Fact<u64>,
    /// Power now, where the zone measures power instead (dtpm).
    pub power_uw: Fact<u64>,
    /// Are the limits in force?
    pub is_enabled: Fact<bool>,
    /// The power limits of the zone.
    pub constraints: Vec<Constraint>,
}

/// One limit of a zone.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Constraint {
    /// The N of constraint_N.
    pub index: u32,
    /// Its name: long_term, short_term or peak_power.
    pub name: Fact<String>,
    /// The limit in microwatts.
    pub limit_uw: Fact<u64>,
    /// The largest the zone is made for.
    pub max_uw: Fact<u64>,
    /// The time it is averaged over.
    pub window_ns: Fact<u64>,
}

/// A perf PMU that is present.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pmu {
    /// power, power_core, cstate_core, cstate_pkg, msr.
    pub name: String,
    /// Its events; a gap where they cannot be listed.
    pub events: Fact<Vec<String>>,
    /// The CPUs to open it on, one per unit that it counts; absent where it counts per CPU.
    pub cpumask: Fact<CpuSet>,
}

impl Zone {
    /// `intel-rapl:0` for `intel-rapl:0:1`.
    pub fn parent(&self) -> Option<&str> {
        let (parent, _) = self.id.rsplit_once(':')?;
        parent.contains(':').then_some(parent)
    }

    /// The limit of this name ("long_term").
    pub fn constraint(&self, name: &str) -> Option<&Constraint> {
        self.constraints.iter().find(|c| c.name.get().is_some_and(|n| n == name))
    }
}

/// A limit on a package's power, beside what the package is made for.
#[derive(Clone, Copy, Debug)]
pub struct PackageLimit<'a> {
    /// `package-0`.
    pub package: &'a str,
    /// The powercap zone that sets it.
    pub zone: &'a Zone,
    /// `long_term` or `short_term`.
    pub constraint: &'a Constraint,
    /// The limit, in microwatts.
    pub limit_uw: u64,
    /// What the package is made for, in microwatts.
    pub design_uw: u64,
}

impl PackageLimit<'_> {
    /// Its file.
    pub fn path(&self) -> String {
        format!("{ZONES}/{}/constraint_{}_power_limit_uw", self.zone.id, self.constraint.index)
    }
}

impl Power {
    /// The limits in force on every package whose design power is known. A package may have two zones (`intel-rapl` by MSR,
    /// `intel-rapl-mmio` by the memory controller), each with limits over a long and a short time; the lowest of all decides.
    pub fn package_limits(&self) -> Vec<PackageLimit<'_>> {
        let packages: Vec<(&str, &Zone)> = self
            .zones
            .iter()
            .filter_map(|zone| Some((zone.name.get()?.as_str(), zone)))
            .filter(|(name, _)| name.starts_with("package"))
            .collect();
        // The maximum of the long-term limit is the design power; the second zone of a package often names none.
        let design_uw = |package: &str| {
            let own = packages.iter().filter(|(name, _)| *name == package);
            own.filter_map(|(_, zone)| zone.constraint("long_term")?.max_uw.get().copied()).max().filter(|uw| *uw > 0)
        };
        let mut all = Vec::new();
        for (package, zone) in packages.iter().filter(|(_, zone)| zone.is_enabled.get() != Some(&false)) {
            let Some(design_uw) = design_uw(package) else { continue };
            let limits = ["long_term", "short_term"].into_iter().filter_map(|name| zone.constraint(name));
            let limits = limits.filter_map(|c| Some((c, *c.limit_uw.get()?))).filter(|(_, uw)| *uw > 0);
            all.extend(limits.map(|(constraint, limit_uw)| PackageLimit {
                package,
                zone,
                constraint,
                limit_uw,
                design_uw,
            }));
        }
        all
    }

    /// Zones are listed, and what lies behind them is hidden: a container runtime's mask.
    pub fn is_masked(&self) -> bool {
        !self.zones.is_empty() && self.zones.iter().all(|zone| !zone.name.is_known())
    }

    /// The PMU of this name.
    pub fn pmu(&self, name: &str) -> Option<&Pmu> {
        self.pmus.iter().find(|pmu| pmu.name == name)
    }
}

fn read_zone(src: &dyn Source, id: &str) -> Zone {
    let folder = Folder::list(src, format!("{ZONES}/{id}"));
    let suffix: Vec<String> =
        folder.names().iter().filter_map(|n| n.strip_suffix("_power_limit_uw")).map(str::to_string).collect();
    let constraint = |index: u32| {
        let file = |what: &str| format!("constraint_{index}_{what}");
        Constraint {
            index,
            name: folder.fact(src, &file("name"), parse::word),
            limit_uw: folder.fact(src, &file("power_limit_uw"), parse::number),
            max_uw: folder.fact(src, &file("max_power_uw"), parse::number),
            window_ns: folder.fact(src, &file("time_window_us"), parse::us_to_ns),
        }
    };
    Zone {
        id: id.into(),
        name: folder.fact(src, "name", parse::word),
        energy_uj: folder.fact(src, "energy_uj", parse::number),
        max_energy_range_uj: folder.fact(src, "max_energy_range_uj", parse::number),
        power_uw: folder.fact(src, "power_uw", parse::number),
        is_enabled: folder.fact(src, "enabled", parse::flag),
        constraints: numbered(&suffix, "constraint_").into_iter().map(constraint).collect(),
    }
}

impl Domain for Power {
    const TITLE: &'static str = "Power";
    const HELP: &'static str = "powercap (RAPL) zones and limits; energy and residency counters of perf";

    fn read(src: &dyn Source, _: &Cpus) -> Power {
        let root = Folder::list(src, ZONES);
        // Without a colon it is a control type, which holds no numbers.
        let zones = root.names().iter().filter(|name| name.contains(':'));
        let present = Folder::list(src, PMUS);
        let pmus = ["power", "power_core", "cstate_core", "cstate_pkg", "msr"].into_iter().filter(|n| present.has(n));
        let pmu = |name: &str| {
            let folder = Folder::list(src, format!("{PMUS}/{name}"));
            let events = Folder::list(src, format!("{PMUS}/{name}/events"));
            Pmu {
                name: name.into(),
                events: events.gap().map_or_else(
                    || Fact::Known(events.names().iter().filter(|n| !n.contains('.')).cloned().collect()),
                    Fact::Gap,
                ),
                cpumask: folder.fact(src, "cpumask", parse::cpus),
            }
        };
        Power {
            zones: zones.map(|id| read_zone(src, id)).collect(),
            none_because: root.gap(),
            pmus: pmus.map(pmu).collect(),
        }
    }

    fn show(&self, sheet: &mut Sheet) {
        if let Some(gap) = &self.none_because {
            sheet.fact("power.zones", word!("powercap zones"), &Fact::<u64>::Gap(gap.clone()), |v| Cell::Count(*v));
        }
        if self.is_masked() {
            sheet.say("power.masked", word!("powercap zones are hidden (container)"), Cell::Flag(true));
        }
        for zone in &self.zones {
            let name = zone.name.get().map_or(zone.id.clone(), |name| format!("{name} ({})", zone.id));
            let id = |what: &str| format!("power.{}.{what}", zone.id);
            sheet.fact(id("enabled"), say!("{name} limits in force"), &zone.is_enabled, |v| Cell::Flag(*v));
            for c in &zone.constraints {
                let limit = c.name.get().cloned().unwrap_or_else(|| format!("constraint_{}", c.index));
                let at = |what: &str| id(&format!("{limit}.{what}"));
                sheet.fact(at("limit"), say!("{name} {limit} limit"), &c.limit_uw, |v| Cell::Uw(*v));
                sheet.fact(at("max"), say!("{name} {limit} design maximum"), &c.max_uw, |v| Cell::Uw(*v));
                sheet.fact(at("window"), say!("{name} {limit} window"), &c.window_ns, |v| Cell::Ns(*v));
            }
            if zone.energy_uj.gap().is_none() || !zone.power_uw.is_known() {
                sheet.reading(id("energy"), say!("{name} energy"), &zone.energy_uj, |v| Cell::Uj(*v));
            }
            if zone.power_uw.is_known() {
                sheet.reading(id("power"), say!("{name} power"), &zone.power_uw, |v| Cell::Uw(*v));
            }
            sheet.fact(id("energy_range"), say!("{name} energy wraps at"), &zone.max_energy_range_uj, |v| Cell::Uj(*v));
        }
        for pmu in &self.pmus {
            let id = format!("power.pmu.{}", pmu.name);
            let label = say!("perf {} (present, not proven)", pmu.name);
            sheet.fact(id, label, &pmu.events, |events| Cell::text(events.join(" ")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::GapKind;
    use crate::source::Tree;

    #[test]
    fn zones_limits_and_counters() {
        let tree = Tree::from_text(
            "//- /sys/class/powercap/intel-rapl/enabled\n1\n//- /sys/class/powercap/intel-rapl:0/name\npackage-0\n
             //- /sys/class/powercap/intel-rapl:0/energy_uj!denied\n
             //- /sys/class/powercap/intel-rapl:0/constraint_0_name\nlong_term\n
             //- /sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw\n350000000\n
             //- /sys/class/powercap/intel-rapl:0/constraint_0_time_window_us\n999424\n
             //- /sys/class/powercap/intel-rapl:0:1/name\ndram\n
             //- /sys/bus/event_source/devices/cstate_core/events/c6-residency\nevent=0x02\n
             //- /sys/bus/event_source/devices/cstate_core/cpumask\n0-3\n
             //- /sys/bus/event_source/devices/power/events/energy-pkg\nevent=0x02\n
             //- /sys/bus/event_source/devices/power/events/energy-pkg.scale\n2.3283064365386962890625e-10\n",
        );
        let power = Power::read(&tree, &Cpus::default());
        let ids: Vec<(&str, Option<&str>)> = power.zones.iter().map(|z| (z.id.as_str(), z.parent())).collect();
        assert_eq!(ids, [("intel-rapl:0", None), ("intel-rapl:0:1", Some("intel-rapl:0"))]);
        let long = power.zones[0].constraint("long_term").unwrap();
        assert_eq!((long.limit_uw.get(), long.window_ns.get()), (Some(&350_000_000), Some(&999_424_000)));
        assert_eq!(power.zones[0].energy_uj.gap().unwrap().kind, GapKind::Denied);
        assert_eq!(power.zones[1].energy_uj.gap().unwrap().kind, GapKind::Absent);
        assert!(!power.is_masked());
        assert_eq!(power.pmu("power").unwrap().events.get().unwrap(), &["energy-pkg"]);
        assert_eq!(power.pmu("cstate_core").unwrap().cpumask.get().unwrap().len(), 4);
        assert!(power.pmu("msr").is_none());
    }

    #[test]
    fn a_mask_leaves_the_names_only() {
        let mut tree = Tree::default();
        tree.folders.insert(ZONES.into(), Ok(vec!["intel-rapl".into(), "intel-rapl:0".into()]));
        let power = Power::read(&tree, &Cpus::default());
        assert!(power.is_masked());
        assert!(Power::read(&Tree::default(), &Cpus::default()).none_because.is_some());
    }
}

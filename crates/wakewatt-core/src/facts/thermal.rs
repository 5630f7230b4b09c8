//! Heat: how often it slowed the CPUs down, what the thermal zones say, and which cooling devices are at work.
//!
//! `cpuN/thermal_throttle/*` is Intel's: events and time since boot, per core and per package (every CPU of a package
//! shows the package's number, so packages are shown as a highest value, not a sum). Zones and cooling devices are in
//! `/sys/class/thermal` (Documentation/driver-api/thermal/sysfs-api.rst); a Processor cooling device above state 0 is
//! a frequency limit that appears in no cpufreq file. Keys of those columns are zone and device numbers.

use super::{Cpus, Domain, cpus::ROOT};
use crate::fact::{PerCpu, parse};
use crate::folder::{Folder, Folders};
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use serde::Serialize;
use wakewatt_words::{say, word};

const CLASS: &str = "/sys/class/thermal";

/// Throttling, zones, cooling.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thermal {
    /// Times a core was throttled.
    pub n_core_throttles: PerCpu<u64>,
    /// Times the package was throttled, as each of its CPUs tells.
    pub n_package_throttles: PerCpu<u64>,
    /// Time a core was throttled.
    pub core_throttled_ns: PerCpu<u64>,
    /// Time the package was throttled, as each of its CPUs tells.
    pub package_throttled_ns: PerCpu<u64>,
    /// Longest stretch of a core.
    pub core_longest_throttle_ns: PerCpu<u64>,
    /// Longest stretch of the package.
    pub package_longest_throttle_ns: PerCpu<u64>,
    /// Times a core met its power limit.
    pub n_core_power_limits: PerCpu<u64>,
    /// Times the package met its power limit.
    pub n_package_power_limits: PerCpu<u64>,
    /// x86_pkg_temp, acpitz …; keys are zone numbers.
    pub zone_kind: PerCpu<String>,
    /// Temperature; keys are zone numbers.
    pub zone_mc: PerCpu<i64>,
    /// Processor, Fan, intel_powerclamp …; keys are device numbers.
    pub cooling_kind: PerCpu<String>,
    /// How hard it works, 0 is not at all; keys are device numbers.
    pub cooling_state: PerCpu<i64>,
    /// How hard it can; keys are device numbers.
    pub cooling_max: PerCpu<i64>,
}

impl Thermal {
    /// Has heat slowed any CPU since boot? None where the machine does not count.
    pub fn was_throttled(&self) -> Option<bool> {
        let counts = [&self.n_core_throttles, &self.n_package_throttles];
        let mut known = counts.iter().flat_map(|column| column.known().map(|(_, n)| *n)).peekable();
        known.peek()?;
        Some(known.any(|n| n > 0))
    }

    /// Cooling devices that limit something now: number and kind.
    pub fn cooling_at_work(&self) -> Vec<(u32, String)> {
        let at_work = self.cooling_state.cpus_where(|state| *state > 0);
        let kind = |n: u32| self.cooling_kind.of(n).and_then(|fact| fact.get().cloned());
        at_work.iter().map(|n| (n, kind(n).unwrap_or_else(|| format!("cooling_device{n}")))).collect()
    }
}

fn ms_to_ns(text: &str) -> Result<u64, String> {
    parse::number(text)?.checked_mul(1_000_000).ok_or_else(|| "too many milliseconds".to_string())
}

impl Domain for Thermal {
    const TITLE: &'static str = "Heat";
    const HELP: &'static str = "throttling since boot, thermal zones, cooling devices at work";

    fn read(src: &dyn Source, cpus: &Cpus) -> Thermal {
        let throttle = Folders::alike(src, cpus.running(), |cpu| format!("{ROOT}/cpu{cpu}/thermal_throttle"));
        let count = |file: &str| throttle.read(src, file, parse::number);
        let time = |file: &str| throttle.read(src, file, ms_to_ns);
        let class = Folder::list(src, CLASS);
        let zone = |file: &'static str| move |n: u32| format!("{CLASS}/thermal_zone{n}/{file}");
        let cooling = |file: &'static str| move |n: u32| format!("{CLASS}/cooling_device{n}/{file}");
        let (zones, devices) = (class.numbered("thermal_zone"), class.numbered("cooling_device"));
        Thermal {
            n_core_throttles: count("core_throttle_count"),
            n_package_throttles: count("package_throttle_count"),
            core_throttled_ns: time("core_throttle_total_time_ms"),
            package_throttled_ns: time("package_throttle_total_time_ms"),
            core_longest_throttle_ns: time("core_throttle_max_time_ms"),
            package_longest_throttle_ns: time("package_throttle_max_time_ms"),
            n_core_power_limits: count("core_power_limit_count"),
            n_package_power_limits: count("package_power_limit_count"),
            zone_kind: PerCpu::read(src, zones.iter().copied(), zone("type"), parse::word),
            zone_mc: PerCpu::read(src, zones.iter().copied(), zone("temp"), parse::signed),
            cooling_kind: PerCpu::read(src, devices.iter().copied(), cooling("type"), parse::word),
            cooling_state: PerCpu::read(src, devices.iter().copied(), cooling("cur_state"), parse::signed),
            cooling_max: PerCpu::read(src, devices.iter().copied(), cooling("max_state"), parse::signed),
        }
    }

    fn show(&self, sheet: &mut Sheet) {
        sheet.total("thermal.core_throttles", word!("core throttle events"), &self.n_core_throttles, |v| {
            Cell::Count(*v)
        });
        sheet.total("thermal.core_throttled", word!("core throttled time"), &self.core_throttled_ns, |v| Cell::Ns(*v));
        sheet.total("thermal.core_power_limits", word!("core power limit events"), &self.n_core_power_limits, |v| {
            Cell::Count(*v)
        });
        for (id, label, column) in [
            ("package_throttles", word!("package throttle events"), &self.n_package_throttles),
            ("package_power_limits", word!("package power limit events"), &self.n_package_power_limits),
        ] {
            sheet.span(&format!("thermal.{id}"), label, column, |v| Cell::Count(*v));
        }
        for (id, label, column) in [
            ("package_throttled", word!("package throttled time"), &self.package_throttled_ns),
            ("core_longest_throttle", word!("longest core throttle"), &self.core_longest_throttle_ns),
            ("package_longest_throttle", word!("longest package throttle"), &self.package_longest_throttle_ns),
        ] {
            sheet.span(&format!("thermal.{id}"), label, column, |v| Cell::Ns(*v));
        }
        for group in &self.zone_mc.0 {
            for zone in group.cpus.iter() {
                let kind = self.zone_kind.of(zone).and_then(|fact| fact.get().cloned());
                let label = kind.unwrap_or_else(|| format!("zone {zone}"));
                sheet.reading(format!("thermal.zone{zone}.temp"), label, &group.fact, |v| Cell::MilliC(*v));
            }
        }
        let mut kinds: Vec<(&String, usize)> = self.cooling_kind.known().map(|(n, kind)| (kind, n.len())).collect();
        kinds.sort();
        for (kind, count) in kinds {
            sheet.say(format!("thermal.cooling.{kind}"), say!("{kind} cooling devices"), Cell::Count(count as u64));
        }
        for (n, kind) in self.cooling_at_work() {
            let state = self.cooling_state.of(n).cloned().unwrap_or_default();
            sheet.reading(format!("thermal.cooling{n}.state"), say!("{kind} {n} cools at"), &state, |v| Cell::text(v));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    #[test]
    fn throttles_zones_and_cooling() {
        let tree = Tree::from_text(&format!(
            "//- {ROOT}/online\n0-1\n//- {ROOT}/cpu0/thermal_throttle/core_throttle_count\n0\n
             //- {ROOT}/cpu1/thermal_throttle/core_throttle_count\n3\n
             //- {ROOT}/cpu0/thermal_throttle/core_throttle_total_time_ms\n7\n
             //- {CLASS}/thermal_zone0/type\nacpitz\n//- {CLASS}/thermal_zone0/temp\n-5000\n
             //- {CLASS}/thermal_zone1/type\nx86_pkg_temp\n//- {CLASS}/thermal_zone1/temp!failed\n
             //- {CLASS}/cooling_device0/type\nProcessor\n//- {CLASS}/cooling_device0/cur_state\n2\n
             //- {CLASS}/cooling_device1/type\nProcessor\n//- {CLASS}/cooling_device1/cur_state\n0\n"
        ));
        let thermal = Thermal::read(&tree, &Cpus::read(&tree));
        assert_eq!(thermal.was_throttled(), Some(true));
        assert_eq!(thermal.core_throttled_ns.of(0).unwrap().get(), Some(&7_000_000));
        assert_eq!(thermal.zone_mc.of(0).unwrap().get(), Some(&-5000));
        assert!(thermal.zone_mc.of(1).unwrap().gap().is_some());
        assert_eq!(thermal.cooling_at_work(), [(0, "Processor".to_string())]);
        assert_eq!(Thermal::read(&Tree::default(), &Cpus::default()).was_throttled(), None);
    }
}

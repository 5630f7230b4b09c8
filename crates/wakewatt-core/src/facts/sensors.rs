//! Sensors: temperatures, fans, watts and joules as the hwmon chips report them.
//!
//! `/sys/class/hwmon/hwmonN/*` (Documentation/hwmon/sysfs-interface.rst): coretemp, k10temp, acpi_power_meter, PSUs on
//! pmbus, fans on nct67xx. Chip numbers change between boots, so rows go by the chip's name, with `#2` for the second
//! of a name. Servers often keep fans behind the BMC, where this page does not look. Reading is not free: a coretemp
//! input interrupts its core, a PSU or an ACPI power meter may take milliseconds on a slow bus; voltages and currents
//! are left out.

use super::{Cpus, Domain};
use crate::fact::{Fact, Gap, parse};
use crate::folder::{Folder, numbered};
use crate::sheet::{Cell, Sheet};
use crate::source::Source;
use serde::Serialize;
use std::collections::BTreeMap;
use wakewatt_words::{say, word};

const CLASS: &str = "/sys/class/hwmon";

/// Core sensors above this number are shown as the hottest only.
const MANY: usize = 8;

/// Temperatures, fans and power meters that hwmon shows.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sensors {
    /// The sensor chips by their hwmon number.
    pub chips: Vec<Chip>,
    /// Why there are none, when there are none.
    pub none_because: Option<Gap>,
}

/// One hwmon chip.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Chip {
    /// The N of hwmonN; changes between boots.
    pub number: u32,
    /// coretemp, k10temp, power_meter …
    pub name: Fact<String>,
    /// Its temperature sensors.
    pub temperatures: Vec<Temperature>,
    /// Its fan sensors.
    pub fans: Vec<Fan>,
    /// Its power meters.
    pub powers: Vec<PowerMeter>,
    /// Its energy counters.
    pub energies: Vec<EnergyMeter>,
}

/// A temperature sensor of a chip.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Temperature {
    /// The N of tempN.
    pub index: u32,
    /// "Package id 0", "Core 3", "Tctl".
    pub label: Fact<String>,
    /// Present temperature, in milli-degrees Celsius.
    pub now_mc: Fact<i64>,
    /// Where cooling goes to its limit.
    pub max_mc: Fact<i64>,
    /// Where the processor slows down or the machine stops.
    pub critical_mc: Fact<i64>,
}

/// A fan sensor of a chip.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fan {
    /// The N of fanN.
    pub index: u32,
    /// What it is called.
    pub label: Fact<String>,
    /// Present speed, in revolutions per minute.
    pub now_rpm: Fact<u64>,
}

/// One power meter.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PowerMeter {
    /// The N of powerN.
    pub index: u32,
    /// What it is called.
    pub label: Fact<String>,
    /// Present power, in microwatts.
    pub now_uw: Fact<u64>,
    /// Averaged over the meter's own interval.
    pub average_uw: Fact<u64>,
    /// The cap in force.
    pub cap_uw: Fact<u64>,
}

/// One energy counter.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EnergyMeter {
    /// The N of energyN.
    pub index: u32,
    /// What it is called.
    pub label: Fact<String>,
    /// Energy counted so far, in microjoules.
    pub energy_uj: Fact<u64>,
}

impl Domain for Sensors {
    const TITLE: &'static str = "Sensors";
    const HELP: &'static str = "temperatures, fans, power and energy meters (hwmon)";

    fn read(src: &dyn Source, _: &Cpus) -> Sensors {
        let class = Folder::list(src, CLASS);
        let chips = class.numbered("hwmon").into_iter().map(|number| read_chip(src, number)).collect();
        Sensors { chips, none_because: class.gap() }
    }

    fn show(&self, sheet: &mut Sheet) {
        if let Some(gap) = &self.none_because {
            sheet.fact("sensors", word!("hwmon chips"), &Fact::<u64>::Gap(gap.clone()), |v| Cell::Count(*v));
        }
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for chip in &self.chips {
            let base = chip.name.get().cloned().unwrap_or_else(|| "unnamed".into());
            let count = seen.entry(base.clone()).or_default();
            *count += 1;
            let name = if *count == 1 { base } else { format!("{base}#{count}") };
            show_chip(sheet, &name, chip);
        }
    }
}

fn read_chip(src: &dyn Source, number: u32) -> Chip {
    let folder = Folder::list(src, format!("{CLASS}/hwmon{number}"));
    // A channel is whatever has a reading: power meters may have the average only.
    let channels = |prefix: &str, ends: &[&str]| -> Vec<u32> {
        let stem = |name: &String| ends.iter().find_map(|end| name.strip_suffix(end)).map(str::to_string);
        numbered(&folder.names().iter().filter_map(stem).collect::<Vec<_>>(), prefix)
    };
    let label = |kind: &str, n: u32| folder.fact(src, &format!("{kind}{n}_label"), parse::word);
    let number_in = |file: String| folder.fact(src, &file, parse::number);
    let signed_in = |file: String| folder.fact(src, &file, parse::signed);
    let temperature = |index: u32| Temperature {
        index,
        label: label("temp", index),
        now_mc: signed_in(format!("temp{index}_input")),
        max_mc: signed_in(format!("temp{index}_max")),
        critical_mc: signed_in(format!("temp{index}_crit")),
    };
    let fan = |index: u32| Fan { index, label: label("fan", index), now_rpm: number_in(format!("fan{index}_input")) };
    let power = |index: u32| PowerMeter {
        index,
        label: label("power", index),
        now_uw: number_in(format!("power{index}_input")),
        average_uw: number_in(format!("power{index}_average")),
        cap_uw: number_in(format!("power{index}_cap")),
    };
    let energy = |index: u32| EnergyMeter {
        index,
        label: label("energy", index),
        energy_uj: number_in(format!("energy{index}_input")),
    };
    Chip {
        number,
        name: folder.fact(src, "name", parse::word),
        temperatures: channels("temp", &["_input"]).into_iter().map(temperature).collect(),
        fans: channels("fan", &["_input"]).into_iter().map(fan).collect(),
        powers: channels("power", &["_input", "_average"]).into_iter().map(power).collect(),
        energies: channels("energy", &["_input"]).into_iter().map(energy).collect(),
    }
}

fn show_chip(sheet: &mut Sheet, name: &str, chip: &Chip) {
    let title = |label: &Fact<String>, kind: &str, index: u32| match label.get() {
        Some(label) => format!("{name} {label}"),
        None => format!("{name} {kind}{index}"),
    };
    let is_core = |t: &&Temperature| t.label.get().is_some_and(|label| label.starts_with("Core "));
    let cores: Vec<&Temperature> = chip.temperatures.iter().filter(is_core).collect();
    let is_crowd = cores.len() > MANY;
    for t in chip.temperatures.iter().filter(|t| !(is_crowd && is_core(t))) {
        let id = format!("sensors.{name}.temp{}", t.index);
        let label = title(&t.label, "temp", t.index);
        sheet.reading(id.as_str(), label.as_str(), &t.now_mc, |v| Cell::MilliC(*v));
        sheet.fact(format!("{id}.critical"), say!("{label}, critical"), &t.critical_mc, |v| Cell::MilliC(*v));
    }
    if is_crowd {
        if let Some(hottest) = cores.iter().max_by_key(|t| t.now_mc.get().copied()) {
            let label = format!("{name} hottest of {} cores", cores.len());
            sheet.reading(format!("sensors.{name}.hottest_core"), label, &hottest.now_mc, |v| Cell::MilliC(*v));
        }
    }
    for fan in &chip.fans {
        let id = format!("sensors.{name}.fan{}", fan.index);
        sheet.reading(id, title(&fan.label, "fan", fan.index), &fan.now_rpm, |v| Cell::Rpm(*v));
    }
    for meter in &chip.powers {
        let id = format!("sensors.{name}.power{}", meter.index);
        let label = title(&meter.label, "power", meter.index);
        let now = if meter.now_uw.is_known() { &meter.now_uw } else { &meter.average_uw };
        sheet.reading(id.as_str(), label.as_str(), now, |v| Cell::Uw(*v));
        sheet.fact(format!("{id}.cap"), say!("{label}, cap"), &meter.cap_uw, |v| Cell::Uw(*v));
    }
    for meter in &chip.energies {
        let id = format!("sensors.{name}.energy{}", meter.index);
        sheet.reading(id, title(&meter.label, "energy", meter.index), &meter.energy_uj, |v| Cell::Uj(*v));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    #[test]
    fn chips_of_one_name_stay_apart_and_dead_sensors_are_gaps() {
        let tree = Tree::from_text(
            "//- /sys/class/hwmon/hwmon0/name\ncoretemp\n//- /sys/class/hwmon/hwmon0/temp1_input\n41000\n
             //- /sys/class/hwmon/hwmon0/temp1_label\nPackage id 0\n//- /sys/class/hwmon/hwmon0/temp1_crit\n100000\n
             //- /sys/class/hwmon/hwmon10/name\ncoretemp\n//- /sys/class/hwmon/hwmon10/temp1_input!failed\n
             //- /sys/class/hwmon/hwmon2/name\npower_meter\n//- /sys/class/hwmon/hwmon2/power1_average\n212000000\n
             //- /sys/class/hwmon/hwmon3/fan2_input\n\n",
        );
        let sensors = Sensors::read(&tree, &Cpus::default());
        assert_eq!(sensors.chips.iter().map(|c| c.number).collect::<Vec<_>>(), [0, 2, 3, 10]);
        let mut sheet = Sheet::default();
        sensors.show(&mut sheet);
        let rows: Vec<String> = sheet
            .rows
            .iter()
            .map(|r| format!("{} {}", r.id, r.cell.as_ref().map_or("gap".to_string(), ToString::to_string)))
            .collect();
        assert_eq!(
            rows,
            [
                "sensors.coretemp.temp1 41C",
                "sensors.coretemp.temp1.critical 100C",
                "sensors.power_meter.power1 212W",
                "sensors.power_meter.power1.cap gap",
                "sensors.unnamed.fan2 gap",
                "sensors.coretemp#2.temp1 gap",
                "sensors.coretemp#2.temp1.critical gap"
            ]
        );
    }
}

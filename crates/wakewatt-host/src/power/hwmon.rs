//! hwmon: what sensor chips on the board say about power and energy.
//!
//! Source: Documentation/hwmon/sysfs-interface.rst: `powerN_input` (now) or `powerN_average` (over the meter's own
//! interval), microwatts; `energyN_input`, microjoules. What a channel covers follows from its driver: acpi_power_meter is
//! the machine, the input of a power supply is the wall, a graphics driver is its card, Ampere's smpro and AMD's are the
//! package. The same label `pin` is the wall on a power supply and 12 V on a voltage regulator, so only the drivers of
//! supplies count as wall; all others are shown and never added. Energy goes before power where a chip has both.

use super::{Machine, Meter, MetersWanted, Say, number_in, stamped};
use wakewatt_core::facts::sensors::{Chip, Sensors};
use wakewatt_core::facts::{Cpus, Domain};
use wakewatt_core::samples::energy::{Averaging, Channel, Covers, Kind, MeterGap};

pub const NAME: &str = "hwmon";

/// Drivers of power supplies, by the start of their chip's name (Documentation/hwmon/<driver>.rst).
const SUPPLIES: &[&str] =
    &["cffps", "dps920", "dps800", "pfe1100", "pfe3000", "ipsps", "ym2151", "yh5151", "fsg032", "crps"];
/// Graphics drivers.
const CARDS: &[&str] = &["amdgpu", "i915", "xe", "nouveau", "radeon"];
/// Processors.
const PACKAGES: &[&str] = &["smpro", "amd_energy", "zenpower", "fam15h_power"];

struct Hwmon {
    machine: Machine,
    channels: Vec<Channel>,
}

/// Finds the channels.
pub fn find(wanted: &MetersWanted) -> Result<Box<dyn Meter>, MeterGap> {
    let machine = super::machine(wanted)?;
    let sensors = Sensors::read(machine.as_ref(), &Cpus::default());
    let channels: Vec<Channel> = sensors.chips.iter().flat_map(of_chip).collect();
    if !channels.is_empty() {
        return Ok(Box::new(Hwmon { machine, channels }));
    }
    Err(match (sensors.none_because, sensors.chips.len()) {
        (Some(gap), _) => gap.to_string().into(),
        (None, n) => format!("none of {n} hwmon chips measures power").into(),
    })
}

fn of_chip(chip: &Chip) -> Vec<Channel> {
    let driver = chip.name.get().map_or("unnamed", String::as_str);
    let has_energy = !chip.energies.is_empty();
    let energies = chip.energies.iter().map(|e| (format!("energy{}_input", e.index), &e.label, true));
    let powers = chip.powers.iter().map(|p| {
        let what = if p.now_uw.is_known() || !p.average_uw.is_known() { "input" } else { "average" };
        (format!("power{}_{what}", p.index), &p.label, false)
    });
    let channel = |(file, label, is_energy): (String, &wakewatt_core::fact::Fact<String>, bool)| {
        let label = label.get().map_or("", String::as_str);
        let (covers, is_part) = covers(driver, label);
        let stem = file.split('_').next().unwrap_or(&file);
        Channel {
            id: format!("hwmon{}/{file}", chip.number),
            name: format!("{driver} {}", if label.is_empty() { stem } else { label }),
            covers,
            // The same electricity twice: the counter is the better witness.
            is_part: is_part || (has_energy && !is_energy),
            kind: if is_energy { Kind::Energy { range_uj: None } } else { Kind::Power },
        }
    };
    energies.chain(powers).map(channel).collect()
}

fn covers(driver: &str, label: &str) -> (Covers, bool) {
    let is_of = |list: &[&str]| list.iter().any(|start| driver.starts_with(start));
    let label = label.to_ascii_lowercase();
    match driver {
        "power_meter" => (Covers::System, false),
        _ if is_of(SUPPLIES) && (label.starts_with("pin") || label.is_empty()) => (Covers::Wall, false),
        _ if is_of(CARDS) => (Covers::Gpu, false),
        // amd_energy has every core beside its socket; smpro has the memory controllers' power beside the processor's.
        _ if is_of(PACKAGES) => (Covers::Package, label.starts_with("ecore") || label.contains("dimm")),
        _ => (Covers::Other, true),
    }
}

impl Meter for Hwmon {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reach(&self) -> &'static str {
        "a bus (I2C, ACPI), some milliseconds; wakes no other CPU"
    }

    /// `powerN_average` says over what time in `powerN_average_interval` (milliseconds); of `powerN_input` nobody says.
    fn averaging(&self) -> Averaging {
        let interval = |channel: &Channel| {
            let stem = channel.id.strip_suffix("_average")?;
            let path = format!("/sys/class/hwmon/{stem}_average_interval");
            u64::try_from(number_in(self.machine.as_ref(), &path).ok()?).ok().filter(|ms| *ms > 0)
        };
        let power = || self.channels.iter().filter(|c| c.kind == Kind::Power && !c.is_part);
        let all: Option<Vec<u64>> = power().map(interval).collect();
        match all.and_then(|all| all.into_iter().max()) {
            Some(ms) => Averaging::Over { ns: ms.saturating_mul(1_000_000) },
            None => Averaging::Unknown,
        }
    }

    fn channels(&self) -> Vec<Channel> {
        self.channels.clone()
    }

    fn read(&mut self, say: &mut Say<'_>) {
        for (at, channel) in self.channels.iter().enumerate() {
            let path = format!("/sys/class/hwmon/{}", channel.id);
            let (at_ns, value) = stamped(|| number_in(self.machine.as_ref(), &path));
            say(at, at_ns, value);
        }
    }
}

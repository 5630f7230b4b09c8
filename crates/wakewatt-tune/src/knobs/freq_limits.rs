//! The lowest and highest frequency of each policy: `scaling_min_freq`, `scaling_max_freq`, in kHz.
//!
//! These are requests (freq QoS): the write is accepted and clamped later by the driver, by turbo off, by perf_pct, by
//! the firmware's `_PPC` and by heat, so that what reads back may differ legally (docs/knobs/frequency.md): it is lower
//! then, or one of the driver's steps away. Anything higher was written by somebody, and is neither kept nor ours to
//! undo. Under acpi-cpufreq `cpuinfo_max_freq` may name the boost frequency, which no step of the table reaches: there `max`
//! is the highest step.

use super::per_policy;
use crate::knob::{About, Host, Kept, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use crate::then::Then;
use wakewatt_core::units::show_khz;
use wakewatt_words::say;

/// The widest step of a driver that rounds up.
const STEP_KHZ: u64 = 100_000;

/// One of the two limits.
pub struct FreqLimit {
    about: About,
    file: &'static str,
}

const COMMON: About = About {
    id: "",
    title: "",
    unit: "frequency with its unit (2.1GHz), or min, max (of the hardware)",
    scope: Scope::Policy,
    io_scope: Scope::Policy,
    stage: Stage::Limits,
    reversible: Reversible::Exactly,
    price: Price::same(""),
    risk: "the kernel may clamp it: firmware limit, turbo off, heat",
    overlaps: &["frequency limits", "frequency"],
    moves: &[],
    source: "Documentation/admin-guide/pm/cpufreq.rst, Policy Interface in sysfs",
};

/// The highest.
pub static MAX: FreqLimit = FreqLimit {
    about: About {
        id: "freq.max",
        title: "highest frequency",
        price: Price { up: "more watts under load", down: "less speed, fewer watts" },
        ..COMMON
    },
    file: "scaling_max_freq",
};

/// The lowest.
pub static MIN: FreqLimit = FreqLimit {
    about: About {
        id: "freq.min",
        title: "lowest frequency",
        price: Price { up: "more watts at low load, no slow start", down: "fewer watts at low load, a slow start" },
        ..COMMON
    },
    file: "scaling_min_freq",
};

impl Knob for FreqLimit {
    fn about(&self) -> &'static About {
        // The statics above are the only instances.
        if self.file == MAX.file { &MAX.about } else { &MIN.about }
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        per_policy::sites(host, self.about().id, self.file, |folder| {
            let number = |file| per_policy::number(host, folder, file);
            let (min, hardware) = (number("cpuinfo_min_freq")?, number("cpuinfo_max_freq")?);
            // Boost lies beyond the steps that acpi-cpufreq can be asked for, and no limit reaches it.
            let steps = match host.text(&format!("{folder}/scaling_driver")).as_deref() {
                Some("acpi-cpufreq") => host.text(&format!("{folder}/scaling_available_frequencies")),
                _ => None,
            };
            let steps = steps
                .into_iter()
                .flat_map(|text| text.split_whitespace().filter_map(|step| step.parse::<u64>().ok()).max());
            let max = steps.last().map_or(hardware, |step| step.max(number(self.file).unwrap_or(0)));
            Ok(Valid::Khz { min, max: max.max(min) })
        })
    }
    fn refusal(&self, _: &Host<'_>, then: &Then<'_>, site: &Site, to: &str) -> Option<String> {
        // A maximum below the minimum takes that along; a minimum above the maximum is cut to it.
        let folder = site.path.rsplit_once('/')?.0;
        let most = then.number(&format!("{folder}/{}", MAX.file))?;
        let khz: u64 = to.parse().ok().filter(|khz| self.file == MIN.file && *khz > most)?;
        Some(say!("{} is above freq.max ({}); raise that too", show_khz(khz), show_khz(most)))
    }
    fn kept(&self, requested: &str, read_back: &str) -> Kept {
        match (requested.parse::<u64>(), read_back.parse::<u64>()) {
            _ if requested == read_back => Kept::Exactly,
            (Ok(asked), Ok(khz)) if khz < asked.saturating_add(STEP_KHZ) => {
                Kept::Legally(say!("the kernel made it {}", show_khz(khz)))
            }
            _ => Kept::Not,
        }
    }
    fn effective(&self, host: &Host<'_>, site: &Site) -> Option<String> {
        let folder = site.path.rsplit_once('/')?.0;
        let bios = per_policy::number(host, folder, "bios_limit").ok()?;
        let now: u64 = site.now.as_ref()?.parse().ok()?;
        (self.file == MAX.file && bios < now).then(|| format!("{} (bios_limit)", show_khz(bios)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clamp_makes_it_lower_and_never_much_higher() {
        assert_eq!(MAX.kept("2000000", "2000000"), Kept::Exactly);
        for lower in ["1600000", "2001000"] {
            assert!(matches!(MAX.kept("2000000", lower), Kept::Legally(_)), "{lower}");
        }
        assert_eq!(MAX.kept("2000000", "2601000"), Kept::Not);
        assert_eq!(MIN.kept("1200000", "2601000"), Kept::Not);
    }
}

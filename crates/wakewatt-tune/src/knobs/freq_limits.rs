//! The lowest and highest frequency of each policy: `scaling_min_freq`, `scaling_max_freq`, in kHz.
//!
//! These are requests (freq QoS): the write is accepted and clamped later by the driver, by turbo off, by perf_pct, by
//! the firmware's `_PPC` and by heat, so that what reads back may differ legally (docs/knobs/frequency.md): it is lower
//! then, or one of the driver's steps away. Anything higher was written by somebody, and is neither kept nor ours to
//! undo.

use super::per_policy;
use crate::knob::{About, Host, Kept, Knob, Reversible, Scope, Site, Stage, Valid};
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
    price: "",
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
        price: "lower: less speed, fewer watts; max: all that the hardware has",
        ..COMMON
    },
    file: "scaling_max_freq",
};

/// The lowest.
pub static MIN: FreqLimit = FreqLimit {
    about: About {
        id: "freq.min",
        title: "lowest frequency",
        price: "higher: more watts at low load, no slow start",
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
            Ok(Valid::Khz { min: number("cpuinfo_min_freq")?, max: number("cpuinfo_max_freq")? })
        })
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

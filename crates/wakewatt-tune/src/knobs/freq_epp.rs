//! The energy-performance preference (EPP): `policyN/energy_performance_preference`, hardware's own taste in speed.
//!
//! Words, or 0 (performance) to 255 (power) on Intel. Traps: under the governor `performance` every other value is refused
//! with EBUSY (both vendors), and amd-pstate then shortens its list of words to that one; with amd_dynamic_epp on the
//! kernel writes it itself and refuses too. So the governor comes first (stages), and AMD's full list is offered although
//! the file shows one word. A number that has a name reads back as the name, and `default` as what the default is. In
//! passive mode each write restarts the governor. intel_pstate restores the old value when `performance` is left,
//! amd-pstate keeps 0. Sources: admin-guide/pm/intel_pstate.rst, admin-guide/pm/amd-pstate.rst.

use super::per_policy;
use crate::knob::{About, Host, Kept, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use crate::then::Then;
use crate::words::encode;
use wakewatt_words::say;

/// `freq.epp`.
pub struct FreqEpp;

const ABOUT: About = About {
    id: "freq.epp",
    title: "energy-performance preference",
    unit: "a word such as balance_power; on Intel also 0 (performance) to 255 (power)",
    scope: Scope::Policy,
    io_scope: Scope::Core,
    stage: Stage::Preference,
    reversible: Reversible::Exactly,
    price: Price {
        up: "clocks rise later and less high, fewer watts at low load",
        down: "clocks rise sooner and higher, more watts at low load",
    },
    risk: "EBUSY under the governor performance; the governor and firmware move it",
    overlaps: &["EPP"],
    moves: &[],
    source: "Documentation/admin-guide/pm/intel_pstate.rst; admin-guide/pm/amd-pstate.rst",
};

/// The words amd-pstate takes under powersave.
const AMD: [&str; 5] = ["default", "performance", "balance_performance", "balance_power", "power"];

fn is_amd(host: &Host<'_>, folder: &str) -> bool {
    host.text(&format!("{folder}/scaling_driver")).is_some_and(|driver| driver.starts_with("amd-pstate"))
}

/// Is the energy bias what is written here? It is where the hardware has no preference (no `hwp_epp`).
fn is_bias(host: &Host<'_>, folder: &str) -> bool {
    host.facts.topology.has_flag("hwp_epp") == Some(false) && !is_amd(host, folder)
}

impl Knob for FreqEpp {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        per_policy::sites(host, ABOUT.id, "energy_performance_preference", |folder| {
            let listed = per_policy::word_list(host, folder, "energy_performance_available_preferences")?;
            let is_shortened = listed == ["performance"] && is_amd(host, folder);
            Ok(Valid::Words(if is_shortened { AMD.map(str::to_string).to_vec() } else { listed }))
        })
    }
    fn encode(&self, host: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        let folder = site.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        // Where the words stand for the energy bias, intel_pstate takes no number (EINVAL).
        let takes_numbers = !is_amd(host, folder) && !is_bias(host, folder);
        match word.trim().parse::<u8>() {
            Ok(number) if takes_numbers => Ok(number.to_string()),
            _ => encode(site, word),
        }
    }
    fn refusal(&self, host: &Host<'_>, then: &Then<'_>, site: &Site, to: &str) -> Option<String> {
        let folder = site.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        if matches!(to, "performance" | "0") {
            return None;
        }
        if is_amd(host, folder) && host.facts.boot.argument("amd_dynamic_epp") == Some("enable") {
            return Some(say!("booted with amd_dynamic_epp=enable: the kernel sets it and refuses others (EBUSY)"));
        }
        // The bias refuses nothing.
        let is_fixed = then.is_autonomous(folder) && then.governor(folder).as_deref() == Some("performance");
        (is_fixed && !is_bias(host, folder)).then(|| {
            say!("the driver refuses it (EBUSY) under governor performance; set freq.governor=powersave with it")
        })
    }
    fn rank(&self, _: &str, text: &str, _: &str) -> Option<u64> {
        match text {
            "performance" => Some(0),
            "balance_performance" => Some(128),
            "balance_power" => Some(192),
            "power" => Some(255),
            number => number.parse().ok(),
        }
    }
    fn kept(&self, requested: &str, read_back: &str) -> Kept {
        let is_word = |text: &str| text.parse::<u8>().is_err();
        if requested == read_back {
            Kept::Exactly
        } else if requested == "default" || (!is_word(requested) && is_word(read_back)) {
            Kept::Legally(say!("the kernel calls it {read_back}"))
        } else {
            Kept::Not
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    fn tree(driver: &str, words: &str) -> Tree {
        let at = "/sys/devices/system/cpu/cpufreq/policy0";
        Tree::from_text(&format!(
            "//- {at}/energy_performance_preference\nperformance\n//- {at}/energy_performance_available_preferences\n{words} \n
             //- {at}/scaling_driver\n{driver}\n//- {at}/affected_cpus\n0\n"
        ))
    }

    #[test]
    fn numbers_are_for_intel_and_amds_short_list_is_completed() {
        let intel = tree("intel_pstate", "default performance power");
        let host = Host::read(&intel);
        let site = FreqEpp.sites(&host).unwrap().remove(0);
        assert_eq!(FreqEpp.encode(&host, &site, "64").unwrap(), "64");
        assert!(FreqEpp.encode(&host, &site, "256").is_err() && FreqEpp.encode(&host, &site, "balance_power").is_err());
        let amd = tree("amd-pstate-epp", "performance");
        let host = Host::read(&amd);
        let site = FreqEpp.sites(&host).unwrap().remove(0);
        assert_eq!(FreqEpp.encode(&host, &site, "balance_power").unwrap(), "balance_power");
        assert!(FreqEpp.encode(&host, &site, "64").is_err());
    }

    #[test]
    fn the_bias_takes_no_number() {
        let mut tree = tree("intel_pstate", "default performance power");
        let info = "processor : 0\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 79\nflags : hwp epb\n\n";
        tree.files.insert("/proc/cpuinfo".into(), Ok(info.into()));
        tree.files.insert("/sys/devices/system/cpu/present".into(), Ok("0".into()));
        tree.files.insert("/sys/devices/system/cpu/online".into(), Ok("0".into()));
        let host = Host::read(&tree);
        let site = FreqEpp.sites(&host).unwrap().remove(0);
        assert!(FreqEpp.encode(&host, &site, "64").is_err());
        assert_eq!(FreqEpp.encode(&host, &site, "power").unwrap(), "power");
    }

    #[test]
    fn names_of_numbers_are_the_same_value() {
        assert!(matches!(FreqEpp.kept("128", "balance_performance"), Kept::Legally(_)));
        assert!(matches!(FreqEpp.kept("default", "balance_performance"), Kept::Legally(_)));
        assert_eq!(FreqEpp.kept("power", "performance"), Kept::Not);
        assert_eq!(FreqEpp.kept("64", "0"), Kept::Not);
    }
}

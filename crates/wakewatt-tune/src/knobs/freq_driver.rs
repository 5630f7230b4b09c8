//! The mode of the frequency driver: `intel_pstate/status` or `amd_pstate/status`.
//!
//! active: the driver (or the hardware) chooses the clock; passive: cpufreq's governors do; guided (AMD): governors set
//! bounds, hardware chooses within; off: no frequency scaling at all, clocks stay where they are. Every change resets
//! all policies: governor, limits, preferences, and the files themselves come and go. intel_pstate refuses off while HWP
//! is on (EBUSY), which shows in the preference files, so it is not offered then. AMD calls off `disable`, which
//! earlier kernels refuse in active mode (EBUSY): go by passive.
//! Sources: admin-guide/pm/intel_pstate.rst, admin-guide/pm/amd-pstate.rst.

use super::one_file;
use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use crate::words::encode;
use wakewatt_core::facts::cpus::ROOT;
use wakewatt_words::say;

/// `freq.driver`.
pub struct FreqDriver;

const ABOUT: About = About {
    id: "freq.driver",
    title: "mode of the frequency driver",
    unit: "active, passive, guided (AMD), off",
    scope: Scope::Machine,
    io_scope: Scope::Machine,
    stage: Stage::Driver,
    reversible: Reversible::Exactly,
    price: Price::same("another algorithm chooses the clock: watts and ramp-up change under every load"),
    risk: "resets every policy's governor, limits and preference; off leaves the clock where it happens to be",
    overlaps: &["governor", "EPP", "frequency limits"],
    moves: &[
        "freq.governor",
        "freq.tunable",
        "freq.boost",
        "freq.min",
        "freq.max",
        "freq.perf.min",
        "freq.perf.max",
        "freq.hwp_dynamic_boost",
        "freq.epp",
    ],
    source: "Documentation/admin-guide/pm/intel_pstate.rst; admin-guide/pm/amd-pstate.rst",
};

/// AMD's word for off.
const DISABLE: &str = "disable";

impl Knob for FreqDriver {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        let words = |list: &[&str]| Valid::Words(list.iter().map(|w| (*w).to_string()).collect());
        let has_hwp = !host.facts.freq.policies.energy_preference.is_unknown();
        let intel = if has_hwp { words(&["active", "passive"]) } else { words(&["active", "passive", "off"]) };
        let at = |driver: &str, valid| {
            let path = format!("{ROOT}/{driver}/status");
            one_file::find(host, ABOUT.id, "machine", host.online(), path, valid)
        };
        let amd = || at("amd_pstate", words(&["active", "passive", "guided", "off"]));
        at("intel_pstate", intel).or_else(amd).map(|site| vec![site]).ok_or_else(|| {
            let path = format!("{ROOT}/{{intel,amd}}_pstate/status");
            let has_modes = |driver: &str| driver.starts_with("intel_") || driver.starts_with("amd-pstate");
            let driver = host.facts.freq.policies.driver.known().map(|(_, driver)| driver);
            if let Some(driver) = driver.into_iter().find(|driver| has_modes(driver)) {
                return say!("{path}: {driver} is in charge, but the file is not readable here, or was not recorded");
            }
            say!("{path}: neither is there; acpi-cpufreq and others have one mode")
        })
    }
    fn encode(&self, _: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        let text = encode(site, word)?;
        let is_amd = site.path.contains("/amd_pstate/");
        Ok(if is_amd && text == "off" { DISABLE.into() } else { text })
    }
    fn decode(&self, _: &Site, text: &str) -> String {
        if text == DISABLE { "off".into() } else { text.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn off_is_not_offered_under_hwp_and_is_called_disable_by_amd() {
        let intel = format!("//- {ROOT}/intel_pstate/status\nactive\n");
        let at = format!("{ROOT}/cpufreq/policy0");
        let hwp = Tree::from_text(&format!(
            "{intel}//- {at}/energy_performance_preference\npower\n//- {at}/affected_cpus\n0\n"
        ));
        let refused = |tree: &Tree| {
            let host = Host::read(tree);
            let site = FreqDriver.sites(&host).unwrap().remove(0);
            FreqDriver.encode(&host, &site, "off")
        };
        assert!(refused(&hwp).is_err());
        assert_eq!(refused(&Tree::from_text(&intel)).unwrap(), "off");
        let amd = Tree::from_text(&format!("//- {ROOT}/amd_pstate/status\ndisable\n"));
        assert_eq!(refused(&amd).unwrap(), "disable");
        let host = Host::read(&amd);
        assert_eq!(FreqDriver.decode(&FreqDriver.sites(&host).unwrap()[0], "disable"), "off");
        assert!(FreqDriver.sites(&Host::read(&Tree::default())).is_err());
    }
}

//! The frequency governor of each cpufreq policy: `policyN/scaling_governor`.
//!
//! With intel_pstate or amd-pstate in active mode the only two words are `performance` and `powersave`, and they mean
//! algorithms of the driver, not of cpufreq (admin-guide/pm/intel_pstate.rst). Under `performance` both write the
//! energy preference 0; going back, intel_pstate restores the earlier one and amd-pstate keeps 0
//! (docs/knobs/frequency.md), so the preference is listed under `moves` and put back too.

use super::per_policy;
use crate::knob::{About, Host, Knob, Price, Reversible, Scope, Site, Stage, Valid};
use crate::then::Then;
use crate::words::encode;
use wakewatt_words::say;

/// `freq.governor`.
pub struct FreqGovernor;

/// The word for whichever governor of this driver follows the load: `powersave` does in active mode, and elsewhere is the
/// lowest clock.
const DYNAMIC: &str = "dynamic";

const ABOUT: About = About {
    id: "freq.governor",
    title: "frequency governor",
    unit: "a governor's name, or dynamic: one that follows the load",
    scope: Scope::Policy,
    io_scope: Scope::Policy,
    stage: Stage::Governor,
    reversible: Reversible::Exactly,
    price: Price::same("another algorithm chooses the clock: watts and ramp-up change under every load"),
    risk: "may reset the highest frequency and the energy preference",
    overlaps: &["governor"],
    moves: &["freq.min", "freq.max", "freq.epp", "freq.tunable"],
    source: "Documentation/admin-guide/pm/cpufreq.rst",
};

impl Knob for FreqGovernor {
    fn about(&self) -> &'static About {
        &ABOUT
    }
    fn sites(&self, host: &Host<'_>) -> Result<Vec<Site>, String> {
        per_policy::sites(host, ABOUT.id, "scaling_governor", |folder| {
            let words = per_policy::word_list(host, folder, "scaling_available_governors")?;
            Ok(Valid::Words(words))
        })
    }
    fn encode(&self, host: &Host<'_>, site: &Site, word: &str) -> Result<String, String> {
        if word.trim() != DYNAMIC {
            return encode(site, word);
        }
        let folder = site.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let following: &[&str] = match Then::now(host.source).is_autonomous(folder) {
            true => &["powersave"],
            false => &["schedutil", "conservative", "ondemand"],
        };
        let found = following.iter().find_map(|word| encode(site, word).ok());
        found.ok_or_else(|| say!("{}: no governor here follows the load; there are {}", site.name, site.valid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn a_governor_the_driver_does_not_have_is_refused() {
        let tree = Tree::from_text(
            "//- /sys/devices/system/cpu/online\n0-1\n//- /sys/devices/system/cpu/present\n0-1\n//- /sys/devices/system/cpu/cpufreq/policy0/scaling_governor\npowersave\n//- /sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors\nperformance powersave\n//- /sys/devices/system/cpu/cpufreq/policy0/affected_cpus\n0 1\n",
        );
        let host = Host::read(&tree);
        let sites = FreqGovernor.sites(&host).unwrap();
        assert_eq!((sites.len(), sites[0].cpus.to_string().as_str()), (1, "0-1"));
        assert_eq!(FreqGovernor.encode(&host, &sites[0], "performance").unwrap(), "performance");
        assert!(
            FreqGovernor.encode(&host, &sites[0], "ondemand").unwrap_err().contains("none of performance, powersave")
        );
    }

    #[test]
    fn no_cpufreq_says_so() {
        let tree = Tree::from_text("//- /sys/devices/system/cpu/online\n0\n");
        assert!(FreqGovernor.sites(&Host::read(&tree)).unwrap_err().contains("cpufreq"));
    }
}

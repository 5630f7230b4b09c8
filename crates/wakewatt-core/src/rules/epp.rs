//! Does the energy preference tell the hardware to save power?
//!
//! `energy_performance_preference` (HWP and amd-pstate-epp): power and balance_power make the hardware slow to raise the
//! clock; balance_performance is the usual default of servers and a note only. Under governor performance the driver
//! forces `performance`; a write then fails with EBUSY, so the governor comes first (docs/knobs/frequency.md).

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, on_cpus};
use crate::evidence::Evidence;
use crate::facts::freq::policies::EnergyPreference;

const PATH: &str = "/sys/devices/system/cpu/cpufreq/policy*/energy_performance_preference";

fn word(preference: &EnergyPreference) -> String {
    match preference {
        EnergyPreference::Name(name) => name.clone(),
        EnergyPreference::Raw(n) => format!("{n} of 255"),
    }
}

/// 0 fast, 1 balanced, 2 saving.
fn level(preference: &EnergyPreference) -> u8 {
    match preference {
        EnergyPreference::Name(name) if name == "performance" => 0,
        EnergyPreference::Name(name) if name.ends_with("power") => 2,
        EnergyPreference::Name(_) => 1,
        EnergyPreference::Raw(0..64) => 0,
        EnergyPreference::Raw(64..=128) => 1,
        EnergyPreference::Raw(_) => 2,
    }
}

pub(super) struct Epp;

impl Rule for Epp {
    fn id(&self) -> &'static str {
        "rule.epp"
    }
    fn question(&self) -> &'static str {
        "does the energy preference tell the hardware to save power?"
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let policies = &evidence.facts.freq.policies;
        let all = policies.by_cpu(&policies.energy_preference);
        let Some(worst) = all.known().map(|(_, p)| level(p)).max() else {
            return match all.gaps().next() {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell("no frequency policy is listed", "wakewatt inspect freq"),
            };
        };
        let is_uneven = all.uniform().is_none();
        if worst == 0 && !is_uneven {
            return Answer::no("the preference is performance");
        }
        let words: Vec<String> = all.known().map(|(cpus, p)| format!("{} on CPUs {cpus}", word(p))).collect();
        let weight = if worst == 2 || is_uneven { Weight::Risk } else { Weight::Note };
        let cost = Cost::unknown("the hardware raises the clock later after a pause; how much is not measured");
        let title = format!("The energy preference is {}", words.join(", "));
        let mut finding = Finding::new(self, weight, Confidence::Medium, title, cost).on(PATH, words.join(", "));
        // Under governor performance the write fails with EBUSY.
        let governors = policies.by_cpu(&policies.governor);
        let cpus = all.cpus_where(|p| level(p) > 0).minus(&governors.cpus_where(|g| g == "performance"));
        if !cpus.is_empty() {
            let on = on_cpus(&evidence.facts, &cpus);
            finding = finding.step("freq.epp", on, "performance", PATH, "raise the clock at once");
        }
        finding
            .remedy(
                "Set performance where latency matters, all CPUs alike. It is lost with the next reboot or profile \
                    change.",
                "Watts at partial load.",
                "wakewatt inspect freq, then the work's own latency before and after",
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, policy};
    use super::*;

    #[test]
    fn preferences() {
        let check = |p: &str| ask(&Epp, &policy(&[("energy_performance_preference", p)]));
        assert_eq!(check("power"), "yes risk unknown: the energy preference is power on cpus 0-1");
        assert!(check("balance_performance").starts_with("yes note"));
        assert!(check("performance").starts_with("no"));
        assert!(check("0").starts_with("no"));
        assert!(ask(&Epp, "").starts_with("cannot tell"));
    }
}

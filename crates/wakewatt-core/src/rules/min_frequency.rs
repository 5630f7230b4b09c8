//! Was the lower frequency limit raised?
//!
//! `scaling_min_freq` above `cpuinfo_min_freq`: somebody keeps the clock up. It buys faster starts after a pause and
//! costs watts at partial load; equal limits pin the clock. A note, to be read beside the governor.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, on_cpus};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::fact::Fact;
use crate::units::show_khz;
use wakewatt_words::{say, word};

pub(super) struct MinFrequency;

impl Rule for MinFrequency {
    fn id(&self) -> &'static str {
        "rule.min-frequency"
    }
    fn question(&self) -> &'static str {
        word!("was the lower frequency limit raised?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let policies = &evidence.facts.freq.policies;
        let hardware = |p| policies.hardware_min_khz.of(p).and_then(Fact::get).copied();
        let pairs: Vec<(u32, u64, u64)> = policies
            .min_khz
            .known()
            .flat_map(|(set, khz)| set.iter().map(move |p| (p, *khz)))
            .filter_map(|(p, khz)| Some((p, khz, hardware(p)?)))
            .collect();
        if pairs.is_empty() {
            return match policies.min_khz.gaps().chain(policies.hardware_min_khz.gaps()).next() {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell(word!("no frequency policy is listed"), word!("wakewatt inspect freq")),
            };
        }
        let raised = pairs.iter().filter(|(_, min, hardware)| *min > hardware + hardware / 20).count();
        let Some((policy, min, hardware)) = pairs.iter().max_by_key(|p| p.1).filter(|(_, min, hw)| *min > hw + hw / 20)
        else {
            return Answer::no(word!("every policy may go down to the lowest frequency of its hardware"));
        };
        let is_pinned = policies.max_khz.of(*policy).and_then(Fact::get) == Some(min);
        let pinned = if is_pinned { word!(", which pins the clock") } else { "" };
        let title = say!(
            "The lower limit of {raised} policies was raised, to {} from {}{pinned}",
            show_khz(*min),
            show_khz(*hardware)
        );
        let mut finding = Finding::new(
            self,
            Weight::Note,
            Confidence::High,
            title,
            Cost::unknown(word!("watts at partial load; faster starts after a pause; not measured")),
        )
        .on(format!("/sys/devices/system/cpu/cpufreq/policy{policy}/scaling_min_freq"), show_khz(*min))
        .on(format!("/sys/devices/system/cpu/cpufreq/policy{policy}/cpuinfo_min_freq"), show_khz(*hardware));
        // Under performance the lower limit decides nothing, and some drivers raise it themselves.
        let is_pushed = |p: u32| policies.governor.of(p).and_then(Fact::get).is_none_or(|g| g == "performance");
        let cpus = pairs
            .iter()
            .filter(|(p, min, hardware)| *min > hardware + hardware / 20 && !is_pushed(*p))
            .filter_map(|(p, ..)| policies.cpus_of(*p))
            .fold(CpuSet::new(), |all, cpus| all.union(cpus));
        if !cpus.is_empty() {
            let (on, path) =
                (on_cpus(&evidence.facts, &cpus), "/sys/devices/system/cpu/cpufreq/policy*/scaling_min_freq");
            finding = finding.step("freq.min", on, "min", path, word!("let the clock fall again"));
        }
        finding
            .remedy(
                word!("Leave it where latency matters; else lower it again."),
                word!("Lowered: short requests after a pause may start slower."),
                word!("wakewatt inspect freq"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, policy};
    use super::*;

    #[test]
    fn raised() {
        let check = |min: &str| {
            ask(
                &MinFrequency,
                &policy(&[("scaling_min_freq", min), ("cpuinfo_min_freq", "800000"), ("scaling_max_freq", "2000000")]),
            )
        };
        assert!(check("2000000").ends_with("to 2ghz from 800mhz, which pins the clock"));
        assert!(check("800000").starts_with("no"));
        assert!(ask(&MinFrequency, "").starts_with("cannot tell"));
    }
}

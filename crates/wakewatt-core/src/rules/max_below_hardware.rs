//! Is the upper frequency limit below what the hardware can do?
//!
//! `scaling_max_freq` against `cpuinfo_max_freq`. Exceptions: with turbo off the limit is the base frequency and
//! rule.turbo-off speaks; under acpi-cpufreq `cpuinfo_max_freq` may include boost that no step names, so the highest
//! step of the table is what counts there (an EPYC Genoa: 3.25 of 3.8 GHz, and it boosts all the same).

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, khz_word, on_cpus, percent};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::fact::{Fact, PerCpu};
use crate::facts::freq::Freq;
use crate::units::show_khz;
use wakewatt_words::{say, word};

const PATH: &str = "/sys/devices/system/cpu/cpufreq/policy*/scaling_max_freq";

/// The frequency each policy's limit is to be held against, by policy; only where it is known.
pub(super) fn reachable_khz(freq: &Freq) -> PerCpu<u64> {
    let policies = &freq.policies;
    let all = policies.max_khz.0.iter().flat_map(|g| g.cpus.iter());
    PerCpu::group(all.filter_map(|policy| {
        let driver = policies.driver.of(policy)?.get()?;
        let top = if driver == "acpi-cpufreq" {
            policies.available_khz.of(policy)?.get()?.iter().max().copied()?
        } else if freq.is_turbo_allowed() == Some(false) {
            *policies.base_khz.of(policy)?.get()?
        } else {
            *policies.hardware_max_khz.of(policy)?.get()?
        };
        Some((policy, Fact::Known(top)))
    }))
}

/// The CPUs whose limit is too low, by the frequency they should reach; without those the firmware limits, where a
/// request is clamped.
fn lowered(evidence: &Evidence, top: &PerCpu<u64>) -> Vec<(u64, CpuSet)> {
    let policies = &evidence.facts.freq.policies;
    let mut all: Vec<(u64, CpuSet)> = Vec::new();
    for (policy, khz) in top.known().flat_map(|(set, khz)| set.iter().map(move |p| (p, *khz))) {
        let Some(limit) = policies.max_khz.of(policy).and_then(Fact::get) else { continue };
        let is_firmware = policies.bios_limit_khz.of(policy).and_then(Fact::get).is_some_and(|b| *b < khz - khz / 100);
        let Some(cpus) = policies.cpus_of(policy).filter(|_| *limit < khz - khz / 100 && !is_firmware) else {
            continue;
        };
        match all.iter_mut().find(|(k, _)| *k == khz) {
            Some((_, set)) => *set = set.union(cpus),
            None => all.push((khz, cpus.clone())),
        }
    }
    all
}

pub(super) struct MaxBelowHardware;

impl Rule for MaxBelowHardware {
    fn id(&self) -> &'static str {
        "rule.max-below-hardware"
    }
    fn question(&self) -> &'static str {
        word!("is the upper frequency limit below what the hardware can do?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let freq = &evidence.facts.freq;
        let top = reachable_khz(freq);
        if top.is_unknown() {
            return match freq.policies.max_khz.gaps().chain(freq.policies.hardware_max_khz.gaps()).next() {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell(
                    word!("what the hardware can reach is not known"),
                    word!("wakewatt inspect freq"),
                ),
            };
        }
        let limit_of = |policy| freq.policies.max_khz.of(policy).and_then(Fact::get).copied();
        let worst = top
            .known()
            .flat_map(|(policies, khz)| policies.iter().map(move |p| (p, *khz)))
            // Rounding: one step of 1 % is none.
            .filter_map(|(p, khz)| Some((p, limit_of(p)?, khz)).filter(|(_, limit, khz)| *limit < khz - khz / 100))
            .min_by_key(|(_, limit, _)| *limit);
        let Some((policy, limit, khz)) = worst else {
            return Answer::no(word!("every policy may use the highest frequency of its hardware"));
        };
        let lost = 1.0 - limit as f64 / khz as f64;
        let cpus = freq.policies.cpus_of(policy).map_or_else(|| say!("the CPUs of policy {policy}"), CpuSet::named);
        let title = say!("The clock of {cpus} is limited to {} of {}", show_khz(limit), show_khz(khz));
        let cost = Cost::predicted_ratio(
            lost,
            say!("up to {} of the clock when one core is busy, computed from the limits; not measured", percent(lost)),
        );
        let mut finding = Finding::new(self, Weight::Risk, Confidence::Medium, title, cost)
            .on(PATH, show_khz(limit))
            .on(PATH.replace("scaling", "cpuinfo"), show_khz(khz));
        if let Some(ratio) = freq.intel_pstate.max_perf_ratio.get().filter(|r| **r < 1.0) {
            finding = finding.on("/sys/devices/system/cpu/intel_pstate/max_perf_pct", percent(*ratio));
        }
        for (khz, cpus) in lowered(evidence, &top) {
            let on = on_cpus(&evidence.facts, &cpus);
            let is_all = freq.policies.hardware_max_khz.uniform() == Some(&khz);
            let to = if is_all { "max".into() } else { khz_word(khz) };
            finding = finding.step("freq.max", on, to, PATH, word!("allow the highest frequency"));
        }
        if let Some(ratio) = freq.intel_pstate.max_perf_ratio.get().filter(|r| **r < 1.0) {
            let path = "/sys/devices/system/cpu/intel_pstate/max_perf_pct";
            let why = say!("{} bounds every policy", percent(*ratio));
            finding = finding.step("freq.perf.max", None, "100", path, why);
        }
        finding
            .remedy(
                word!(
                    "Raise the limit to the hardware's maximum. If it falls again, something sets it: a daemon \
                    (rule.tuning-daemons), heat (rule.throttling) or the firmware (rule.bios-limit)."
                ),
                word!("More watts under load."),
                word!("wakewatt inspect freq: what is read back may legally differ from what was written"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, policy};
    use super::*;

    #[test]
    fn limits() {
        let check = |driver: &str, max: &str, steps: &str| {
            ask(
                &MaxBelowHardware,
                &policy(&[
                    ("scaling_driver", driver),
                    ("scaling_max_freq", max),
                    ("cpuinfo_max_freq", "4000000"),
                    ("scaling_available_frequencies", steps),
                ]),
            )
        };
        assert_eq!(
            check("intel_pstate", "2000000", ""),
            "yes risk predicted: the clock of cpus 0-1 is limited to 2ghz of 4ghz"
        );
        assert!(check("intel_pstate", "4000000", "").starts_with("no"));
        assert!(check("acpi-cpufreq", "3250000", "3250000 2000000").starts_with("no"), "boost is beyond the table");
        assert!(ask(&MaxBelowHardware, "").starts_with("cannot tell"));
        assert!(ask(&MaxBelowHardware, &policy(&[("scaling_max_freq", "2000000")])).starts_with("cannot tell"));
    }
}

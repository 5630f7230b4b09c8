//! Do CPUs run below the lowest frequency of their hardware?
//!
//! No governor and no limit asks for less than `cpuinfo_min_freq`. What is below was throttled: PROCHOT pulled by a power
//! supply or a voltage regulator, a power cap of the BMC, clock modulation by heat. The kernel averages APERF over MPERF
//! (`cpuinfo_avg_freq`, `scaling_cur_freq`), so an idle CPU shows how it last ran; every recorded server stays within a
//! thousandth of its lowest frequency. Sources: admin-guide/pm/cpufreq.rst; Intel SDM volume 3 (PROCHOT#, clock modulation).

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, percent};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::fact::Fact;
use crate::facts::freq::policies::Policies;
use crate::units::show_khz;
use wakewatt_words::{say, word};

const PATH: &str = "/sys/devices/system/cpu/cpufreq/policy*";

pub(super) struct BelowLowest;

/// What a policy last ran at, and the lowest frequency of its hardware.
fn of_policy(policies: &Policies, policy: u32) -> Option<(u64, u64)> {
    let average = policies.average.of(policy).and_then(Fact::get).and_then(|speed| speed.khz());
    let current = || policies.current.of(policy).and_then(Fact::get).and_then(|speed| speed.khz());
    let lowest = policies.hardware_min_khz.of(policy).and_then(Fact::get).copied();
    Some((average.or_else(current).filter(|khz| *khz > 0)?, lowest?))
}

impl Rule for BelowLowest {
    fn id(&self) -> &'static str {
        "rule.below-lowest"
    }
    fn question(&self) -> &'static str {
        word!("do CPUs run below the lowest frequency of their hardware?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let policies = &evidence.facts.freq.policies;
        let numbers = policies.hardware_min_khz.0.iter().flat_map(|group| group.cpus.iter());
        let known: Vec<(u32, u64, u64)> = numbers
            .filter_map(|policy| of_policy(policies, policy).map(|(khz, lowest)| (policy, khz, lowest)))
            .collect();
        if known.is_empty() {
            return match policies.current.gaps().chain(policies.hardware_min_khz.gaps()).next() {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell(word!("no frequency policy is listed"), word!("wakewatt inspect freq")),
            };
        }
        let below: Vec<&(u32, u64, u64)> =
            known.iter().filter(|(_, khz, lowest)| *khz < lowest - lowest / 20).collect();
        let Some((_, slowest, lowest)) = below.iter().min_by_key(|(_, khz, _)| *khz) else {
            return Answer::no(word!("no CPU was seen below the lowest frequency of its hardware"));
        };
        let cpus_of = |policy: u32| policies.cpus_of(policy).cloned().unwrap_or_else(|| [policy].into_iter().collect());
        let cpus = below.iter().fold(CpuSet::new(), |all, (policy, ..)| all.union(&cpus_of(*policy)));
        let on = evidence.facts.cpus.extent(&cpus);
        let title = say!(
            "CPUs run at {}, below the lowest frequency of {}, on {on}: something throttles them",
            show_khz(*slowest),
            show_khz(*lowest)
        );
        let lost = 1.0 - *slowest as f64 / *lowest as f64;
        let text = say!(
            "{} below the lowest frequency when it was read, and further below what the load would get; not measured",
            percent(lost)
        );
        Finding::new(self, Weight::Problem, Confidence::Medium, title, Cost::unknown(text))
            .on(format!("{PATH}/scaling_cur_freq"), say!("{} on {on}", show_khz(*slowest)))
            .on(format!("{PATH}/cpuinfo_min_freq"), show_khz(*lowest))
            .remedy(
                word!(
                    "Look at the BMC: a failed power supply, a power cap, temperatures. What pulls the clock down is outside of \
                     Linux, and no setting here raises it."
                ),
                word!("Perhaps hardware."),
                word!("wakewatt inspect freq thermal; wakewatt measure frequency"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, policy};
    use super::*;

    #[test]
    fn throttled() {
        let check = |file: &str, khz: &str| ask(&BelowLowest, &policy(&[("cpuinfo_min_freq", "800000"), (file, khz)]));
        assert_eq!(
            check("scaling_cur_freq", "200000"),
            "yes problem unknown: cpus run at 200mhz, below the lowest frequency of 800mhz, on all 2 cpus: something throttles them"
        );
        assert!(check("scaling_cur_freq", "799765").starts_with("no"), "rounding");
        assert!(check("cpuinfo_avg_freq", "400000").starts_with("yes"));
        assert!(check("cpuinfo_avg_freq", "<unknown>").starts_with("cannot tell"));
        assert!(ask(&BelowLowest, "").starts_with("cannot tell"));
    }
}

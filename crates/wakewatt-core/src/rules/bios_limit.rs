//! Does the firmware limit the frequency?
//!
//! `bios_limit` (acpi-cpufreq, from _PPC) is the highest frequency the firmware allows now; it falls with a power cap
//! or a broken power supply. Held against the highest step of the table, since boost lies beyond both.

use super::max_below_hardware::reachable_khz;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, percent};
use crate::evidence::Evidence;
use crate::fact::Fact;
use crate::units::show_khz;
use wakewatt_words::{say, word};

pub(super) struct BiosLimit;

impl Rule for BiosLimit {
    fn id(&self) -> &'static str {
        "rule.bios-limit"
    }
    fn question(&self) -> &'static str {
        word!("does the firmware limit the frequency?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let freq = &evidence.facts.freq;
        let limits = &freq.policies.bios_limit_khz;
        if limits.is_unknown() {
            return match limits.gaps().next() {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell(word!("no frequency policy is listed"), "wakewatt inspect freq"),
            };
        }
        let top = reachable_khz(freq);
        let pairs: Vec<_> = limits
            .known()
            .flat_map(|(policies, limit)| policies.iter().map(move |p| (p, *limit)))
            .filter_map(|(p, limit)| Some((p, limit, *top.of(p).and_then(Fact::get)?)))
            .collect();
        if pairs.is_empty() {
            return Answer::cannot_tell(word!("the table of frequencies is not known"), "wakewatt inspect freq");
        }
        let Some((policy, limit, khz)) = pairs.into_iter().filter(|(_, l, k)| *l < k - k / 100).min_by_key(|p| p.1)
        else {
            return Answer::no(word!("the firmware allows the highest step"));
        };
        let lost = 1.0 - limit as f64 / khz as f64;
        let cost =
            Cost::predicted_ratio(lost, say!("{} of the clock, computed from the limit; not measured", percent(lost)));
        let title = say!("The firmware limits policy {policy} to {} of {}", show_khz(limit), show_khz(khz));
        Finding::new(self, Weight::Problem, Confidence::High, title, cost)
            .on(format!("/sys/devices/system/cpu/cpufreq/policy{policy}/bios_limit"), show_khz(limit))
            .remedy(
                word!("Look at the BMC: power cap, failed or missing power supply, power profile, inlet temperature. Only \
                    the firmware can lift it."),
                word!("More watts under load."),
                word!("wakewatt inspect freq afterwards"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, policy};
    use super::*;

    #[test]
    fn limited() {
        let check = |limit: &str| {
            ask(
                &BiosLimit,
                &policy(&[
                    ("scaling_driver", "acpi-cpufreq"),
                    ("scaling_max_freq", limit),
                    ("bios_limit", limit),
                    ("scaling_available_frequencies", "3250000 2000000"),
                ]),
            )
        };
        assert!(check("2000000").starts_with("yes problem predicted: the firmware limits policy 0 to 2ghz of 3.25ghz"));
        assert!(check("3250000").starts_with("no"));
        assert!(ask(&BiosLimit, "").starts_with("cannot tell"));
    }
}

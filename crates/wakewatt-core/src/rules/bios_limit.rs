//! Does the firmware limit the frequency?
//!
//! `bios_limit` (acpi-cpufreq, from _PPC) is the highest frequency the firmware allows now; it falls with a power cap
//! or a broken power supply. Held against the highest step of the table, since boost lies beyond both.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, percent};
use crate::clock_window::{self, By, Window};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
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
    fn applies(&self) -> &'static [Where] {
        &[Where::BareMetal, Where::BiosLimit]
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
        let windows = clock_window::of(&evidence.facts);
        if windows.iter().all(|window| window.top_khz.is_none()) {
            return Answer::cannot_tell(word!("the table of frequencies is not known"), "wakewatt inspect freq");
        }
        let firmware = |window: &Window| window.upper.iter().find(|bound| bound.by == By::Firmware).map(|b| b.khz);
        let limited: Vec<(&Window, u64, u64)> = windows
            .iter()
            .filter_map(|window| Some((window, firmware(window)?, window.top_khz?)))
            .filter(|(_, limit, top)| *limit < top - top / 100)
            .collect();
        let Some((_, limit, khz)) = limited.iter().copied().min_by_key(|(_, limit, _)| *limit) else {
            return Answer::no(word!("the firmware allows the highest step"));
        };
        let cpus = limited.iter().fold(CpuSet::new(), |all, (window, ..)| all.union(&window.cpus));
        let lost = 1.0 - limit as f64 / khz as f64;
        let cost =
            Cost::predicted_ratio(lost, say!("{} of the clock, computed from the limit; not measured", percent(lost)));
        let on = evidence.facts.cpus.extent(&cpus);
        let title = say!("The firmware limits the clock to {} of {} on {on}", show_khz(limit), show_khz(khz));
        Finding::new(self, Weight::Problem, Confidence::High, title, cost)
            .on("/sys/devices/system/cpu/cpufreq/policy*/bios_limit", say!("{} on {on}", show_khz(limit)))
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
        assert!(
            check("2000000")
                .starts_with("yes problem predicted: the firmware limits the clock to 2ghz of 3.25ghz on all 2 cpus")
        );
        assert!(check("3250000").starts_with("no"));
        assert!(ask(&BiosLimit, "").starts_with("cannot tell"));
    }
}

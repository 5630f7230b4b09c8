//! May the firmware turn a request for C6 into C1?
//!
//! `cpuidle/intel_c1_demotion` (kernels after 6.12, Sapphire Rapids and later; KNOBS.md 4). With demotion on, the
//! kernel's counters say C6 while the core was in C1: usage and time are what was asked, not what was reached. It
//! lowers latency and costs watts. Older kernels have no file; MSR 0xE2 bits 26 and 28 say the same there.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;

/// See the essay above.
pub(super) struct C1Demotion;

impl Rule for C1Demotion {
    fn id(&self) -> &'static str {
        "rule.c1-demotion"
    }
    fn question(&self) -> &'static str {
        "may the firmware turn a request for C6 into C1?"
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let demotion = &evidence.facts.idle.is_c1_demotion_on;
        match (demotion.get(), demotion.gap()) {
            (Some(false), _) => Answer::no("intel_c1_demotion is off"),
            (None, Some(gap)) => Answer::cannot_tell(
                gap.to_string(),
                "the file needs a kernel after 6.12; register 0xE2 bits 26 and 28 tell on older ones",
            ),
            (None, None) => Answer::no("not an Intel machine"),
            (Some(true), _) => {
                let cost = Cost::unknown(
                    "the counters of deep states overstate them: some of that sleep was in C1; watts not saved, latency not paid",
                );
                Finding::new(self, Weight::Note, Confidence::High, "C1 demotion is on: the firmware may turn a request for C6 into C1", cost)
                    .on("/sys/devices/system/cpu/cpuidle/intel_c1_demotion", "1")
                    .remedy(
                        "Nothing, if latency matters. To save power on a mostly idle machine, switch it off (write 0 as root) and measure watts.",
                        "Switched off: deeper sleep, slower wake-ups.",
                        "wakewatt measure wakeup with long and short pauses",
                    )
                    .yes()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn on_off_unknown() {
        let file = "//- /sys/devices/system/cpu/cpuidle/intel_c1_demotion\n";
        assert!(ask(&C1Demotion, &format!("{file}1\n")).starts_with("yes note"));
        assert!(ask(&C1Demotion, &format!("{file}0\n")).starts_with("no"));
        assert!(ask(&C1Demotion, "").starts_with("cannot tell"));
    }
}

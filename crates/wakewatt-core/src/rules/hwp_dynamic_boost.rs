//! Is the boost for tasks that waited for I/O switched off?
//!
//! `intel_pstate/hwp_dynamic_boost` raises the hardware's minimum for a short while when a task wakes from I/O (kernel
//! documentation admin-guide/pm/intel_pstate.rst). It exists in active mode with HWP only, and is on by default on few
//! server models. A note: worth a try for disk-bound work at low load.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::clock_window;
use crate::evidence::Evidence;
use wakewatt_words::word;

pub(super) struct HwpDynamicBoost;

impl Rule for HwpDynamicBoost {
    fn id(&self) -> &'static str {
        "rule.hwp-dynamic-boost"
    }
    fn question(&self) -> &'static str {
        word!("is the boost for tasks that waited for I/O switched off?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Intel, Where::BareMetal, Where::Hwp]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let boost = &evidence.facts.freq.intel_pstate.is_hwp_dynamic_boost_on;
        match (boost.get(), boost.gap()) {
            (None, Some(gap)) => Answer::gap(gap),
            (Some(false), _) if evidence.facts.freq.governors().uniform().is_some_and(|g| g == "performance") => {
                Answer::no(word!("it is off, and governor performance keeps the clock at its upper limit anyway"))
            }
            (Some(false), _) if clock_window::only_clock(&clock_window::of(&evidence.facts)).is_some() => {
                Answer::no(word!("it is off, and the limits leave one clock"))
            }
            (Some(false), _) => {
                let path = "/sys/devices/system/cpu/intel_pstate/hwp_dynamic_boost";
                let cost = Cost::unknown(word!("a task that wakes from I/O may start at a low clock; not measured"));
                Finding::new(
                    self,
                    Weight::Note,
                    Confidence::Low,
                    word!("hwp_dynamic_boost is off: a task that waited for I/O starts at the clock of an idle CPU"),
                    cost,
                )
                .on(path, "0")
                .step(
                    "freq.hwp_dynamic_boost",
                    None,
                    "on",
                    path,
                    word!("a fast start after a wait for input or output"),
                )
                .remedy(
                    word!("For disk- or network-bound work at low load, switch it on and compare."),
                    word!("Some watts."),
                    word!("the work's own latency before and after; wakewatt inspect freq shows the switch"),
                )
                .yes()
            }
            _ => Answer::no(word!("hwp_dynamic_boost is on")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn switch() {
        let check = |v: u8| {
            ask(&HwpDynamicBoost, &format!("//- /sys/devices/system/cpu/intel_pstate/hwp_dynamic_boost\n{v}\n"))
        };
        assert!(check(0).starts_with("yes note"));
        assert!(check(1).starts_with("no"));
        assert!(ask(&HwpDynamicBoost, "").starts_with("cannot tell"));
    }
}

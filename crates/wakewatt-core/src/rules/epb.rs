//! Does the energy performance bias lean to power, and did the kernel set it?
//!
//! `cpuN/power/energy_perf_bias`, 0 performance to 15 power. At boot the kernel turns a firmware 0 into 6 ("Set to
//! 'normal'" in the log), which undoes "maximum performance" in the BIOS (docs/knobs/frequency.md). With
//! hardware-managed P-states the energy preference decides about the clock and the bias about little else, so 6 and 7
//! are notes.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, on_cpus};
use crate::evidence::Evidence;

const PATH: &str = "/sys/devices/system/cpu/cpu*/power/energy_perf_bias";

pub(super) struct Epb;

impl Rule for Epb {
    fn id(&self) -> &'static str {
        "rule.epb"
    }
    fn question(&self) -> &'static str {
        "does the energy performance bias lean to power, and did the kernel set it?"
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let bias = &evidence.facts.freq.energy_perf_bias;
        let Some(worst) = bias.known().map(|(_, v)| *v).max() else {
            return match bias.gaps().next() {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell(
                    "no energy bias is listed",
                    "Intel has it, kernel 5.2 and later; wakewatt inspect freq",
                ),
            };
        };
        let is_uneven = bias.uniform().is_none();
        if worst < 6 && !is_uneven {
            return Answer::no(format!("the bias is {worst}"));
        }
        let words: Vec<String> = bias.known().map(|(cpus, v)| format!("{v} on CPUs {cpus}")).collect();
        let kernel = if worst == 6 { "; 6 is also what the kernel makes of a firmware 0" } else { "" };
        let weight = if worst > 7 || is_uneven { Weight::Risk } else { Weight::Note };
        let title = format!("The energy bias is {} (0 performance, 15 power){kernel}", words.join(", "));
        let on = on_cpus(&evidence.facts, &bias.cpus_where(|v| *v > 0));
        Finding::new(
            self,
            weight,
            Confidence::Low,
            title,
            Cost::unknown(
                "turbo and uncore may rise later; little \
            where the hardware manages P-states; not measured",
            ),
        )
        .on(PATH, words.join(", "))
        .step("freq.epb", on, "performance", PATH, "the bias the firmware may have had")
        .remedy(
            "Set 0 where latency matters. Look in the kernel log for ENERGY_PERF_BIAS: if it says so, the BIOS \
                    setting was undone at boot and is undone again at the next.",
            "Watts at partial load.",
            "wakewatt inspect freq",
        )
        .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn biases() {
        let check = |v: u8| {
            ask(
                &Epb,
                &format!(
                    "//- /sys/devices/system/cpu/online\n0\n//- \
                        /sys/devices/system/cpu/cpu0/power/energy_perf_bias\n{v}\n"
                ),
            )
        };
        assert!(check(6).starts_with("yes note unknown: the energy bias is 6 on cpus 0"));
        assert!(check(6).contains("kernel makes of a firmware 0"));
        assert!(check(15).starts_with("yes risk"));
        assert!(check(0).starts_with("no"));
        assert!(ask(&Epb, "").starts_with("cannot tell"));
    }
}

//! Does the energy performance bias lean to power where it counts?
//!
//! `cpuN/power/energy_perf_bias`, 0 performance to 15 power. At boot the kernel turns a firmware 0 into 6 ("Set to
//! 'normal'" in the log), which undoes "maximum performance" in the BIOS (docs/knobs/frequency.md). What it moves depends:
//! with HWP and its own preference the bias says little, so that 6 and 7, the usual defaults, are nothing to report; with HWP
//! that takes no preference it *is* the preference; without HWP it sways turbo and uncore. Sources: Intel SDM volume 3
//! (IA32_ENERGY_PERF_BIAS); Documentation/admin-guide/pm/{intel_epb,intel_pstate}.rst.

use super::hwp_hidden::{is_led_by_bias, stored_preference};
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, on_cpus};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

const PATH: &str = "/sys/devices/system/cpu/cpu*/power/energy_perf_bias";

/// What the kernel makes of a firmware 0 at boot.
const FROM_ZERO: u64 = 6;

/// What the bias moves on this machine.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// HWP without a preference: the bias is the hint.
    Leads,
    /// No HWP.
    Sways,
    /// HWP with a preference of its own.
    Little,
    /// The flags are not known.
    Unknown,
}

impl Role {
    fn of(evidence: &Evidence) -> Role {
        let facts = &evidence.facts;
        match (is_led_by_bias(facts), facts.topology.has_flag("hwp_epp")) {
            (Some(true), _) => Role::Leads,
            (_, Some(true)) => Role::Little,
            (Some(false), Some(false)) => Role::Sways,
            _ => Role::Unknown,
        }
    }
}

pub(super) struct Epb;

impl Rule for Epb {
    fn id(&self) -> &'static str {
        "rule.epb"
    }
    fn question(&self) -> &'static str {
        word!("does the energy performance bias lean to power where it counts?")
    }
    fn is_choice(&self) -> bool {
        true
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Intel, Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let bias = &evidence.facts.freq.energy_perf_bias;
        let Some(worst) = bias.known().map(|(_, v)| *v).max() else {
            return match bias.gaps().next() {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell(
                    word!("no energy bias is listed"),
                    word!("Intel has it, kernel 5.2 and later; wakewatt inspect freq"),
                ),
            };
        };
        let is_uneven = bias.uniform().is_none();
        let role = Role::of(evidence);
        let is_default = worst <= 7 && !is_uneven;
        if worst < 6 && !is_uneven && (role != Role::Leads || worst == 0) {
            return Answer::no(say!("the bias is {worst}"));
        }
        if is_default && matches!(role, Role::Little | Role::Unknown) {
            return Answer::no(say!(
                "the bias is {worst}, a usual default, and where the hardware takes a preference it says little"
            ));
        }
        let extent = |cpus: &CpuSet| evidence.facts.cpus.extent(cpus);
        let words: Vec<String> = bias.known().map(|(cpus, v)| say!("{v} on {cpus}", cpus = extent(cpus))).collect();
        let weight = match worst {
            _ if is_uneven => Weight::Problem,
            9.. => Weight::Risk,
            _ => Weight::Note,
        };
        let mut title = say!("The energy bias is {} (0 performance, 15 power)", words.join(", "));
        let cost = match role {
            Role::Leads => {
                title += match stored_preference(&evidence.facts) {
                    None => word!(", and it is the only hint that the hardware's own management of the clock takes"),
                    // Then the hardware may follow the register, which Linux leaves alone.
                    Some(_) => {
                        word!(
                            ", and it is the only hint that Linux can give the hardware's own management of the clock"
                        )
                    }
                };
                word!("the hardware raises the clock later after a pause; how much is not measured")
            }
            Role::Sways => word!("turbo and uncore may rise later; not measured"),
            Role::Little => word!("little where the hardware takes a preference of its own; not measured"),
            Role::Unknown => {
                word!("turbo and uncore may rise later; little where the hardware manages the clock; not measured")
            }
        };
        // A 6 may be the kernel's; any other value is the firmware's own, or somebody's.
        let is_six = bias.known().any(|(_, v)| *v == FROM_ZERO);
        let why = match is_six {
            true => word!("the bias the firmware may have had"),
            false => word!("performance, the other end of the scale"),
        };
        let what = match is_six {
            true => word!(
                "Set 0 where latency matters. The kernel makes 6 of a firmware 0: if its log says so (ENERGY_PERF_BIAS), \
                 the BIOS setting was undone at boot and is undone again at the next."
            ),
            false => word!("Set 0 where latency matters. It is lost with the next reboot: the BIOS has it for good."),
        };
        let on = on_cpus(&evidence.facts, &bias.cpus_where(|v| *v > 0));
        let confidence = if role == Role::Leads || is_uneven { Confidence::Medium } else { Confidence::Low };
        Finding::new(self, weight, confidence, title, Cost::unknown(cost))
            .on(PATH, words.join(", "))
            .step("freq.epb", on, "performance", PATH, why)
            .remedy(what, word!("Watts at partial load."), "wakewatt inspect freq")
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, recorded};
    use super::*;

    #[test]
    fn a_preference_in_the_register_may_count_too() {
        let said = recorded(&Epb, include_str!("../../../../fixtures/hosts/emr9.host"));
        assert!(
            said.ends_with("the only hint that linux can give the hardware's own management of the clock"),
            "{said}"
        );
    }

    #[test]
    fn biases() {
        let root = "//- /sys/devices/system/cpu";
        let check = |v: u8, flags: &str| {
            let policy = format!(
                "{root}/cpufreq/policy0/affected_cpus\n0\n{root}/cpufreq/policy0/scaling_driver\nintel_pstate\n"
            );
            let info = match flags {
                "" => String::new(),
                flags => format!("//- /proc/cpuinfo\nprocessor : 0\nvendor_id : GenuineIntel\nflags : {flags}\n"),
            };
            ask(&Epb, &format!("{root}/online\n0\n{root}/cpu0/power/energy_perf_bias\n{v}\n{policy}{info}"))
        };
        let (old, led, own) = ("epb", "epb hwp", "epb hwp hwp_epp");
        assert!(check(6, own).starts_with("no: the bias is 6, a usual default"));
        assert!(check(6, "").starts_with("no"), "without the flags a default is no finding");
        assert!(check(7, old).starts_with("yes note unknown: the energy bias is 7 on cpu 0"));
        assert!(check(4, old).starts_with("no: the bias is 4"));
        let said = check(6, led);
        assert!(said.starts_with("yes note") && said.ends_with("management of the clock takes"), "{said}");
        assert!(check(4, led).starts_with("yes note") && check(0, led).starts_with("no"));
        assert!(check(15, own).starts_with("yes risk"));
        let remedy = |v: u8| {
            let host = format!(
                "{root}/online\n0\n{root}/cpu0/power/energy_perf_bias\n{v}\n{root}/cpufreq/policy0/affected_cpus\n0\n
                 {root}/cpufreq/policy0/scaling_driver\nintel_pstate\n//- /proc/cpuinfo\nprocessor : 0\nvendor_id : GenuineIntel\nflags : epb\n"
            );
            match Epb.check(&super::super::testing::evidence(&host)) {
                Answer::Yes(found) => found.remedy,
                other => panic!("{other:?}"),
            }
        };
        assert!(remedy(6).contains("makes 6 of a firmware 0") && !remedy(7).contains('6'), "{}", remedy(7));
        assert!(check(0, own).starts_with("no"));
        assert!(ask(&Epb, "").starts_with("cannot tell"));
    }
}

//! Does firmware hide the hardware's own management of the clock?
//!
//! Intel's processors since Skylake manage their P-states themselves (HWP) and take an energy preference (EPP) as a hint.
//! Firmware can leave HWP out ("Hardware P-States: Disabled" or "Legacy"): then CPUID, and with it /proc/cpuinfo, has no flag
//! `hwp`, and no setting of Linux brings it back. Some hosts show `hwp` without `hwp_epp`: the hint is then the energy bias
//! (rule.epb). Broadwell has HWP without EPP by nature, and kernels leave it off there. Which models have it is written
//! down here, so that an older processor is not accused; nor is firmware accused of hiding a preference that its register holds. Sources: Intel SDM volume 3, hardware-controlled performance
//! states; Documentation/admin-guide/pm/intel_pstate.rst.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use wakewatt_words::{say, word};

pub(super) struct HwpHidden;

/// Models of family 6 that are known to have HWP with EPP: servers from Skylake on, clients from Skylake on.
const HAVE_IT: &[u64] = &[
    0x55, 0x6a, 0x6c, 0x8f, 0xcf, 0xad, 0xae, 0xaf, 0xdd, // servers
    0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6, 0x66, 0x7d, 0x7e, 0x8c, 0x8d, 0xa7, // Skylake to Rocket Lake
    0x97, 0x9a, 0xbe, 0xb7, 0xba, 0xbf, 0xaa, 0xac, 0xb5, 0xbd, 0xc5, 0xc6, // hybrid ones
];

/// Does the hardware manage the clock, with the energy bias as its only hint? Where it is known.
pub(super) fn is_led_by_bias(facts: &Snapshot) -> Option<bool> {
    let (has_hwp, has_epp) = (facts.topology.has_flag("hwp")?, facts.topology.has_flag("hwp_epp")?);
    // Where the register says that HWP is off, nothing leads it.
    let is_off = facts.msr.is_set("pm_enable", "hwp") == Some(false);
    let is_driven = facts.freq.policies.driver.uniform().is_some_and(|driver| driver == "intel_pstate");
    Some(has_hwp && !has_epp && is_driven && !is_off)
}

/// The energy preference in the register (MSR 0x774 bits 31:24), where it holds one though the flag is missing. Recorded
/// Broadwells, which have no preference, read 0 there.
pub(super) fn stored_preference(facts: &Snapshot) -> Option<u64> {
    if facts.topology.has_flag("hwp_epp")? {
        return None;
    }
    let field = facts.msr.field("hwp_request", "epp")?;
    field.known().map(|(_, epp)| *epp).max().filter(|epp| *epp > 0)
}

impl Rule for HwpHidden {
    fn id(&self) -> &'static str {
        "rule.hwp-hidden"
    }
    fn question(&self) -> &'static str {
        word!("does firmware hide the hardware's own management of the clock?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Intel, Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let facts = &evidence.facts;
        let Some(processor) = facts.topology.processor() else {
            return Answer::cannot_tell(word!("which processor this is is not known"), "wakewatt inspect topology");
        };
        let (Some(has_hwp), Some(has_epp)) = (facts.topology.has_flag("hwp"), facts.topology.has_flag("hwp_epp"))
        else {
            return match facts.topology.has_cut_flags() {
                true => Answer::cannot_tell(
                    word!("the list of flags may be cut short, and what is missing in it may be there"),
                    word!("import the whole output of lscpu, not one copied from a narrow screen"),
                ),
                false => {
                    Answer::cannot_tell(word!("/proc/cpuinfo does not list the flags"), "wakewatt inspect topology")
                }
            };
        };
        let is_known = processor.family == Some(6) && processor.model.is_some_and(|model| HAVE_IT.contains(&model));
        match (has_hwp, has_epp) {
            (true, true) => Answer::no(word!("HWP and its energy preference are there")),
            (true, false) if is_led_by_bias(facts) != Some(true) => Answer::no(word!("HWP has no energy preference and is not in charge")),
            (true, false) if is_known && stored_preference(facts).is_some() => Answer::cannot_tell(
                say!(
                    "the flag hwp_epp is missing, and yet MSR 0x774 holds a preference ({}): firmware may hide it from Linux and \
                        use it itself; whether the hardware follows the register or the energy bias is not known",
                    stored_preference(facts).unwrap_or_default()
                ),
                word!("measure with wakewatt measure frequency at two settings of the energy bias; in the BIOS look for the energy \
                    preference or its owner"),
            ),
            (true, false) if is_known => self.finding(
                facts,
                processor,
                word!("HWP manages the clock without its energy preference (no hwp_epp), which this processor has: firmware hides it"),
                word!("the energy bias is the only hint the hardware takes; what that costs is not measured"),
                [
                    word!("Only the BIOS can bring it back: an option for the energy preference, or one that says who owns the energy \
                        bias (the operating system, not the BIOS)."),
                    word!("A reboot; the preference can be set then."),
                ],
            ),
            (true, false) => Answer::no(word!("HWP of this processor has no energy preference; the energy bias leads it")),
            (false, _) if is_known => self.finding(
                facts,
                processor,
                word!("The processor can manage its clock itself (HWP), and firmware hides it"),
                word!("software chooses the clock, later than the hardware would; not measured"),
                [
                    word!("Only the BIOS can bring it back: Hardware P-States (Speed Shift) in native mode, often under a system \
                        profile of the operating system's control. Kernel parameters and drivers cannot."),
                    word!("A reboot; governors and limits change their meaning."),
                ],
            ),
            (false, _) => Answer::no(word!("no flag hwp, and this model is not known to have it")),
        }
    }
}

impl HwpHidden {
    fn finding(
        &self,
        facts: &Snapshot,
        processor: &crate::facts::topology::Processor,
        title: &str,
        cost: &str,
        [remedy, price]: [&str; 2],
    ) -> Answer {
        let driver = facts.freq.policies.driver.uniform().map_or(word!("not known"), String::as_str);
        let flags =
            |flag: &str| if facts.topology.has_flag(flag) == Some(true) { word!("there") } else { word!("not there") };
        Finding::new(self, Weight::Note, Confidence::Medium, title, Cost::unknown(cost))
            .on("/proc/cpuinfo", say!("{processor}: flag hwp {}, hwp_epp {}", flags("hwp"), flags("hwp_epp")))
            .on("/sys/devices/system/cpu/cpufreq/policy*/scaling_driver", driver)
            .remedy(
                remedy,
                price,
                word!("wakewatt inspect freq topology, and wakewatt compare with a capture from before"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, policy, recorded};
    use super::*;

    fn host(model: u32, flags: &str, driver: &str) -> String {
        let cpu = |n: u32| {
            format!(
                "processor : {n}\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : {model}\nflags : fpu {flags}\n\n"
            )
        };
        policy(&[("scaling_driver", driver)]) + &format!("//- /proc/cpuinfo\n{}{}", cpu(0), cpu(1))
    }

    #[test]
    fn a_preference_in_the_register_accuses_nobody() {
        let said = recorded(&HwpHidden, include_str!("../../../../fixtures/hosts/emr9.host"));
        assert!(
            said.starts_with("cannot tell: the flag hwp_epp is missing, and yet MSR 0x774 holds a preference (32)"),
            "{said}"
        );
        let register = |value: &str| format!("//- msr 0x774 cpu0 {value}\n//- msr 0x774 cpu1 {value}\n");
        let check = |value| ask(&HwpHidden, &(host(0xcf, "epb hwp", "intel_pstate") + &register(value)));
        assert!(
            check("20002808").starts_with("cannot tell") && check("2808").starts_with("yes note"),
            "{}",
            check("2808")
        );
    }

    #[test]
    fn only_silicon_that_has_it_is_missed() {
        let check = |model, flags: &str, driver: &str| ask(&HwpHidden, &host(model, flags, driver));
        assert_eq!(
            check(0x6c, "epb aperfmperf", "acpi-cpufreq"),
            "yes note unknown: the processor can manage its clock itself (hwp), and firmware hides it"
        );
        assert!(check(0x57, "epb", "intel_cpufreq").starts_with("no: no flag hwp"), "Xeon Phi has none");
        assert!(check(0x55, "hwp hwp_epp", "intel_pstate").starts_with("no: HWP and"));
        assert!(check(0xcf, "epb hwp", "intel_pstate").contains("without its energy preference"));
        assert!(
            check(0x4f, "epb hwp", "intel_cpufreq")
                .starts_with("no: HWP has no energy preference and is not in charge")
        );
        assert!(check(0x6c, "hypervisor", "").starts_with("does not apply: a guest"));
        assert!(ask(&HwpHidden, "").starts_with("cannot tell"));
        assert!(check(0x55, "epb …", "acpi-cpufreq").starts_with("cannot tell: the list of flags may be cut short"));
        assert!(check(0x55, "hwp hwp_epp …", "intel_pstate").starts_with("no: HWP and"), "what it lists is there");
        assert!(
            ask(&HwpHidden, "//- /proc/cpuinfo\nprocessor : 0\nvendor_id : AuthenticAMD\n")
                .starts_with("does not apply")
        );
    }
}

//! Where a rule's question means anything: which processor, which driver, metal or guest.
//!
//! Elsewhere the rule answers "does not apply", and nobody is sent to look for a file that cannot be there: an EPYC has no
//! energy bias, and bios_limit is a file of acpi-cpufreq. What is not known does not stand in the way. Sources:
//! Documentation/admin-guide/pm/{cpufreq,intel_pstate,amd-pstate}.rst.

use crate::enterable::{self, Cause, Enterable};
use crate::facts::Snapshot;
use crate::facts::cpuinfo::Processor;
use wakewatt_words::word;

/// What must be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// An Intel processor.
    Intel,
    /// An x86 processor.
    X86,
    /// No hypervisor lies between Linux and the hardware.
    BareMetal,
    /// A virtual machine.
    Guest,
    /// The hardware manages the clock (HWP).
    Hwp,
    /// A frequency driver that shows the firmware's limit.
    BiosLimit,
    /// A frequency driver that takes an energy preference.
    EnergyPreference,
    /// Linux has a say in the clock: a frequency policy is there, or no hypervisor lies between.
    Clock,
    /// A processor whose uncore clock has files (intel_uncore_frequency).
    UncoreFiles,
    /// No boot argument makes every idle CPU spin: they sleep, or would without a limit or a switch.
    Sleep,
}

/// Models of family 6 without such files: Xeon Phi and the Atom servers before Sierra Forest.
const NO_UNCORE_FILES: &[u64] = &[0x57, 0x85, 0x5c, 0x5f, 0x7a, 0x86];

impl Where {
    /// Does it hold here? None where nothing tells.
    pub(super) fn holds(self, facts: &Snapshot) -> Option<bool> {
        let told = |p: &&Processor| p.vendor.is_some() || p.implementer.is_some();
        let mut processors = facts.topology.processor.known().map(|(_, p)| p).filter(told).peekable();
        let is_told = processors.peek().is_some();
        match self {
            Where::Intel => is_told.then(|| processors.all(Processor::is_intel)),
            Where::X86 => is_told.then(|| processors.all(Processor::is_x86)),
            Where::BareMetal => facts.virt.is_guest().map(|is_guest| !is_guest),
            Where::Guest => facts.virt.is_guest(),
            Where::Hwp => is_hwp_in_charge(facts),
            Where::BiosLimit => match facts.freq.policies.bios_limit_khz.is_unknown() {
                false => Some(true),
                true => some_driver(facts, |driver| Some(matches!(driver, "acpi-cpufreq" | "pcc-cpufreq"))),
            },
            Where::Clock => match (facts.freq.policies.driver.is_unknown(), facts.virt.is_guest()) {
                (false, _) | (_, Some(false)) => Some(true),
                (true, Some(true)) => Some(false),
                (true, None) => None,
            },
            Where::UncoreFiles => is_told.then(|| {
                let has_none =
                    |p: &Processor| p.family == Some(6) && p.model.is_some_and(|m| NO_UNCORE_FILES.contains(&m));
                processors.all(|p| p.is_intel() && !has_none(p))
            }),
            Where::Sleep => {
                let all = enterable::of(facts);
                let is_awake = |group: &Enterable| matches!(group.spins(), Some(Cause::BootArgument(_)));
                (!all.is_empty()).then(|| !all.iter().all(is_awake))
            }
            Where::EnergyPreference => match facts.freq.policies.energy_preference.is_unknown() {
                false => Some(true),
                true => some_driver(facts, |driver| match driver {
                    "intel_pstate" | "intel_cpufreq" => is_hwp_in_charge(facts),
                    driver => Some(driver == "amd-pstate-epp"),
                }),
            },
        }
    }

    /// Why a rule does not apply where it does not hold.
    pub(super) fn words(self) -> &'static str {
        match self {
            Where::Intel => word!("not an Intel processor"),
            Where::X86 => word!("not an x86 processor"),
            Where::BareMetal => word!("a guest: the hypervisor decides this"),
            Where::Guest => word!("not a guest"),
            Where::Hwp => word!("the hardware does not manage the clock here (HWP)"),
            Where::BiosLimit => word!("this frequency driver does not show a limit of the firmware"),
            Where::EnergyPreference => word!("this frequency driver takes no energy preference"),
            Where::Clock => word!("a guest without a frequency driver: the hypervisor sets the clock"),
            Where::UncoreFiles => word!("no files for the uncore clock on this processor"),
            Where::Sleep => word!("a boot argument makes idle CPUs spin: nothing sleeps"),
        }
    }
}

/// Does the hardware manage the clock? The kernel lets it where it takes an energy preference.
fn is_hwp_in_charge(facts: &Snapshot) -> Option<bool> {
    facts.msr.is_set("pm_enable", "hwp").or_else(|| facts.topology.has_flag("hwp_epp"))
}

/// Does it hold of some frequency driver? None where no driver is known, or one of which it is not known.
fn some_driver(facts: &Snapshot, holds: impl Fn(&str) -> Option<bool>) -> Option<bool> {
    let drivers = &facts.freq.policies.driver;
    let told: Vec<Option<bool>> = drivers.known().map(|(_, driver)| holds(driver)).collect();
    let is_open = told.is_empty() || drivers.gaps().next().is_some() || told.contains(&None);
    if told.contains(&Some(true)) { Some(true) } else { (!is_open).then_some(false) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{evidence, policy};
    use super::*;

    #[test]
    fn files_of_one_driver_are_asked_of_that_driver() {
        let holds = |place: Where, driver: &str, flags: &str| {
            let info = format!("//- /proc/cpuinfo\nprocessor : 0\nvendor_id : GenuineIntel\nflags : {flags}\n");
            place.holds(&evidence(&(policy(&[("scaling_driver", driver)]) + &info)).facts)
        };
        assert_eq!(holds(Where::BiosLimit, "acpi-cpufreq", "fpu"), Some(true));
        assert_eq!(holds(Where::BiosLimit, "intel_pstate", "fpu"), Some(false));
        assert_eq!(holds(Where::EnergyPreference, "acpi-cpufreq", "fpu"), Some(false));
        assert_eq!(holds(Where::EnergyPreference, "intel_cpufreq", "fpu hwp hwp_epp"), Some(true));
        assert_eq!(holds(Where::EnergyPreference, "intel_cpufreq", "fpu"), Some(false));
        assert_eq!(holds(Where::EnergyPreference, "intel_pstate", "fpu …"), None, "a list of flags that is cut short");
        assert_eq!(holds(Where::Hwp, "intel_pstate", "fpu"), Some(false));
        let mainframe = "//- /proc/cpuinfo\nprocessor : 0\nvendor_id : IBM/S390\n";
        assert_eq!(Where::X86.holds(&evidence(mainframe).facts), Some(false));
        let poll = super::super::testing::icx() + "//- /proc/cmdline\nro idle=poll\n";
        assert_eq!(Where::Sleep.holds(&evidence(&poll).facts), Some(false));
        assert_eq!(Where::Sleep.holds(&evidence(&super::super::testing::icx()).facts), Some(true));
        let nothing = evidence("").facts;
        let all = [
            Where::Intel,
            Where::X86,
            Where::BareMetal,
            Where::Hwp,
            Where::BiosLimit,
            Where::EnergyPreference,
            Where::UncoreFiles,
            Where::Sleep,
        ];
        assert!(all.iter().all(|place| place.holds(&nothing).is_none()));
    }
}

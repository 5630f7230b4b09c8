//! What wakewatt knows about the boot parameters it may set: effect, trap, and where to look after the boot.
//!
//! Sources: Documentation/admin-guide/kernel-parameters.txt, pm/{cpuidle,intel_idle,intel_pstate,amd-pstate}.rst, and
//! the drivers (drivers/idle/intel_idle.c, drivers/acpi/processor_idle.c, drivers/cpufreq/intel_pstate.c) where the
//! text is silent. A parameter that is not here may be anything, `systemd.run=` and `mitigations=off` too: it is set only
//! where a person says so with `--any-boot-argument` ([`allow`]), and then only the command line can be checked.
//! To add one: a row, in the order of the headings.

use super::argument::{self, Argument, is_same_name};
use super::plan::BootError;

/// Where to see after the boot that a parameter took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// This file then holds the parameter's value.
    HoldsValue(&'static str),
    /// This file then holds this text.
    Holds(&'static str, &'static str),
    /// This file then does not hold this text.
    HoldsNot(&'static str, &'static str),
    /// This file must be absent.
    Absent(&'static str),
    /// Only the command line shows it.
    CommandLineOnly,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name on the command line.
    pub key: &'static str,
    /// What it does.
    pub effect: &'static str,
    /// What people get wrong with it; empty if nothing.
    pub trap: &'static str,
    /// How to see it.
    pub evidence: Evidence,
}

const fn row(key: &'static str, evidence: Evidence, effect: &'static str, trap: &'static str) -> Parameter {
    Parameter { key, effect, trap, evidence }
}

const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";
const GOVERNOR: &str = "/sys/devices/system/cpu/cpuidle/current_governor";
const POLICY0: &str = "/sys/devices/system/cpu/cpufreq/policy0";

use Evidence::{Absent, CommandLineOnly, Holds, HoldsNot, HoldsValue};
use wakewatt_words::{say, told};

/// The table, in reading order: idle states, governors, frequency, SMT, devices.
#[rustfmt::skip]
pub const PARAMETERS: &[Parameter] = &[
    row("intel_idle.max_cstate", HoldsValue("/sys/module/intel_idle/parameters/max_cstate"),
        "intel_idle registers idle states up to this index only; deeper ones do not exist until the next boot",
        "the number is an index into the driver's table, not a C-number; 0 switches intel_idle off, and acpi_idle then \
         takes over and brings the deep states back"),
    row("intel_idle.states_off", HoldsValue("/sys/module/intel_idle/parameters/states_off"),
        "a bit mask of states that start disabled; they stay visible and can be enabled at run time",
        "bit 0 is POLL; the bits are indexes, which differ between processor models"),
    row("intel_idle.use_acpi", HoldsValue("/sys/module/intel_idle/parameters/use_acpi"),
        "intel_idle starts with the states enabled that the firmware's _CST lists", "server tables do so already"),
    row("intel_idle.no_acpi", HoldsValue("/sys/module/intel_idle/parameters/no_acpi"),
        "intel_idle ignores the firmware's _CST", "states that the BIOS switched off start enabled"),
    row("intel_idle.no_native", HoldsValue("/sys/module/intel_idle/parameters/no_native"),
        "intel_idle uses the firmware's table only", "kernels up to 6.12 do not have it and ignore it silently"),
    row("intel_idle.table", HoldsValue("/sys/module/intel_idle/parameters/table"),
        "overrides latency and residency of the states it names, e.g. C1:1:3,C6:50:100 (microseconds); wakewatt measure idle prints one",
        "the whole string is dropped if the numbers do not rise; kernels before 7.0 do not have it"),
    row("intel_idle.preferred_cstates", HoldsValue("/sys/module/intel_idle/parameters/preferred_cstates"),
        "a bit mask of states to prefer where two exclude each other (C1 over C1E on Alder Lake)",
        "removed in Linux 7.0, which ignores it silently; intel_idle.table took its place"),
    row("pm_qos_resume_latency_us", CommandLineOnly,
        "a latency limit of its own for the CPUs named, from boot on (kernels that have it)",
        "its 0 means poll in some kernels and no limit in others (proposed in 2026, in both ways): read the file of that name in sysfs after the boot"),
    row("intel_idle.ibrs_off", HoldsValue("/sys/module/intel_idle/parameters/ibrs_off"),
        "IBRS off while idle: helps the sibling thread", "wake-ups take slightly longer"),
    row("processor.max_cstate", HoldsValue("/sys/module/processor/parameters/max_cstate"),
        "acpi_idle uses C-states up to this ACPI number (AMD, and Intel without intel_idle)",
        "does not limit intel_idle: to cap a machine whatever its driver, set intel_idle.max_cstate too; 0 is read as 1"),
    row("idle", CommandLineOnly,
        "poll: busy loop, no idle state at all; halt: HLT only; nomwait: HLT through acpi_idle",
        "on Intel any idle= keeps intel_idle from loading; poll leaves no turbo headroom and takes cycles from the SMT sibling, \
         so it can be slower"),
    row("cpuidle.off", Holds(DRIVER, "none"),
        "no cpuidle driver: the architecture's own idle routine runs",
        "PM QoS latency limits then have no effect; the kernel's documentation calls it a debugging aid"),
    row("nohz", CommandLineOnly,
        "off: the tick never stops, so every CPU wakes at the tick rate; on, as without it: idle CPUs stop it",
        "off also brings the ladder governor where nothing else is chosen"),
    row("cpuidle.governor", HoldsValue(GOVERNOR),
        "menu, teo, ladder or haltpoll chooses the state",
        "a name the kernel was built without is ignored silently"),
    row("haltpoll.force", HoldsValue("/sys/module/cpuidle_haltpoll/parameters/force"),
        "loads cpuidle-haltpoll in a guest even without the host's hint (module name on the line: cpuidle_haltpoll)",
        "polling moves the cost to the host"),
    row("cpuidle_haltpoll.force", HoldsValue("/sys/module/cpuidle_haltpoll/parameters/force"),
        "loads cpuidle-haltpoll in a guest even without the host's hint", "polling moves the cost to the host"),
    row("intel_pstate", CommandLineOnly,
        "mode of the frequency driver: active, passive, disable, no_hwp, hwp_only, support_acpi_ppc, per_cpu_perf_limits",
        "disable is ignored when the firmware has already enabled HWP"),
    row("amd_pstate", CommandLineOnly,
        "mode of the frequency driver: active, passive, guided, disable",
        "EPYC up to family 19h runs acpi-cpufreq unless this is set; needs CPPC in the firmware, and some distributions' \
         kernels are built without it"),
    row("amd_prefcore", CommandLineOnly, "disable: no preferred cores", "kernels up to 6.8 do not have it"),
    row("cpufreq.default_governor", HoldsValue("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor"),
        "the governor each policy starts with",
        "the governor must be built in or loaded before the driver; a service that runs later may change it"),
    row("cpufreq.off", Absent(POLICY0), "no frequency driver", "firmware then decides alone"),
    row("nosmt", HoldsNot("/sys/devices/system/cpu/smt/control", "on"),
        "one thread per core", "nosmt=force cannot be taken back until the next boot"),
    row("pcie_aspm", CommandLineOnly,
        "off: the kernel leaves link power management as the firmware set it; force: enables it everywhere",
        "off does not switch ASPM off"),
    row("pcie_aspm.policy", CommandLineOnly,
        "link power management: default, performance, powersave, powersupersave",
        "has no effect where the firmware keeps control of ASPM"),
    row("nvme_core.default_ps_max_latency_us", HoldsValue("/sys/module/nvme_core/parameters/default_ps_max_latency_us"),
        "an NVMe disk may use power states up to this exit latency; 0 allows none", ""),
];

/// What is known about a parameter.
pub fn known(key: &str) -> Option<&'static Parameter> {
    PARAMETERS.iter().find(|p| is_same_name(p.key, key))
}

/// Those of the arguments that are in no row.
pub fn unknown(arguments: &[Argument]) -> Vec<&Argument> {
    arguments.iter().filter(|a| known(a.key()).is_none()).collect()
}

/// Only parameters of the table, unless a person takes any: a profile is a file, and files come from strangers.
pub fn allow(arguments: &[Argument], is_any_taken: bool) -> Result<(), BootError> {
    let unknown = unknown(arguments);
    match is_any_taken || unknown.is_empty() {
        true => Ok(()),
        false => Err(BootError::UnknownParameters { words: argument::join(unknown) }),
    }
}

/// Traps of a combination, for the notes of a plan.
pub(crate) fn traps(arguments: &[super::Argument]) -> Vec<String> {
    let value = |key: &str| arguments.iter().rfind(|a| a.has_name(key)).map(|a| a.value().unwrap_or_default());
    let mut said = Vec::new();
    match (value("intel_idle.max_cstate"), value("processor.max_cstate")) {
        (Some("0"), None) => said.push(say!(
            "intel_idle.max_cstate=0 switches intel_idle off and acpi_idle takes over with its deep states; add \
             processor.max_cstate=1 to keep them away"
        )),
        (None, Some(_)) => said.push(say!(
            "processor.max_cstate does not limit intel_idle; on Intel add intel_idle.max_cstate with the same intent"
        )),
        _ => {}
    }
    for argument in arguments {
        let is_said_above = ["intel_idle.max_cstate", "processor.max_cstate"].iter().any(|k| argument.has_name(k));
        match known(argument.key()) {
            Some(parameter) if !is_said_above && !parameter.trap.is_empty() => {
                said.push(format!("{argument}: {}", told(parameter.trap)));
            }
            None => said.push(say!("{argument}: not a parameter wakewatt knows; only /proc/cmdline can be checked")),
            _ => {}
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::super::Argument;
    use super::*;

    #[test]
    fn rows_are_arguments_and_unique() {
        for (at, parameter) in PARAMETERS.iter().enumerate() {
            assert!(Argument::parse(&format!("{}=1", parameter.key)).is_ok(), "{}", parameter.key);
            assert!(!parameter.effect.is_empty());
            assert!(!PARAMETERS[..at].iter().any(|p| is_same_name(p.key, parameter.key)), "{} twice", parameter.key);
        }
    }

    #[test]
    fn what_is_in_no_row_needs_a_persons_word() {
        let all = |text: &str| Argument::parse_all(text).unwrap();
        for strange in [
            "systemd.run=/home/x/run",
            "systemd.run_success_action=none",
            "systemd.debug-shell",
            "systemd.debug_shell=1",
            "systemd.unit=emergency.target",
            "systemd.mask=sshd.service",
            "systemd.setenv=LD_PRELOAD=/x",
            "rd.break",
            "rd.systemd.unit=emergency.target",
            "single",
            "selinux=0",
            "enforcing=0",
            "apparmor=0",
            "lsm=",
            "ima_appraise=off",
            "lockdown=none",
            "module.sig_enforce=0",
            "mitigations=off",
            "nokaslr",
            "modprobe.blacklist=x",
            "intel_iommu=off",
            "3",
        ] {
            let error = allow(&all(&format!("idle=poll {strange}")), false).unwrap_err();
            let BootError::UnknownParameters { words } = &error else { panic!("{strange}: {error}") };
            assert_eq!(words, strange);
            assert_eq!(allow(&all(strange), true), Ok(()));
        }
        for relative in ["init=/bin/sh", "rdinit=/bin/sh", "root=/dev/sdb"] {
            assert!(Argument::parse(relative).is_err(), "{relative}: not even with a person's word");
        }
        assert_eq!(allow(&all("intel-idle.max_cstate=1 nosmt"), false), Ok(()));
    }

    #[test]
    fn traps_of_the_two_caps_are_told() {
        let traps = |text: &str| traps(&Argument::parse_all(text).unwrap()).join("\n");
        assert!(traps("intel_idle.max_cstate=0").contains("acpi_idle takes over"));
        assert!(traps("processor.max_cstate=1").contains("does not limit intel_idle"));
        assert_eq!(traps("processor.max_cstate=1 intel_idle.max_cstate=1"), "");
        assert!(traps("idle=poll").contains("intel_idle from loading"));
        assert!(traps("something.else=1").contains("only /proc/cmdline"));
    }
}

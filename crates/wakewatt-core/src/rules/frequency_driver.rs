//! Is a frequency driver or mode in charge that leaves something unused?
//!
//! intel_pstate in passive mode calls itself intel_cpufreq and takes generic governors. Without HWP, or without its energy
//! preference, that is the kernel's own choice since 5.8; only where HWP could choose did somebody turn it. EPYC servers run acpi-cpufreq
//! with a few steps although CPPC offers the whole range, because amd_pstate is not loaded there by default: up to family 19h by
//! no kernel, from family 1Ah (Turin) on before 6.13 (docs/knobs/frequency.md). Neither is a fault; both explain why knobs are missing. amd_pstate is no advice everywhere: it
//! refuses where the firmware's `_CPC` leaves the nominal or lowest frequency empty (0 in `acpi_cppc/*_freq`), and without the
//! processor flag `cppc` (up to Rome) each change goes through memory shared with the firmware, which takes far longer than a
//! register. On ProLiant and Oracle machines the firmware may keep the P-states for itself. Source: Documentation/admin-guide/pm/
//! amd-pstate.rst ("full MSR support" and "shared memory support").

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::evidence::Evidence;
use crate::fact::PerCpu;
use crate::facts::Snapshot;
use crate::facts::freq::Freq;
use crate::facts::freq::policies::is_autonomous;
use crate::facts::kernel::KernelVersion;
use crate::units::show_khz;
use wakewatt_words::{say, word};

const PATH: &str = "/sys/devices/system/cpu/cpufreq/policy*/scaling_driver";

pub(super) struct FrequencyDriver;

impl Rule for FrequencyDriver {
    fn id(&self) -> &'static str {
        "rule.frequency-driver"
    }
    fn question(&self) -> &'static str {
        word!("is a frequency driver or mode in charge that leaves something unused?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Clock]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let freq = &evidence.facts.freq;
        let Some(driver) = freq.policies.driver.uniform().map(String::as_str) else {
            return match freq.policies.driver.gaps().next() {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell(
                    word!("no frequency policy is listed"),
                    word!("in a guest the host decides; else see wakewatt inspect freq"),
                ),
            };
        };
        let has_cppc = !freq.cppc.highest_perf.is_unknown();
        let is_amd = evidence.facts.topology.processor().is_some_and(|p| p.vendor.as_deref() == Some("AuthenticAMD"));
        let has_no_flag = evidence.facts.topology.has_flag("cppc") == Some(false);
        // From these models on CPPC is a register, and without the flag the BIOS keeps it off (drivers/cpufreq/amd-pstate.c).
        let is_register = evidence.facts.topology.processor().is_some_and(|p| match (p.family, p.model) {
            (Some(0x19), Some(model)) => matches!(model, 0x10..=0x1f | 0x40..=0xaf),
            (Some(family), _) => family >= 0x1a,
            _ => false,
        });
        let is_shared_memory = has_no_flag && !is_register;
        let is_asked = evidence.facts.boot.argument("amd_pstate").is_some_and(|mode| mode != "disable");
        let (title, what) = match driver {
            driver if is_autonomous(driver) => return Answer::no(say!("{driver} lets the hardware choose")),
            "intel_cpufreq" if is_passive_by_default(&evidence.facts) => {
                return Answer::no(word!(
                    "without HWP the kernel runs intel_pstate in passive mode (intel_cpufreq, since 5.8), and a governor \
                     chooses the clock"
                ));
            }
            "intel_cpufreq" => (
                word!("intel_pstate runs in passive mode (intel_cpufreq): a software governor chooses the clock"),
                word!(
                    "If nobody chose it, write active to intel_pstate/status (it resets all limits), or boot with \
                    intel_pstate=active; governors then are performance and powersave only."
                ),
            ),
            "amd-pstate" => (
                word!("amd-pstate runs in passive or guided mode: a software governor chooses the clock"),
                word!(
                    "Write active to amd_pstate/status to let the hardware choose, with energy preferences as the knob."
                ),
            ),
            "acpi-cpufreq" if is_amd && has_cppc && is_empty(freq) => {
                return Answer::no(word!(
                    "acpi-cpufreq is in charge, and amd_pstate would refuse: the firmware leaves CPPC's nominal or lowest \
                        frequency empty (0); a newer BIOS may fill them in"
                ));
            }
            // rule.arguments-ignored has the finding.
            "acpi-cpufreq" if is_amd && has_cppc && is_asked => {
                return Answer::no(word!("amd_pstate= is on the command line, and that driver did not load"));
            }
            "acpi-cpufreq" if is_amd && has_cppc && has_no_flag && is_register => (
                word!("acpi-cpufreq is in charge, and the BIOS keeps CPPC off (no flag cppc)"),
                word!("Enable CPPC in the BIOS, then boot with amd_pstate=active (kernel 6.3 and later) and compare."),
            ),
            "acpi-cpufreq" if is_amd && has_cppc && is_shared_memory => (
                word!(
                    "acpi-cpufreq is in charge; CPPC is there only through memory shared with the firmware (no flag cppc)"
                ),
                word!(
                    "Nothing as a rule: amd_pstate would have the whole range, and every change of the clock would take longer \
                    than with a register. Who needs the range tries amd_pstate=passive on one machine and compares."
                ),
            ),
            "acpi-cpufreq" if is_amd && has_cppc => (
                word!(
                    "acpi-cpufreq is in charge although the processor offers CPPC: a few steps instead of the whole range"
                ),
                word!(
                    "Boot with amd_pstate=active (kernel 6.3 and later) and compare. On servers up to family 19h (Genoa) the \
                    kernel does not choose it by itself; from family 1Ah (Turin) on it does since 6.13."
                ),
            ),
            _ => return Answer::no(say!("the driver is {driver}; nothing better is known to be unused")),
        };
        let cost = Cost::unknown(word!("depends on the governor and the work; not measured"));
        let mut finding = Finding::new(self, Weight::Note, Confidence::Medium, title, cost).on(PATH, driver);
        if driver == "acpi-cpufreq" {
            let hz = |khz: &PerCpu<u64>| {
                khz.uniform().map_or(word!("not the same everywhere, or not known").into(), |khz| show_khz(*khz))
            };
            let says = say!("nominal {}, lowest {}", hz(&freq.cppc.nominal_khz), hz(&freq.cppc.lowest_khz));
            let flag = if is_shared_memory { word!("not there") } else { word!("there, or not known") };
            finding = finding
                .on("/sys/devices/system/cpu/cpu*/acpi_cppc/{nominal,lowest}_freq", says)
                .on("/proc/cpuinfo", say!("flag cppc {flag}"));
            // Older kernels do not know the mode, and amd_pstate=disable was somebody's decision.
            let is_filled = freq.cppc.nominal_khz.known().any(|(_, khz)| *khz > 0)
                && freq.cppc.lowest_khz.known().any(|(_, khz)| *khz > 0);
            let knows_active = evidence.facts.kernel.version.get().is_some_and(|v| *v >= KernelVersion::new(6, 3, 0));
            if knows_active && is_filled && !has_no_flag && evidence.facts.boot.argument("amd_pstate").is_none() {
                finding = finding.boot("amd_pstate=active", word!("let CPPC choose the clock"));
            }
        }
        let (name, status) = match driver {
            "intel_cpufreq" => ("intel_pstate", &freq.intel_pstate.status),
            _ => ("amd_pstate", &freq.amd_pstate.status),
        };
        // Chosen at boot, it was chosen.
        if status.get().is_some_and(|s| s != "active") && evidence.facts.boot.argument(name).is_none() {
            let path = format!("/sys/devices/system/cpu/{name}/status");
            finding = finding.step(
                "freq.driver",
                None,
                "active",
                path,
                word!("let the driver's own algorithm choose the clock"),
            );
        }
        finding
            .remedy(
                what,
                word!("Governors, tunables and limits change their meaning; everything set before must be set again."),
                word!("wakewatt inspect freq, and wakewatt compare with a capture from before"),
            )
            .yes()
    }
}

/// Does the kernel itself choose intel_pstate's passive mode on this processor? It does where it does not use HWP, which wants
/// the energy preference; until 5.8 it ran the driver's own algorithm there.
fn is_passive_by_default(facts: &Snapshot) -> bool {
    let is_new = facts.kernel.version.get().is_none_or(|v| *v >= KernelVersion::new(5, 8, 0));
    let is_without = match facts.msr.is_set("pm_enable", "hwp") {
        Some(is_on) => !is_on,
        None => {
            facts.topology.has_flag("hwp_epp") == Some(false) || facts.boot.argument("intel_pstate") == Some("no_hwp")
        }
    };
    is_new && is_without
}

/// Does CPPC say 0 for a frequency that amd_pstate needs?
fn is_empty(freq: &Freq) -> bool {
    let has_zero = |khz: &PerCpu<u64>| khz.known().any(|(_, khz)| *khz == 0);
    has_zero(&freq.cppc.nominal_khz) || has_zero(&freq.cppc.lowest_khz)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, plan, policy};
    use super::*;

    #[test]
    fn drivers() {
        let check = |driver: &str| ask(&FrequencyDriver, &policy(&[("scaling_driver", driver)]));
        assert!(check("intel_cpufreq").starts_with("yes note unknown: intel_pstate runs in passive mode"));
        assert!(check("intel_pstate").starts_with("no"));
        let xeon = |flags: &str, release: &str| {
            let info = |n: u32| {
                format!("processor : {n}\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : 79\nflags : {flags}\n")
            };
            let kernel = format!("//- /proc/sys/kernel/osrelease\n{release}\n");
            let host = policy(&[("scaling_driver", "intel_cpufreq")]);
            ask(&FrequencyDriver, &(host + &format!("//- /proc/cpuinfo\n{}{}", info(0), info(1)) + &kernel))
        };
        assert!(xeon("fpu epb", "6.1.0").starts_with("no: without HWP the kernel runs intel_pstate in passive mode"));
        assert!(xeon("fpu epb hwp hwp_epp", "6.1.0").starts_with("yes note"), "HWP could choose");
        assert!(xeon("fpu epb", "5.4.0").starts_with("yes note"), "before 5.8 somebody chose it");
        assert!(check("acpi-cpufreq").starts_with("no"), "no CPPC is known");
        let amd = policy(&[("scaling_driver", "acpi-cpufreq")])
            + "//- /proc/cpuinfo\nprocessor : 0\nvendor_id : AuthenticAMD\ncpu family : 25\nprocessor : 1\nvendor_id : AuthenticAMD\ncpu family : 25\n
               //- /sys/devices/system/cpu/cpu0/acpi_cppc/highest_perf\n255\n";
        assert!(ask(&FrequencyDriver, &amd).starts_with("yes note unknown: acpi-cpufreq is in charge although"));
        assert!(ask(&FrequencyDriver, "").starts_with("cannot tell"));
    }

    #[test]
    fn amd_pstate_is_advised_only_where_it_would_load() {
        let host = |flags: &str, nominal: u32, lowest: u32| {
            let cpu = |n: u32| format!("processor : {n}\nvendor_id : AuthenticAMD\ncpu family : 25\nflags : {flags}\n");
            let cppc = "//- /sys/devices/system/cpu/cpu0/acpi_cppc";
            policy(&[("scaling_driver", "acpi-cpufreq")])
                + &format!("//- /proc/cpuinfo\n{}{}", cpu(0), cpu(1))
                + &format!("{cppc}/highest_perf\n255\n{cppc}/nominal_freq\n{nominal}\n{cppc}/lowest_freq\n{lowest}\n")
                + "//- /proc/sys/kernel/osrelease\n6.16.10\n//- /proc/cmdline\nquiet\n"
        };
        let milan = host("aperfmperf cppc", 2450, 400);
        assert!(ask(&FrequencyDriver, &milan).contains("although the processor offers cppc"));
        assert_eq!(plan(&FrequencyDriver, &milan), "--boot-arg amd_pstate=active");
        let rome = host("aperfmperf", 0, 0);
        assert!(ask(&FrequencyDriver, &rome).starts_with("no: acpi-cpufreq is in charge, and amd_pstate would refuse"));
        let shared = host("aperfmperf", 2250, 400);
        assert!(ask(&FrequencyDriver, &shared).contains("memory shared with the firmware"));
        assert_eq!(plan(&FrequencyDriver, &shared), "");
    }
}

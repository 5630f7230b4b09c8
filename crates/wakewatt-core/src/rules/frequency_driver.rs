//! Is a frequency driver or mode in charge that leaves something unused?
//!
//! intel_pstate in passive mode calls itself intel_cpufreq and takes generic governors; EPYC servers run acpi-cpufreq
//! with a few steps although CPPC offers the whole range, because amd_pstate is not loaded there by default
//! (docs/knobs/frequency.md). Neither is a fault; both explain why knobs are missing. On ProLiant and Oracle machines
//! the firmware may keep the P-states for itself.

use super::governor::is_autonomous;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use crate::facts::kernel::KernelVersion;

const PATH: &str = "/sys/devices/system/cpu/cpufreq/policy*/scaling_driver";

pub(super) struct FrequencyDriver;

impl Rule for FrequencyDriver {
    fn id(&self) -> &'static str {
        "rule.frequency-driver"
    }
    fn question(&self) -> &'static str {
        "is a frequency driver or mode in charge that leaves something unused?"
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let freq = &evidence.facts.freq;
        let Some(driver) = freq.policies.driver.uniform().map(String::as_str) else {
            return match freq.policies.driver.gaps().next() {
                Some((_, gap)) => Answer::gap(gap),
                None => Answer::cannot_tell(
                    "no frequency policy is listed",
                    "in a guest the host decides; else see wakewatt inspect freq",
                ),
            };
        };
        let has_cppc = !freq.cppc.highest_perf.is_unknown();
        let is_amd = evidence.facts.topology.processor().is_some_and(|p| !p.is_intel());
        let (title, what) = match driver {
            driver if is_autonomous(driver) => return Answer::no(format!("{driver} lets the hardware choose")),
            "intel_cpufreq" => (
                "intel_pstate runs in passive mode (intel_cpufreq): a software governor chooses the clock",
                "If nobody chose it, write active to intel_pstate/status (it resets all limits), or boot with \
                    intel_pstate=active; governors then are performance and powersave only.",
            ),
            "amd-pstate" => (
                "amd-pstate runs in passive or guided mode: a software governor chooses the clock",
                "Write active to amd_pstate/status to let the hardware choose, with energy preferences as the knob.",
            ),
            "acpi-cpufreq" if is_amd && has_cppc => (
                "acpi-cpufreq is in charge although the processor offers CPPC: a few steps instead of the whole range",
                "Boot with amd_pstate=active (kernel 6.3 and later) and compare; EPYC kernels do not choose it by \
                    themselves.",
            ),
            _ => return Answer::no(format!("the driver is {driver}; nothing better is known to be unused")),
        };
        let cost = Cost::unknown("depends on the governor and the work; not measured");
        let mut finding = Finding::new(self, Weight::Note, Confidence::Medium, title, cost).on(PATH, driver);
        if driver == "acpi-cpufreq" {
            // Older kernels do not know the mode, and amd_pstate=disable was somebody's decision.
            let knows_active = evidence.facts.kernel.version.get().is_some_and(|v| *v >= KernelVersion::new(6, 3, 0));
            if knows_active && evidence.facts.boot.argument("amd_pstate").is_none() {
                finding = finding.boot("amd_pstate=active", "let CPPC choose the clock");
            }
        }
        let (name, status) = match driver {
            "intel_cpufreq" => ("intel_pstate", &freq.intel_pstate.status),
            _ => ("amd_pstate", &freq.amd_pstate.status),
        };
        // Chosen at boot, it was chosen.
        if status.get().is_some_and(|s| s != "active") && evidence.facts.boot.argument(name).is_none() {
            let path = format!("/sys/devices/system/cpu/{name}/status");
            finding =
                finding.step("freq.driver", None, "active", path, "let the driver's own algorithm choose the clock");
        }
        finding
            .remedy(
                what,
                "Governors, tunables and limits change their meaning; everything set before must be set again.",
                "wakewatt inspect freq, and wakewatt compare with a capture from before",
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, policy};
    use super::*;

    #[test]
    fn drivers() {
        let check = |driver: &str| ask(&FrequencyDriver, &policy(&[("scaling_driver", driver)]));
        assert!(check("intel_cpufreq").starts_with("yes note unknown: intel_pstate runs in passive mode"));
        assert!(check("intel_pstate").starts_with("no"));
        assert!(check("acpi-cpufreq").starts_with("no"), "no CPPC is known");
        let amd = policy(&[("scaling_driver", "acpi-cpufreq")])
            + "//- /proc/cpuinfo\nprocessor : 0\nvendor_id : AuthenticAMD\ncpu family : 25\nprocessor : 1\nvendor_id : AuthenticAMD\ncpu family : 25\n
               //- /sys/devices/system/cpu/cpu0/acpi_cppc/highest_perf\n255\n";
        assert!(ask(&FrequencyDriver, &amd).starts_with("yes note unknown: acpi-cpufreq is in charge although"));
        assert!(ask(&FrequencyDriver, "").starts_with("cannot tell"));
    }
}

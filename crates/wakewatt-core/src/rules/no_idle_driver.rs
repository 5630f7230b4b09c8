//! Is there no idle driver?
//!
//! `cpuidle/current_driver` says `none`: the kernel runs the architecture's own idle routine (HLT on x86), counts
//! nothing, and ignores every latency limit (docs/events.md, docs/knobs/idle.md). Common in guests; on metal a boot argument
//! or a missing module. A file that is not there proves nothing (a partial recording, a masked container).

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;

pub(super) struct NoIdleDriver;

impl Rule for NoIdleDriver {
    fn id(&self) -> &'static str {
        "rule.no-idle-driver"
    }
    fn question(&self) -> &'static str {
        "is there no idle driver?"
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let (idle, virt) = (&evidence.facts.idle, &evidence.facts.virt);
        match (idle.driver.get(), idle.driver.gap()) {
            (None, Some(gap)) => return Answer::gap(gap),
            (Some(driver), _) if driver != "none" => return Answer::no(format!("the idle driver is {driver}")),
            _ => {}
        }
        let is_metal = virt.is_guest() == Some(false);
        let weight = if is_metal { Weight::Risk } else { Weight::Note };
        let cost = Cost::unknown(
            "idle states cannot be seen, limited or chosen; what halting costs is only known by measuring",
        );
        Finding::new(
            self,
            weight,
            Confidence::High,
            "No idle driver: the CPUs halt uncounted, and latency limits \
            have no effect",
            cost,
        )
        .on("/sys/devices/system/cpu/cpuidle/current_driver", "none")
        .remedy(
            if is_metal {
                "Look for idle=, cpuidle.off or intel_idle.max_cstate=0 on the command line and for the modules \
                        acpi_idle or processor in the kernel log."
            } else {
                "In a guest this is common: the hypervisor decides. On KVM the guest module cpuidle-haltpoll \
                        gives a driver, and polling before halt."
            },
            "With a driver the CPUs may sleep deeper than HLT: fewer watts, slower wake-ups.",
            "wakewatt inspect idle boot; wakewatt measure wakeup",
        )
        .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx};
    use super::*;

    #[test]
    fn none_is_said_by_the_kernel() {
        let none = "//- /sys/devices/system/cpu/cpuidle/current_driver\nnone\n";
        assert!(ask(&NoIdleDriver, none).starts_with("yes note unknown: no idle driver"));
        assert!(ask(&NoIdleDriver, &format!("{none}//- /proc/cpuinfo\nflags : fpu\n")).starts_with("yes risk"));
        assert!(ask(&NoIdleDriver, &icx()).starts_with("no"));
        assert!(ask(&NoIdleDriver, "").starts_with("cannot tell"));
    }
}

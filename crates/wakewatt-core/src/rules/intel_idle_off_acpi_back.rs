//! Did `intel_idle.max_cstate=0` bring the deep states back through acpi_idle?
//!
//! 0 does not mean "no sleep": it keeps intel_idle from loading, and acpi_idle takes over with the states of the BIOS
//! (docs/knobs/idle.md; it happened in sonic-buildimage#6051). `processor.max_cstate` must then limit acpi_idle.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::budget::DEEP_NS;
use crate::enterable;
use crate::evidence::Evidence;
use crate::units::show_ns;
use wakewatt_words::{say, word};

pub(super) struct IntelIdleOffAcpiBack;

impl Rule for IntelIdleOffAcpiBack {
    fn id(&self) -> &'static str {
        "rule.intel-idle-off-acpi-back"
    }
    fn question(&self) -> &'static str {
        word!("did intel_idle.max_cstate=0 bring deep states back through acpi_idle?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Intel]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let facts = &evidence.facts;
        if let Some(gap) = facts.boot.cmdline.gap() {
            return Answer::gap(gap);
        }
        if facts.boot.argument("intel_idle.max_cstate") != Some("0") {
            return Answer::no(word!("intel_idle.max_cstate=0 is not on the command line"));
        }
        let driver = match (facts.idle.driver.get(), facts.idle.driver.gap()) {
            (Some(driver), _) => driver,
            (None, Some(gap)) => return Answer::gap(gap),
            (None, None) => return Answer::no(word!("no idle driver")),
        };
        if driver != "acpi_idle" {
            return Answer::no(say!("the idle driver is {driver}"));
        }
        let Some(deepest) = enterable::deepest(&enterable::of(facts)) else {
            return Answer::cannot_tell(word!("the idle states are not readable"), "wakewatt inspect idle");
        };
        if deepest.exit_latency_ns < DEEP_NS {
            return Answer::no(say!("acpi_idle took over, and its deepest enabled state is {deepest}"));
        }
        let title = say!("intel_idle.max_cstate=0 handed the CPUs to acpi_idle, which still offers {deepest}");
        let cost = Cost::predicted_ns(
            deepest.exit_latency_ns as f64,
            say!("up to {} per wake-up, as the BIOS claims", show_ns(deepest.exit_latency_ns)),
        );
        Finding::new(self, Weight::Risk, Confidence::High, title, cost)
            .on("/proc/cmdline", "intel_idle.max_cstate=0")
            .on("/sys/devices/system/cpu/cpuidle/current_driver", driver)
            .boot("intel_idle.max_cstate=1", word!("keep intel_idle in charge, and limit it"))
            .boot("processor.max_cstate=1", word!("limit acpi_idle as well, should it be in charge"))
            .remedy(
                word!(
                    "Use intel_idle.max_cstate=1 (not 0), with processor.max_cstate=1 beside it, and reboot; or set a \
                    latency limit now."
                ),
                word!("More watts when idle; the states are gone until the next reboot."),
                word!("after the reboot wakewatt inspect idle boot; wakewatt measure wakeup"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, idle};
    use super::*;

    #[test]
    fn zero_is_not_none() {
        let line = "//- /proc/cmdline\nintel_idle.max_cstate=0\n";
        let deep = idle("acpi_idle", &[("POLL", 0, 0), ("C1", 1, 1), ("C2", 127, 300)]);
        assert!(ask(&IntelIdleOffAcpiBack, &(deep.clone() + line)).starts_with("yes risk predicted"));
        let shallow = idle("acpi_idle", &[("POLL", 0, 0), ("C1", 1, 1)]);
        assert!(ask(&IntelIdleOffAcpiBack, &(shallow + line)).starts_with("no: acpi_idle took over"));
        assert!(ask(&IntelIdleOffAcpiBack, &(deep + "//- /proc/cmdline\nro\n")).starts_with("no"));
        assert!(ask(&IntelIdleOffAcpiBack, line).starts_with("cannot tell"));
        assert!(ask(&IntelIdleOffAcpiBack, "").starts_with("cannot tell"));
    }
}

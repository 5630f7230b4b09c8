//! Is `processor.max_cstate` set where it does nothing?
//!
//! The parameter limits acpi_idle only; intel_idle does not look at it (docs/knobs/idle.md, case K0: both arguments were
//! needed). Somebody meant to limit sleep and did not.

use super::exclusions::Assertion;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::cpuset::CpuSet;
use crate::enterable::{self, Enterable};
use crate::evidence::Evidence;
use crate::units::show_ns;
use wakewatt_words::{say, word};

pub(super) struct ProcessorMaxCstateIgnored;

impl Rule for ProcessorMaxCstateIgnored {
    fn id(&self) -> &'static str {
        "rule.processor-max-cstate-ignored"
    }
    fn question(&self) -> &'static str {
        word!("is processor.max_cstate set where it does nothing?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::X86]
    }
    fn takes_for_granted(&self, _: &Evidence) -> Vec<Assertion> {
        vec![Assertion::ArgumentIgnored("processor.max_cstate".into())]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let facts = &evidence.facts;
        let line = match (facts.boot.cmdline.get(), facts.boot.cmdline.gap()) {
            (Some(line), _) => line,
            (None, Some(gap)) => return Answer::gap(gap),
            (None, None) => return Answer::no(word!("no command line")),
        };
        let Some(wanted) = line.value("processor.max_cstate") else {
            return Answer::no(word!("processor.max_cstate is not on the command line"));
        };
        let driver = match (facts.idle.driver.get(), facts.idle.driver.gap()) {
            (Some(driver), _) => driver,
            (None, Some(gap)) => return Answer::gap(gap),
            (None, None) => return Answer::no(word!("no idle driver")),
        };
        if driver != "intel_idle" {
            return Answer::no(say!("the idle driver is {driver}, not intel_idle, which would ignore it"));
        }
        // A cap beyond the table would have left nothing out under the other driver either.
        let last = facts.idle.states.iter().map(|state| state.index).max();
        let is_void = |cap: &str| cap.parse::<u32>().ok().zip(last).is_some_and(|(cap, last)| cap >= last);
        if is_void(wanted) {
            return Answer::no(say!("processor.max_cstate={wanted} would leave out no state of this table"));
        }
        if let Some(cap) = line.value("intel_idle.max_cstate").filter(|cap| !is_void(cap)) {
            return Answer::no(say!("intel_idle.max_cstate={cap} limits intel_idle too"));
        }
        let all = enterable::of(facts);
        let Some(deepest) = enterable::deepest(&all) else {
            return match enterable::spinning(&all).is_empty() {
                true => Answer::cannot_tell(word!("the idle states are not readable"), word!("wakewatt inspect idle")),
                false => Answer::no(word!("idle CPUs spin; see rule.polling-by-accident")),
            };
        };
        let reaches = |group: &&Enterable| group.deepest_of_core().is_some_and(|row| row.name == deepest.name);
        let cpus = all.iter().filter(reaches).fold(CpuSet::new(), |set, group| set.union(&group.cpus));
        let title = say!(
            "processor.max_cstate={wanted} does nothing under intel_idle: {deepest} can still be entered on {}",
            facts.cpus.extent(&cpus)
        );
        let cost = Cost::predicted_ns(
            deepest.exit_latency_ns as f64,
            say!(
                "up to {} per wake-up that was meant to be avoided, as the driver claims",
                show_ns(deepest.exit_latency_ns)
            ),
        );
        let cap = if wanted == "0" { "1" } else { wanted };
        Finding::new(self, Weight::Risk, Confidence::High, title, cost)
            .on("/proc/cmdline", format!("processor.max_cstate={wanted}"))
            .on("/sys/devices/system/cpu/cpuidle/current_driver", driver)
            .boot(format!("intel_idle.max_cstate={cap}"), word!("limit intel_idle as well"))
            .remedy(
                say!(
                    "Add intel_idle.max_cstate={cap} beside it and reboot (intel_idle counts its states by \
                    index, so check the table), or set a latency limit now without a reboot."
                ),
                word!("More watts when idle; the states are gone until the next reboot."),
                word!("after the reboot wakewatt inspect idle boot lists the states that are left; wakewatt measure wakeup"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx, idle};
    use super::*;

    #[test]
    fn only_acpi_idle_listens() {
        let line = "//- /proc/cmdline\nro processor.max_cstate=1\n";
        let said = ask(&ProcessorMaxCstateIgnored, &(icx() + line));
        assert!(
            said.starts_with("yes risk predicted: processor.max_cstate=1 does nothing under intel_idle: c6"),
            "{said}"
        );
        let acpi = idle("acpi_idle", &[("POLL", 0, 0), ("C1", 1, 1)]);
        assert!(ask(&ProcessorMaxCstateIgnored, &(acpi + line)).starts_with("no: the idle driver is acpi_idle"));
        let both = icx() + "//- /proc/cmdline\nprocessor.max_cstate=1 intel_idle.max_cstate=1\n";
        assert!(ask(&ProcessorMaxCstateIgnored, &both).starts_with("no: intel_idle.max_cstate=1"));
        assert!(ask(&ProcessorMaxCstateIgnored, line).starts_with("cannot tell"));
        assert!(ask(&ProcessorMaxCstateIgnored, &icx()).starts_with("cannot tell"));
    }
}

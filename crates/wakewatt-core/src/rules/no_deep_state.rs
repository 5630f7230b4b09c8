//! Is no deep idle state registered at all?
//!
//! A server whose idle table ends at C1 or C1E never rests: an idle core keeps its voltage, and where a few cores are busy the
//! others leave them no headroom for the highest turbo bins. C-states switched off in the BIOS look so, and arguments of the
//! command line that take states away before they are registered. States that are listed and off are another rule's
//! (rule.bios-disabled-states, rule.idle-disabled-by-user). Arm servers may have WFI alone by design, so only x86 is asked.
//! It costs watts and no latency: a choice. Sources: admin-guide/pm/{cpuidle,intel_idle}.rst; the vendors' BIOS guides.

use super::exclusions::Assertion;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::budget::DEEP_NS;
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::facts::idle::TableRow;
use crate::units::show_ns;
use wakewatt_words::{say, word};

pub(super) struct NoDeepState;

/// The argument of this boot that takes states away before they are registered.
fn taken_by(facts: &Snapshot) -> Option<String> {
    let of_driver = match facts.idle.driver.get()?.as_str() {
        "intel_idle" => "intel_idle.max_cstate",
        "acpi_idle" => "processor.max_cstate",
        _ => return None,
    };
    let of = |name: &str| facts.boot.argument(name).map(|value| format!("{name}={value}"));
    of(of_driver).or_else(|| of("idle").filter(|word| word == "idle=nomwait"))
}

impl Rule for NoDeepState {
    fn id(&self) -> &'static str {
        "rule.no-deep-state"
    }
    fn question(&self) -> &'static str {
        word!("is no deep idle state registered at all?")
    }
    fn is_choice(&self) -> bool {
        true
    }
    fn costs_latency(&self) -> bool {
        false
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::X86, Where::BareMetal]
    }
    fn takes_for_granted(&self, evidence: &Evidence) -> Vec<Assertion> {
        let deep = |row: &TableRow| row.exit_latency_ns.is_none_or(|ns| ns >= DEEP_NS);
        let tables = evidence.facts.idle.tables().into_iter().filter(|(_, rows)| !rows.iter().any(deep));
        tables.map(|(cpus, _)| Assertion::NeverDeep(cpus)).collect()
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let facts = &evidence.facts;
        let tables = facts.idle.tables();
        if tables.is_empty() {
            return match facts.idle.driver.gap() {
                Some(gap) => Answer::gap(gap),
                None => Answer::cannot_tell(word!("no idle state is listed"), word!("wakewatt inspect idle")),
            };
        }
        let is_deep = |row: &TableRow| row.exit_latency_ns.is_none_or(|ns| ns >= DEEP_NS);
        let without = tables.iter().filter(|(_, rows)| !rows.iter().any(is_deep));
        let cpus = without.clone().fold(CpuSet::new(), |all, (cpus, _)| all.union(cpus));
        let deepest = without.filter_map(|(_, rows)| rows.last()).max_by_key(|row| row.exit_latency_ns);
        let Some(deepest) = deepest else {
            return Answer::no(word!("every CPU has a deep idle state in its table"));
        };
        let claim = deepest.exit_latency_ns.map_or(String::new(), |ns| format!(" ({})", show_ns(ns)));
        let by = taken_by(facts);
        let title = say!(
            "The deepest idle state that is registered is {}{claim}, on {cpus}",
            deepest.name,
            cpus = facts.cpus.extent(&cpus)
        );
        let is_uneven = cpus.len() < facts.cpus.running().count();
        let weight = if is_uneven { Weight::Problem } else { Weight::Note };
        let cost = Cost::unknown(word!(
            "no latency; watts while idle, and turbo headroom for a few busy cores; how much is not measured"
        ));
        let finding = Finding::new(self, weight, Confidence::Medium, title, cost)
            .on("/sys/devices/system/cpu/cpu*/cpuidle/state*/{name,latency}", format!("{}{claim}", deepest.name));
        let finding = match &by {
            Some(argument) => finding.on("/proc/cmdline", argument),
            None => finding,
        };
        let what = match by {
            Some(argument) => {
                say!("Nothing, if latency matters. To save power, take {argument} off the command line and reboot.")
            }
            None => match evidence.facts.topology.processor().is_some_and(|p| p.is_amd()) {
                true => word!(
                    "Nothing, if latency matters. To save power, look in the BIOS for Global C-state Control, and compare both ways."
                ),
                false => {
                    word!("Nothing, if latency matters. To save power, look in the BIOS for C-states (C6), and compare both ways.")
                }
            }
            .into(),
        };
        finding
            .remedy(
                what,
                word!("A reboot; wake-ups get slower by the exit latency of the states that come back."),
                word!("wakewatt inspect idle boot, then wakewatt measure wakeup before and after"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx, idle};
    use super::*;

    #[test]
    fn a_table_that_ends_early() {
        let shallow = idle("intel_idle", &[("POLL", 0, 0), ("C1", 1, 1), ("C1E", 4, 4)]);
        assert_eq!(
            ask(&NoDeepState, &shallow),
            "yes note unknown: the deepest idle state that is registered is c1e (4us), on all 2 cpus"
        );
        assert!(ask(&NoDeepState, &icx()).starts_with("no"));
        let off = icx() + "//- /sys/devices/system/cpu/cpu0/cpuidle/state3/disable\n1\n";
        assert!(ask(&NoDeepState, &off).starts_with("no"), "it is registered, and another rule reports it");
        let arm = shallow + "//- /proc/cpuinfo\nprocessor : 0\nCPU implementer : 0x41\n";
        assert!(ask(&NoDeepState, &arm).starts_with("does not apply"));
        assert!(ask(&NoDeepState, "").starts_with("cannot tell"));
    }
}

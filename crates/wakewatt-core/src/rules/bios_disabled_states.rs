//! Is an idle state off only by default?
//!
//! `stateN/default_status` (kernel 5.6) says `disabled` where the driver registered a state switched off: on servers a
//! native state that the BIOS does not list in _CST (docs/knobs/idle.md, `use_acpi`). "C6 off in the BIOS" is thus only a
//! default: root can write 0 to `disable`. Both directions are worth knowing: states that could be had, and states
//! that somebody switched on against the BIOS.

use super::idle_disabled_by_user::switch;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use crate::units::show_ns;

pub(super) struct BiosDisabledStates;

impl Rule for BiosDisabledStates {
    fn id(&self) -> &'static str {
        "rule.bios-disabled-states"
    }
    fn question(&self) -> &'static str {
        "is an idle state off only by default, or on against the default?"
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let states = &evidence.facts.idle.states;
        let mut off = Vec::new();
        let mut on = Vec::new();
        for state in states {
            let default_off = state.is_enabled_by_default.cpus_where(|on| !on);
            let disabled = state.is_disabled.cpus_where(|d| *d).and(&default_off);
            let enabled = state.is_disabled.cpus_where(|d| !d).and(&default_off);
            off.extend((!disabled.is_empty()).then_some((state, disabled)));
            on.extend((!enabled.is_empty()).then_some((state, enabled)));
        }
        if off.is_empty() && on.is_empty() {
            return match states.iter().find_map(|s| s.is_enabled_by_default.gaps().next()) {
                Some((_, gap)) => Answer::gap(gap),
                None if states.is_empty() => Answer::cannot_tell("no idle state is listed", "wakewatt inspect idle"),
                None => Answer::no("every state was registered as enabled"),
            };
        }
        let word = |(state, cpus): &(&crate::facts::idle::IdleState, crate::cpuset::CpuSet)| {
            let latency =
                state.exit_latency_ns.known().next().map_or(String::new(), |(_, ns)| format!(" ({})", show_ns(*ns)));
            format!("{}{latency} on CPUs {cpus}", state.label())
        };
        let list = |all: &[_]| all.iter().map(word).collect::<Vec<_>>().join(", ");
        let (weight, title, text, what, price) = if on.is_empty() {
            (
                Weight::Note,
                format!("Off by default, but root could enable it: {}", list(&off)),
                "idle power that the deeper state would save; not measured",
                "Leave it if wake-up latency matters. To save power, enable it on all CPUs and measure both ways.",
                "Enabling it: slower wake-ups, by up to the claimed exit latency.",
            )
        } else {
            (
                Weight::Risk,
                format!("Enabled against the default of BIOS and driver: {}", list(&on)),
                "wake-ups up to the claimed exit latency that the BIOS setting was meant to avoid; not measured",
                "Somebody switched it on after boot. If the BIOS setting was meant, disable it again.",
                "Disabling it: more watts when idle.",
            )
        };
        let mut finding = Finding::new(self, weight, Confidence::High, title, Cost::unknown(text));
        for (state, cpus) in off.iter().chain(&on) {
            let folder =
                format!("/sys/devices/system/cpu/cpu{}/cpuidle/state{}", cpus.first().unwrap_or(0), state.index);
            finding = finding.on(format!("{folder}/default_status"), format!("disabled on CPUs {cpus}"));
        }
        for (state, cpus) in &on {
            finding = switch(finding, &evidence.facts, state, cpus, "off", "back to the default");
        }
        finding.remedy(what, price, "wakewatt inspect idle, then wakewatt measure wakeup").yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx};
    use super::*;

    #[test]
    fn both_directions() {
        let at = |cpu, file, value| format!("//- /sys/devices/system/cpu/cpu{cpu}/cpuidle/state3/{file}\n{value}\n");
        let default = at(0, "default_status", "disabled") + &at(1, "default_status", "disabled");
        let off = icx() + &default + &at(0, "disable", "1") + &at(1, "disable", "1");
        let said = ask(&BiosDisabledStates, &off);
        assert_eq!(said, "yes note unknown: off by default, but root could enable it: c6 (170us) on cpus 0-1");
        let on = icx() + &default + &at(1, "disable", "1");
        assert!(ask(&BiosDisabledStates, &on).starts_with("yes risk unknown: enabled against the default"));
        assert!(ask(&BiosDisabledStates, &icx()).starts_with("no"));
        assert!(ask(&BiosDisabledStates, "").starts_with("cannot tell"));
    }
}

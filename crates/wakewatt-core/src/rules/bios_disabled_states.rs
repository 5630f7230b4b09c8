//! Is an idle state off only by default?
//!
//! `stateN/default_status` (kernel 5.6) says `disabled` where the driver registered a state switched off: on servers a
//! native state that the BIOS does not list in _CST (docs/knobs/idle.md, `use_acpi`). "C6 off in the BIOS" is thus only a
//! default: root can write 0 to `disable`. Both directions are worth knowing: states that could be had, and states
//! that somebody switched on against the BIOS. Depth decides: a state that is shallower than one that is on anyway makes no
//! wake-up slower and saves nothing (C3 beside C6 on a Broadwell, C1 beside C1E on a Denverton), so it is no finding, and
//! no remedy takes the shallow state away.

use super::idle_disabled_by_user::switch;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::cpuset::CpuSet;
use crate::enterable;
use crate::evidence::Evidence;
use crate::facts::idle::IdleState;
use crate::units::show_ns;
use wakewatt_words::{say, word};

/// The largest claim, where CPUs differ.
fn latency_ns(state: &IdleState) -> Option<u64> {
    state.exit_latency_ns.known().map(|(_, ns)| *ns).max()
}

pub(super) struct BiosDisabledStates;

impl Rule for BiosDisabledStates {
    fn id(&self) -> &'static str {
        "rule.bios-disabled-states"
    }
    fn question(&self) -> &'static str {
        word!("is an idle state off only by default, or on against the default?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let states = &evidence.facts.idle.states;
        let (mut off, mut on, mut shallow) = (Vec::new(), Vec::new(), Vec::new());
        let mut is_uneven = false;
        // What every CPU of a set has on: by default, which bounds its wake-ups already, and now.
        let deepest = |cpus: &CpuSet, is_on: &dyn Fn(&IdleState) -> CpuSet| {
            let reaches = |s: &&IdleState| !cpus.is_empty() && cpus.minus(&is_on(s)).is_empty();
            states.iter().filter(reaches).filter_map(latency_ns).max().unwrap_or(0)
        };
        let by_default = |s: &IdleState| s.is_enabled_by_default.cpus_where(|on| *on);
        let now = |s: &IdleState| s.is_disabled.cpus_where(|d| !d);
        for state in states {
            let default_off = state.is_enabled_by_default.cpus_where(|on| !on);
            let disabled = state.is_disabled.cpus_where(|d| *d).and(&default_off);
            let enabled = state.is_disabled.cpus_where(|d| !d).and(&default_off);
            // What cannot be placed is taken for deep.
            let is_deeper_than = |bound: u64| latency_ns(state).is_none_or(|ns| ns > bound);
            let (saved, bound) = (deepest(&disabled, &now), deepest(&enabled, &by_default));
            let is_both = !disabled.is_empty() && !enabled.is_empty();
            for (cpus, bound, list) in [(disabled, saved, &mut off), (enabled, bound, &mut on)] {
                is_uneven |= is_both && is_deeper_than(bound);
                match (cpus.is_empty(), is_deeper_than(bound)) {
                    (true, _) => {}
                    (false, true) => list.push((state, cpus)),
                    (false, false) => shallow.push(state.label()),
                }
            }
        }
        if off.is_empty() && on.is_empty() {
            return match states.iter().find_map(|s| s.is_enabled_by_default.gaps().next()) {
                Some((_, gap)) => Answer::gap(gap),
                None if states.is_empty() => {
                    Answer::cannot_tell(word!("no idle state is listed"), "wakewatt inspect idle")
                }
                None if shallow.is_empty() => Answer::no(word!("every state was registered as enabled")),
                None => Answer::no(say!(
                    "off by default is only {}, and a deeper state is on: neither latency nor watts hang on it",
                    shallow.join(", ")
                )),
            };
        }
        let word = |(state, cpus): &(&IdleState, CpuSet)| {
            let latency =
                state.exit_latency_ns.known().next().map_or(String::new(), |(_, ns)| format!(" ({})", show_ns(*ns)));
            say!("{}{latency} on {cpus}", state.label(), cpus = evidence.facts.cpus.extent(cpus))
        };
        let list = |all: &[_]| all.iter().map(word).collect::<Vec<_>>().join(", ");
        let (weight, title, text, what, price) = if on.is_empty() {
            (
                Weight::Note,
                say!("Off by default, but root could enable it: {}", list(&off)),
                word!("idle power that the deeper state would save; not measured"),
                word!(
                    "Leave it if wake-up latency matters. To save power, enable it on all CPUs and measure both ways."
                ),
                word!("Enabling it: slower wake-ups, by up to the claimed exit latency."),
            )
        } else {
            (
                Weight::Risk,
                say!("Enabled against the default of BIOS and driver: {}", list(&on)),
                word!("wake-ups up to the claimed exit latency that the BIOS setting was meant to avoid; not measured"),
                word!("Somebody switched it on after boot. If the BIOS setting was meant, disable it again."),
                word!("Disabling it: more watts when idle."),
            )
        };
        let weight = if is_uneven { Weight::Problem } else { weight };
        let mut finding = Finding::new(self, weight, Confidence::High, title, Cost::unknown(text));
        for (state, cpus) in off.iter().chain(&on) {
            let folder =
                format!("/sys/devices/system/cpu/cpu{}/cpuidle/state{}", cpus.first().unwrap_or(0), state.index);
            finding = finding.on(format!("{folder}/default_status"), say!("disabled on {cpus}", cpus = cpus.named()));
        }
        // What no CPU enters now changes nothing when it is switched off.
        for (state, cpus) in on.iter().filter(|(s, cpus)| !cpus.and(&enterable::cpus_of(&evidence.facts, s)).is_empty())
        {
            finding = switch(finding, &evidence.facts, state, cpus, "off", word!("back to the default"));
        }
        finding.remedy(what, price, word!("wakewatt inspect idle, then wakewatt measure wakeup")).yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx, plan, recorded};
    use super::*;

    #[test]
    fn both_directions() {
        let at = |cpu, file, value| format!("//- /sys/devices/system/cpu/cpu{cpu}/cpuidle/state3/{file}\n{value}\n");
        let default = at(0, "default_status", "disabled") + &at(1, "default_status", "disabled");
        let off = icx() + &default + &at(0, "disable", "1") + &at(1, "disable", "1");
        let said = ask(&BiosDisabledStates, &off);
        assert_eq!(said, "yes note unknown: off by default, but root could enable it: c6 (170us) on all 2 cpus");
        let on = icx() + &default + &at(1, "disable", "1");
        assert!(
            ask(&BiosDisabledStates, &on).starts_with("yes problem unknown: enabled against the default"),
            "uneven"
        );
        let all = icx() + &default;
        assert!(ask(&BiosDisabledStates, &all).starts_with("yes risk unknown: enabled against the default"));
        assert!(ask(&BiosDisabledStates, &icx()).starts_with("no"));
        assert!(ask(&BiosDisabledStates, "").starts_with("cannot tell"));
    }

    #[test]
    fn a_shallow_state_is_neither_risk_nor_remedy() {
        let at = |state, file, value| {
            let one = |cpu| format!("//- /sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}/{file}\n{value}\n");
            one(0) + &one(1)
        };
        let c1 = icx() + &at(1, "default_status", "disabled");
        assert!(
            ask(&BiosDisabledStates, &c1).starts_with("no: off by default is only C1"),
            "{}",
            ask(&BiosDisabledStates, &c1)
        );
        let off = c1.clone() + &at(1, "disable", "1");
        assert!(ask(&BiosDisabledStates, &off).starts_with("no"), "C1 would save nothing beside C6");
        let both = c1 + &at(3, "default_status", "disabled");
        assert_eq!(plan(&BiosDisabledStates, &both), "--set idle.state.C6=off");
    }

    #[test]
    fn on_recorded_machines() {
        let dnv = include_str!("../../../../fixtures/hosts/dnv0.host");
        let said = recorded(&BiosDisabledStates, dnv);
        assert!(said.starts_with("yes risk") && said.contains("c6 (50us)") && !said.contains("c1 ("), "{said}");
        for text in [
            include_str!("../../../../fixtures/hosts/bdwep0.host"),
            include_str!("../../../../fixtures/hosts/bdwex0-nocpuidle.host"),
        ] {
            assert!(recorded(&BiosDisabledStates, text).starts_with("no"), "C3 (40us) beside C6 (133us)");
        }
    }
}

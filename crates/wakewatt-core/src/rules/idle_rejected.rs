//! Does the idle driver refuse what the governor asks for?
//!
//! `stateN/rejected` (kernel 5.10) counts entries the driver refused (docs/events.md): on Arm the firmware says no, on
//! x86 an interrupt was already pending. A few are normal; more than one in a hundred means that a state is offered
//! and cannot be had, and that the governor learns nothing from it.

use super::idle_disabled_by_user::switch;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, percent, sum};
use crate::cpuset::CpuSet;
use crate::enterable;
use crate::evidence::Evidence;
use crate::facts::idle::IdleState;
use wakewatt_words::{say, word};

pub(super) struct IdleRejected;

impl Rule for IdleRejected {
    fn id(&self) -> &'static str {
        "rule.idle-rejected"
    }
    fn question(&self) -> &'static str {
        word!("does the idle driver refuse what the governor asks for?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let counted: Vec<_> = evidence.facts.idle.states.iter().filter(|s| !s.n_rejected.is_unknown()).collect();
        if counted.is_empty() {
            return Answer::cannot_tell(
                word!("no counter of refused entries"),
                word!("kernel 5.10 and later have it; wakewatt inspect idle"),
            );
        }
        let rate = |n: u64, of: u64| n as f64 / (n.saturating_add(of)).max(1) as f64;
        let bad = counted
            .iter()
            .map(|s| (sum(&s.n_rejected), rate(sum(&s.n_rejected), sum(&s.n_usage)), s))
            .filter(|(n, ratio, _)| *n > 1000 && *ratio > 0.01)
            .max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((n, ratio, state)) = bad else {
            return Answer::no(word!("no state was refused in more than 1 % of the attempts"));
        };
        let title =
            say!("The driver refused {} of the attempts to enter {} ({n} since boot)", percent(ratio), state.label());
        let cost =
            Cost::unknown(word!("each refusal wastes a pass of the idle loop and leaves the CPU awake; not measured"));
        let mut finding = Finding::new(self, Weight::Risk, Confidence::Medium, title, cost)
            .on(format!("/sys/devices/system/cpu/cpu*/cpuidle/state{}/rejected", state.index), n);
        // Without another sleeping state the CPUs would spin; ladder does not look past a state that is off.
        let idle = &evidence.facts.idle;
        let others = |s: &&IdleState| s.index != state.index && s.label() != "POLL";
        let open = enterable::of(&evidence.facts);
        let cpus = enterable::cpus_that_enter(&open, state.index);
        let sleeps = idle
            .states
            .iter()
            .filter(others)
            .fold(CpuSet::new(), |all, s| all.union(&enterable::cpus_that_enter(&open, s.index)));
        if cpus.minus(&sleeps).is_empty() && idle.governor.get().is_some_and(|g| g != "ladder") {
            finding = switch(finding, &evidence.facts, state, &cpus, "off", word!("until the firmware is updated"));
        }
        finding
            .remedy(
                word!("Update the firmware; meanwhile disable the state, so that the governor chooses one that works."),
                word!("Disabling it: more watts when idle, if it was entered at all."),
                word!("wakewatt inspect idle twice and compare the counter"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx};
    use super::*;

    #[test]
    fn refused() {
        let at = "//- /sys/devices/system/cpu/cpu0/cpuidle/state3";
        let check = |n| ask(&IdleRejected, &(icx() + &format!("{at}/rejected\n{n}\n{at}/usage\n100000\n")));
        assert!(check(5000).starts_with("yes risk unknown: the driver refused 4.8 % of the attempts to enter c6"));
        assert!(check(3).starts_with("no"));
        assert!(ask(&IdleRejected, &icx()).starts_with("cannot tell"));
    }
}

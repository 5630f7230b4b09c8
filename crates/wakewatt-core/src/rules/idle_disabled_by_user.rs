//! Did somebody disable an idle state after boot?
//!
//! `stateN/disable` is 1 though `default_status` says enabled. Disabled on some CPUs only, the same work costs
//! different amounts on different CPUs; indexes differ between hosts, so scripts disable the wrong state
//! (scylladb#30500, docs/knobs/README.md). Before kernel 5.6 there is no default to compare with.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, joined, on_cpus};
use crate::cpuset::CpuSet;
use crate::enterable;
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::facts::idle::IdleState;
use crate::units::LatencyLimit;
use wakewatt_words::{say, word};

/// Steps that switch a state on or off on these CPUs, by the name it has on each of them.
pub(super) fn switch(
    finding: Finding,
    facts: &Snapshot,
    state: &IdleState,
    cpus: &CpuSet,
    to: &str,
    why: &str,
) -> Finding {
    let path = format!("/sys/devices/system/cpu/cpu*/cpuidle/state{}/disable", state.index);
    let mut names: Vec<(String, CpuSet)> = Vec::new();
    for cpu in cpus.iter() {
        let name = state.name_on(cpu);
        match names.iter_mut().find(|(n, _)| *n == name) {
            Some((_, set)) => set.insert(cpu),
            None => names.push((name, [cpu].into_iter().collect())),
        }
    }
    names.into_iter().fold(finding, |finding, (name, cpus)| {
        let knob = format!("idle.state.{name}");
        finding.step(&knob, on_cpus(facts, &cpus), to, path.clone(), say!("{why}, {cpus}", cpus = cpus.named()))
    })
}

/// Would a latency limit do what the disabled states do? Only where nothing deeper is left on.
fn by_limit(facts: &Snapshot, found: &[(&IdleState, CpuSet)]) -> String {
    let idle = &facts.idle;
    let latency = |state: &IdleState| state.exit_latency_ns.known().map(|(_, ns)| *ns).max();
    let Some(shallowest) = found.iter().filter_map(|(state, _)| latency(state)).min() else { return String::new() };
    let is_found = |state: &IdleState| found.iter().any(|(other, _)| other.index == state.index);
    let is_on = |state: &&IdleState| !is_found(state) && state.is_disabled.known().any(|(_, off)| !off);
    let left: Vec<&IdleState> = idle.states.iter().filter(is_on).collect();
    if let Some(deeper) = left.iter().find(|state| latency(state).is_some_and(|ns| ns >= shallowest)) {
        return say!(
            "No latency limit does the same: {} is deeper and stays on, and a limit leaves out the deepest states first.",
            deeper.label()
        );
    }
    match left.iter().filter_map(|state| latency(state)).max() {
        Some(ns) if ns > 0 => say!(
            "A latency limit of {} does the same, ends with its holder and does not depend on an index.",
            LatencyLimit::AtMostNs(ns)
        ),
        _ if enterable::spinning(&enterable::of(facts)).is_empty() => {
            word!("No state is left on, and the kernel enters state 0 all the same.").into()
        }
        _ => word!("No sleeping state is left on: idle CPUs spin, see rule.polling-by-accident.").into(),
    }
}

/// Do deeper states take over the pauses of these: is a deeper one on, and no shallower one that sleeps?
fn is_shallow(facts: &Snapshot, found: &[(&IdleState, CpuSet)]) -> bool {
    let Some(first) = found.iter().map(|(state, _)| state.index).min() else { return false };
    let is_found = |state: &&IdleState| found.iter().any(|(other, _)| other.index == state.index);
    let is_on = |state: &&IdleState| !is_found(state) && state.is_disabled.known().any(|(_, off)| !off);
    let tables = facts.idle.tables();
    let spins = |index: u32| tables.iter().flat_map(|(_, rows)| rows).any(|row| row.index == index && row.is_polling());
    let others: Vec<u32> =
        facts.idle.states.iter().filter(is_on).map(|s| s.index).filter(|index| !spins(*index)).collect();
    !others.is_empty() && others.iter().all(|index| *index > first)
}

pub(super) struct IdleDisabledByUser;

impl Rule for IdleDisabledByUser {
    fn id(&self) -> &'static str {
        "rule.idle-disabled-by-user"
    }
    fn question(&self) -> &'static str {
        word!("did somebody disable an idle state after boot?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let states = &evidence.facts.idle.states;
        let mut found = Vec::new();
        let mut is_uneven = false;
        for state in states {
            let normal = state.is_enabled_by_default.cpus_where(|on| *on);
            let off = state.is_disabled.cpus_where(|d| *d).and(&normal);
            if !off.is_empty() {
                is_uneven |= !normal.minus(&off).is_empty();
                found.push((state, off));
            }
        }
        if found.is_empty() {
            let gap = states.iter().find_map(|s| s.is_disabled.gaps().chain(s.is_enabled_by_default.gaps()).next());
            return match gap {
                Some((_, gap)) => Answer::gap(gap),
                None if states.is_empty() => {
                    Answer::cannot_tell(word!("no idle state is listed"), "wakewatt inspect idle")
                }
                None => Answer::no(word!("every state that is on by default is on")),
            };
        }
        if evidence.facts.idle.governor.get().is_some_and(|governor| governor == "haltpoll") {
            return Answer::no(word!("states are disabled, but the idle governor haltpoll does not ask"));
        }
        let all_cpus = &evidence.facts.cpus;
        let words: Vec<String> = found
            .iter()
            .map(|(s, cpus)| say!("{state} on {cpus}", state = s.label(), cpus = all_cpus.extent(cpus)))
            .collect();
        let title = say!("Disabled after boot: {}", words.join(", "));
        let weight = if is_uneven { Weight::Problem } else { Weight::Note };
        let (cost, price) = match is_shallow(&evidence.facts, &found) {
            true => (
                word!(
                    "wake-ups after short pauses, which end in a deeper state now; uneven where CPUs differ; not measured"
                ),
                word!("Enabling it again: faster wake-ups after short pauses, more watts in them."),
            ),
            false => (
                word!("idle power that the state would save; uneven wake-ups where CPUs differ; not measured"),
                word!("Enabling it again: fewer watts, slower wake-ups."),
            ),
        };
        let cost = Cost::unknown(cost);
        let mut finding = Finding::new(self, weight, Confidence::High, title, cost);
        for (state, cpus) in &found {
            let path = format!(
                "/sys/devices/system/cpu/cpu{}/cpuidle/state{}/disable",
                cpus.first().unwrap_or(0),
                state.index
            );
            finding = finding.on(path, say!("1 on {cpus}", cpus = cpus.named()));
            finding = switch(finding, &evidence.facts, state, cpus, "on", word!("back to what it was at boot"));
        }
        finding
            .remedy(
                joined(
                    word!("Find out whether a tool means it (see rule.tuning-daemons)."),
                    &by_limit(&evidence.facts, &found),
                ),
                price,
                word!("wakewatt inspect idle, then wakewatt measure wakeup"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx};
    use super::*;

    #[test]
    fn some_all_none() {
        let off = |cpu| format!("//- /sys/devices/system/cpu/cpu{cpu}/cpuidle/state3/disable\n1\n");
        assert_eq!(
            ask(&IdleDisabledByUser, &(icx() + &off(1))),
            "yes problem unknown: disabled after boot: c6 on cpu 1 only"
        );
        let all = icx() + &off(0) + &off(1);
        assert_eq!(ask(&IdleDisabledByUser, &all), "yes note unknown: disabled after boot: c6 on all 2 cpus");
        assert!(ask(&IdleDisabledByUser, &icx()).starts_with("no"));
        assert!(ask(&IdleDisabledByUser, "").starts_with("cannot tell"));
    }
}

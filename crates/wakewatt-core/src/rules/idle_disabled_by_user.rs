//! Did somebody disable an idle state after boot?
//!
//! `stateN/disable` is 1 though `default_status` says enabled. Disabled on some CPUs only, the same work costs
//! different amounts on different CPUs; indexes differ between hosts, so scripts disable the wrong state
//! (scylladb#30500, docs/knobs/README.md). Before kernel 5.6 there is no default to compare with.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, joined, on_cpus};
use crate::cpuset::CpuSet;
use crate::enterable::{self, Barrier, Enterable, State};
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::facts::idle::{IdleState, TableRow};
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

/// CPUs that are alike, with the states that nothing but their switch keeps them from, and the sleeping ones that are left.
struct Kept<'a> {
    off: Vec<&'a TableRow>,
    left: Vec<&'a TableRow>,
    spins: bool,
}

/// What the switches decide, of all CPUs; empty where everything that is off is out of reach for another reason too.
fn kept(all: &[Enterable]) -> Vec<Kept<'_>> {
    let mut kept = Vec::new();
    for group in all {
        let off: Vec<&TableRow> =
            group.states.iter().filter(|state| state.barriers == [Barrier::Disabled]).map(|state| &state.row).collect();
        let left = group.open().map(|state| &state.row).filter(|row| !row.is_polling()).collect();
        if !off.is_empty() {
            kept.push(Kept { off, left, spins: group.spins().is_some() });
        }
    }
    kept
}

/// Would one latency limit do what the switches do?
fn by_limit(kept: &[Kept<'_>]) -> String {
    let ns = |row: &&TableRow| row.exit_latency_ns.unwrap_or(0);
    if kept.is_empty() {
        return String::new();
    }
    if kept.iter().all(|group| group.left.is_empty()) {
        return match kept.iter().all(|group| group.spins) {
            true => word!("No sleeping state is left on: idle CPUs spin, see rule.polling-by-accident.").into(),
            false => word!("No state is left on, and the kernel enters state 0 all the same.").into(),
        };
    }
    // What must stay within the limit, and what beyond it, on all of these CPUs.
    let keeps = kept.iter().flat_map(|group| &group.left).map(ns).max().unwrap_or(0);
    let excludes = kept.iter().flat_map(|group| &group.off).map(ns).min().unwrap_or(0);
    if keeps < excludes && keeps > 0 && kept.iter().all(|group| !group.spins) {
        return say!(
            "A latency limit of {} does the same, ends with its holder and does not depend on an index.",
            LatencyLimit::AtMostNs(keeps)
        );
    }
    let deeper = kept.iter().find_map(|group| {
        let off = group.off.iter().map(|row| row.index).min()?;
        group.left.iter().filter(|row| row.index > off).max_by_key(|row| row.index)
    });
    match deeper {
        Some(deeper) => say!(
            "No latency limit does the same: {} is deeper and stays on, and a limit leaves out the deepest states first.",
            deeper.name
        ),
        None => word!("No one latency limit does the same: the states that are off differ between CPUs.").into(),
    }
}

/// What enabling them again costs and brings.
fn cost(kept: &[Kept<'_>]) -> (&'static str, &'static str) {
    let is_shallow = |group: &Kept<'_>| {
        let first = group.off.iter().map(|row| row.index).min().unwrap_or(0);
        !group.left.is_empty() && group.left.iter().all(|row| row.index > first)
    };
    if kept.iter().any(|group| group.spins) {
        return (
            word!("the power of CPUs that spin when idle; not measured"),
            word!("Enabling it again: idle CPUs sleep, fewer watts, slower wake-ups."),
        );
    }
    match kept.iter().all(is_shallow) {
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
    }
}

/// What else keeps CPUs from these states.
fn others(all: &[Enterable], found: &[(&IdleState, CpuSet)]) -> Vec<String> {
    let is_found = |state: &&State| found.iter().any(|(other, _)| other.index == state.row.index);
    let barriers = all.iter().flat_map(|group| &group.states).filter(is_found).flat_map(|state| &state.barriers);
    let mut words: Vec<String> = barriers.filter(|b| **b != Barrier::Disabled).map(|b| b.words()).collect();
    words.sort();
    words.dedup();
    if words.is_empty() {
        // No other barrier: only ladder ignores the disable flag, of its first state.
        words.push(word!("ladder enters its first state whatever its switch says").into());
    }
    words
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
        // The files of a CPU stay while it is offline.
        let running: CpuSet = evidence.facts.cpus.running().collect();
        let mut found = Vec::new();
        let mut is_uneven = false;
        for state in states {
            let normal = state.is_enabled_by_default.cpus_where(|on| *on);
            let off = state.is_disabled.cpus_where(|d| *d).and(&normal).and(&running);
            if !off.is_empty() {
                is_uneven |= !normal.and(&running).minus(&off).is_empty();
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
        let all = enterable::of(&evidence.facts);
        let kept = kept(&all);
        // Without an idle table the other states are not known.
        let is_void = kept.is_empty() && all.iter().any(|group| !group.states.is_empty());
        let (cost, price) = match is_void {
            true => (
                word!("nothing while something else keeps CPUs from these states too"),
                word!("None: enabling it again changes nothing by itself."),
            ),
            false => cost(&kept),
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
            if !is_void {
                finding = switch(finding, &evidence.facts, state, cpus, "on", word!("back to what it was at boot"));
            }
        }
        finding
            .remedy(
                joined(
                    word!("Find out whether a tool means it (see rule.tuning-daemons)."),
                    &if is_void {
                        say!("Enabling it again changes nothing by itself: {}.", others(&all, &found).join("; "))
                    } else {
                        by_limit(&kept)
                    },
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

    fn finding(text: &str) -> Finding {
        match IdleDisabledByUser.check(&super::super::testing::evidence(text)) {
            Answer::Yes(finding) => *finding,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_switch_decides_beside_a_limit_and_beside_other_switches() {
        let cpu = "//- /sys/devices/system/cpu";
        let off = |n: u32, state: u32| format!("{cpu}/cpu{n}/cpuidle/state{state}/disable\n1\n");
        let limit = |us: &str| -> String {
            (0..2).map(|n| format!("{cpu}/cpu{n}/power/pm_qos_resume_latency_us\n{us}\n")).collect()
        };
        let void = finding(&(icx() + &off(0, 3) + &off(1, 3) + &limit("2")));
        assert!(void.remedy.contains("changes nothing by itself: excluded by the CPU's own") && void.plan.is_none());
        let spins = finding(&(icx() + &off(0, 1) + &off(1, 1) + &off(0, 2) + &off(1, 2) + &limit("20")));
        assert!(
            spins.cost.text.contains("spin") && !spins.cost.text.contains("deeper state now"),
            "{}",
            spins.cost.text
        );
        let split = finding(&(icx() + &off(0, 3) + &off(1, 2)));
        assert!(!split.remedy.contains("does the same, ends"), "{}", split.remedy);
        let deep = finding(&(icx() + &off(0, 3) + &off(1, 3)));
        assert!(deep.remedy.contains("A latency limit of 4us does the same"), "{}", deep.remedy);
        let ladder = format!("{cpu}/cpuidle/current_governor\nladder\n");
        let hidden = finding(&(icx() + &ladder + &off(0, 2) + &off(1, 2)));
        assert!(hidden.remedy.contains("A latency limit of 1us does the same"), "C6 is hidden: {}", hidden.remedy);
    }
}

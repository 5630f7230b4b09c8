//! Do the idle counters tell of another machine than the one that stands here now?
//!
//! `usage`, `time`, `above` and `below` count since boot. Where most of the idle time went to a shallow state, in stays many
//! times longer than a deeper state asks for, although that deeper state is enabled and allowed now, the governor did not choose
//! so: it calculates with this same table, whoever wrote it. The deeper state was disabled, or a latency limit was held, until
//! lately, and every share and every miss counted so far describes that time. `below` tells which: the kernel counts it only
//! where an enabled deeper state was missed (admin-guide/pm/cpuidle.rst; docs/events.md), so long stays with hardly any
//! `below` mean that the state was off. Recorded so: a Xeon Phi with 98 % of its idle time in C1, 22 ms at a time, and C6 on.
//! With the ladder governor long shallow stays are possible without any of this, so there the rule cannot tell.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, percent, sum};
use crate::enterable;
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::facts::idle::IdleState;
use crate::units::show_ns;
use wakewatt_words::{say, word};

/// A shallow state with this share of all idle time …
const SHARE: f64 = 0.25;
/// … in stays so many times the target residency of the deeper one.
const TIMES: u64 = 10;
/// Fewer entries prove nothing.
const MIN_ENTRIES: u64 = 1_000;

/// What contradicts what.
pub(super) struct Contradiction<'a> {
    shallow: &'a IdleState,
    deep: &'a IdleState,
    share: f64,
    mean_ns: u64,
    below_ratio: f64,
}

/// The shallow state that the history is full of and the present would not be, if there is one.
pub(super) fn contradiction(facts: &Snapshot) -> Option<Contradiction<'_>> {
    let states = &facts.idle.states;
    let total = states.iter().map(|s| sum(&s.time_ns)).fold(0, u64::saturating_add);
    let latency = |s: &IdleState| s.exit_latency_ns.known().map(|(_, ns)| *ns).max();
    let all = enterable::of(facts);
    let is_allowed = |s: &&IdleState| all.iter().any(|g| g.deepest().is_some_and(|row| row.index == s.index));
    // By index: where C6 has several depths, the deepest that may be entered.
    let deep = states.iter().filter(is_allowed).max_by_key(|s| s.index)?;
    let asks = deep.target_residency_ns.known().map(|(_, ns)| *ns).max().filter(|ns| *ns > 0)?;
    let shallow = states.iter().filter(|s| s.index < deep.index && s.label() != "POLL" && latency(s) < latency(deep));
    let judged = shallow.filter_map(|state| {
        let (n, time_ns) = (sum(&state.n_usage), sum(&state.time_ns));
        let mean_ns = time_ns.checked_div(n)?;
        let share = time_ns as f64 / total.max(1) as f64;
        let is_so = n >= MIN_ENTRIES && share >= SHARE && mean_ns >= asks.saturating_mul(TIMES);
        let below_ratio = sum(&state.n_below) as f64 / n as f64;
        is_so.then_some(Contradiction { shallow: state, deep, share, mean_ns, below_ratio })
    });
    judged.max_by(|a, b| a.share.total_cmp(&b.share))
}

pub(super) struct HistoryContradictsPresent;

impl Rule for HistoryContradictsPresent {
    fn id(&self) -> &'static str {
        "rule.history-contradicts-present"
    }
    fn question(&self) -> &'static str {
        word!("do the idle counters describe a time when idle was limited otherwise than now?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let facts = &evidence.facts;
        if !facts.idle.states.iter().any(|s| sum(&s.n_usage) >= MIN_ENTRIES && !s.time_ns.is_unknown()) {
            return Answer::cannot_tell(
                say!("no idle state has {MIN_ENTRIES} counted entries"),
                word!("wakewatt inspect idle after the machine has worked for a while"),
            );
        }
        let Some(found) = contradiction(facts) else {
            return Answer::no(word!(
                "no shallow state holds idle time in stays that a deeper allowed state would have taken"
            ));
        };
        let (shallow, deep) = (found.shallow.label(), found.deep.label());
        if facts.idle.governor.get().is_some_and(|governor| governor == "ladder") {
            return Answer::cannot_tell(
                say!("{shallow} was held for long by the ladder governor, which climbs slowly"),
                word!("switch to menu and run wakewatt watch"),
            );
        }
        let was = if found.below_ratio < 0.1 {
            word!("was probably disabled")
        } else {
            word!("was probably excluded by a latency limit")
        };
        let title = say!(
            "The counters are history: {} of idle time went to {shallow}, {} at a time, and {deep} is allowed now",
            percent(found.share),
            show_ns(found.mean_ns)
        );
        let cost = Cost::unknown(word!("nothing by itself; shares and misses since boot mislead whoever reads them"));
        let folder = |state: &IdleState| format!("/sys/devices/system/cpu/cpu*/cpuidle/state{}", state.index);
        let mut finding = Finding::new(self, Weight::Note, Confidence::Medium, title, cost)
            .on(format!("{}/time", folder(found.shallow)), say!("{} of idle time", percent(found.share)))
            .on(format!("{}/below", folder(found.shallow)), say!("{} of its entries", percent(found.below_ratio)))
            .on(format!("{}/residency", folder(found.deep)), word!("far below these stays"));
        if facts.qos.global.get().is_none() {
            finding = finding.on("/dev/cpu_dma_latency", word!("could not be read: a limit may be held still"));
        }
        finding
            .remedy(
                say!(
                    "{deep} {was} until lately, so judge by what happens from now on: wakewatt watch, or wakewatt \
                    inspect idle twice. If nobody here changed it, find out who did (rule.tuning-daemons)."
                ),
                word!("None: looking changes nothing."),
                word!("wakewatt inspect idle twice, and compare the shares of the time between"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx, recorded};
    use super::*;

    fn used(state: u32, usage: u64, time_us: u64, below: u64) -> String {
        let at = |cpu: u32| format!("//- /sys/devices/system/cpu/cpu{cpu}/cpuidle/state{state}");
        (0..2).map(|c| format!("{0}/usage\n{usage}\n{0}/time\n{time_us}\n{0}/below\n{below}\n", at(c))).collect()
    }

    #[test]
    fn long_stays_in_a_shallow_state() {
        let now = used(3, 5_000, 50_000_000, 0);
        let said = ask(&HistoryContradictsPresent, &(icx() + &used(1, 10_000, 1_000_000_000, 1) + &now));
        assert_eq!(
            said,
            "yes note unknown: the counters are history: 95 % of idle time went to c1, 100ms at a time, and c6 is allowed now"
        );
        // Short stays are the governor's choice.
        let short = icx() + &used(1, 1_000_000, 1_000_000_000, 1) + &now;
        assert!(ask(&HistoryContradictsPresent, &short).starts_with("no"));
        // Still limited: then history and present agree.
        let held = "//- /sys/devices/system/cpu/cpu0/power/pm_qos_resume_latency_us\n50\n\
            //- /sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us\n50\n";
        let limited = icx() + &used(2, 10_000, 1_000_000_000, 9_000) + held;
        assert!(ask(&HistoryContradictsPresent, &limited).starts_with("no"));
        assert!(ask(&HistoryContradictsPresent, &icx()).starts_with("cannot tell"));
        assert!(ask(&HistoryContradictsPresent, "").starts_with("cannot tell"));
    }

    #[test]
    fn on_recorded_machines() {
        let knl = recorded(&HistoryContradictsPresent, include_str!("../../../../fixtures/hosts/knl0.host"));
        assert!(knl.contains("98 % of idle time went to c1, 21.6ms at a time, and c6 is allowed now"), "{knl}");
        let dnv = recorded(&HistoryContradictsPresent, include_str!("../../../../fixtures/hosts/dnv0.host"));
        assert!(dnv.contains("went to c1e"), "C6 was switched on against the default shortly before: {dnv}");
        for text in [
            include_str!("../../../../fixtures/hosts/sklep0.host"),
            include_str!("../../../../fixtures/hosts/gnr3.host"),
            include_str!("../../../../fixtures/hosts/genoa0.host"),
        ] {
            assert!(recorded(&HistoryContradictsPresent, text).starts_with("no"));
        }
    }
}

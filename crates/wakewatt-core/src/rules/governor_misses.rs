//! Does the idle governor often choose the wrong depth?
//!
//! `above` counts wake-ups before the state's target residency (slept too deep: latency and energy wasted), `below`
//! those that could have gone deeper (watts wasted); kernel documentation admin-guide/pm/cpuidle.rst. Both count since
//! boot, so they describe the past mix of work. A state with fewer than 10000 entries says nothing. POLL is left out:
//! short polls are its purpose.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, percent, sum};
use crate::evidence::Evidence;
use crate::facts::idle::IdleState;

const GOVERNOR: &str = "/sys/devices/system/cpu/cpuidle/current_governor";
const MIN_ENTRIES: u64 = 10_000;
const LIMIT: f64 = 0.5;
const CLEAR: f64 = 0.8;

pub(super) struct GovernorMisses;

impl Rule for GovernorMisses {
    fn id(&self) -> &'static str {
        "rule.governor-misses"
    }
    fn question(&self) -> &'static str {
        "does the idle governor often choose the wrong depth?"
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let idle = &evidence.facts.idle;
        let counted = |s: &&IdleState| s.label() != "POLL" && !s.n_above.is_unknown() && sum(&s.n_usage) >= MIN_ENTRIES;
        let states: Vec<&IdleState> = idle.states.iter().filter(counted).collect();
        if states.is_empty() {
            return Answer::cannot_tell(
                format!("no sleeping state with {MIN_ENTRIES} entries and counters of misses"),
                "wakewatt inspect idle after the machine has worked for a while",
            );
        }
        let ratio = |n, state: &IdleState| sum(n) as f64 / sum(&state.n_usage) as f64;
        let worst_of = |n: fn(&IdleState) -> &crate::fact::PerCpu<u64>| {
            states.iter().map(|s| (ratio(n(s), s), *s)).max_by(|a, b| a.0.total_cmp(&b.0)).filter(|w| w.0 > LIMIT)
        };
        let (deep, shallow) = (worst_of(|s| &s.n_above), worst_of(|s| &s.n_below));
        let Some((miss, state)) = deep.or(shallow) else {
            return Answer::no(format!("no state was wrong in more than {} of its entries since boot", percent(LIMIT)));
        };
        let (file, meaning, text) = if deep.is_some() {
            (
                "above",
                "ended before the sleep paid",
                "wake-ups pay the exit latency and the sleep saves nothing; the size is not measured",
            )
        } else {
            ("below", "were long enough for a deeper state", "idle power that deeper sleep would save; not measured")
        };
        // On a nearly idle machine most sleeps end early: only a clear majority is a risk.
        let weight = if miss > CLEAR { Weight::Risk } else { Weight::Note };
        let title = format!(
            "{} of {} entries into {} {meaning} (since boot)",
            percent(miss),
            sum(&state.n_usage),
            state.label()
        );
        let finding = Finding::new(self, weight, Confidence::Low, title, Cost::unknown(text))
            .on(format!("/sys/devices/system/cpu/cpu*/cpuidle/state{}/{file}", state.index), percent(miss))
            .on(GOVERNOR, idle.governor.get().map_or("unknown", String::as_str));
        let has_teo = idle.governors_available.get().is_some_and(|all| all.iter().any(|g| g == "teo"));
        let is_menu = idle.governor.get().is_some_and(|g| g == "menu");
        let finding = if deep.is_some() && has_teo && is_menu {
            finding.step(
                "idle.governor",
                None,
                "teo",
                GOVERNOR,
                "it looks at timers first, and goes shallower in doubt",
            )
        } else {
            finding
        };
        finding
            .remedy(
                "If too deep: a latency limit, or governor teo where the kernel offers it. If too shallow: look for \
                    a latency limit or for a periodic timer that wakes the CPUs.",
                "A limit costs watts; another governor changes every CPU at once.",
                "wakewatt inspect idle twice and compare the counters; wakewatt measure wakeup",
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx};
    use super::*;

    fn counters(usage: u64, above: u64, below: u64) -> String {
        let root = "//- /sys/devices/system/cpu/cpu";
        (0..2).map(|c| format!("{root}{c}/cpuidle/state3/usage\n{usage}\n{root}{c}/cpuidle/state3/above\n{above}\n{root}{c}/cpuidle/state3/below\n{below}\n")).collect()
    }

    #[test]
    fn misses() {
        let check = |usage, above, below| ask(&GovernorMisses, &(icx() + &counters(usage, above, below)));
        assert_eq!(
            check(10_000, 7_000, 0),
            "yes note unknown: 70 % of 20000 entries into c6 ended before the sleep paid (since boot)"
        );
        assert!(check(10_000, 0, 8_000).contains("were long enough for a deeper state"));
        assert!(check(10_000, 1_000, 0).starts_with("no"));
        assert!(check(10, 10, 0).starts_with("cannot tell"));
        assert!(ask(&GovernorMisses, "").starts_with("cannot tell"));
    }
}

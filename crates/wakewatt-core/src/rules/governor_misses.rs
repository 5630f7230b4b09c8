//! Does the idle governor's choice of depth cost noticeable time?
//!
//! `above` counts wake-ups before the state's target residency (slept too deep: latency and energy wasted), `below` those
//! that could have gone deeper (watts wasted); admin-guide/pm/cpuidle.rst. A ratio says nothing: nine of ten entries wrong
//! may be a few seconds since boot. So a miss is weighed by what it cost by the claims, which are worst cases: too deep, the exit latency beyond that of
//! the next shallower state; too shallow, a stay as long as the next deeper state asks for. One hundredth of the CPUs' time
//! is worth a look for the first, a fifth of idle time for the second. Both count since boot, so they describe the past
//! mix of work, and boot itself is no work: less than ten idle minutes on each CPU, or too few entries, prove nothing. Nor
//! do residencies that a kernel computed from a latency ([`crate::facts::idle::source`]), a history that contradicts
//! the present, or a tick that never stops: it ends the sleeps, whatever the governor chose. POLL is left out: short polls are its purpose.

use super::history_contradicts_present::contradiction;
use super::tick_never_stops::{Tick, tick};
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, percent, sum};
use crate::enterable;
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::facts::idle::IdleState;
use crate::units::show_ns;
use wakewatt_words::{say, word};

const GOVERNOR: &str = "/sys/devices/system/cpu/cpuidle/current_governor";
const MIN_ENTRIES: u64 = 10_000;
/// Idle time that each CPU must have had on average: ten minutes.
const MIN_IDLE_NS: u64 = 600_000_000_000;
/// Share of the CPUs' time lost in exits that a shallower state would have saved.
const TOO_DEEP: f64 = 0.01;
/// Share of idle time in stays that a deeper state would have taken.
const TOO_SHALLOW: f64 = 0.2;

/// What a state's misses come to.
struct Missed<'a> {
    state: &'a IdleState,
    n: u64,
    time_ns: u64,
    share: f64,
}

/// A number that all CPUs have, or the smallest: a cost is "at least".
fn least(values: &crate::fact::PerCpu<u64>) -> Option<u64> {
    values.known().map(|(_, ns)| *ns).min()
}

/// The worst state each way: too deep as a share of the CPUs' time, too shallow as a share of idle time.
fn misses(facts: &Snapshot, idle_ns: u64) -> (Option<Missed<'_>>, Option<Missed<'_>>) {
    let all = enterable::of(facts);
    let is_on = |s: &&IdleState| !enterable::cpus_that_enter(&all, s.index).is_empty();
    let states: Vec<&IdleState> = facts.idle.states.iter().filter(|s| s.label() != "POLL").filter(is_on).collect();
    let n_cpus = facts.cpus.running().count() as u64;
    // Where the uptime is not recorded, idle time is the least it can have been.
    let up_ns = facts.load.uptime_ns.get().map_or(0, |up| up.saturating_mul(n_cpus)).max(idle_ns);
    let missed = |n: u64, each_ns: u64, of_ns: u64| {
        let time_ns = n.saturating_mul(each_ns);
        (time_ns, time_ns as f64 / of_ns.max(1) as f64)
    };
    let (mut deep, mut shallow): (Option<Missed<'_>>, Option<Missed<'_>>) = (None, None);
    for pair in states.windows(2) {
        let [upper, lower] = pair else { continue };
        if let (Some(a), Some(b)) = (least(&upper.exit_latency_ns), least(&lower.exit_latency_ns)) {
            let n = sum(&lower.n_above);
            let (time_ns, share) = missed(n, b.saturating_sub(a), up_ns);
            if deep.as_ref().is_none_or(|d| share > d.share) {
                deep = Some(Missed { state: lower, n, time_ns, share });
            }
        }
        if let Some(asks) = least(&lower.target_residency_ns) {
            let n = sum(&upper.n_below);
            let (time_ns, share) = missed(n, asks, idle_ns);
            let time_ns = time_ns.min(sum(&upper.time_ns));
            let share = share.min(time_ns as f64 / idle_ns.max(1) as f64);
            if shallow.as_ref().is_none_or(|s| share > s.share) {
                shallow = Some(Missed { state: upper, n, time_ns, share });
            }
        }
    }
    (deep, shallow)
}

pub(super) struct GovernorMisses;

impl Rule for GovernorMisses {
    fn id(&self) -> &'static str {
        "rule.governor-misses"
    }
    fn question(&self) -> &'static str {
        word!("does the idle governor's choice of depth cost noticeable time?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Sleep]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let (facts, idle) = (&evidence.facts, &evidence.facts.idle);
        let counted = |s: &IdleState| s.label() != "POLL" && !s.n_above.is_unknown() && sum(&s.n_usage) >= MIN_ENTRIES;
        if !idle.states.iter().any(counted) {
            return Answer::cannot_tell(
                say!("no sleeping state with {MIN_ENTRIES} entries and counters of misses"),
                word!("wakewatt inspect idle after the machine has worked for a while"),
            );
        }
        if let Some(source) = idle.source.as_ref().filter(|source| source.residency_factor.is_some()) {
            return Answer::cannot_tell(
                say!("misses are judged by target residencies that nobody measured ({})", source.words()),
                word!("wakewatt measure idle, which measures what each state costs"),
            );
        }
        if contradiction(facts).is_some() {
            return Answer::cannot_tell(
                word!(
                    "the counters describe a time when idle was limited otherwise (rule.history-contradicts-present)"
                ),
                word!("wakewatt inspect idle twice, and compare"),
            );
        }
        if let Tick::Runs(hz) = tick(idle) {
            return Answer::cannot_tell(
                say!(
                    "a tick ends every sleep ({hz} a second, rule.tick-never-stops), so the misses are not the governor's"
                ),
                word!("let the tick stop first, then wakewatt inspect idle after the machine has worked for a while"),
            );
        }
        let idle_ns = idle.states.iter().map(|s| sum(&s.time_ns)).fold(0, u64::saturating_add);
        let n_cpus = facts.cpus.running().count().max(1) as u64;
        if idle_ns / n_cpus < MIN_IDLE_NS {
            return Answer::cannot_tell(
                say!("only {} of idle time on each CPU, which booting alone fills", show_ns(idle_ns / n_cpus)),
                word!("wakewatt inspect idle after the machine has worked for a while"),
            );
        }
        let (deep, shallow) = misses(facts, idle_ns);
        let found = deep.filter(|d| d.share >= TOO_DEEP).map(|d| (true, d));
        let Some((is_deep, missed)) = found.or(shallow.filter(|s| s.share >= TOO_SHALLOW).map(|s| (false, s))) else {
            return Answer::no(say!(
                "sleeps that were too deep cost less than {} of the CPUs' time since boot, too shallow ones less than {} of idle time",
                percent(TOO_DEEP),
                percent(TOO_SHALLOW)
            ));
        };
        let (share, label) = (percent(missed.share), missed.state.label());
        let (weight, file, title, cost) = if is_deep {
            (
                Weight::Risk,
                "above",
                say!("Sleeps in {label} that ended too early cost up to {share} of the CPUs' time (since boot)"),
                Cost::predicted_ratio(
                    missed.share,
                    say!(
                        "{} exits longer than the next shallower state's, by the claims {} in all; not measured",
                        missed.n,
                        show_ns(missed.time_ns)
                    ),
                ),
            )
        } else {
            (
                Weight::Note,
                "below",
                say!(
                    "At least {share} of idle time went to {label} in stays long enough for a deeper state (since boot)"
                ),
                Cost::unknown(word!("idle power that deeper sleep would save; how many watts is not measured")),
            )
        };
        let mut finding = Finding::new(self, weight, Confidence::Low, title, cost)
            .on(format!("/sys/devices/system/cpu/cpu*/cpuidle/state{}/{file}", missed.state.index), missed.n)
            .on(GOVERNOR, idle.governor.get().map_or(word!("unknown"), String::as_str));
        let has_teo = idle.governors_available.get().is_some_and(|all| all.iter().any(|g| g == "teo"));
        let is_menu = idle.governor.get().is_some_and(|g| g == "menu");
        if is_deep && has_teo && is_menu {
            let why = word!("it looks at timers first, and goes shallower in doubt");
            finding = finding.step("idle.governor", None, "teo", GOVERNOR, why);
        }
        finding
            .remedy(
                word!("If too deep: a latency limit, another governor, or what wakes the CPUs so often (rule.tick-never-stops). If \
                    too shallow: look for a latency limit or for a periodic timer that wakes the CPUs."),
                word!("A limit costs watts; another governor changes every CPU at once."),
                word!("wakewatt inspect idle twice and compare the counters; wakewatt measure wakeup"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx, idle, recorded};
    use super::*;

    /// Ten minutes and more in C6, so often entered, so often too deep.
    fn counters(usage: u64, above: u64, time_us: u64) -> String {
        let at = |cpu: u32| format!("//- /sys/devices/system/cpu/cpu{cpu}/cpuidle/state3");
        let one = |c| format!("{0}/usage\n{usage}\n{0}/above\n{above}\n{0}/below\n0\n{0}/time\n{time_us}\n", at(c));
        (0..2).map(one).collect()
    }

    #[test]
    fn time_counts_and_not_the_ratio() {
        let check = |usage, above, time_us| ask(&GovernorMisses, &(icx() + &counters(usage, above, time_us)));
        let hour = 3_600_000_000;
        assert!(check(100_000, 90_000, hour).starts_with("no"), "nine of ten, 15 s of an hour");
        assert_eq!(
            check(700_000, 630_000, hour),
            "yes risk predicted: sleeps in c6 that ended too early cost up to 2.9 % of the cpus' time (since boot)"
        );
        let ticking = check(1_000_000, 900_000, hour);
        assert!(ticking.starts_with("cannot tell: a tick ends every sleep (250 a second"), "{ticking}");
        assert!(check(70_000, 63_000, hour / 12).starts_with("cannot tell: only 300s"));
        assert!(check(10, 10, hour).starts_with("cannot tell"));
        assert!(ask(&GovernorMisses, "").starts_with("cannot tell"));
        // C1E held for long: what menu would not do, unless it must.
        let shallow = |n: u32| {
            let at = format!("//- /sys/devices/system/cpu/cpu{n}/cpuidle/state2");
            format!("{at}/usage\n2000000\n{at}/below\n1900000\n{at}/above\n0\n{at}/time\n2000000000\n")
        };
        let said = ask(&GovernorMisses, &(icx() + &counters(20_000, 0, hour) + &shallow(0) + &shallow(1)));
        assert!(said.starts_with("yes note unknown: at least 20 % of idle time went to c1e"), "{said}");
    }

    #[test]
    fn computed_residencies_prove_nothing() {
        let epyc = idle("acpi_idle", &[("POLL", 0, 0), ("C1", 1, 2), ("C1E", 1, 2), ("C2", 800, 1600)]);
        let said = ask(&GovernorMisses, &(epyc + &counters(1_000_000, 990_000, 3_600_000_000)));
        assert!(
            said.starts_with("cannot tell: misses are judged by target residencies that nobody measured"),
            "{said}"
        );
    }

    #[test]
    fn on_recorded_machines() {
        let said = |text| recorded(&GovernorMisses, text);
        for text in [
            include_str!("../../../../fixtures/hosts/genoa0.host"),
            include_str!("../../../../fixtures/hosts/turin0.host"),
            include_str!("../../../../fixtures/hosts/icx2s0.host"),
            include_str!("../../../../fixtures/hosts/knl0.host"),
        ] {
            assert!(said(text).starts_with("cannot tell"), "{}", said(text));
        }
        assert!(said(include_str!("../../../../fixtures/hosts/emr9.host")).starts_with("no: sleeps"));
        let gnr = said(include_str!("../../../../fixtures/hosts/gnr3.host"));
        assert!(
            gnr.starts_with("cannot tell: a tick ends every sleep (1000 a second, rule.tick-never-stops)"),
            "{gnr}"
        );
    }
}

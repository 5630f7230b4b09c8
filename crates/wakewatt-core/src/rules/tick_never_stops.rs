//! Does the timer tick wake idle CPUs although nothing is to be done?
//!
//! A kernel built without NO_HZ_IDLE, or booted with `nohz=off`, keeps the tick running in idle: every CPU wakes HZ times a
//! second (100, 250, 300 or 1000), so no sleep is longer than the period, and states whose target residency is longer never
//! pay (Documentation/timers/no_hz.rst). It shows in the counters: entries over idle time are at least HZ on every CPU, and just
//! above it on nearly all of them; work never makes hundreds of CPUs wake equally often. Recorded so: a Granite Rapids, 256 CPUs,
//! 29 hours, 1,014 to 1,116 entries per idle second each. A machine with little idle time, or CPUs that differ, is not judged.
//! A periodic task bound to every CPU would look the same, so without `nohz=off` on the command line confidence is no more
//! than medium on few CPUs. What it costs in watts is left out: nothing here says what one wake-up draws.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, percent};
use crate::enterable;
use crate::evidence::Evidence;
use crate::facts::idle::{Idle, IdleState};
use crate::units::{Cpu, show_ns};
use std::collections::BTreeMap;
use wakewatt_words::{say, word};

/// What kernels are built with (kernel/Kconfig.hz).
const TICKS: &[u32] = &[100, 250, 300, 1000];
/// Entries per idle second of a CPU under a tick: not below it, but for rounding; above it by what else wakes the CPU.
const WITHIN: std::ops::RangeInclusive<f64> = 0.98..=1.15;
/// So many of the CPUs must lie in the range.
const SHARE: f64 = 0.9;
/// Seconds of idle time on each CPU, from which on its mean counts.
const MIN_IDLE_S: f64 = 60.0;

/// Entries per second of idle time, of the CPUs that were idle long enough.
fn rates(idle: &Idle) -> Vec<f64> {
    let mut all: BTreeMap<Cpu, (u64, u64)> = BTreeMap::new();
    for state in &idle.states {
        let times = state.time_ns.by_cpu();
        for (cpu, n) in state.n_usage.by_cpu() {
            let Some(time) = times.get(&cpu) else { continue };
            let sum = all.entry(cpu).or_default();
            *sum = (sum.0.saturating_add(*n), sum.1.saturating_add(**time));
        }
    }
    let rate = |(n, ns): &(u64, u64)| Some(*ns as f64 / 1e9).filter(|s| *s >= MIN_IDLE_S).map(|s| *n as f64 / s);
    let mut rates: Vec<f64> = all.values().filter_map(rate).collect();
    rates.sort_by(f64::total_cmp);
    rates
}

/// How long one stay in a state took on the mean, of all CPUs.
fn mean_stay_ns(state: &IdleState) -> Option<u64> {
    let (n, ns) = (super::sum(&state.n_usage), super::sum(&state.time_ns));
    ns.checked_div(n)
}

/// Does the tick run on in idle?
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Tick {
    /// It wakes every CPU so often a second.
    Runs(u32),
    /// The quietest CPU wakes less often than any tick would wake it.
    Stops,
    /// The counters do not say.
    Unknown,
}

/// Reads it from the counters since boot.
pub(super) fn tick(idle: &Idle) -> Tick {
    let rates = rates(idle);
    let Some(quietest) = rates.first() else { return Tick::Unknown };
    let slowest = TICKS.iter().copied().map(f64::from).fold(f64::INFINITY, f64::min);
    if *quietest < slowest * WITHIN.start() {
        return Tick::Stops;
    }
    let is_tick = |hz: &u32| {
        let hz = f64::from(*hz);
        let n = rates.iter().filter(|rate| WITHIN.contains(&(**rate / hz))).count();
        *quietest >= hz * WITHIN.start() && n as f64 >= rates.len() as f64 * SHARE
    };
    TICKS.iter().copied().find(is_tick).map_or(Tick::Unknown, Tick::Runs)
}

pub(super) struct TickNeverStops;

impl Rule for TickNeverStops {
    fn id(&self) -> &'static str {
        "rule.tick-never-stops"
    }
    fn question(&self) -> &'static str {
        word!("does the timer tick wake CPUs that have nothing to do?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let idle = &evidence.facts.idle;
        let rates = rates(idle);
        let hz = match tick(idle) {
            Tick::Runs(hz) => hz,
            Tick::Stops => {
                let quietest = rates.first().copied().unwrap_or_default();
                return Answer::no(say!("the quietest CPU wakes {quietest:.0} times a second of idle time"));
            }
            Tick::Unknown => {
                return Answer::cannot_tell(
                    word!(
                        "no CPU has counted a minute of idle time, or wake-ups are too many or too uneven for a tick to be told"
                    ),
                    word!("wakewatt inspect idle after the machine has been quiet for a while"),
                );
            }
        };
        let period_ns = 1_000_000_000 / u64::from(hz);
        let (low, high) = (rates.first().copied().unwrap_or_default(), rates.last().copied().unwrap_or_default());
        // Entered, and asking for a sleep that cannot be.
        let all = enterable::of(&evidence.facts);
        let too_deep: Vec<String> = idle
            .states
            .iter()
            .filter(|s| s.target_residency_ns.known().any(|(_, ns)| *ns > period_ns))
            .filter(|s| mean_stay_ns(s).is_none_or(|ns| ns < period_ns))
            .filter(|s| !enterable::cpus_that_enter(&all, s.index).is_empty())
            .map(|s| s.label())
            .collect();
        let out_of_reach = match too_deep.is_empty() {
            true => String::new(),
            false => say!(", so {} can never pay", too_deep.join(", ")),
        };
        let title = say!(
            "The tick never stops: idle CPUs wake {hz} times a second and sleep {} at most{out_of_reach}",
            show_ns(period_ns)
        );
        let is_asked = evidence.facts.boot.is_nohz_off();
        let confidence = if is_asked || rates.len() >= 8 { Confidence::High } else { Confidence::Medium };
        let leaving: Option<f64> = idle
            .states
            .iter()
            .max_by_key(|s| super::sum(&s.time_ns))
            .and_then(|s| s.exit_latency_ns.known().map(|(_, ns)| *ns).max())
            .map(|ns| ns as f64 / period_ns as f64);
        let share = leaving.map_or(String::new(), |ratio| {
            say!(
                "; at the claimed latency, a worst case, up to {} of the time is spent leaving the state",
                percent(ratio.min(1.0))
            )
        });
        let cost = Cost::unknown(say!(
            "idle power: {hz} needless wake-ups a second on each CPU{share}; no watts are given, for nothing here says what one draws"
        ));
        let mut finding = Finding::new(self, Weight::Risk, confidence, title, cost).on(
            "/sys/devices/system/cpu/cpu*/cpuidle/state*/{usage,time}",
            say!("{low:.0} to {high:.0} entries per idle second on {} CPUs", rates.len()),
        );
        if is_asked {
            finding = finding.on("/proc/cmdline", "nohz=off");
        }
        let what = if is_asked {
            word!("Take nohz=off off the command line and reboot.")
        } else {
            word!(
                "Boot a kernel with CONFIG_NO_HZ_IDLE=y, as distributions build theirs (this one seems to be built with a \
                periodic tick: nohz=on does nothing there), then let the governor be menu or teo."
            )
        };
        finding
            .remedy(
                what,
                word!(
                    "Deeper sleep: fewer watts, and wake-ups that take longer by the exit latency of the deeper states."
                ),
                word!("wakewatt inspect idle after some hours: entries per second of idle time fall to tens"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx, recorded};
    use super::*;

    fn counted(cpu: u32, usage: u64, time_us: u64) -> String {
        let at = format!("//- /sys/devices/system/cpu/cpu{cpu}/cpuidle/state3");
        format!("{at}/usage\n{usage}\n{at}/time\n{time_us}\n")
    }

    #[test]
    fn even_and_just_above_a_tick() {
        let check = |a: u64, b: u64, seconds: u64| {
            let us = seconds * 1_000_000;
            ask(&TickNeverStops, &(icx() + &counted(0, a * seconds, us) + &counted(1, b * seconds, us)))
        };
        assert_eq!(
            check(252, 260, 600),
            "yes risk unknown: the tick never stops: idle cpus wake 250 times a second and sleep 4ms at most"
        );
        assert!(check(1_004, 1_010, 600).contains("wake 1000 times a second"));
        assert!(check(30, 255, 600).starts_with("no: the quietest CPU wakes 30 times"));
        assert!(check(450, 2_000, 600).starts_with("cannot tell"), "uneven: work, not a tick");
        assert!(check(1_004, 1_010, 20).starts_with("cannot tell"), "too short");
        assert!(ask(&TickNeverStops, "").starts_with("cannot tell"));
    }

    #[test]
    fn on_recorded_machines() {
        let gnr = recorded(&TickNeverStops, include_str!("../../../../fixtures/hosts/gnr3.host"));
        assert_eq!(
            gnr,
            "yes risk unknown: the tick never stops: idle cpus wake 1000 times a second and sleep 1ms at most"
        );
        for text in [
            include_str!("../../../../fixtures/hosts/sklep0.host"),
            include_str!("../../../../fixtures/hosts/knl0.host"),
            include_str!("../../../../fixtures/hosts/rome0.host"),
        ] {
            assert!(recorded(&TickNeverStops, text).starts_with("no: the quietest"));
        }
    }
}

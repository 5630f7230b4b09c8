//! Is the ladder governor in charge?
//!
//! ladder climbs one state at a time and judges by the last sleep only; it was made for periodic ticks and outranks
//! menu only where the tick does not stop (docs/governors.md: a sleep shorter than the exit latency even counts as a long
//! one). Where the tick stops it is nearly always a leftover. Where it runs on, ladder is the kernel's own choice and the tick
//! is the trouble: then this is a note, and [`super::tick_never_stops`] speaks. The counters say which; without them
//! nothing is said about the tick.

use super::tick_never_stops::{Tick, tick};
use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::enterable::{self, Barrier, Enterable};
use crate::evidence::Evidence;
use crate::facts::kernel::KernelVersion;
use wakewatt_words::{say, word};

const PATH: &str = "/sys/devices/system/cpu/cpuidle/current_governor";

pub(super) struct LadderGovernor;

impl Rule for LadderGovernor {
    fn id(&self) -> &'static str {
        "rule.ladder-governor"
    }
    fn question(&self) -> &'static str {
        word!("is the ladder idle governor in charge?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let idle = &evidence.facts.idle;
        let governor = match (idle.governor.get(), idle.governor.gap()) {
            (Some(governor), _) => governor,
            (None, Some(gap)) => return Answer::gap(gap),
            (None, None) => return Answer::no(word!("no governor")),
        };
        if governor != "ladder" {
            return Answer::no(say!("the idle governor is {governor}"));
        }
        let others = idle.governors_available.get().cloned().unwrap_or_default();
        let better = ["menu", "teo"].into_iter().find(|g| others.iter().any(|o| o == g));
        let (weight, title, text) = match tick(idle) {
            Tick::Runs(hz) => (
                Weight::Note,
                say!("The idle governor is ladder, the kernel's choice where the tick never stops ({hz} a second)"),
                word!("the tick bounds every sleep, whatever the governor (rule.tick-never-stops); not measured"),
            ),
            Tick::Stops => (
                Weight::Risk,
                word!("The idle governor is ladder, made for kernels with a periodic tick, and here the tick stops")
                    .into(),
                word!("ladder misjudges sleep lengths where the tick stops: late and wrong depths; not measured"),
            ),
            Tick::Unknown => (
                Weight::Risk,
                word!("The idle governor is ladder, made for kernels with a periodic tick").into(),
                word!("where the tick stops, ladder misjudges sleep lengths: late and wrong depths; not measured"),
            ),
        };
        let mut finding = Finding::new(self, weight, Confidence::Medium, title, Cost::unknown(text)).on(PATH, governor);
        // Older kernels choose at boot only; they have the file under another name.
        let is_writable = evidence.facts.kernel.version.get().is_some_and(|v| *v >= KernelVersion::new(5, 8, 0));
        // Where every state is off or beyond a limit, another governor would spin; ladder still enters its first state.
        let groups = enterable::of(&evidence.facts);
        let is_kept = |group: &Enterable, state: &enterable::State| {
            let is_beyond = state.row.exit_latency_ns.is_some_and(|ns| !group.limit.allows(ns));
            state.row.is_enabled == Some(false) || is_beyond || state.barriers.contains(&Barrier::BootArgument)
        };
        let would_spin = |group: &Enterable| group.states.iter().all(|s| s.row.is_polling() || is_kept(group, s));
        let would_spin = !groups.is_empty() && groups.iter().all(would_spin);
        let offered = better;
        let better = better.filter(|_| !would_spin);
        match better {
            Some(name) if is_writable => {
                finding = finding.step(
                    "idle.governor",
                    None,
                    name,
                    PATH,
                    word!("it expects the length of a sleep, tick or no tick"),
                );
            }
            Some(name) => {
                finding = finding.boot(
                    format!("cpuidle.governor={name}"),
                    word!("it expects the length of a sleep, tick or no tick"),
                )
            }
            None => {}
        }
        let what = match better {
            Some(name) => say!(
                "Write {name} to {PATH} as root (kernel 5.8 and later); cpuidle.governor={name} at boot makes it last."
            ),
            None if offered.is_some() => word!(
                "Enable the idle states or lift the limit first: ladder enters its first state all the same, and another \
                 governor would spin."
            )
            .to_string(),
            None => word!("The kernel offers no other governor here (see available_governors); boot without nohz=off.")
                .to_string(),
        };
        finding
            .remedy(
                what,
                word!("Other depths are chosen on every CPU; watts and latency both move."),
                word!("wakewatt measure wakeup before and after"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx, recorded};
    use super::*;

    #[test]
    fn which_governor() {
        let ladder =
            format!("//- {PATH}\nladder\n//- /sys/devices/system/cpu/cpuidle/available_governors\nladder menu\n");
        assert!(ask(&LadderGovernor, &(icx() + &ladder)).starts_with("yes risk"));
        assert_eq!(ask(&LadderGovernor, &icx()), "no: the idle governor is menu");
        assert!(ask(&LadderGovernor, "").starts_with("cannot tell"));
        let quiet = "//- /sys/devices/system/cpu/cpu0/cpuidle/state3/usage\n6000\n//- /sys/devices/system/cpu/cpu0/cpuidle/state3/time\n600000000\n";
        assert!(ask(&LadderGovernor, &(icx() + &ladder + quiet)).ends_with("and here the tick stops"));
        let gnr = recorded(&LadderGovernor, include_str!("../../../../fixtures/hosts/gnr3.host"));
        assert!(gnr.starts_with("yes note") && gnr.contains("the tick never stops (1000 a second)"), "{gnr}");
    }
}

//! Was the machine booted with an argument that decides about idle?
//!
//! `idle=poll` spins, `idle=halt` leaves only HLT and no driver, `idle=nomwait` keeps intel_idle away, `cpuidle.off`
//! makes latency limits void, `nohz=off` keeps the tick and brings ladder (docs/knobs/idle.md). They are often inherited from
//! an old tuning guide.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

/// (name, value or any, what it does, costs watts for certain)
fn arguments() -> [(&'static str, Option<&'static str>, &'static str, bool); 10] {
    [
        ("idle", Some("poll"), word!("idle CPUs spin; no idle driver, latency limits have no effect"), true),
        ("idle", Some("halt"), word!("HLT only; no idle driver, latency limits have no effect"), false),
        (
            "idle",
            Some("nomwait"),
            word!("no MWAIT: intel_idle does not load, acpi_idle uses HLT and port reads"),
            false,
        ),
        ("cpuidle.off", Some("1"), word!("no idle driver or governor; latency limits have no effect"), false),
        (
            "nohz",
            Some("off"),
            word!("the tick never stops: every CPU wakes at the tick rate, and ladder outranks menu"),
            true,
        ),
        ("cpuidle.governor", None, word!("chooses the idle governor"), false),
        ("intel_idle.max_cstate", None, word!("limits intel_idle by state index; 0 hands over to acpi_idle"), false),
        ("intel_idle.states_off", None, word!("registers the states of this mask as disabled"), false),
        ("intel_idle.table", None, word!("replaces the driver's latencies and residencies"), false),
        ("processor.max_cstate", None, word!("limits acpi_idle only"), false),
    ]
}

pub(super) struct IdleBootArguments;

impl Rule for IdleBootArguments {
    fn id(&self) -> &'static str {
        "rule.idle-boot-arguments"
    }
    fn question(&self) -> &'static str {
        word!("was the machine booted with an argument that decides about idle?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let line = match (evidence.facts.boot.cmdline.get(), evidence.facts.boot.cmdline.gap()) {
            (Some(line), _) => line,
            (None, Some(gap)) => return Answer::gap(gap),
            (None, None) => return Answer::no(word!("no command line")),
        };
        let found: Vec<_> = arguments()
            .into_iter()
            .filter_map(|(name, wanted, does, spends)| {
                let value = line.value(name)?;
                wanted.is_none_or(|w| w == value).then(|| (format!("{name}={value}"), does, spends))
            })
            .collect();
        let Some((first, does, _)) = found.first() else {
            return Answer::no(word!("no argument about idle is on the command line"));
        };
        let is_risk = found.iter().any(|(_, _, spends)| *spends);
        let names: Vec<&str> = found.iter().map(|(n, ..)| n.as_str()).collect();
        let weight = if is_risk { Weight::Risk } else { Weight::Note };
        let title = if found.len() == 1 {
            say!("Booted with {first}: {does}")
        } else {
            say!("Booted with {}", names.join(" "))
        };
        let text = if is_risk {
            word!("watts when idle, and turbo headroom; not measured")
        } else {
            word!("depends on the argument; not measured")
        };
        let mut finding = Finding::new(self, weight, Confidence::High, title, Cost::unknown(text));
        for (name, does, _) in &found {
            finding = finding.on("/proc/cmdline", format!("{name}: {does}"));
        }
        // The others are taken off by hand: another value would be somebody else's intent, and idle= has no "as usual".
        if line.value("nohz") == Some("off") {
            finding = finding.boot("nohz=on", word!("let idle CPUs stop the tick, as is usual"));
        }
        finding
            .remedy(
                word!("Keep it only if somebody knows why it is there. A latency limit at run time does most of the same, \
                    can be measured both ways and ends without a reboot."),
                word!("Taking it out needs a reboot and lets the CPUs sleep again."),
                word!("wakewatt inspect idle boot after the reboot; wakewatt measure wakeup; wakewatt compare with the \
                    capture from before"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn arguments() {
        let check = |line: &str| ask(&IdleBootArguments, &format!("//- /proc/cmdline\n{line}\n"));
        assert!(check("ro idle=poll").starts_with("yes risk unknown: booted with idle=poll: idle cpus spin"));
        let both = "intel_idle.max_cstate=1 processor.max_cstate=1";
        assert_eq!(check(both), format!("yes note unknown: booted with {both}"));
        assert!(check("ro quiet idlex=poll nohz=on").starts_with("no"));
        assert!(ask(&IdleBootArguments, "").starts_with("cannot tell"));
    }
}

//! Was the machine booted with an argument that decides about idle?
//!
//! `idle=poll` spins, `idle=halt` leaves only HLT and no driver, `idle=nomwait` keeps intel_idle away, `cpuidle.off`
//! makes latency limits void, `nohz=off` keeps the tick and brings ladder (docs/knobs/idle.md). They are often inherited from
//! an old tuning guide.

use super::arguments_ignored::ignored;
use super::exclusions::Assertion;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::enterable::{self, Cause};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

/// An argument, and what it comes to.
struct Argument {
    name: &'static str,
    /// This value; none: any.
    value: Option<&'static str>,
    does: &'static str,
    /// What taking it out brings back.
    without: &'static str,
    /// Does it cost watts for certain?
    spends: bool,
    /// The idle driver that reads it; none: the kernel does.
    read_by: Option<&'static str>,
}

fn arguments(is_intel: Option<bool>) -> [Argument; 10] {
    let kernel = |name, value, does, without, spends| Argument { name, value, does, without, spends, read_by: None };
    let driver = |name, driver, does, without| Argument {
        name,
        value: None,
        does,
        without,
        spends: false,
        read_by: Some(driver),
    };
    [
        kernel(
            "idle",
            Some("poll"),
            word!("idle CPUs spin; no idle driver, latency limits have no effect"),
            word!("brings the idle driver back, and the CPUs sleep again"),
            true,
        ),
        kernel(
            "idle",
            Some("halt"),
            word!("HLT only; no idle driver, latency limits have no effect"),
            word!("brings the idle driver back, with its deeper states"),
            false,
        ),
        kernel(
            "idle",
            Some("nomwait"),
            match is_intel {
                Some(false) => word!("no MWAIT: acpi_idle uses HLT and port reads"),
                _ => word!("no MWAIT: intel_idle does not load, acpi_idle uses HLT and port reads"),
            },
            match is_intel {
                Some(false) => word!("lets acpi_idle use MWAIT where the firmware offers it"),
                _ => word!("lets intel_idle load, with its own table"),
            },
            false,
        ),
        kernel(
            "cpuidle.off",
            Some("1"),
            word!("no idle driver or governor; latency limits have no effect"),
            word!("brings the idle driver back, with its deeper states"),
            false,
        ),
        kernel(
            "nohz",
            Some("off"),
            word!("the tick never stops: every CPU wakes at the tick rate, and ladder outranks menu"),
            word!("lets idle CPUs stop the tick"),
            true,
        ),
        kernel(
            "cpuidle.governor",
            None,
            word!("chooses the idle governor"),
            word!("leaves the choice of the idle governor to the kernel"),
            false,
        ),
        driver(
            "intel_idle.max_cstate",
            "intel_idle",
            word!("limits intel_idle by state index; 0 hands over to acpi_idle"),
            word!("brings the states beyond it back, if the table has any"),
        ),
        driver(
            "intel_idle.states_off",
            "intel_idle",
            word!("registers the states of this mask as disabled"),
            word!("registers these states as the firmware has them"),
        ),
        driver(
            "intel_idle.table",
            "intel_idle",
            word!("replaces the driver's latencies and residencies"),
            word!("brings the driver's own latencies and residencies back"),
        ),
        driver(
            "processor.max_cstate",
            "acpi_idle",
            word!("limits acpi_idle only"),
            word!("brings the states beyond it back, if the table has any"),
        ),
    ]
}

/// The arguments of this boot that decide about idle here, each with its value. Left out is what its driver never reads
/// (rule.processor-max-cstate-ignored, rule.arguments-ignored), and what makes CPUs spin (rule.polling-by-accident).
fn in_force(evidence: &Evidence) -> Vec<(Argument, String)> {
    let facts = &evidence.facts;
    let all = enterable::of(facts);
    let spins_by = all.iter().find_map(|group| match group.spins() {
        Some(Cause::BootArgument(argument)) => Some(*argument),
        _ => None,
    });
    let ignored = ignored(facts);
    let found = arguments(Where::Intel.holds(facts)).into_iter().filter_map(|argument| {
        let value = facts.boot.argument(argument.name)?;
        if ignored.iter().any(|other| other.name == argument.name) {
            return None;
        }
        // intel_idle.max_cstate=0 is read before the driver hands over.
        let is_hand_over = argument.name == "intel_idle.max_cstate" && value == "0";
        let is_read = match (argument.read_by, facts.idle.driver.get()) {
            (Some(by), Some(driver)) => by == driver || is_hand_over,
            _ => true,
        };
        let word = format!("{}={value}", argument.name);
        let is_meant = |wanted| wanted == value || (argument.name == "nohz" && facts.boot.is_nohz_off());
        let is_it = argument.value.is_none_or(is_meant) && is_read && spins_by != Some(&word);
        is_it.then_some((argument, word))
    });
    found.collect()
}

pub(super) struct IdleBootArguments;

impl Rule for IdleBootArguments {
    fn id(&self) -> &'static str {
        "rule.idle-boot-arguments"
    }
    fn question(&self) -> &'static str {
        word!("was the machine booted with an argument that decides about idle?")
    }
    fn takes_for_granted(&self, evidence: &Evidence) -> Vec<Assertion> {
        in_force(evidence).into_iter().map(|(argument, _)| Assertion::ArgumentActs(argument.name.into())).collect()
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        if let Some(gap) = evidence.facts.boot.cmdline.gap() {
            return Answer::gap(gap);
        }
        let found = in_force(evidence);
        let Some((first, _)) = found.first() else {
            return Answer::no(word!(
                "no argument that decides about idle here is on the command line, or another rule reports it"
            ));
        };
        let is_risk = found.iter().any(|(argument, _)| argument.spends);
        let names: Vec<&str> = found.iter().map(|(_, word)| word.as_str()).collect();
        let weight = if is_risk { Weight::Risk } else { Weight::Note };
        let title = if found.len() == 1 {
            say!("Booted with {}: {does}", names.join(" "), does = first.does)
        } else {
            say!("Booted with {}", names.join(" "))
        };
        let text = if is_risk {
            word!("watts when idle, and turbo headroom; not measured")
        } else {
            word!("depends on the argument; not measured")
        };
        let mut finding = Finding::new(self, weight, Confidence::High, title, Cost::unknown(text));
        for (argument, word) in &found {
            finding = finding.on("/proc/cmdline", format!("{word}: {}", argument.does));
        }
        // The others are taken off by hand: another value would be somebody else's intent, and idle= has no "as usual".
        if evidence.facts.boot.is_nohz_off() {
            finding = finding.boot("nohz=on", word!("let idle CPUs stop the tick, as is usual"));
        }
        finding
            .remedy(
                word!("Keep it only if somebody knows why it is there, and take it out where nobody does."),
                found
                    .iter()
                    .map(|(argument, word)| say!("A reboot without {word} {}.", argument.without))
                    .collect::<Vec<_>>()
                    .join(" "),
                word!(
                    "wakewatt inspect idle boot after the reboot; wakewatt measure wakeup; wakewatt compare with the \
                    capture from before"
                ),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx};
    use super::*;

    #[test]
    fn every_spelling_of_no_keeps_the_tick() {
        for value in ["off", "n", "0", "no"] {
            let said = ask(&IdleBootArguments, &(icx() + &format!("//- /proc/cmdline\nro nohz={value}\n")));
            assert!(said.contains(&format!("booted with nohz={value}")), "{said}");
        }
        assert!(ask(&IdleBootArguments, &(icx() + "//- /proc/cmdline\nro nohz=on\n")).starts_with("no"));
    }

    #[test]
    fn arguments() {
        let check = |line: &str| ask(&IdleBootArguments, &format!("//- /proc/cmdline\n{line}\n"));
        assert!(check("ro idle=poll").starts_with("yes risk unknown: booted with idle=poll: idle cpus spin"));
        let both = "intel_idle.max_cstate=1 processor.max_cstate=1";
        assert_eq!(check(both), format!("yes note unknown: booted with {both}"));
        assert!(check("ro quiet idlex=poll nohz=on").starts_with("no"));
        // What no driver reads here, and what another rule reports.
        let acpi_only = icx() + "//- /proc/cmdline\nprocessor.max_cstate=1\n";
        assert!(ask(&IdleBootArguments, &acpi_only).starts_with("no"), "intel_idle does not read it");
        let spins = icx() + "//- /proc/cmdline\nidle=poll\n";
        assert!(ask(&IdleBootArguments, &spins).starts_with("no"), "rule.polling-by-accident reports it");
        let arm = "//- /proc/cpuinfo\nprocessor : 0\nCPU implementer : 0x41\n//- /proc/cmdline\nidle=halt\n";
        assert!(ask(&IdleBootArguments, arm).starts_with("no"), "Arm reads no idle=");
        assert!(ask(&IdleBootArguments, "").starts_with("cannot tell"));
    }
}

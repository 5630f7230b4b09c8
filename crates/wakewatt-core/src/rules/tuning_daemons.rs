//! Do daemons run that turn the same knobs?
//!
//! Two of them undo each other silently (tuned#394, auto-cpufreq#463: docs/knobs/daemons.md), and one of them undoes
//! what is set by hand. "tuned is active" is not enough: the finding says which knobs overlap. Names come from
//! /proc/PID/comm.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use std::collections::BTreeMap;
use wakewatt_words::{say, told, word};

pub(super) struct TuningDaemons;

impl Rule for TuningDaemons {
    fn id(&self) -> &'static str {
        "rule.tuning-daemons"
    }
    fn question(&self) -> &'static str {
        word!("do daemons run that turn the same knobs?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let holders = &evidence.facts.holders;
        match (holders.n_processes.get(), holders.n_processes.gap()) {
            (None, Some(gap)) => return Answer::gap(gap),
            (Some(0), _) => {
                return Answer::cannot_tell(
                    word!("no process is listed"),
                    word!("wakewatt inspect holders on the machine itself"),
                );
            }
            _ => {}
        }
        if holders.daemons.is_empty() {
            return Answer::no(word!("no known daemon that changes power, clock or idle settings runs"));
        }
        let mut by_knob: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for daemon in &holders.daemons {
            for knob in &daemon.overlaps {
                by_knob.entry(knob).or_default().push(&daemon.name);
            }
        }
        // Container runtimes and the kubelet share quotas by design.
        let fights: Vec<String> = by_knob
            .iter()
            .filter(|(knob, names)| names.len() > 1 && **knob != "CPU quotas")
            .map(|(knob, names)| format!("{}: {}", told(knob), names.join(word!(" and "))))
            .collect();
        let names: Vec<&str> = holders.daemons.iter().map(|d| d.name.as_str()).collect();
        let (weight, title) = if fights.is_empty() {
            (Weight::Note, say!("Running, and may change settings behind one's back: {}", names.join(", ")))
        } else {
            (Weight::Risk, say!("Two daemons turn the same knob ({})", fights.join("; ")))
        };
        let cost = Cost::unknown(word!(
            "settings that change by themselves; an experiment may measure the daemon instead of the setting"
        ));
        let mut finding = Finding::new(self, weight, Confidence::High, title, cost);
        for daemon in &holders.daemons {
            finding = finding
                .on(format!("/proc/{}/comm", daemon.pid), format!("{}: {}", daemon.name, daemon.overlaps.join(", ")));
        }
        finding
            .remedy(
                word!(
                    "Make the change in the daemon's own profile, or stop it before setting by hand; of two that turn \
                    the same knob, keep one."
                ),
                word!("Without its daemon a machine keeps the settings of that moment."),
                word!(
                    "wakewatt inspect holders; wakewatt compare two captures taken some minutes apart shows what drifts"
                ),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn one_two_none() {
        let check = |comms: &[&str]| {
            let text: String =
                comms.iter().enumerate().map(|(i, c)| format!("//- /proc/{}/comm\n{c}\n", i + 1)).collect();
            ask(&TuningDaemons, &text)
        };
        assert_eq!(
            check(&["init", "irqbalance"]),
            "yes note unknown: running, and may change settings behind one's back: irqbalance"
        );
        assert!(
            check(&["tuned", "tlp"])
                .starts_with("yes risk unknown: two daemons turn the same knob (epb: tuned and tlp")
        );
        assert!(check(&["init"]).starts_with("no"));
        assert!(ask(&TuningDaemons, "").starts_with("cannot tell"));
    }
}

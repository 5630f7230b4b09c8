//! Does the hypervisor take CPU time from this guest?
//!
//! Steal (`/proc/stat`) is time in which a virtual CPU wanted to run and the host ran something else: it adds to every
//! wake-up and to every tail, and no setting inside the guest removes it. Mean since boot.
//!
//! How much is taken may depend on how the guest idles, and not in the way one expects: on one shared host a guest lost 10.6 % as
//! found and 2.0 % while it polled, in 8 of 8 rounds. So what is said of polling follows the experiment, where it ran.

use super::measured::polling_and_steal;
use super::{Answer, Confidence, Cost, Finding, Rule, Weight, percent};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

pub(super) struct Steal;

impl Rule for Steal {
    fn id(&self) -> &'static str {
        "rule.steal"
    }
    fn question(&self) -> &'static str {
        word!("does the hypervisor take CPU time from this guest?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let load = &evidence.facts.load;
        if let Some(gap) = load.stat.gap() {
            return Answer::gap(gap);
        }
        let Some(ratio) = load.steal_ratio() else {
            return Answer::cannot_tell(
                word!("no CPU time has been counted"),
                word!("wakewatt inspect load a little later"),
            );
        };
        // Of the time it wanted to run, not of all time: an idle guest has nothing to be stolen.
        let total = load.stat.get().map(|s| &s.total);
        let wanted = total.map_or(0, |t| t.busy_ns().saturating_add(t.steal_ns));
        let of_wanted = total.map_or(0.0, |t| t.steal_ns as f64 / wanted.max(1) as f64);
        if of_wanted < 0.01 || ratio < 0.001 {
            return Answer::no(say!(
                "{} of the time the guest wanted to run was stolen (since boot)",
                percent(of_wanted)
            ));
        }
        let weight = if of_wanted >= 0.05 { Weight::Problem } else { Weight::Risk };
        let title =
            say!("The hypervisor took {} of the time this guest wanted to run (since boot)", percent(of_wanted));
        let cost = Cost::predicted_ratio(
            of_wanted,
            say!("{} of CPU time, by the kernel's own counter; latency in bursts", percent(of_wanted)),
        );
        Finding::new(self, weight, Confidence::High, title, cost)
            .on("/proc/stat", say!("steal {} of all time", percent(ratio)))
            .remedy(
                say!(
                    "Only the host can help: fewer guests per CPU, dedicated CPUs, or another instance type. {}",
                    polling_and_steal(evidence)
                ),
                word!("Money, or density."),
                word!("wakewatt inspect load twice and compare the counter; wakewatt measure wakeup for the tail"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, evidence};
    use super::*;
    use crate::samples::experiment::ExperimentRun;
    use crate::samples::side_effect::{SideEffect, Witnessed};

    #[test]
    fn stolen() {
        let check = |stat: &str| ask(&Steal, &format!("//- /proc/stat\ncpu {stat}\n"));
        assert!(check("80 0 0 100 0 0 0 20").starts_with("yes problem predicted: the hypervisor took 20 %"));
        assert!(check("8000 0 0 100 0 0 0 1").starts_with("no"));
        assert!(ask(&Steal, "").starts_with("cannot tell"));
    }

    #[test]
    fn what_is_said_of_polling_is_what_was_measured() {
        let steal = |difference: f64, is_shown| SideEffect {
            what: Witnessed::Steal,
            baseline: "found".into(),
            arm: "poll".into(),
            baseline_value: 0.106,
            arm_value: 0.106 - difference,
            difference,
            difference_low: difference,
            difference_high: difference,
            own_p_value: 0.0078,
            p_value: 0.0156,
            n_pairs: 8,
            is_shown,
        };
        let remedy = |side_effects: Vec<SideEffect>| {
            let mut host = evidence("//- /proc/stat\ncpu 80 0 0 100 0 0 0 20\n");
            host.samples.experiment = Some(ExperimentRun { side_effects, ..ExperimentRun::default() });
            match Steal.check(&host) {
                Answer::Yes(finding) => finding.remedy,
                _ => String::new(),
            }
        };
        let less = remedy(vec![steal(0.086, true)]);
        assert!(
            less.contains("takes less from a guest that polls: steal 10.6 % with found, 2.0 % with poll"),
            "{less}"
        );
        assert!(remedy(vec![steal(-0.086, true)]).contains("Do not poll in this guest: measured here"));
        assert!(remedy(vec![steal(0.086, false)]).contains("is not shown"));
        assert!(remedy(vec![]).contains("differs from host to host"));
    }
}

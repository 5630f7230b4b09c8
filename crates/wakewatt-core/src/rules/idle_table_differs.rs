//! Do the CPUs have different idle tables?
//!
//! Normal on hybrid machines; elsewhere a sign of mixed firmware or of a driver that failed on some CPUs. A tool that
//! reads CPU 0's table and writes it to all (TuneD's `cstate.*`: docs/knobs/daemons.md) is then wrong on the others.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::units::show_ns;
use wakewatt_words::{say, word};

/// A state and its exit latency.
type Claim = (String, Option<u64>);

pub(super) struct IdleTableDiffers;

impl Rule for IdleTableDiffers {
    fn id(&self) -> &'static str {
        "rule.idle-table-differs"
    }
    fn question(&self) -> &'static str {
        word!("do the CPUs have different idle tables?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let idle = &evidence.facts.idle;
        // Names and claims make the table; what somebody disabled is another rule's business.
        let mut kinds: Vec<(CpuSet, Vec<Claim>)> = Vec::new();
        for (cpus, table) in idle.tables() {
            let key: Vec<_> = table.into_iter().map(|r| (r.name, r.exit_latency_ns)).collect();
            match kinds.iter_mut().find(|(_, k)| *k == key) {
                Some((all, _)) => *all = all.union(&cpus),
                None => kinds.push((cpus, key)),
            }
        }
        let without = &idle.cpus_without_states;
        if kinds.is_empty() {
            return Answer::cannot_tell(word!("no idle state is listed"), "wakewatt inspect idle");
        }
        if kinds.len() == 1 && without.is_empty() {
            return Answer::no(say!("all CPUs ({}) have the same table", kinds[0].0));
        }
        let claim = |(name, ns): &Claim| match ns {
            Some(ns) => format!("{name} {}", show_ns(*ns)),
            None => name.clone(),
        };
        let mut words: Vec<String> = kinds
            .iter()
            .map(|(cpus, t)| {
                say!("{} on {cpus}", t.iter().map(claim).collect::<Vec<_>>().join(" "), cpus = cpus.named())
            })
            .collect();
        if !without.is_empty() {
            words.push(say!("none on {without}", without = without.named()));
        }
        let weight = if without.is_empty() { Weight::Note } else { Weight::Risk };
        let title = say!("The CPUs have {} different idle tables", words.len());
        let cost = Cost::unknown(word!(
            "the same work wakes at different speeds on different CPUs; by how much is not measured"
        ));
        let mut finding = Finding::new(self, weight, Confidence::High, title, cost);
        for word in words {
            finding = finding.on("/sys/devices/system/cpu/cpu*/cpuidle/state*/{name,latency}", word);
        }
        finding
            .remedy(
                word!("On a hybrid machine this is normal: give latency-sensitive work to the CPUs of one kind. Elsewhere \
                    compare firmware versions and look in the kernel log for idle driver errors."),
                word!("Pinning work takes freedom from the scheduler."),
                word!("wakewatt measure wakeup on one CPU of each kind"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, icx};
    use super::*;

    #[test]
    fn tables() {
        let other = "//- /sys/devices/system/cpu/cpu1/cpuidle/state3/latency\n220\n";
        assert_eq!(ask(&IdleTableDiffers, &(icx() + other)), "yes note unknown: the cpus have 2 different idle tables");
        let half = icx() + "//- /sys/devices/system/cpu/present\n0-2\n//- /sys/devices/system/cpu/online\n0-2\n";
        assert!(ask(&IdleTableDiffers, &half).starts_with("yes risk"));
        let user = "//- /sys/devices/system/cpu/cpu1/cpuidle/state3/disable\n1\n";
        assert!(ask(&IdleTableDiffers, &(icx() + user)).starts_with("no"), "disabling is another rule's");
        assert!(ask(&IdleTableDiffers, "").starts_with("cannot tell"));
    }
}

//! Do SMT siblings share cores that are often busy?
//!
//! Two busy siblings each get a little more than half a core, which no CPU-use figure shows: 60 % busy CPUs may be full
//! cores. And a sibling that polls slows the other. (In case K0 SMT was off already.) Busy share is a mean since boot.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, percent};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

const LIMIT: f64 = 0.4;

pub(super) struct SmtContention;

impl Rule for SmtContention {
    fn id(&self) -> &'static str {
        "rule.smt-contention"
    }
    fn question(&self) -> &'static str {
        word!("do SMT siblings share cores that are often busy?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let smt = &evidence.facts.topology.is_smt_active;
        match (smt.get(), smt.gap()) {
            (None, Some(gap)) => return Answer::gap(gap),
            (Some(true), _) => {}
            _ => return Answer::no(word!("no core runs two CPUs")),
        }
        let stat = &evidence.facts.load.stat;
        let busy = match (stat.get(), stat.gap()) {
            (Some(stat), _) => stat.total.ratio(stat.total.busy_ns()).unwrap_or(0.0),
            (None, Some(gap)) => return Answer::gap(gap),
            (None, None) => return Answer::no(word!("not known")),
        };
        if busy < LIMIT {
            return Answer::no(say!(
                "SMT is on, and the CPUs were busy {} of the time since boot: siblings seldom meet",
                percent(busy)
            ));
        }
        let cost = Cost::unknown(word!(
            "a core shared by two busy siblings gives each about half to two thirds of its speed, as a rule; not \
                measured"
        ));
        Finding::new(
            self,
            Weight::Note,
            Confidence::Low,
            say!(
                "SMT is on and the CPUs were busy {} of the time \
            since boot: siblings often share a core",
                percent(busy)
            ),
            cost,
        )
        .on("/sys/devices/system/cpu/smt/active", "1")
        .on("/proc/stat", say!("busy {}", percent(busy)))
        .remedy(
            word!("Keep the sibling of a latency-critical CPU free. SMT off (cpu.smt=off) is no remedy for CPUs this busy \
                    before it was compared under the real load; wakewatt tune plan --set cpu.smt=off shows what it \
                    moves."),
            word!("Throughput, when the siblings stay idle; SMT off takes half the CPUs."),
            word!("wakewatt inspect topology load; wakewatt measure wakeup with and without load on the sibling"),
        )
        .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn siblings() {
        let check = |active: u8, stat: &str| {
            ask(
                &SmtContention,
                &format!("//- /sys/devices/system/cpu/smt/active\n{active}\n//- /proc/stat\ncpu {stat}\n"),
            )
        };
        assert!(check(1, "60 0 0 40").starts_with("yes note unknown: smt is on and the cpus were busy 60 %"));
        assert!(check(1, "10 0 0 90").starts_with("no"));
        assert!(check(0, "60 0 0 40").starts_with("no"));
        assert!(ask(&SmtContention, "").starts_with("cannot tell"));
    }
}

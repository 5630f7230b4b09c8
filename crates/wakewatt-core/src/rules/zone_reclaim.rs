//! Does the kernel reclaim local pages before it uses a remote node?
//!
//! `vm.zone_reclaim_mode` above 0 makes an allocation on a full node throw pages away instead of going to the next node
//! (kernel documentation admin-guide/sysctl/vm.rst): stalls that look like a slow disk or CPU. Old kernels set it by
//! themselves on machines with large distances.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

const PATH: &str = "/proc/sys/vm/zone_reclaim_mode";

pub(super) struct ZoneReclaim;

impl Rule for ZoneReclaim {
    fn id(&self) -> &'static str {
        "rule.zone-reclaim"
    }
    fn question(&self) -> &'static str {
        word!("does the kernel reclaim local pages before it uses a remote node?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let mode = &evidence.facts.memory.zone_reclaim_mode;
        match (mode.get(), mode.gap()) {
            (None, Some(gap)) => Answer::gap(gap),
            (Some(mode), _) if *mode > 0 && evidence.facts.memory.nodes.len() != 1 => {
                let cost = Cost::unknown(word!(
                    "stalls while pages are reclaimed on a full node though another has free memory"
                ));
                Finding::new(
                    self,
                    Weight::Risk,
                    Confidence::Medium,
                    say!("zone_reclaim_mode is {mode}: a full node reclaims before it uses another"),
                    cost,
                )
                .on(PATH, mode)
                .remedy(
                    word!("Set vm.zone_reclaim_mode to 0 (sysctl), unless the work is divided by node on purpose."),
                    word!("More remote allocations when a node is full."),
                    word!("wakewatt inspect memory load: memory pressure and remote allocations before and after"),
                )
                .yes()
            }
            _ => Answer::no(word!("zone_reclaim_mode is 0, or there is one node")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn modes() {
        assert!(ask(&ZoneReclaim, &format!("//- {PATH}\n1\n")).starts_with("yes risk"));
        assert!(ask(&ZoneReclaim, &format!("//- {PATH}\n0\n")).starts_with("no"));
        assert!(ask(&ZoneReclaim, "").starts_with("cannot tell"));
    }
}

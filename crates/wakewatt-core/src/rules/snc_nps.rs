//! Is a socket divided into several memory nodes (SNC, NPS)?
//!
//! Sub-NUMA clustering and NPS2/NPS4 show as more nodes with CPUs than packages. Local accesses get faster, and a
//! process that spreads over the socket gets less bandwidth per node: good for bound work, bad for the rest. BIOS only.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;

pub(super) struct SncNps;

impl Rule for SncNps {
    fn id(&self) -> &'static str {
        "rule.snc-nps"
    }
    fn question(&self) -> &'static str {
        "is a socket divided into several memory nodes (SNC, NPS)?"
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let (numa, packages) = (&evidence.facts.memory, evidence.facts.topology.packages());
        if let Some(gap) = numa.online.gap().filter(|_| numa.nodes.is_empty()) {
            return Answer::gap(gap);
        }
        if packages.is_empty() {
            return Answer::cannot_tell("the CPUs' packages are not known", "wakewatt inspect topology memory");
        }
        if let Some(gap) = numa.nodes.iter().find_map(|n| n.cpus.gap()) {
            return Answer::gap(gap);
        }
        let nodes = numa.nodes.iter().filter(|n| n.cpus.get().is_some_and(|c| !c.is_empty())).count();
        if nodes <= packages.len() {
            return Answer::no(format!("{nodes} memory nodes with CPUs on {} packages", packages.len()));
        }
        let cost = Cost::unknown("depends on whether the work is bound to nodes; not measured");
        Finding::new(
            self,
            Weight::Note,
            Confidence::High,
            format!(
                "{nodes} memory nodes on {} packages: the \
            sockets are divided (SNC, NPS)",
                packages.len()
            ),
            cost,
        )
        .on("/sys/devices/system/node/node*/cpulist", format!("{nodes} nodes with CPUs"))
        .on("/sys/devices/system/cpu/cpu*/topology/physical_package_id", format!("{} packages", packages.len()))
        .remedy(
            "Bind work to nodes (numactl --cpunodebind=N --membind=N), or undo the division in the BIOS (SNC or \
                    Cluster-on-Die disabled, NPS1) if the work spreads anyway.",
            "A reboot; local latency rises a little when it is undone.",
            "wakewatt inspect memory topology",
        )
        .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn divided() {
        let check = |package: u8| {
            let (cpu, node) = ("//- /sys/devices/system/cpu", "//- /sys/devices/system/node");
            ask(
                &SncNps,
                &format!(
                    "{cpu}/online\n0-1\n{cpu}/cpu0/topology/physical_package_id\n0\n{cpu}/cpu1/topology/physical_package_id\n{package}\n{node}/online\n0-1\n{node}/node0/cpulist\n0\n{node}/node1/cpulist\n1\n"
                ),
            )
        };
        assert_eq!(check(0), "yes note unknown: 2 memory nodes on 1 packages: the sockets are divided (snc, nps)");
        assert!(check(1).starts_with("no"));
        assert!(ask(&SncNps, "").starts_with("cannot tell"));
    }
}

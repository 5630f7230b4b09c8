//! Have some CPUs no memory of their own?
//!
//! A node with CPUs and without memory is a socket, or a part of one, whose slots are empty or whose modules failed. Every
//! access of its CPUs crosses to another node, however the work is placed, and to bind memory there fails; so this is no
//! matter of placement (rule.random-placement-cost counts nodes that have both). Sources: Documentation/mm/numa.rst
//! ("memoryless nodes"); admin-guide/mm/numaperf.rst.

use super::{Answer, Confidence, Cost, Finding, Rule, Things, Weight, Where};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::facts::numa::{NumaNode, ROOT};
use wakewatt_words::{say, word};

pub(super) struct MemorylessNodes;

impl Rule for MemorylessNodes {
    fn id(&self) -> &'static str {
        "rule.memoryless-nodes"
    }
    fn question(&self) -> &'static str {
        word!("have some CPUs no memory of their own?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let numa = &evidence.facts.memory;
        let has_cpus = |n: &&NumaNode| n.cpus.get().is_some_and(|cpus| !cpus.is_empty());
        let nodes: Vec<&NumaNode> = numa.nodes.iter().filter(has_cpus).collect();
        if nodes.is_empty() {
            return match numa.online.gap().or(numa.nodes.iter().find_map(|n| n.cpus.gap())) {
                Some(gap) => Answer::gap(gap),
                None => Answer::cannot_tell(word!("no memory node is listed"), word!("wakewatt inspect memory")),
            };
        }
        let empty: Vec<&NumaNode> = nodes.iter().filter(|n| numa.has_memory(n) == Some(false)).copied().collect();
        if empty.is_empty() {
            return match nodes.iter().find(|n| numa.has_memory(n).is_none()).and_then(|n| n.total_bytes.gap()) {
                Some(gap) if nodes.len() > 1 => Answer::gap(gap),
                _ => Answer::no(word!("every node with CPUs has memory")),
            };
        }
        let names: Vec<String> = empty.iter().map(|n| say!("node {}", n.id)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let cpus = empty.iter().filter_map(|n| n.cpus.get()).fold(CpuSet::new(), |all, cpus| all.union(cpus));
        let title = say!(
            "No memory belongs to {}: every access of {} crosses to another node",
            Things::Nodes.extent(&names, nodes.len()),
            evidence.facts.cpus.extent(&cpus)
        );
        let cost =
            Cost::unknown(word!("slower memory for all that runs there, and its bandwidth is missing; not measured"));
        let mut finding = Finding::new(self, Weight::Problem, Confidence::High, title, cost);
        for node in &empty {
            let says = node.total_bytes.get().map_or(word!("not in the list").into(), |bytes| say!("{bytes} bytes"));
            let file =
                if node.total_bytes.is_known() { format!("node{}/meminfo", node.id) } else { "has_memory".into() };
            finding = finding.on(format!("{ROOT}/{file}"), says);
        }
        finding
            .remedy(
                word!(
                    "Fit modules there, or look in the BMC's log for modules that failed. Until then keep memory-bound work on \
                     the CPUs of the nodes that have memory."
                ),
                word!("Modules; or the CPUs of these nodes for other work."),
                word!("wakewatt inspect memory dimms"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    fn host(memory: &str) -> String {
        let cpu = "//- /sys/devices/system/cpu";
        format!(
            "{cpu}/present\n0-3\n{cpu}/online\n0-3\n//- {ROOT}/online\n0-1\n//- {ROOT}/node0/cpulist\n0-1\n//- {ROOT}/node1/cpulist\n2-3\n{memory}"
        )
    }

    #[test]
    fn a_socket_with_empty_slots() {
        let size = |n: u32, kb: u32| format!("//- {ROOT}/node{n}/meminfo\nNode {n} MemTotal: {kb} kB\n");
        let half = host(&(size(0, 1 << 20) + &size(1, 0)));
        assert_eq!(
            ask(&MemorylessNodes, &half),
            "yes problem unknown: no memory belongs to node 1 only, of 2 memory nodes: every access of 2 of 4 cpus (2-3) crosses to another node"
        );
        assert!(!ask(&super::super::random_placement_cost::RandomPlacementCost, &half).starts_with("yes"));
        assert!(ask(&MemorylessNodes, &host(&(size(0, 1) + &size(1, 1)))).starts_with("no"));
        let listed = host(&format!("//- {ROOT}/has_memory\n0\n"));
        assert!(ask(&MemorylessNodes, &listed).starts_with("yes problem"));
        assert!(ask(&MemorylessNodes, &host("")).starts_with("cannot tell"));
        assert!(ask(&MemorylessNodes, "").starts_with("cannot tell"));
    }
}

//! Is there memory that no CPU calls its own?
//!
//! A node with memory and without CPUs is memory of another kind: the MCDRAM of Xeon Phi in flat mode, the high-bandwidth
//! memory (HBM) of a Xeon Max, memory behind CXL, or a socket whose CPUs are offline. The kernel places pages near the CPU
//! that touches them first, so nothing lands there unless asked, or when the other nodes are full. HBM and MCDRAM have more
//! bandwidth and no shorter latency; CXL is slower in both. The firmware's distances rank it but do not say which it is;
//! only on Xeon Phi the model does. Sources: Documentation/admin-guide/mm/numaperf.rst; Intel's Xeon Phi optimisation manual.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use crate::facts::numa::{NumaNode, ROOT};
use crate::units::show_bytes;
use wakewatt_words::{say, word};

pub(super) struct MemoryOnlyNodes;

/// Knights Landing and Knights Mill, whose memory in the package is MCDRAM.
const PHI: &[u64] = &[0x57, 0x85];

impl Rule for MemoryOnlyNodes {
    fn id(&self) -> &'static str {
        "rule.memory-only-nodes"
    }
    fn question(&self) -> &'static str {
        word!("is there memory that no CPU calls its own?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let numa = &evidence.facts.memory;
        if numa.nodes.is_empty() {
            return match numa.online.gap() {
                Some(gap) => Answer::gap(gap),
                None => Answer::cannot_tell(word!("no memory node is listed"), word!("wakewatt inspect memory")),
            };
        }
        // A node without memory either is a socket whose slots are empty.
        let has_memory = |n: &&NumaNode| numa.has_memory(n) != Some(false);
        let is_apart = |n: &&NumaNode| n.cpus.get().is_some_and(|cpus| cpus.is_empty());
        let apart: Vec<&NumaNode> = numa.nodes.iter().filter(is_apart).filter(has_memory).collect();
        if apart.is_empty() {
            return match numa.nodes.iter().find_map(|n| n.cpus.gap()) {
                Some(gap) => Answer::gap(gap),
                None => Answer::no(word!("every memory node has CPUs")),
            };
        }
        let is_phi =
            evidence.facts.topology.processor().is_some_and(|p| {
                p.is_intel() && p.family == Some(6) && p.model.is_some_and(|model| PHI.contains(&model))
            });
        let size =
            |n: &NumaNode| n.total_bytes.get().map_or(String::new(), |bytes| format!(" ({})", show_bytes(*bytes)));
        let names: Vec<String> = apart.iter().map(|n| format!("{}{}", n.id, size(n))).collect();
        let what = if is_phi {
            word!("MCDRAM of Xeon Phi in flat mode")
        } else {
            word!("high-bandwidth memory, memory behind CXL, or a socket without running CPUs")
        };
        let nodes = names.join(", ");
        let title = match apart.len() {
            1 => say!("Node {nodes} has memory and no CPUs: {what}"),
            _ => say!("Nodes {nodes} have memory and no CPUs: {what}"),
        };
        let cost = Cost::unknown(if is_phi {
            word!(
                "several times the bandwidth is unused unless work asks for it; its latency is no shorter; not measured"
            )
        } else {
            word!("unused unless asked for, and then faster or slower than the rest: which of the two is not measured")
        });
        let confidence = if is_phi { Confidence::High } else { Confidence::Medium };
        let mut finding = Finding::new(self, Weight::Note, confidence, title, cost);
        for node in &apart {
            finding = finding.on(format!("{ROOT}/node{}/cpulist", node.id), "empty");
            if let Some(distances) = node.distances.get() {
                let text: Vec<String> = distances.iter().map(u64::to_string).collect();
                finding = finding.on(format!("{ROOT}/node{}/distance", node.id), text.join(" "));
            }
        }
        finding
            .remedy(
                if is_phi {
                    word!("Work that streams through memory asks for it (numactl --preferred=N, or --membind=N where it must fit); \
                        latency-critical work is bound to the node of its CPUs.")
                } else {
                    word!("Find out which it is: wakewatt measure memory goes to every node. Work that streams through memory asks \
                        for the fast kind (numactl --preferred=N, or --membind=N where it must fit); latency-critical work is \
                        bound to the node of its CPUs and kept off the slow kind.")
                },
                word!("Bound memory can run out while other nodes are free."),
                word!("wakewatt measure memory; wakewatt inspect memory"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn a_node_of_memory_alone() {
        let node = |n: u32, cpus: &str, kb: u64| {
            format!("//- {ROOT}/node{n}/cpulist\n{cpus}\n//- {ROOT}/node{n}/meminfo\nNode {n} MemTotal: {kb} kB\n")
        };
        let two = |kb| format!("//- {ROOT}/online\n0-1\n") + &node(0, "0-3", 8 << 20) + &node(1, "", kb);
        let info = |model: u32| {
            format!("//- /proc/cpuinfo\nprocessor : 0\nvendor_id : GenuineIntel\ncpu family : 6\nmodel : {model}\n")
        };
        let said = ask(&MemoryOnlyNodes, &(two(16 << 20) + &info(0x57)));
        assert_eq!(said, "yes note unknown: node 1 (16gib) has memory and no cpus: mcdram of xeon phi in flat mode");
        assert!(
            ask(&MemoryOnlyNodes, &(two(16 << 20) + &info(0x8f))).contains("high-bandwidth memory, memory behind cxl")
        );
        assert!(ask(&MemoryOnlyNodes, &two(0)).starts_with("no: every memory node"), "a socket with empty slots");
        assert!(ask(&MemoryOnlyNodes, &(format!("//- {ROOT}/online\n0\n") + &node(0, "0-3", 1))).starts_with("no"));
        assert!(ask(&MemoryOnlyNodes, "").starts_with("cannot tell"));
    }
}

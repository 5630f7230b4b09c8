//! What would careless memory placement cost on this machine?
//!
//! Case K1: two sockets, 50 % remote, about 30 % slower; four sockets, 75 % remote, about 50 % slower; one bound process
//! per node made it 3.6 times faster. Predicted from the firmware's relative distances (`node*/distance`), which are
//! often a flat 10/20: a hint, not a measurement. Where `measure memory` or `doctor` measured the matrix, that decides,
//! and the prediction stands beside it.

use super::{Answer, Confidence, Cost, CostBasis, Finding, Rule, Weight, percent};
use crate::evidence::Evidence;
use crate::units::{show_bytes, three_digits};
use wakewatt_words::{say, word};

pub(super) struct RandomPlacementCost;

impl Rule for RandomPlacementCost {
    fn id(&self) -> &'static str {
        "rule.random-placement-cost"
    }
    fn question(&self) -> &'static str {
        word!("what would careless memory placement cost here?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let numa = &evidence.facts.memory;
        let predicted = numa.random_placement_cost();
        let measured = evidence.samples.memory.as_ref().and_then(|m| m.placement.as_ref());
        // What was measured decides, whether or not the firmware tells distances.
        if let Some(placement) = measured.filter(|p| p.latency_ratio < 1.05) {
            return Answer::no(say!("measured: {}", placement.in_words()));
        }
        let (cost, remote, n_nodes) = match (measured, predicted, numa.random_remote_ratio()) {
            (Some(placement), ..) => (placement.latency_ratio, placement.remote_ratio, placement.n_nodes),
            (None, Some(cost), Some(remote)) => {
                (cost, remote, numa.nodes.iter().filter(|node| numa.is_careless_home(node)).count() as u64)
            }
            _ => {
                return numa.online.gap().map_or_else(
                    || {
                        Answer::cannot_tell(
                            word!("the distances between the memory nodes are not known"),
                            word!("numactl --hardware; wakewatt inspect memory; wakewatt measure memory --part matrix"),
                        )
                    },
                    Answer::gap,
                );
            }
        };
        if measured.is_none() && (n_nodes < 2 || cost < 1.05) {
            return Answer::no(say!(
                "{n_nodes} memory node(s), random placement costs {} times the local distance",
                three_digits(cost)
            ));
        }
        let lost = 1.0 - 1.0 / cost;
        let title = say!("With {n_nodes} memory nodes, random placement makes {} of accesses remote", percent(remote));
        let text = say!(
            "memory accesses take up to {} times the local distance on average ({} of memory-bound speed); computed \
                from the firmware's distances, not measured",
            three_digits(cost),
            percent(lost)
        );
        let (cost_of, confidence) = match measured {
            None => (Cost::predicted_ratio(lost, text), Confidence::Low),
            Some(placement) => {
                let beside = match predicted {
                    Some(cost) => say!("the firmware's distances predict {}x", three_digits(cost)),
                    None => word!("the firmware tells no distances").into(),
                };
                let with = evidence.samples.memory.as_ref().and_then(|m| m.matrix_bytes);
                let with = with.map_or(String::new(), |bytes| say!(" (working set {})", show_bytes(bytes)));
                let text = say!("measured: {}{with}; {beside}", placement.in_words());
                (
                    Cost { basis: CostBasis::Measured, latency_ns: None, throughput_ratio: Some(lost), text },
                    Confidence::High,
                )
            }
        };
        let mut finding = Finding::new(self, Weight::Risk, confidence, title, cost_of);
        for node in &numa.nodes {
            let row: Vec<String> = node.distances.get().into_iter().flatten().map(u64::to_string).collect();
            finding = finding.on(format!("/sys/devices/system/node/node{}/distance", node.id), row.join(" "));
        }
        finding
            .remedy(
                word!(
                    "For memory-bound work, start one copy per node with its CPUs and memory bound: wakewatt run \
                    --per-node -- COMMAND (or numactl --cpunodebind=N --membind=N COMMAND, for each N)."
                ),
                word!("Each copy sees one node's memory and CPUs only; the work must divide."),
                word!("wakewatt inspect memory before and after: the share of remote allocations should stop growing"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;
    use crate::samples::Samples;

    #[test]
    fn two_nodes_one_node_none() {
        let root = "//- /sys/devices/system/node";
        let two = format!(
            "{root}/online\n0-1\n{root}/has_memory\n0-1\n{root}/node0/distance\n10 \
                21\n{root}/node0/cpulist\n0\n{root}/node1/distance\n21 10\n{root}/node1/cpulist\n1\n"
        );
        let said = ask(&RandomPlacementCost, &two);
        assert_eq!(said, "yes risk predicted: with 2 memory nodes, random placement makes 50 % of accesses remote");
        let one =
            format!("{root}/online\n0\n{root}/has_memory\n0\n{root}/node0/distance\n10\n{root}/node0/cpulist\n0\n");
        assert!(ask(&RandomPlacementCost, &one).starts_with("no"));
        assert!(ask(&RandomPlacementCost, "").starts_with("cannot tell"));
    }

    #[test]
    fn a_measured_matrix_decides() {
        use crate::samples::{
            Label,
            memory::{MemorySample, Placement},
        };
        let root = "//- /sys/devices/system/node";
        let text = format!(
            "{root}/online\n0-1\n{root}/has_memory\n0-1\n{root}/node0/distance\n10 \
                21\n{root}/node1/distance\n21 10\n"
        );
        let answer_on = |latency_ratio: f64, text: &str| {
            let placement = Placement { n_nodes: 2, remote_ratio: 0.5, latency_ratio, label: Label::Measured };
            let memory = Some(MemorySample { placement: Some(placement), ..MemorySample::default() });
            RandomPlacementCost.check(&Evidence {
                samples: Samples { memory, ..Samples::default() },
                ..super::super::testing::evidence(text)
            })
        };
        let answer = |latency_ratio: f64| answer_on(latency_ratio, &text);
        let Answer::Yes(finding) = answer(1.25) else { panic!("no finding") };
        assert_eq!((finding.cost.basis, finding.confidence), (CostBasis::Measured, Confidence::High));
        let said = "measured: 1 of 2 accesses remote: 1.25x the latency of bound memory; the firmware's distances predict 1.55x";
        assert_eq!(finding.cost.text, said);
        assert!(matches!(answer(1.01), Answer::No { .. }));
        // Firmware without distances, and no facts at all.
        for text in [format!("{root}/online\n0-1\n{root}/has_memory\n0-1\n"), String::new()] {
            let Answer::Yes(finding) = answer_on(1.25, &text) else { panic!("no finding") };
            assert!(finding.cost.text.ends_with("; the firmware tells no distances"), "{}", finding.cost.text);
        }
    }
}

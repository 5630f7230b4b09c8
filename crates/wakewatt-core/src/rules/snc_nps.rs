//! Is a socket divided into several memory nodes (SNC, NPS)?
//!
//! Sub-NUMA clustering and NPS2/NPS4 show as more nodes with CPUs than packages. Local accesses get faster, and a
//! process that spreads over the socket gets less bandwidth per node: good for bound work, bad for the rest. BIOS only.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

pub(super) struct SncNps;

impl Rule for SncNps {
    fn id(&self) -> &'static str {
        "rule.snc-nps"
    }
    fn question(&self) -> &'static str {
        word!("is a socket divided into several memory nodes (SNC, NPS)?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let (numa, packages) = (&evidence.facts.memory, evidence.facts.topology.packages());
        if let Some(gap) = numa.online.gap().filter(|_| numa.nodes.is_empty()) {
            return Answer::gap(gap);
        }
        if packages.is_empty() {
            return Answer::cannot_tell(
                word!("the CPUs' packages are not known"),
                word!("wakewatt inspect topology memory"),
            );
        }
        if let Some(gap) = numa.nodes.iter().find_map(|n| n.cpus.gap()) {
            return Answer::gap(gap);
        }
        let nodes = numa.nodes.iter().filter(|n| n.cpus.get().is_some_and(|c| !c.is_empty())).count();
        if nodes <= packages.len() {
            return Answer::no(say!("{nodes} memory nodes with CPUs on {} packages", packages.len()));
        }
        let division = division(evidence);
        let cost = Cost::unknown(word!("depends on whether the work is bound to nodes; not measured"));
        Finding::new(
            self,
            Weight::Note,
            Confidence::High,
            say!("{nodes} memory nodes on {} packages: the sockets are divided ({})", packages.len(), division.name),
            cost,
        )
        .on("/sys/devices/system/node/node*/cpulist", say!("{nodes} nodes with CPUs"))
        .on("/sys/devices/system/cpu/cpu*/topology/physical_package_id", say!("{} packages", packages.len()))
        .remedy(
            say!(
                "Bind work to nodes (numactl --cpunodebind=N --membind=N), or undo the division in the BIOS ({}) if the work \
                    spreads anyway.",
                division.undone
            ),
            word!("A reboot; local latency rises a little when it is undone."),
            word!("wakewatt inspect memory topology"),
        )
        .yes()
    }
}

/// How the maker calls it, and how the BIOS undoes it.
struct Division {
    name: &'static str,
    undone: &'static str,
}

/// Haswell and Broadwell servers, which divide a socket in two by the snoop mode Cluster-on-Die.
const CLUSTER_ON_DIE: &[u64] = &[0x3f, 0x4f];

fn division(evidence: &Evidence) -> Division {
    match evidence.facts.topology.processor() {
        Some(p) if p.is_amd() => Division { name: word!("NPS, nodes per socket"), undone: "NPS1" },
        Some(p) if p.is_intel() && p.model.is_some_and(|model| CLUSTER_ON_DIE.contains(&model)) => {
            Division { name: "Cluster-on-Die", undone: word!("another snoop mode than Cluster-on-Die") }
        }
        Some(p) if p.is_intel() => Division { name: word!("SNC, sub-NUMA clustering"), undone: word!("SNC disabled") },
        _ => Division { name: word!("SNC, NPS"), undone: word!("SNC or Cluster-on-Die disabled, NPS1") },
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, recorded};
    use super::*;

    #[test]
    fn each_maker_has_its_word() {
        for (host, word) in [
            (include_str!("../../../../fixtures/hosts/bdwep0.host"), "(cluster-on-die)"),
            (include_str!("../../../../fixtures/hosts/sklep0.host"), "(snc, sub-numa clustering)"),
            (include_str!("../../../../fixtures/hosts/gnr3.host"), "(snc, sub-numa clustering)"),
        ] {
            let said = recorded(&SncNps, host);
            assert!(said.ends_with(word), "{said}");
        }
    }

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

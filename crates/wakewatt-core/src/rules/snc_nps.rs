//! Is a socket divided into several memory nodes, and by what?
//!
//! More nodes with CPUs than packages has several causes, which look alike in a count. A package of several dies has a
//! node a die, by construction (Xeon Platinum 9200, the first EPYC). Sub-NUMA clustering (Intel) and nodes per socket (AMD:
//! NPS2, NPS4 at most) divide a package by a choice in the BIOS: local accesses get faster, and a process that spreads gets less
//! bandwidth per node. "L3 as NUMA domain" (AMD) gives each L3 a node for the scheduler's sake and divides no memory path.
//! Which it is follows from the CPUs of dies, L3 caches and nodes; where dies and L3 caches are the same CPUs, more than four
//! nodes a package are L3 caches, and with four or fewer only the distances could tell: 11 within a quadrant, 12 beyond.
//! `numa=fake=` divides nodes for tests. Sources: Documentation/arch/x86/topology.rst; AMD's tuning guides (NPS, "ACPI SRAT L3
//! Cache as NUMA Domain"); admin-guide/kernel-parameters.txt.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::facts::numa::NumaNode;
use wakewatt_words::{say, word};

pub(super) struct SncNps;

/// Haswell and Broadwell servers, which divide a socket in two by the snoop mode Cluster-on-Die.
const CLUSTER_ON_DIE: &[u64] = &[0x3f, 0x4f];
/// AMD's processors divide a socket in four at most.
const MOST_NPS: usize = 4;
/// The distance between nodes of one quadrant.
const WITHIN_QUADRANT: u64 = 11;

/// What divides a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Division {
    /// It is made of dies, each with memory of its own.
    Dies,
    /// A snoop mode of Intel's older servers.
    ClusterOnDie,
    /// Intel's sub-NUMA clustering.
    Snc,
    /// AMD's nodes per socket.
    Nps,
    /// AMD's L3 caches, shown as nodes.
    L3AsNuma,
    /// AMD's: one of the two above.
    NpsOrL3,
    /// The kernel was told to.
    Fake,
    /// The firmware of another maker.
    Firmware,
}

impl Division {
    fn name(self) -> &'static str {
        match self {
            Division::Dies => word!("each die of a package has its own memory"),
            Division::ClusterOnDie => "Cluster-on-Die",
            Division::Snc => word!("SNC, sub-NUMA clustering"),
            Division::Nps => word!("NPS, nodes per socket"),
            Division::L3AsNuma => word!("each L3 cache is shown as a node (L3 as NUMA domain)"),
            Division::NpsOrL3 => word!("NPS, or L3 caches shown as nodes"),
            Division::Fake => word!("numa=fake on the command line"),
            Division::Firmware => word!("by the firmware"),
        }
    }
    fn confidence(self) -> Confidence {
        match self {
            Division::NpsOrL3 | Division::Firmware => Confidence::Medium,
            _ => Confidence::High,
        }
    }
    fn remedy(self) -> &'static str {
        match self {
            Division::Dies => {
                word!(
                    "Bind work to nodes (numactl --cpunodebind=N --membind=N). No setting makes one node of two dies."
                )
            }
            Division::ClusterOnDie => word!(
                "Bind work to nodes (numactl --cpunodebind=N --membind=N), or choose another snoop mode than \
                 Cluster-on-Die in the BIOS if the work spreads anyway."
            ),
            Division::Snc => word!(
                "Bind work to nodes (numactl --cpunodebind=N --membind=N), or disable SNC in the BIOS if the work \
                 spreads anyway."
            ),
            Division::Nps => word!(
                "Bind work to nodes (numactl --cpunodebind=N --membind=N), or set NPS1 in the BIOS if the work spreads \
                 anyway."
            ),
            Division::L3AsNuma => word!(
                "Bind work that shares data to the CPUs of one node (numactl --cpunodebind=N), so that it shares an L3. The \
                 memory of a socket stays as it is; the BIOS switches it off (ACPI SRAT L3 Cache as NUMA Domain)."
            ),
            Division::NpsOrL3 => word!(
                "Look in the BIOS which it is: NUMA nodes per socket, or ACPI SRAT L3 Cache as NUMA Domain. Until then bind \
                 work to nodes (numactl --cpunodebind=N --membind=N)."
            ),
            Division::Fake => word!("Take numa=fake off the command line and reboot, unless somebody tests with it."),
            Division::Firmware => word!(
                "Bind work to nodes (numactl --cpunodebind=N --membind=N), or look in the firmware's settings for how \
                 memory is divided if the work spreads anyway."
            ),
        }
    }
    fn price(self) -> &'static str {
        match self {
            Division::Dies => word!("Bound memory can run out while another node's is free."),
            Division::L3AsNuma => word!("Less freedom for the scheduler."),
            _ => word!("A reboot; local latency rises a little when it is undone."),
        }
    }
}

/// The nodes that lie in this package, by their CPUs.
fn within<'a>(nodes: &[&'a NumaNode], package: &CpuSet) -> Vec<&'a NumaNode> {
    let is_in = |n: &&&NumaNode| n.cpus.get().is_some_and(|cpus| cpus.minus(package).is_empty());
    nodes.iter().filter(is_in).copied().collect()
}

/// Are the nodes these groups of CPUs, one each?
fn are(nodes: &[&NumaNode], groups: &[&CpuSet]) -> bool {
    nodes.iter().all(|n| n.cpus.get().is_some_and(|cpus| groups.contains(&cpus)))
}

/// The shortest distance between two of these nodes.
fn nearest(nodes: &[&NumaNode], facts: &Snapshot) -> Option<u64> {
    let at = |id: u32| facts.memory.nodes.iter().position(|n| n.id == id);
    let to = |a: &NumaNode, b: &NumaNode| a.distances.get()?.get(at(b.id)?).copied();
    let pairs = nodes.iter().flat_map(|a| nodes.iter().filter(|b| b.id != a.id).map(move |b| (a, b)));
    pairs.filter_map(|(a, b)| to(a, b)).min()
}

fn division(facts: &Snapshot, nodes: &[&NumaNode]) -> Division {
    let processor = facts.topology.processor();
    let (dies, l3) = (facts.topology.dies(), facts.cache.sharing("L3"));
    let dies: Vec<&CpuSet> = dies.iter().collect();
    let is_amd = processor.is_some_and(|p| p.is_amd());
    if facts.boot.argument("numa").is_some_and(|value| value.starts_with("fake")) {
        return Division::Fake;
    }
    // On newer kernels AMD's dies are the CPUs of an L3.
    if is_amd && are(nodes, &l3) {
        return match nearest(nodes, facts) {
            _ if nodes.len() > MOST_NPS => Division::L3AsNuma,
            Some(WITHIN_QUADRANT) => Division::L3AsNuma,
            Some(_) => Division::Nps,
            None => Division::NpsOrL3,
        };
    }
    match processor {
        _ if are(nodes, &dies) && (!is_amd || !l3.is_empty()) => Division::Dies,
        Some(p) if p.is_amd() && nodes.len() > MOST_NPS => Division::L3AsNuma,
        // Without the caches a node may be an L3 as well.
        Some(p) if p.is_amd() && l3.is_empty() => Division::NpsOrL3,
        Some(p) if p.is_amd() => Division::Nps,
        Some(p) if p.is_intel() && p.model.is_some_and(|model| CLUSTER_ON_DIE.contains(&model)) => {
            Division::ClusterOnDie
        }
        Some(p) if p.is_intel() => Division::Snc,
        _ => Division::Firmware,
    }
}

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
        let facts = &evidence.facts;
        let (numa, packages) = (&facts.memory, facts.topology.packages());
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
        let nodes: Vec<&NumaNode> = numa.nodes.iter().filter(|n| n.cpus.get().is_some_and(|c| !c.is_empty())).collect();
        let divided: Vec<Vec<&NumaNode>> =
            packages.iter().map(|(_, cpus)| within(&nodes, cpus)).filter(|nodes| nodes.len() > 1).collect();
        let Some(first) = divided.first() else {
            return Answer::no(say!("{} memory nodes with CPUs on {} packages", nodes.len(), packages.len()));
        };
        let division = division(facts, first);
        let cost = Cost::unknown(word!("depends on whether the work is bound to nodes; not measured"));
        let title = match division {
            Division::Dies => {
                say!("{} memory nodes on {} packages: {}", nodes.len(), packages.len(), division.name())
            }
            _ => say!(
                "{} memory nodes on {} packages: the sockets are divided ({})",
                nodes.len(),
                packages.len(),
                division.name()
            ),
        };
        let mut finding = Finding::new(self, Weight::Note, division.confidence(), title, cost)
            .on("/sys/devices/system/node/node*/cpulist", say!("{} nodes with CPUs", nodes.len()))
            .on("/sys/devices/system/cpu/cpu*/topology/physical_package_id", say!("{} packages", packages.len()));
        let (n_dies, n_l3) = (facts.topology.dies().len(), facts.cache.sharing("L3").len());
        if n_dies > 0 {
            finding = finding.on("/sys/devices/system/cpu/cpu*/topology/die_cpus_list", say!("{n_dies} dies"));
        }
        if n_l3 > 0 {
            finding = finding.on("/sys/devices/system/cpu/cpu*/cache/index3/shared_cpu_list", say!("{n_l3} L3 caches"));
        }
        finding.remedy(division.remedy(), division.price(), word!("wakewatt inspect memory topology")).yes()
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
            (include_str!("../../../../fixtures/edited-hosts/clxap4.host"), "each die of a package has its own memory"),
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
        assert_eq!(
            check(0),
            "yes note unknown: 2 memory nodes on 1 packages: the sockets are divided (by the firmware)"
        );
        assert!(check(1).starts_with("no"));
        assert!(ask(&SncNps, "").starts_with("cannot tell"));
    }

    /// An EPYC package of so many CPUs, with a node for so many of them and an L3 for so many, and distances in the package.
    fn epyc(n_cpus: u32, per_node: u32, per_l3: u32, distance: Option<u32>) -> String {
        let (cpu, node) = ("//- /sys/devices/system/cpu", "//- /sys/devices/system/node");
        let range = |first: u32, n: u32| format!("{first}-{}", first + n - 1);
        let mut text = format!("{cpu}/present\n0-{0}\n{cpu}/online\n0-{0}\n//- /proc/cpuinfo\n", n_cpus - 1);
        for n in 0..n_cpus {
            text += &format!("processor : {n}\nvendor_id : AuthenticAMD\ncpu family : 25\nmodel : 1\n\n");
        }
        for n in 0..n_cpus {
            let (at, l3) = (format!("{cpu}/cpu{n}"), n / per_l3 * per_l3);
            text += &format!("{at}/topology/physical_package_id\n0\n{at}/cache/index3/level\n3\n");
            text +=
                &format!("{at}/cache/index3/type\nUnified\n{at}/cache/index3/shared_cpu_list\n{}\n", range(l3, per_l3));
        }
        let n_nodes = n_cpus / per_node;
        text += &format!("{node}/online\n0-{}\n", n_nodes - 1);
        for n in 0..n_nodes {
            text += &format!("{node}/node{n}/cpulist\n{}\n", range(n * per_node, per_node));
            if let Some(distance) = distance {
                let row: Vec<String> =
                    (0..n_nodes).map(|to| if to == n { "10".into() } else { distance.to_string() }).collect();
                text += &format!("{node}/node{n}/distance\n{}\n", row.join(" "));
            }
        }
        text
    }

    #[test]
    fn nodes_of_an_epyc_are_quarters_or_caches() {
        let ends = |text: String, word: &str| {
            let said = ask(&SncNps, &text);
            assert!(said.ends_with(word), "{said}");
        };
        ends(epyc(16, 2, 2, None), "(each l3 cache is shown as a node (l3 as numa domain))");
        ends(epyc(16, 4, 2, None), "(nps, nodes per socket)");
        ends(epyc(8, 2, 2, Some(12)), "(nps, nodes per socket)");
        ends(epyc(8, 2, 2, Some(11)), "(each l3 cache is shown as a node (l3 as numa domain))");
        ends(epyc(8, 2, 2, None), "(nps, or l3 caches shown as nodes)");
        assert!(ask(&SncNps, &epyc(8, 8, 2, None)).starts_with("no: 1 memory nodes"));
        ends(epyc(8, 4, 2, None) + "//- /proc/cmdline\nro numa=fake=2\n", "(numa=fake on the command line)");
    }
}

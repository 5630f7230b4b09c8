//! Memory nodes: how many there are, how far apart, who allocated where, and what careless placement would cost.
//!
//! `/sys/devices/system/node/*` (Documentation/ABI/stable/sysfs-devices-node, admin-guide/numastat.rst). Distances come
//! from the firmware's SLIT and are relative, 10 = local; firmware often writes a flat 10/20, so the predicted cost is
//! a lower bound in quality, not a measurement. `numastat` counts allocations since boot: `local_node` were made by a
//! process running on that node, `other_node` by one running elsewhere. With sub-NUMA clustering (SNC, NPS) a socket
//! shows as several nodes with distances of 11 or 12.

use super::cpuinfo::UNTOLD;
use super::{Cpus, Domain};
use crate::cpuset::CpuSet;
use crate::fact::{Fact, Gap, fact, parse};
use crate::sheet::{Cell, Sheet};
use crate::source::{ErrorKind, ReadError, Source};
use serde::Serialize;
use wakewatt_words::{say, word};

/// The folder of everything per node.
pub const ROOT: &str = "/sys/devices/system/node";

/// Memory nodes and the policies that move memory between them.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Numa {
    /// Nodes the kernel is prepared for.
    pub possible: Fact<CpuSet>,
    /// The nodes in use.
    pub online: Fact<CpuSet>,
    /// Nodes that have CPUs.
    pub has_cpu: Fact<CpuSet>,
    /// Nodes that have memory.
    pub has_memory: Fact<CpuSet>,
    /// In order of their number.
    pub nodes: Vec<NumaNode>,
    /// always, madvise or never.
    pub transparent_hugepages: Fact<String>,
    /// Automatic NUMA balancing: 0 off, bit 0 balancing, bit 1 memory tiering.
    pub balancing_mode: Fact<u64>,
    /// Reclaim local pages before going remote; not 0 can cost much.
    pub zone_reclaim_mode: Fact<u64>,
}

/// A memory node.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NumaNode {
    /// Number of the node.
    pub id: u32,
    /// Its CPUs; empty for a node of memory alone.
    pub cpus: Fact<CpuSet>,
    /// Relative distances to the online nodes, in order; 10 is local.
    pub distances: Fact<Vec<u64>>,
    /// Memory of the node.
    pub total_bytes: Fact<u64>,
    /// Memory of the node that is free.
    pub free_bytes: Fact<u64>,
    /// Pages allocated here since boot.
    pub allocations: Fact<NumaAllocations>,
}

/// `numastat` of one node, in pages since boot; a counter this kernel lacks is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NumaAllocations {
    /// Wanted here and got here.
    pub n_hit: Option<u64>,
    /// Got here though another node was preferred.
    pub n_miss: Option<u64>,
    /// Wanted here, got elsewhere.
    pub n_foreign: Option<u64>,
    /// Pages that were to be interleaved onto this node and were.
    pub n_interleave_hit: Option<u64>,
    /// By a process running on this node.
    pub n_local: Option<u64>,
    /// By a process running on another node.
    pub n_other: Option<u64>,
}

impl NumaAllocations {
    /// The share of this node's pages that were allocated by processes running on other nodes.
    pub fn remote_ratio(&self) -> Option<f64> {
        let (local, other) = (self.n_local? as f64, self.n_other? as f64);
        (local + other > 0.0).then(|| other / (local + other))
    }
}

impl Numa {
    /// Relative distances, row = from, column = to; none unless every node tells and the table is square.
    pub fn distance_matrix(&self) -> Option<Vec<Vec<u64>>> {
        let rows: Option<Vec<Vec<u64>>> = self.nodes.iter().map(|n| n.distances.get().cloned()).collect();
        let rows = rows?;
        (!rows.is_empty() && rows.iter().all(|r| r.len() == rows.len() && !r.contains(&0))).then_some(rows)
    }

    /// How many times slower a memory access is, on average, when pages lie on any node at random instead of the
    /// local one: the mean, over nodes with CPUs and memory, of distance to each of them over the local distance.
    /// Predicted from the firmware's distances; 1.0 on a machine of one such node.
    pub fn random_placement_cost(&self) -> Option<f64> {
        let matrix = self.distance_matrix()?;
        let has_cpus = |n: &NumaNode| n.cpus.get().is_none_or(|c| !c.is_empty());
        let targets: Vec<usize> = (0..matrix.len()).filter(|i| self.is_careless_home(&self.nodes[*i])).collect();
        let mut ratios = Vec::new();
        for (from, row) in matrix.iter().enumerate().filter(|(i, _)| has_cpus(&self.nodes[*i])) {
            ratios.extend(targets.iter().map(|to| row[*to] as f64 / row[from] as f64));
        }
        (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64)
    }

    /// Does memory of this node get used by work that asks for none? It has memory and CPUs, as far as is known: the kernel
    /// takes pages near the CPU, so a node without CPUs (MCDRAM, HBM, CXL) is used when asked for, or when others are full.
    pub fn is_careless_home(&self, node: &NumaNode) -> bool {
        node.cpus.get().is_none_or(|cpus| !cpus.is_empty()) && self.has_memory(node) != Some(false)
    }

    /// Has a node memory? None where neither its size nor the list of nodes with memory is known.
    pub fn has_memory(&self, node: &NumaNode) -> Option<bool> {
        let listed = || self.has_memory.get().map(|set| set.contains(node.id));
        node.total_bytes.get().map(|bytes| *bytes > 0).or_else(listed)
    }

    /// The share of accesses that would be remote with random placement: 1 - 1/nodes with memory and CPUs, and all of them
    /// for CPUs whose node has no memory.
    pub fn random_remote_ratio(&self) -> Option<f64> {
        if self.nodes.is_empty() {
            let n = self.has_memory.get().or(self.online.get())?.len();
            return (n > 0).then(|| 1.0 - 1.0 / n as f64);
        }
        let homes = self.nodes.iter().filter(|node| self.is_careless_home(node)).count() as f64;
        let has_cpus = |node: &&NumaNode| node.cpus.get().is_none_or(|cpus| !cpus.is_empty());
        let without = self.nodes.iter().filter(has_cpus).filter(|n| !self.is_careless_home(n)).count() as f64;
        (homes > 0.0).then(|| (homes - 1.0 + without) / (homes + without))
    }

    /// The node of a CPU.
    pub fn node_of(&self, cpu: crate::units::Cpu) -> Option<u32> {
        self.nodes.iter().find(|n| n.cpus.get().is_some_and(|set| set.contains(cpu))).map(|n| n.id)
    }
}

impl Domain for Numa {
    const TITLE: &'static str = "Memory nodes (NUMA)";
    const HELP: &'static str = "memory nodes, distances, remote allocations, huge pages, automatic balancing";

    fn read(src: &dyn Source, _: &Cpus) -> Numa {
        let list = |name: &str| fact(src, &format!("{ROOT}/{name}"), parse::cpus);
        let online = list("online");
        let ids = online.get().filter(|set| !set.is_empty()).cloned().unwrap_or_else(|| {
            let names = src.list(ROOT).unwrap_or_default();
            names.iter().filter_map(|n| n.strip_prefix("node")?.parse().ok()).filter(|n| *n < 65536).collect()
        });
        Numa {
            possible: list("possible"),
            has_cpu: list("has_cpu"),
            has_memory: list("has_memory"),
            nodes: ids.iter().map(|id| read_node(src, id)).collect(),
            transparent_hugepages: fact(src, "/sys/kernel/mm/transparent_hugepage/enabled", parse::chosen),
            balancing_mode: fact(src, "/proc/sys/kernel/numa_balancing", parse::number),
            zone_reclaim_mode: fact(src, "/proc/sys/vm/zone_reclaim_mode", parse::number),
            online,
        }
    }

    fn show(&self, sheet: &mut Sheet) {
        sheet.fact("memory.nodes", word!("nodes"), &self.online, |v| Cell::Count(v.len() as u64));
        if let Some(cost) = self.random_placement_cost() {
            let text = say!("{}x the local distance", crate::units::three_digits(cost));
            sheet.say("memory.random_placement_cost", word!("random placement (predicted)"), Cell::Text(text));
        }
        for node in &self.nodes {
            let id = |what: &str| format!("memory.node{}.{what}", node.id);
            let label = |what: &str| format!("node {} {what}", node.id);
            sheet.fact(id("cpus"), label(word!("CPUs")), &node.cpus, |v| Cell::text(v));
            sheet.fact(id("distances"), label(word!("distances")), &node.distances, |v| {
                Cell::Text(v.iter().map(u64::to_string).collect::<Vec<_>>().join(" "))
            });
            sheet.fact(id("total"), label(word!("memory")), &node.total_bytes, |v| Cell::Bytes(*v));
            sheet.fact(id("free"), label(word!("memory free")), &node.free_bytes, |v| Cell::Bytes(*v));
            if let Some(row) = sheet.rows.last_mut() {
                row.is_counter = true;
            }
            match node.allocations.get() {
                None => sheet
                    .fact(id("remote"), label(word!("remote allocations")), &node.allocations, |_| Cell::Ratio(0.0)),
                Some(known) => {
                    if let Some(ratio) = known.remote_ratio() {
                        sheet.say(id("remote"), label(word!("remote allocations")), Cell::Ratio(ratio));
                    }
                }
            }
        }
        sheet.fact("memory.thp", word!("transparent huge pages"), &self.transparent_hugepages, |v| Cell::text(v));
        sheet.fact("memory.balancing", word!("automatic NUMA balancing"), &self.balancing_mode, |v| {
            Cell::text(match v {
                0 => "off".to_string(),
                1 => "on".to_string(),
                2 => "tiering".to_string(),
                3 => "on, tiering".to_string(),
                other => other.to_string(),
            })
        });
        sheet.fact("memory.zone_reclaim", word!("zone reclaim mode"), &self.zone_reclaim_mode, |v| Cell::Count(*v));
    }
}

fn read_node(src: &dyn Source, id: u32) -> NumaNode {
    let path = |file: &str| format!("{ROOT}/node{id}/{file}");
    let memory = |key: &'static str| {
        let found = fact(src, &path("meminfo"), |text| match src.is_imported() && !text.contains(key) {
            true => Ok(None),
            false => meminfo_bytes(text, key).map(Some),
        });
        match found {
            Fact::Known(Some(bytes)) => Fact::Known(bytes),
            // A text told some of this file.
            Fact::Known(None) => {
                Fact::Gap(Gap::from_read(&path("meminfo"), &ReadError::new(ErrorKind::NotRecorded, UNTOLD)))
            }
            Fact::Gap(gap) => Fact::Gap(gap),
        }
    };
    NumaNode {
        id,
        cpus: fact(src, &path("cpulist"), parse::cpus),
        distances: fact(src, &path("distance"), |text| {
            let row: Result<Vec<u64>, String> = text.split_whitespace().map(parse::number).collect();
            row.and_then(|row| if row.is_empty() { Err("empty".into()) } else { Ok(row) })
        }),
        total_bytes: memory("MemTotal:"),
        free_bytes: memory("MemFree:"),
        allocations: fact(src, &path("numastat"), |text| {
            let all = parse::counters(text)?;
            let n = |key: &str| all.get(key).copied();
            Ok(NumaAllocations {
                n_hit: n("numa_hit"),
                n_miss: n("numa_miss"),
                n_foreign: n("numa_foreign"),
                n_interleave_hit: n("interleave_hit"),
                n_local: n("local_node"),
                n_other: n("other_node"),
            })
        }),
    }
}

/// `Node 0 MemTotal:       4028412 kB`.
fn meminfo_bytes(text: &str, key: &str) -> Result<u64, String> {
    let line = text.lines().find_map(|line| line.split_once(key)).ok_or_else(|| format!("no line {key}"))?;
    let kib = line.1.split_whitespace().next().unwrap_or_default();
    parse::number(kib)?.checked_mul(1024).ok_or_else(|| "too many kilobytes".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Tree;

    fn read(text: &str) -> Numa {
        let tree = Tree::from_text(text);
        Numa::read(&tree, &Cpus::read(&tree))
    }

    #[test]
    fn random_placement_on_four_sockets_costs_what_the_distances_say() {
        let mut text = "//- /sys/devices/system/node/online\n0-3\n".to_string();
        for (id, row) in ["10 18 18 18", "18 10 18 18", "18 18 10 18", "18 18 18 10"].iter().enumerate() {
            text += &format!("//- {ROOT}/node{id}/cpulist\n{id}\n//- {ROOT}/node{id}/distance\n{row}\n");
        }
        text += "//- /sys/devices/system/node/node1/meminfo\nNode 1 MemTotal:  2048 kB\nNode 1 MemFree: 1024 kB\n";
        text += "//- /sys/devices/system/node/node1/numastat\nnuma_hit 9\nlocal_node 25\nother_node 75\n";
        let numa = read(&text);
        assert!((numa.random_placement_cost().unwrap() - 1.6).abs() < 1e-9);
        assert_eq!(numa.random_remote_ratio(), Some(0.75));
        assert_eq!(numa.nodes[1].total_bytes.get(), Some(&(2 << 20)));
        assert_eq!(numa.nodes[1].allocations.get().unwrap().remote_ratio(), Some(0.75));
        assert_eq!(numa.nodes[1].allocations.get().unwrap().n_miss, None, "a counter not shown is not 0");
        assert_eq!(numa.node_of(3), Some(3));
    }

    #[test]
    fn a_recording_of_cpu_lists_alone_predicts_nothing() {
        let numa = read("//- /sys/devices/system/node/online\n0\n//- /sys/devices/system/node/node0/cpulist\n0-3\n");
        assert_eq!((numa.nodes.len(), numa.random_placement_cost()), (1, None));
        assert!(numa.nodes[0].total_bytes.gap().is_some());
    }

    #[test]
    fn a_ragged_distance_table_is_not_a_matrix() {
        let numa = read(
            "//- /sys/devices/system/node/online\n0-1\n//- /sys/devices/system/node/node0/distance\n10 20 30\n
             //- /sys/devices/system/node/node1/distance\n20 10\n",
        );
        assert_eq!(numa.distance_matrix(), None);
        assert!(read("").nodes.is_empty());
    }
}

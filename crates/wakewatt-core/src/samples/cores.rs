//! How long a cache line takes from one CPU to another: what a lock, a queue or a wake-up between two cores starts with.
//!
//! One number per ordered pair of CPUs: half a round trip of a line that both write in turn. The first CPU of the pair
//! leads, and the line lies on its memory node, so the two directions of a pair differ where the home of the line
//! matters. The best batch says what the hardware can do; the median with its interval says what it did.

use super::{Scheduling, Window};
use crate::covers::Covers;
use crate::cpuset::CpuSet;
use crate::facts::cache::Caches;
use crate::facts::topology::Topology;
use crate::units::Cpu;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How near two CPUs are, by what the machine says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Nearness {
    /// SMT siblings: one core.
    SameCore,
    /// They share the last-level cache.
    SameCache,
    /// One package, different last-level caches (or cache sharing unknown).
    SamePackage,
    /// The two CPUs lie in different packages (sockets).
    OtherPackage,
    /// The machine does not say.
    Unknown,
}

impl Nearness {
    /// All, nearest first.
    pub const ALL: [Nearness; 5] =
        [Nearness::SameCore, Nearness::SameCache, Nearness::SamePackage, Nearness::OtherPackage, Nearness::Unknown];

    /// For tables.
    pub fn words(self) -> &'static str {
        match self {
            Nearness::SameCore => "SMT siblings",
            Nearness::SameCache => "same last-level cache",
            Nearness::SamePackage => "same package",
            Nearness::OtherPackage => "other package",
            Nearness::Unknown => "not known",
        }
    }
}

/// Who shares what, prepared once for many pairs.
#[derive(Clone, Debug, Default)]
pub struct Neighbourhood {
    cores: BTreeMap<Cpu, usize>,
    caches: BTreeMap<Cpu, CpuSet>,
    packages: BTreeMap<Cpu, u32>,
}

impl Neighbourhood {
    /// From the facts, for these CPUs.
    pub fn of(topology: &Topology, caches: &Caches, cpus: &CpuSet) -> Neighbourhood {
        let cores = topology.cores();
        let numbered = cores.iter().enumerate().flat_map(|(at, core)| core.iter().map(move |cpu| (cpu, at)));
        Neighbourhood {
            cores: numbered.collect(),
            caches: cpus.iter().filter_map(|cpu| Some((cpu, caches.last_level_of(cpu)?.clone()))).collect(),
            packages: topology
                .packages()
                .into_iter()
                .flat_map(|(id, set)| set.iter().map(|c| (c, id)).collect::<Vec<_>>())
                .collect(),
        }
    }

    /// How near two different CPUs are.
    pub fn nearness(&self, a: Cpu, b: Cpu) -> Nearness {
        let same = |x: Option<usize>, y: Option<usize>| x.is_some() && x == y;
        if same(self.cores.get(&a).copied(), self.cores.get(&b).copied()) {
            return Nearness::SameCore;
        }
        if self.caches.get(&a).is_some_and(|shared| shared.contains(b)) {
            return Nearness::SameCache;
        }
        match (self.packages.get(&a), self.packages.get(&b)) {
            (Some(x), Some(y)) if x == y => Nearness::SamePackage,
            (Some(_), Some(_)) => Nearness::OtherPackage,
            _ => Nearness::Unknown,
        }
    }

    /// The group a CPU is shown in where there are too many for one column each: its last-level cache, else its package.
    pub fn group(&self, cpu: Cpu) -> String {
        match (self.caches.get(&cpu), self.packages.get(&cpu)) {
            (Some(shared), _) => shared.to_string(),
            (None, Some(package)) => format!("package {package}"),
            (None, None) => cpu.to_string(),
        }
    }
}

/// One ordered pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HandOver {
    /// The CPU that leads; the line lies on its node.
    pub from_cpu: u32,
    /// The CPU that follows.
    pub to_cpu: u32,
    /// What the two CPUs share.
    pub nearness: Nearness,
    /// The best batch: time of one hand-over, one way.
    pub best_ns: f64,
    /// One hand-over (half a round trip) in the median batch.
    pub median_ns: f64,
    /// Lower end of the median's 95 % interval; of fewer than six batches the least.
    pub low_ns: f64,
    /// Upper end of the median's 95 % interval; of fewer than six batches the greatest.
    pub high_ns: f64,
    /// What that interval covers: the batches of one measurement.
    #[serde(default)]
    pub covers: Covers,
    /// How many batches of round trips were timed.
    pub n_batches: u32,
    /// The memory node the line lay on; none where the kernel does not say.
    pub line_node: Option<u32>,
}

/// All pairs of one nearness.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NearnessSummary {
    /// What the CPUs of these pairs share.
    pub nearness: Nearness,
    /// How many ordered pairs of this class were measured.
    pub n_pairs: u64,
    /// How many ordered pairs of this class the machine has.
    pub n_pairs_all: u64,
    /// Median of the pairs' medians.
    pub median_ns: f64,
    /// The median hand-over of the fastest pair.
    pub least_ns: f64,
    /// The median hand-over of the slowest pair.
    pub most_ns: f64,
}

/// How long a cache line takes between every two CPUs that were measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CoresSample {
    /// The CPUs whose pairs were measured.
    pub cpus: CpuSet,
    /// Ordered pairs, by first CPU then second.
    pub pairs: Vec<HandOver>,
    /// The classes, nearest first.
    pub by_nearness: Vec<NearnessSummary>,
    /// Hand-overs in a batch; a batch is timed as a whole.
    pub hand_overs_per_batch: u32,
    /// Seed of the order in which pairs were measured, and of the choice where not all were.
    pub seed: Option<u64>,
    /// How the threads were scheduled.
    pub scheduling: Scheduling,
    /// From when to when it was measured.
    pub window: Window,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Cpus, Domain};
    use crate::source::Tree;

    #[test]
    fn nearness_follows_cores_caches_and_packages() {
        let root = "/sys/devices/system/cpu";
        let mut text = format!("//- {root}/online\n0-5\n//- {root}/present\n0-5\n");
        // CPUs 0 and 1 are siblings, 2 shares their cache, 3 is in the same package, 4 elsewhere, 5 says nothing.
        for (cpu, siblings, package, shared) in
            [(0, "0-1", 0, "0-2"), (1, "0-1", 0, "0-2"), (2, "2", 0, "0-2"), (3, "3", 0, "3"), (4, "4", 1, "4")]
        {
            text += &format!(
                "//- {root}/cpu{cpu}/topology/core_cpus_list\n{siblings}\n//- {root}/cpu{cpu}/topology/physical_package_id\n{package}\n"
            );
            text += &format!(
                "//- {root}/cpu{cpu}/cache/index3/level\n3\n//- {root}/cpu{cpu}/cache/index3/type\nUnified\n//- {root}/cpu{cpu}/cache/index3/shared_cpu_list\n{shared}\n"
            );
        }
        let tree = Tree::from_text(&text);
        let cpus = Cpus::read(&tree);
        let all = CpuSet::parse("0-5").unwrap();
        let near = Neighbourhood::of(&Topology::read(&tree, &cpus), &Caches::read(&tree, &cpus), &all);
        let to: Vec<Nearness> = (1..6).map(|cpu| near.nearness(0, cpu)).collect();
        assert_eq!(to, Nearness::ALL);
        assert_eq!(near.group(1), "0-2");
    }
}

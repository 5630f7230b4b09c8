//! What nobody has chosen: the CPUs to measure on (those this process may use, woken from another core where there is one),
//! and a seed.

use std::time::SystemTime;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::topology::Topology;
use wakewatt_core::units::Cpu;

/// The CPU to wake `cpu` from: another core, or an SMT sibling (which shares the core's idle state) as a last resort.
pub fn partner(topology: &Topology, allowed: &CpuSet, cpu: Cpu) -> Option<Cpu> {
    let siblings = topology.siblings_of(cpu).unwrap_or_default();
    let others = || allowed.iter().filter(|c| *c != cpu);
    others().find(|c| !siblings.contains(*c)).or_else(|| others().next())
}

/// The CPU an experiment wakes: the last one allowed, since the first ones carry interrupts and housekeeping.
pub fn sleeper(allowed: &CpuSet) -> Option<Cpu> {
    allowed.iter().last()
}

/// At most `n` CPUs, evenly spread.
pub fn spread(cpus: &CpuSet, n: usize) -> CpuSet {
    let all: Vec<Cpu> = cpus.iter().collect();
    if all.len() <= n { cpus.clone() } else { (0..n).map(|i| all[i * all.len() / n]).collect() }
}

/// A seed nobody chose; it is recorded with what it ordered.
pub fn seed_of_now() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(1, |d| u64::from(d.subsec_nanos()) ^ d.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::facts::{Cpus, Domain};
    use wakewatt_core::source::Tree;

    #[test]
    fn an_smt_sibling_is_the_last_resort() {
        let t = "/sys/devices/system/cpu";
        let text: String = [(0, "0,2"), (1, "1,3"), (2, "0,2"), (3, "1,3")]
            .map(|(cpu, siblings)| format!("//- {t}/cpu{cpu}/topology/thread_siblings_list\n{siblings}\n"))
            .concat();
        let tree = Tree::from_text(&format!("//- {t}/online\n0-3\n//- {t}/present\n0-3\n{text}"));
        let topology = Topology::read(&tree, &Cpus::read(&tree));
        let set = |s: &str| CpuSet::parse(s).unwrap();
        assert_eq!(partner(&topology, &set("0-3"), 0), Some(1));
        assert_eq!(partner(&topology, &set("0,2"), 0), Some(2));
        assert_eq!(partner(&topology, &set("0"), 0), None);
        assert_eq!(spread(&set("0-99"), 4).to_string(), "0,25,50,75");
        assert_eq!(sleeper(&set("0-3")), Some(3));
    }
}

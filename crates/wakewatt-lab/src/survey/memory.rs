//! Memory, in a process of its own: whole, or the short look of `doctor`.

use crate::bench::BenchError;
use crate::bench::memory::{MemorySpec, Nodes, memory_apart};
use crate::context::Lab;
use crate::pick;
use std::ffi::OsString;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::{Cpus, Domain, numa::Numa};
use wakewatt_core::samples::memory::MemorySample;
use wakewatt_core::source::Source;

/// The hidden command that measures for whoever started it.
const WORKER: &str = "memory-worker";

/// Measures by this plan.
pub fn memory(lab: Lab<'_>, spec: &MemorySpec) -> Result<MemorySample, BenchError> {
    memory_apart(&program()?, spec, lab.stop, &|share, what| lab.tell.progress(share, what))
}

/// A short look.
pub fn memory_as_found(lab: Lab<'_>, allowed: &CpuSet) -> Result<MemorySample, BenchError> {
    let cpu = pick::sleeper(allowed).unwrap_or(0);
    let spec = MemorySpec::short(cpu, allowed.clone(), nodes_of(lab.src, allowed));
    memory_apart(&program()?, &spec, lab.stop, &|_, _| ())
}

fn program() -> Result<Vec<OsString>, BenchError> {
    let program = std::env::current_exe();
    let program = program.map_err(|e| BenchError::Unavailable(format!("cannot find this program: {e}")))?;
    Ok(vec![program.into(), WORKER.into()])
}

/// Nodes with the CPUs of them that may be used; one node holding everything where the kernel has no NUMA.
pub fn nodes_of(src: &dyn Source, allowed: &CpuSet) -> Nodes {
    let numa = Numa::read(src, &Cpus::read(src));
    let with_cpus: Vec<(u32, CpuSet)> = numa
        .nodes
        .iter()
        .filter_map(|n| Some((n.id, n.cpus.get()?.and(allowed))))
        .filter(|(_, cpus)| !cpus.is_empty())
        .collect();
    if with_cpus.is_empty() {
        return Nodes { with_cpus: vec![(0, allowed.clone())], with_memory: vec![0] };
    }
    let has_memory = |id: u32| numa.has_memory.get().is_none_or(|set| set.contains(id));
    let with_memory = numa.nodes.iter().map(|n| n.id).filter(|id| has_memory(*id)).collect();
    Nodes { with_cpus, with_memory }
}

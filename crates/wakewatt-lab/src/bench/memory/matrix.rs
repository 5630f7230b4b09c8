//! Every node's CPUs with every node's memory: latency, and load bandwidth of one CPU and of all.
//!
//! Bound with mbind and looked at with move_pages, because a binding that the kernel did not follow would make all cells
//! equal and nobody would notice. One cell on a machine of one node.

use super::bandwidth::{BandwidthSpec, bandwidth};
use super::enough::held_bytes;
use super::latency::{MemoryPlace, pin, point, region};
use super::{MemorySpec, Room};
use crate::bench::BenchError;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::memory::{MatrixCell, PageWish, Traffic};
use wakewatt_host::vector_loops::Width;

/// Nodes with their usable CPUs, and nodes with memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Nodes {
    /// Node and CPUs of it that this process may use.
    pub with_cpus: Vec<(u32, CpuSet)>,
    /// Nodes with memory.
    pub with_memory: Vec<u32>,
}

/// One cell. What fails is said, and the rest of the cell is measured.
pub fn cell(
    spec: &MemorySpec,
    (cpu_node, cpus): (u32, &CpuSet),
    memory_node: u32,
    width: Width,
    room: &dyn Fn() -> Room,
    stop: &AtomicBool,
    not_done: &mut Vec<String>,
) -> MatrixCell {
    let mut cell = MatrixCell {
        cpu_node,
        memory_node,
        on_node_ratio: None,
        latency_ns: None,
        one_cpu_bytes_per_s: None,
        all_cpus_bytes_per_s: None,
    };
    let mut failed = |what: &str, why: String| {
        not_done.push(format!("{what} from node {cpu_node} to memory of node {memory_node}: {why}"));
    };
    let Some(cpu) = cpus.first() else { return cell };
    match latency(spec, MemoryPlace { cpu, node: Some(memory_node), pages: PageWish::Huge }, &room(), stop) {
        Ok((ns, ratio)) => (cell.latency_ns, cell.on_node_ratio) = (ns, ratio),
        Err(why) => failed("latency", why.to_string()),
    }
    if let Some(ratio) = cell.on_node_ratio.filter(|ratio| *ratio < 0.95) {
        failed("binding", format!("only {:.0} % of the pages lie there", ratio * 100.0));
    }
    let one: CpuSet = [cpu].into_iter().collect();
    // On a node of one CPU one is all.
    for cpus in [&one, cpus].into_iter().take(cpus.len().min(2)) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let room = room();
        let array_bytes = spec.array_bytes_for(cpus, 1, &room);
        let doubt = spec.array_doubt(cpus, array_bytes);
        let spec = BandwidthSpec {
            traffic: Traffic::Load,
            width,
            cpus: cpus.clone(),
            pages: PageWish::Huge,
            node: Some(memory_node),
            array_bytes,
            n_passes: spec.n_passes,
        };
        let rate = match room.refuse(held_bytes(cpus, 1, array_bytes)) {
            Some(why) => Err(BenchError::Unavailable(why)),
            None => bandwidth(&spec, stop),
        };
        match rate {
            Ok(rate) if cpus.len() == 1 => cell.one_cpu_bytes_per_s = Some(rate.best_bytes_per_s),
            Ok(rate) => cell.all_cpus_bytes_per_s = Some(rate.best_bytes_per_s),
            Err(why) => failed("bandwidth", why.to_string()),
        }
        if let Some(why) = doubt {
            failed("bandwidth", why);
        }
    }
    if cpus.len() == 1 {
        cell.all_cpus_bytes_per_s = cell.one_cpu_bytes_per_s;
    }
    cell
}

fn latency(
    spec: &MemorySpec,
    place: MemoryPlace,
    room: &Room,
    stop: &AtomicBool,
) -> Result<(Option<f64>, Option<f64>), BenchError> {
    let size_bytes = spec.working_set_bytes();
    if let Some(why) = room.refuse(super::latency::needed_bytes(size_bytes, spec.stride_bytes)) {
        return Err(BenchError::Unavailable(why));
    }
    let _pinned = pin(place.cpu)?;
    let mut pages = region(&place, size_bytes)?;
    let on_node = place.node.and_then(|node| pages.on_node(node).ok());
    let ratio = on_node.map(|(there, looked)| there as f64 / looked.max(1) as f64);
    Ok((point(spec, &mut pages, size_bytes, stop).map(|p| p.best_ns), ratio))
}

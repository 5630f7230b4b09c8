//! Where a load of transactions runs: a process per memory node, a thread per CPU.

use super::engine::Spec;
use crate::refusal::Refusal;
use crate::survey::nodes_of;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::load::Worker;
use wakewatt_core::source::Source;

/// The hidden command that is a process of the load generator.
const WORKER: &str = "load-worker";

/// What to start for a load of transactions on these CPUs; also for who runs levels as blocks of an experiment.
pub fn spec(
    src: &dyn Source,
    cpus: &CpuSet,
    service_ns: u64,
    work_units: Option<u64>,
    seed: u64,
    remarks: &mut Vec<String>,
) -> Result<Spec, Refusal> {
    let program = std::env::current_exe();
    let program = program.map_err(|e| Refusal::File(format!("cannot find this program: {e}")))?;
    let program = vec![program.into(), WORKER.into()];
    Ok(Spec { program, places: places(src, cpus, remarks), service_ns, work_units, seed })
}

/// One process per memory node.
fn places(src: &dyn Source, cpus: &CpuSet, remarks: &mut Vec<String>) -> Vec<Worker> {
    let nodes = nodes_of(src, cpus);
    let is_one = nodes.with_cpus.len() == 1;
    let mut places: Vec<Worker> = Vec::new();
    for (node, cpus) in &nodes.with_cpus {
        let has_memory = nodes.with_memory.contains(node);
        if !has_memory {
            remarks.push(format!("node {node} has no memory of its own, so its worker's memory lies elsewhere"));
        }
        places.push(Worker { node: (has_memory && !is_one).then_some(*node), cpus: cpus.clone() });
    }
    let placed: CpuSet = places.iter().flat_map(|p| p.cpus.iter()).collect();
    let left = cpus.minus(&placed);
    if !left.is_empty() {
        places.push(Worker { node: None, cpus: left });
    }
    if cpus.len() == 1 {
        remarks.push("one CPU: the load generator's coordinator shares it with the load".into());
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn one_process_per_node_and_no_cpu_is_forgotten() {
        let node = "/sys/devices/system/node";
        let cpu = "/sys/devices/system/cpu";
        let two = Tree::from_text(&format!(
            "//- {cpu}/online\n0-7\n//- {cpu}/present\n0-7\n//- {node}/online\n0-1\n//- {node}/has_memory\n0\n\
             //- {node}/node0/cpulist\n0-3\n//- {node}/node1/cpulist\n4-6\n"
        ));
        let mut remarks = Vec::new();
        let places = places(&two, &CpuSet::parse("1-7").unwrap(), &mut remarks);
        let shown: Vec<(Option<u32>, String)> = places.iter().map(|p| (p.node, p.cpus.to_string())).collect();
        assert_eq!(shown, [(Some(0), "1-3".into()), (None, "4-6".into()), (None, "7".into())]);
        assert!(remarks.len() == 1 && remarks[0].contains("node 1 has no memory"), "{remarks:?}");
    }
}

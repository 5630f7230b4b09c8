//! NUMA nodes as words for QEMU, which makes the SRAT and SLIT tables from them.

use crate::testbed::machine::Machine;

/// Nodes with their memory and CPUs, then every distance.
pub(super) fn args(machine: &Machine) -> Vec<String> {
    let mut args = Vec::new();
    for (number, node) in machine.numa.iter().enumerate() {
        args.extend(["-object".into(), format!("memory-backend-ram,id=node{number},size={}M", node.memory_mib)]);
        // QEMU wants each run of CPUs as its own key, where the kernel writes them with commas.
        let runs = node.cpus.split(',').filter(|run| !run.trim().is_empty());
        let cpus: String = runs.map(|run| format!(",cpus={}", run.trim())).collect();
        args.extend(["-numa".into(), format!("node,nodeid={number},memdev=node{number}{cpus}")]);
    }
    for (from, node) in machine.numa.iter().enumerate() {
        for (to, distance) in node.distances.iter().enumerate().filter(|(to, _)| *to != from) {
            args.extend(["-numa".into(), format!("dist,src={from},dst={to},val={distance}")]);
        }
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_distances() {
        let text = "summary='x'\narch='x86_64'\nmemory_mib=768\n[cpus]\ncores=4\n\
            [[numa]]\ncpus='0,2-3'\nmemory_mib=512\ndistances=[10,21]\n\
            [[numa]]\ncpus='1'\nmemory_mib=256\ndistances=[31,10]\n";
        let words = args(&Machine::parse("m", text).unwrap()).join(" ");
        assert!(words.contains("-numa node,nodeid=0,memdev=node0,cpus=0,cpus=2-3 "), "{words}");
        assert!(words.ends_with("-numa dist,src=0,dst=1,val=21 -numa dist,src=1,dst=0,val=31"), "{words}");
    }
}

//! How many of how many a finding is about: "all 10 uncore domains", "2 of 4 network interfaces", "eth0 only".
//!
//! CPUs have [`crate::facts::Cpus::extent`]; here are the other things of a machine, and registers, of which a live machine is
//! asked on one CPU of each package only.

use crate::cpuset::CpuSet;
use crate::fact::PerCpu;
use crate::facts::Snapshot;
use wakewatt_words::{say, word};

/// What is counted in a machine beside CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Things {
    UncoreDomains,
    ComputeDies,
    /// Dies that serve no cores.
    IoDies,
    Packages,
    Interfaces,
    Disks,
    Nodes,
}

impl Things {
    /// How many of them: "all 10 uncore domains", "2 of 10 uncore domains", "eth0 only", or the name of the only one.
    pub(super) fn extent(self, names: &[&str], of: usize) -> String {
        let noun = match self {
            Things::UncoreDomains => word!("uncore domains"),
            Things::ComputeDies => word!("compute dies"),
            Things::IoDies => word!("I/O dies"),
            Things::Packages => word!("packages"),
            Things::Interfaces => word!("network interfaces"),
            Things::Disks => word!("disks"),
            Things::Nodes => word!("memory nodes"),
        };
        match (names, of) {
            ([name], 1) => (*name).to_string(),
            ([name], _) => say!("{name} only, of {of} {noun}"),
            (names, _) if names.len() >= of => say!("all {of} {noun}"),
            (names, _) => say!("{n} of {of} {noun}", n = names.len()),
        }
    }
}

/// The CPUs on which a register was read.
pub(super) fn read_on<T>(register: &PerCpu<T>) -> CpuSet {
    register.known().fold(CpuSet::new(), |all, (cpus, _)| all.union(cpus))
}

/// How far the CPUs reach on which a register says so. Where no more than one CPU of each package was read, it stands for
/// its package.
pub(super) fn of_register<T>(facts: &Snapshot, register: &PerCpu<T>, cpus: &CpuSet) -> String {
    let packages = facts.topology.packages();
    let n_read = read_on(register).len();
    if n_read > packages.len() || n_read >= facts.cpus.running().count() {
        return facts.cpus.extent(cpus);
    }
    let holds = packages.iter().filter(|(_, all)| !all.and(cpus).is_empty());
    let names: Vec<String> = holds.map(|(id, _)| say!("package {id}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Things::Packages.extent(&names, packages.len())
}

#[cfg(test)]
mod tests {
    use super::super::testing::evidence;
    use super::*;

    #[test]
    fn a_sample_of_one_cpu_stands_for_its_package() {
        let root = "//- /sys/devices/system/cpu";
        let cpu = |n: u32, package: u32| format!("{root}/cpu{n}/topology/physical_package_id\n{package}\n");
        let host = format!("{root}/present\n0-3\n{root}/online\n0-3\n")
            + &(0..4).map(|n| cpu(n, n / 2)).collect::<String>()
            + &format!("{root}/modalias\ncpu:type:x86,ven0000fam0006mod0055:feature:\n");
        let extent = |registers: &str| {
            let facts = evidence(&(host.clone() + registers)).facts;
            let bit = facts.msr.field("power_ctl", "c1e").unwrap();
            of_register(&facts, &bit, &bit.cpus_where(|bit| *bit != 0))
        };
        assert_eq!(extent("//- msr 0x1fc cpu0 2\n//- msr 0x1fc cpu2 2\n"), "all 2 packages");
        assert_eq!(extent("//- msr 0x1fc cpu0 2\n//- msr 0x1fc cpu2 0\n"), "package 0 only, of 2 packages");
        let all = |values: [u8; 4]| -> String {
            values.iter().enumerate().map(|(n, value)| format!("//- msr 0x1fc cpu{n} {value}\n")).collect()
        };
        assert_eq!(extent(&all([2, 2, 2, 2])), "all 4 CPUs");
        assert_eq!(extent(&all([2, 2, 0, 0])), "2 of 4 CPUs (0-1)");
    }
}

//! Do several sockets show as one memory node?
//!
//! Linux places memory near the CPU that asks for it, as far as it knows what is near. With `numa=off`, or where the BIOS
//! interleaves the nodes ("Node Interleaving"), or where the firmware tells nothing, all memory is one node, half of it
//! lies on the other socket, and nobody can bind to the near half. Sources: Documentation/arch/x86/x86_64/boot-options.rst
//! (numa=off); the vendors' BIOS guides.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, Where, percent};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

pub(super) struct OneNode;

impl Rule for OneNode {
    fn id(&self) -> &'static str {
        "rule.one-node"
    }
    fn question(&self) -> &'static str {
        word!("do several sockets show as one memory node?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::BareMetal]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let facts = &evidence.facts;
        let (numa, n_packages) = (&facts.memory, facts.topology.packages().len());
        if n_packages == 0 {
            return Answer::cannot_tell(
                word!("the CPUs' packages are not known"),
                word!("wakewatt inspect topology memory"),
            );
        }
        if n_packages == 1 {
            return Answer::no(word!("one package"));
        }
        if let Some(gap) = numa.online.gap().filter(|_| numa.nodes.is_empty()) {
            return Answer::gap(gap);
        }
        if numa.nodes.len() > 1 {
            return Answer::no(say!("{} memory nodes on {n_packages} packages", numa.nodes.len()));
        }
        let is_off = facts.boot.argument("numa") == Some("off");
        let remote = 1.0 - 1.0 / n_packages as f64;
        let title = match is_off {
            true => say!("{n_packages} packages and one memory node: booted with numa=off"),
            false => say!("{n_packages} packages and one memory node: the firmware interleaves or hides the nodes"),
        };
        let cost = Cost::unknown(say!(
            "about {} of all accesses go to another socket, wherever the work runs; not measured",
            percent(remote)
        ));
        let mut finding = Finding::new(self, Weight::Problem, Confidence::Medium, title, cost)
            .on("/sys/devices/system/node/online", say!("{} memory nodes", numa.nodes.len()))
            .on("/sys/devices/system/cpu/cpu*/topology/physical_package_id", say!("{n_packages} packages"));
        if is_off {
            finding = finding.on("/proc/cmdline", "numa=off");
        }
        let what = match is_off {
            true => word!("Take numa=off off the command line and reboot."),
            false => match evidence.facts.topology.processor().is_some_and(|p| p.is_amd()) {
                true => word!(
                    "Interleave memory by channel or die in the BIOS (Memory Interleaving), not by socket. If it is so, the kernel \
                     log says why the firmware's table of nodes (SRAT) was not taken."
                ),
                false => word!(
                    "Switch node interleaving off in the BIOS (Node Interleaving: Disabled). If it is off, the kernel log says \
                     why the firmware's table of nodes (SRAT) was not taken."
                ),
            },
        };
        finding
            .remedy(
                what,
                word!("A reboot; work that spreads over sockets without binding may get slower or faster: compare."),
                word!("wakewatt inspect memory topology, then wakewatt measure memory before and after"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn one_node_for_two_sockets() {
        let (cpu, node) = ("//- /sys/devices/system/cpu", "//- /sys/devices/system/node");
        let host = |package: u32, nodes: &str| {
            let of = |n: u32, package: u32| format!("{cpu}/cpu{n}/topology/physical_package_id\n{package}\n");
            format!("{cpu}/present\n0-1\n{cpu}/online\n0-1\n{node}/online\n{nodes}\n") + &of(0, 0) + &of(1, package)
        };
        assert_eq!(
            ask(&OneNode, &host(1, "0")),
            "yes problem unknown: 2 packages and one memory node: the firmware interleaves or hides the nodes"
        );
        let off = host(1, "0") + "//- /proc/cmdline\nro numa=off\n";
        assert!(ask(&OneNode, &off).ends_with("booted with numa=off"));
        assert!(ask(&OneNode, &host(0, "0")).starts_with("no: one package"));
        assert!(ask(&OneNode, &host(1, "0-1")).starts_with("no: 2 memory nodes"));
        assert!(ask(&OneNode, "").starts_with("cannot tell"));
    }
}

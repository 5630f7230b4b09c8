//! Do all interrupts of a busy device wake one CPU?
//!
//! A NIC or disk with several queues whose interrupts all go to one CPU makes that CPU a bottleneck and keeps waking
//! it (`/proc/interrupts`, `/proc/irq/N/effective_affinity_list`). Managed interrupts (NVMe, virtio disks) cannot be moved,
//! and the interrupt of a configuration change carries no work: both are left out, and so is a device with one interrupt.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;
use crate::facts::holders::RunningDaemon;
use crate::facts::irq::IrqDevice;
use wakewatt_words::{say, word};

const MIN_INTERRUPTS: u64 = 100_000;

/// More interrupts than this are a daemon's work.
const MAX_STEPS: usize = 16;

/// The interrupts of a device that all wake one CPU.
struct Crowd {
    device: IrqDevice,
    lines: Vec<u32>,
    cpus: CpuSet,
}

/// Each of a device's interrupts to a CPU of its own, on the memory node that serves them now; not on isolated CPUs.
fn spread(finding: Finding, evidence: &Evidence, crowd: &Crowd) -> Finding {
    let facts = &evidence.facts;
    let serves = |cpus: &&CpuSet| crowd.cpus.first().is_some_and(|cpu| cpus.contains(cpu));
    let node = facts.memory.nodes.iter().filter_map(|n| n.cpus.get()).find(serves);
    let running: CpuSet = facts.cpus.running().collect();
    let isolated = facts.boot.isolated.get().cloned().unwrap_or_default();
    let cpus: Vec<u32> = node.unwrap_or(&running).and(&running).minus(&isolated).iter().collect();
    if cpus.len() < 2 || crowd.lines.len() > MAX_STEPS {
        return finding;
    }
    crowd.lines.iter().zip(cpus.iter().cycle()).fold(finding, |finding, (irq, cpu)| {
        let path = format!("/proc/irq/{irq}/smp_affinity_list");
        finding.step("irq.affinity", Some(format!("irq{irq}")), cpu.to_string(), path, word!("a CPU of its own"))
    })
}

pub(super) struct IrqAffinity;

impl Rule for IrqAffinity {
    fn id(&self) -> &'static str {
        "rule.irq-affinity"
    }
    fn question(&self) -> &'static str {
        word!("do all interrupts of a busy device wake one CPU?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let irq = &evidence.facts.irq;
        if let Some(gap) = irq.lines.gap() {
            return Answer::gap(gap);
        }
        if evidence.facts.cpus.online.get().is_some_and(|c| c.len() < 2) {
            return Answer::no(word!("there is one CPU"));
        }
        let busy = irq.devices().into_iter().filter(|device| device.n_total >= MIN_INTERRUPTS);
        let movable = busy.map(|device| (irq.movable(&device), device));
        let busy: Vec<Crowd> = movable
            .filter(|((lines, _), _)| lines.len() > 1)
            .map(|((lines, cpus), device)| Crowd { device, lines, cpus })
            .collect();
        if busy.is_empty() {
            return Answer::no(say!(
                "no device with several interrupts that can be moved has raised {MIN_INTERRUPTS} since boot"
            ));
        }
        let crowded: Vec<&Crowd> = busy.iter().filter(|crowd| crowd.cpus.len() == 1).collect();
        if crowded.is_empty() {
            return Answer::no(word!("the interrupts of every busy device go to more than one CPU"));
        }
        let words: Vec<String> = crowded
            .iter()
            .map(|c| say!("{} ({} interrupt lines) to CPU {}", c.device.device, c.lines.len(), c.cpus))
            .collect();
        let cost = Cost::unknown(word!("one CPU handles all of the device's work; the size depends on the rate"));
        let mut finding = Finding::new(
            self,
            Weight::Risk,
            Confidence::Medium,
            say!("All interrupts go to one CPU: {}", words.join(", ")),
            cost,
        );
        // A daemon that places interrupts would move them back.
        let is_placed = |d: &RunningDaemon| d.overlaps.iter().any(|o| o == "interrupt affinity");
        let has_daemon = evidence.facts.holders.daemons.iter().any(is_placed);
        for crowd in crowded {
            finding = finding.on(
                "/proc/interrupts, /proc/irq/*/effective_affinity_list",
                say!("{}: {} times, {}", crowd.device.device, crowd.device.n_total, crowd.cpus.named()),
            );
            if !has_daemon {
                finding = spread(finding, evidence, crowd);
            }
        }
        finding
            .remedy(
                word!(
                    "Spread the device's interrupts over the CPUs of its memory node (smp_affinity_list), or let \
                    irqbalance do it; keep them off CPUs that must not be disturbed."
                ),
                word!("More CPUs are woken; a CPU in deep sleep then adds its exit latency."),
                word!("wakewatt inspect irq; wakewatt measure network"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ask;
    use super::*;

    #[test]
    fn routes() {
        let check = |a: u64, b: u64| {
            ask(
                &IrqAffinity,
                &format!(
                    "//- /proc/interrupts\nCPU0 CPU1\n36: {a} {b} PCI-MSI 1-edge eth0-TxRx-0\n37: 200000 0 PCI-MSI \
                        2-edge eth0-TxRx-1\n"
                ),
            )
        };
        assert!(
            check(100_000, 0)
                .starts_with("yes risk unknown: all interrupts go to one cpu: eth0 (2 interrupt lines) to cpu 0"),
            "{}",
            check(100_000, 0)
        );
        assert!(check(0, 100_000).starts_with("no"));
        let lines = |all: &[(&str, u64)]| {
            let line = |(at, (device, n)): (usize, &(&str, u64))| format!("{at}: {n} 0 PCI-MSI 0-edge {device}\n");
            let lines: String = all.iter().enumerate().map(line).collect();
            ask(&IrqAffinity, &format!("//- /proc/interrupts\nCPU0 CPU1\n{lines}"))
        };
        assert!(lines(&[("virtio1-config", 3), ("virtio1-input.0", 900_000)]).starts_with("no"), "one queue");
        assert!(lines(&[("nvme0q1", 500_000), ("nvme0q2", 500_000)]).starts_with("no"), "managed, not to be moved");
        assert!(ask(&IrqAffinity, "").starts_with("cannot tell"));
    }
}

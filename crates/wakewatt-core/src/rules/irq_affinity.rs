//! Do all interrupts of a busy device wake one CPU?
//!
//! A NIC or disk with several queues whose interrupts all go to one CPU makes that CPU a bottleneck and keeps waking
//! it (`/proc/interrupts`, `/proc/irq/N/effective_affinity_list`). NVMe's managed interrupts cannot be moved.
//! Devices with one active interrupt cannot spread it and are left out.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;

const MIN_INTERRUPTS: u64 = 100_000;

/// See the essay above.
pub(super) struct IrqAffinity;

impl Rule for IrqAffinity {
    fn id(&self) -> &'static str {
        "rule.irq-affinity"
    }
    fn question(&self) -> &'static str {
        "do all interrupts of a busy device wake one CPU?"
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let irq = &evidence.facts.irq;
        if let Some(gap) = irq.lines.gap() {
            return Answer::gap(gap);
        }
        if evidence.facts.cpus.online.get().is_some_and(|c| c.len() < 2) {
            return Answer::no("there is one CPU");
        }
        let busy: Vec<_> =
            irq.devices().into_iter().filter(|d| d.n_total >= MIN_INTERRUPTS && d.n_active > 1).collect();
        if busy.is_empty() {
            return Answer::no(format!("no device with several interrupts has raised {MIN_INTERRUPTS} since boot"));
        }
        let crowded: Vec<_> = busy.iter().filter(|d| d.cpus.len() == 1).collect();
        if crowded.is_empty() {
            return Answer::no("the interrupts of every busy device go to more than one CPU");
        }
        let words: Vec<String> = crowded
            .iter()
            .map(|d| format!("{} ({} interrupt lines) to CPU {}", d.device, d.n_active, d.cpus))
            .collect();
        let cost = Cost::unknown("one CPU handles all of the device's work; the size depends on the rate");
        let mut finding = Finding::new(
            self,
            Weight::Risk,
            Confidence::Medium,
            format!("All interrupts go to one CPU: {}", words.join(", ")),
            cost,
        );
        for d in crowded {
            finding = finding.on(
                "/proc/interrupts, /proc/irq/*/effective_affinity_list",
                format!("{}: {} times, CPUs {}", d.device, d.n_total, d.cpus),
            );
        }
        finding
            .remedy(
                "Spread the device's interrupts over the CPUs of its memory node (smp_affinity_list), or let \
                    irqbalance do it; keep them off CPUs that must not be disturbed.",
                "More CPUs are woken; a CPU in deep sleep then adds its exit latency.",
                "wakewatt inspect irq; wakewatt measure network",
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
        assert!(ask(&IrqAffinity, "").starts_with("cannot tell"));
    }
}

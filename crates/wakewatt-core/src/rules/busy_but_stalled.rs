//! Are CPUs busy, and yet get little done?
//!
//! Measured: instructions per cycle of the CPUs that were busy for at least half of the window, with their own work. A
//! core of today can retire four and more; general server code does 0.7 to 2; code that waits for memory does a few
//! tenths (Gregg 2017, "CPU Utilization is Wrong", draws the line at 1; here it is drawn lower, because SMT siblings share a
//! core and each sees the other's cycles). Below the line the usual causes are memory: remote nodes, slow modules, a
//! working set beyond the caches. Spinning on a lock has a high figure and is not found here. Witnesses where there are no
//! counters: watts and fans below what the same utilisation drew before.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight, percent};
use crate::evidence::Evidence;
use wakewatt_words::{say, word};

/// Below this a busy CPU mostly waits.
const STALLED_IPC: f64 = 0.5;
/// A CPU counts from here on.
const BUSY_RATIO: f64 = 0.5;

pub(super) struct BusyButStalled;

impl Rule for BusyButStalled {
    fn id(&self) -> &'static str {
        "rule.busy-but-stalled"
    }
    fn question(&self) -> &'static str {
        word!("are CPUs busy, and yet get little done?")
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let Some(work) = &evidence.samples.work else {
            return Answer::cannot_tell(
                word!("instructions and cycles of this machine's own work were not counted"),
                word!(
                    "wakewatt doctor as root on bare metal, while the machine does its usual work; in a guest ask for a virtual \
                    PMU. Without counters compare watts and fans (wakewatt measure power) with a machine that does the same work"
                ),
            );
        };
        let n_busy = work.n_busy(BUSY_RATIO);
        if n_busy == 0 && !work.cpus.is_empty() {
            return Answer::no(say!(
                "no CPU was busy for half of the {:.0} s looked at; ask again while the machine works",
                work.window.length_ns() as f64 / 1e9
            ));
        }
        let Some((ipc, n_busy)) = work.ipc_of_busy(BUSY_RATIO) else {
            return Answer::cannot_tell(
                say!("{n_busy} CPUs were busy, and their counters of cycles and instructions counted nothing"),
                word!(
                    "see who else uses the PMU (perf, the NMI watchdog, an agent), and whether a hypervisor shows a PMU that is \
                    not there; then wakewatt doctor again"
                ),
            );
        };
        if ipc >= STALLED_IPC {
            return Answer::no(say!("{n_busy} busy CPUs retired {ipc:.2} instructions per cycle"));
        }
        let title =
            say!("{n_busy} busy CPUs retire {ipc:.2} instructions per cycle: they mostly wait, probably for memory");
        let text = word!("not known from this alone: utilisation counts waiting as work").to_string();
        let memory = evidence
            .samples
            .memory
            .as_ref()
            .and_then(|m| m.matrix.iter().filter_map(|c| c.latency_ns).reduce(f64::max));
        let busiest = work.cpus.iter().map(|c| c.busy_ratio).fold(0.0, f64::max);
        let mut finding = Finding::new(self, Weight::Risk, Confidence::Medium, title, Cost::unknown(text))
            .on("perf_event_open: instructions, cycles", say!("{ipc:.2} per cycle"))
            .on("/proc/stat", say!("busiest CPU {} busy", percent(busiest)));
        if let Some(ns) = memory {
            finding = finding.on("measure memory", say!("the slowest node pair answers in {ns:.0} ns"));
        }
        finding
            .remedy(
                word!("Look at memory first: the findings about modules, channels and nodes; bind each process to one node \
                    (wakewatt run --per-node -- CMD shows the scaling); keep the working set in the caches."),
                word!("Binding to nodes needs several processes, and one node's memory must suffice for each."),
                word!("wakewatt doctor again under the same load; wakewatt measure memory"),
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, line};
    use super::*;
    use crate::samples::Samples;
    use crate::samples::Window;
    use crate::samples::work::{CpuWork, WorkSample};

    fn host(busy_ratio: f64, n_instructions: u64) -> Evidence {
        let cpu = |cpu| CpuWork { cpu, busy_ratio, n_cycles: 1_000_000, n_instructions };
        let window = Window { start_at_ns: 0, end_at_ns: 15_000_000_000 };
        Evidence::of(Samples {
            work: Some(WorkSample { window, cpus: (0..4).map(cpu).collect() }),
            ..Samples::default()
        })
    }

    #[test]
    fn waiting_is_told_from_working_and_from_idling() {
        assert_eq!(
            line(&BusyButStalled, &host(0.95, 220_000)),
            "yes risk unknown: 4 busy cpus retire 0.22 instructions per cycle: they mostly wait, probably for memory"
        );
        assert_eq!(line(&BusyButStalled, &host(0.95, 900_000)), "no: 4 busy CPUs retired 0.90 instructions per cycle");
        assert!(line(&BusyButStalled, &host(0.1, 1)).starts_with("no: no CPU was busy"));
        let mut dead = host(0.95, 1);
        dead.samples.work.iter_mut().flat_map(|w| &mut w.cpus).for_each(|c| c.n_cycles = 0);
        assert!(line(&BusyButStalled, &dead).starts_with("cannot tell: 4 CPUs were busy"));
        dead.samples.work.iter_mut().for_each(|w| w.cpus.clear());
        assert!(line(&BusyButStalled, &dead).starts_with("cannot tell"));
        assert!(ask(&BusyButStalled, "").starts_with("cannot tell"));
    }
}

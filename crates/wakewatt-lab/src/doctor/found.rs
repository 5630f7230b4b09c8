//! Three short looks at the machine as it was found: its own wake-ups, what its CPUs get done, its memory.

use super::{Ground, left_out};
use crate::bench::{BenchError, WorkWatch};
use crate::survey::{memory_as_found, nodes_of};
use crate::trace::of_machine;
use std::time::Duration;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::not_done::{Step, Why};
use wakewatt_core::source::Source;

/// Utilisation is counted in ticks of 10 ms.
const MIN_WORK_NS: u64 = 1_000_000_000;
/// Pairs of memory nodes that doctor measures, at about half a second each.
const MAX_CELLS: usize = 16;

/// The machine's own wake-ups, before any of ours.
pub(super) fn trace(ground: Ground<'_>, evidence: &mut Evidence) {
    if ground.plan.is_read_only {
        return left_out(evidence, Step::Trace, Why::ReadOnly("loads no eBPF program".into()));
    }
    ground.onlooker.part("doctor");
    ground.lab.tell.progress(0.0, "tracing the machine's own wake-ups");
    match of_machine(ground.lab, ground.times.trace_ns) {
        Ok(traced) => evidence.samples.trace = Some(traced),
        Err(why) => left_out(evidence, Step::Trace, why.to_string().into()),
    }
}

/// What the CPUs got done in the window of the trace, or in a second where that was not allowed.
pub(super) fn own_work(work: Result<WorkWatch, BenchError>, src: &dyn Source, evidence: &mut Evidence) {
    match work {
        Ok(watch) => {
            std::thread::sleep(Duration::from_nanos(MIN_WORK_NS.saturating_sub(watch.length_ns())));
            evidence.samples.work = Some(watch.stop(src));
        }
        Err(why) => left_out(evidence, Step::OwnWork, why.to_string().into()),
    }
}

/// A short look at memory; it changes no setting. On many nodes it takes longer than the experiment may wait, so there it
/// is left to its own command.
pub(super) fn memory(ground: Ground<'_>, evidence: &mut Evidence) {
    let Ground { lab, allowed, .. } = ground;
    if lab.is_stopped() {
        return;
    }
    let nodes = nodes_of(lab.src, allowed);
    if nodes.with_cpus.len() * nodes.with_memory.len() > MAX_CELLS {
        let why = "too many pairs of nodes for this run; wakewatt measure memory";
        return left_out(evidence, Step::Memory, why.into());
    }
    ground.onlooker.part("doctor");
    lab.tell.progress(0.9, "measuring as found: memory");
    match memory_as_found(lab, allowed) {
        Ok(sample) => evidence.samples.memory = Some(sample),
        Err(why) => left_out(evidence, Step::Memory, why.to_string().into()),
    }
}

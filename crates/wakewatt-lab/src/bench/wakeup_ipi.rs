//! A bare interrupt, there and back: the smallest thing another CPU can be asked to do.
//!
//! Reads a counter that lives on the other CPU (see [`wakewatt_host::ipi`]): no thread is switched in there, one clock on
//! one CPU measures both ways, and no timer announces it, so hardware cannot wake early for it. A CPU polling in idle is
//! told through memory. If the CPU is busy with something else, the answer is fast: look at the idle counters.
//! The asking CPU's own lateness is outside the sample, except where the answer before took longer than the gap: then
//! the sample counts from its planned time.

use super::gaps::Gaps;
use super::wakeup_timer::{SampleHead, slice_of};
use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::samples::Window;
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_core::source::Source;
use wakewatt_core::stats::distribution::Recorder;
use wakewatt_host::{clock, ipi::RemoteCounter, sched::MeasuringThread, sleep};

/// Measures, until done or stopped. `spec.kind` is not looked at.
pub fn ipi(spec: &RemoteSpec, stop: &AtomicBool, src: &dyn Source) -> Result<WakeupSlice, BenchError> {
    spec.check()?;
    let counter = RemoteCounter::on(spec.cpu).map_err(|e| {
        BenchError::Unavailable(format!(
            "perf_event_open on CPU {} was refused ({e}); it needs root, CAP_PERFMON or kernel.perf_event_paranoid 0",
            spec.cpu
        ))
    })?;
    let baseline = IdleBaseline::read(src, &[spec.cpu]);
    let measured = std::thread::scope(|scope| scope.spawn(|| measure(spec, &counter, stop)).join());
    let mut slice = measured.map_err(|_| BenchError::Crashed)??;
    slice.sample.idle = baseline.since(src).into_iter().next();
    Ok(slice)
}

fn measure(spec: &RemoteSpec, counter: &RemoteCounter, stop: &AtomicBool) -> Result<WakeupSlice, BenchError> {
    let thread = MeasuringThread::enter(Some(spec.from_cpu), spec.fifo_priority)
        .map_err(|e| BenchError::system(format!("pinning a thread to CPU {}", spec.from_cpu), e))?;
    let (mut hist, mut gaps) = (Recorder::default(), Gaps::new(spec.gap_ns, spec.pauses));
    let clock_read_ns = clock::read_cost_ns();
    let mut n_late_starts = 0;
    let mut after_ns = clock::monotonic_ns();
    let count_from_ns = after_ns + spec.warmup_ns;
    let end_at_ns = count_from_ns + spec.duration_ns;
    let mut planned_at_ns = after_ns + gaps.next_ns();
    while planned_at_ns.max(after_ns) < end_at_ns && !stop.load(Ordering::Relaxed) {
        let is_late = planned_at_ns <= after_ns;
        if !is_late && sleep::sleep_until(planned_at_ns).is_err() {
            continue;
        }
        let before_ns = if is_late { planned_at_ns } else { clock::monotonic_ns() };
        counter.read().map_err(|e| BenchError::system(format!("reading a counter of CPU {}", spec.cpu), e))?;
        after_ns = clock::monotonic_ns();
        if planned_at_ns >= count_from_ns {
            hist.saturating_record(after_ns.saturating_sub(before_ns).max(1));
            n_late_starts += u64::from(is_late);
        }
        planned_at_ns += gaps.next_ns();
    }
    let scheduling = thread.scheduling().clone();
    drop(thread);
    let window = Window { start_at_ns: count_from_ns, end_at_ns: after_ns.max(count_from_ns) };
    let from_cpu = Some(spec.from_cpu);
    let about =
        SampleHead { kind: WakeKind::Ipi, cpu: spec.cpu, from_cpu, gap: (spec.gap_ns, spec.pauses), scheduling };
    slice_of(about, hist, n_late_starts, clock_read_ns, window)
}

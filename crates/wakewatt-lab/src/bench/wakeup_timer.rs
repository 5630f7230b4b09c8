//! Timer wake-up: a thread sleeps until an absolute time on its own CPU. Planned time to running, as cyclictest does.
//!
//! The plan is an absolute schedule. Where cyclictest drops the wake-ups it slept through ("overruns"), they are
//! counted here from their planned time, so one stall of 5 ms weighs as the five wake-ups it spoilt (no coordinated
//! omission). A timer flatters deep idle states: hardware that knows its own timer may start waking early
//! (docs/methods/wakeups.md); compare with the remote wake-up.

use super::gaps::Gaps;
use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::samples::waker::Pauses;
use wakewatt_core::samples::wakeup::{WakeKind, WakeupSample};
use wakewatt_core::samples::{Scheduling, Window};
use wakewatt_core::source::Source;
use wakewatt_core::stats::distribution::{Distribution, Recorder};
use wakewatt_host::{clock, sched::MeasuringThread, sleep};

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerSpec {
    pub cpu: Cpu,
    /// Planned time between wake-ups.
    pub gap_ns: u64,
    /// How the gaps are drawn.
    pub pauses: Pauses,
    /// Discarded first.
    pub warmup_ns: u64,
    /// Counted.
    pub duration_ns: u64,
    /// SCHED_FIFO priority to try; none for SCHED_OTHER.
    pub fifo_priority: Option<u8>,
}

impl TimerSpec {
    /// A fixed gap of 1 ms.
    pub fn on(cpu: Cpu, duration_ns: u64) -> TimerSpec {
        TimerSpec {
            cpu,
            gap_ns: DEFAULT_GAP_NS,
            pauses: Pauses::Fixed,
            warmup_ns: DEFAULT_WARMUP_NS,
            duration_ns,
            fifo_priority: Some(DEFAULT_FIFO_PRIORITY),
        }
    }
}

/// Measures, until done or stopped.
pub fn timer(spec: &TimerSpec, stop: &AtomicBool, src: &dyn Source) -> Result<WakeupSlice, BenchError> {
    check_cpu(spec.cpu)?;
    check_gap(spec.gap_ns)?;
    let baseline = IdleBaseline::read(src, &[spec.cpu]);
    let measured = std::thread::scope(|scope| scope.spawn(|| measure(spec, stop)).join());
    let mut slice = measured.map_err(|_| BenchError::Crashed)??;
    slice.sample.idle = baseline.since(src).into_iter().next();
    Ok(slice)
}

fn measure(spec: &TimerSpec, stop: &AtomicBool) -> Result<WakeupSlice, BenchError> {
    let thread = MeasuringThread::enter(Some(spec.cpu), spec.fifo_priority)
        .map_err(|e| BenchError::system(format!("pinning a thread to CPU {}", spec.cpu), e))?;
    let (mut hist, mut gaps) = (Recorder::default(), Gaps::new(spec.gap_ns, spec.pauses));
    let clock_read_ns = clock::read_cost_ns();
    let mut n_late_starts = 0;
    let mut now_ns = clock::monotonic_ns();
    let count_from_ns = now_ns + spec.warmup_ns;
    let end_at_ns = count_from_ns + spec.duration_ns;
    let mut planned_at_ns = now_ns + gaps.next_ns();
    while planned_at_ns < end_at_ns && !stop.load(Ordering::Relaxed) {
        let is_late = planned_at_ns <= now_ns;
        if !is_late && sleep::sleep_until(planned_at_ns).is_err() {
            continue; // a signal: sleep on, or stop
        }
        now_ns = clock::monotonic_ns();
        if planned_at_ns >= count_from_ns {
            hist.saturating_record(now_ns.saturating_sub(planned_at_ns).max(1));
            n_late_starts += u64::from(is_late);
        }
        planned_at_ns += gaps.next_ns();
    }
    let scheduling = thread.scheduling().clone();
    let end_at_ns = now_ns.max(count_from_ns);
    drop(thread);
    let window = Window { start_at_ns: count_from_ns, end_at_ns };
    let about = SampleHead {
        kind: WakeKind::Timer,
        cpu: spec.cpu,
        from_cpu: None,
        gap: (spec.gap_ns, spec.pauses),
        scheduling,
    };
    slice_of(about, hist, n_late_starts, clock_read_ns, window)
}

/// What a slice is about.
pub(crate) struct SampleHead {
    pub(crate) kind: WakeKind,
    pub(crate) cpu: Cpu,
    pub(crate) from_cpu: Option<Cpu>,
    /// The mean, and how they are drawn.
    pub(crate) gap: (u64, Pauses),
    pub(crate) scheduling: Scheduling,
}

pub(crate) fn slice_of(
    about: SampleHead,
    hist: Recorder,
    n_late_starts: u64,
    clock_read_ns: u64,
    window: Window,
) -> Result<WakeupSlice, BenchError> {
    if hist.is_empty() {
        return Err(BenchError::NoSamples);
    }
    let SampleHead { kind, cpu, from_cpu, gap: (gap_ns, pauses), scheduling } = about;
    let latency = Distribution::recorded(&hist);
    let sample = WakeupSample {
        kind,
        cpu,
        from_cpu,
        gap_ns,
        pauses,
        scheduling,
        latency,
        n_late_starts,
        waker: None,
        clock_bound_ns: None,
        clock_read_ns,
        window,
        idle: None,
    };
    Ok(WakeupSlice { sample, hist, late: Recorder::default() })
}

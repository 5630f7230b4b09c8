//! Timer wake-up: a thread sleeps until an absolute time on its own CPU. Planned time to running, as cyclictest does.
//!
//! The plan is an absolute schedule. Where cyclictest drops the wake-ups it slept through ("overruns"), they are
//! counted here from their planned time, so one stall of 5 ms weighs as the five wake-ups it spoilt (no coordinated
//! omission). A timer flatters deep idle states: hardware that knows its own timer may start waking early
//! (docs/methods/wakeups.md); compare with the remote wake-up. With a random gap the idle governor cannot learn the
//! period.

use super::*;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::samples::wakeup::{WakeKind, WakeupSample};
use wakewatt_core::samples::{Scheduling, Window};
use wakewatt_core::source::Source;
use wakewatt_core::stats::distribution::{Distribution, Recorder};
use wakewatt_core::stats::random::Random;
use wakewatt_host::{clock, sched::MeasuringThread, sleep};

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerSpec {
    pub cpu: Cpu,
    /// Planned time between wake-ups.
    pub gap_ns: u64,
    /// Draw each gap from 0.1 to 1.9 times `gap_ns` with this seed.
    pub random_gap_seed: Option<u64>,
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
            random_gap_seed: None,
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

/// The gaps of a schedule.
pub(crate) struct Gaps {
    gap_ns: u64,
    random: Option<Random>,
}

impl Gaps {
    pub(crate) fn new(gap_ns: u64, seed: Option<u64>) -> Gaps {
        Gaps { gap_ns, random: seed.map(Random::new) }
    }
    pub(crate) fn next_ns(&mut self) -> u64 {
        match &mut self.random {
            None => self.gap_ns,
            Some(random) => self.gap_ns / 10 + random.below(self.gap_ns / 5 * 9 + 1),
        }
    }
}

fn measure(spec: &TimerSpec, stop: &AtomicBool) -> Result<WakeupSlice, BenchError> {
    let thread = MeasuringThread::enter(Some(spec.cpu), spec.fifo_priority)
        .map_err(|e| BenchError::system(format!("pinning a thread to CPU {}", spec.cpu), e))?;
    let (mut hist, mut gaps) = (Recorder::default(), Gaps::new(spec.gap_ns, spec.random_gap_seed));
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
    let about = SampleHead { kind: WakeKind::Timer, cpu: spec.cpu, from_cpu: None, gap_ns: spec.gap_ns, scheduling };
    slice_of(about, hist, n_late_starts, clock_read_ns, window)
}

/// What a slice is about.
pub(crate) struct SampleHead {
    pub(crate) kind: WakeKind,
    pub(crate) cpu: Cpu,
    pub(crate) from_cpu: Option<Cpu>,
    pub(crate) gap_ns: u64,
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
    let SampleHead { kind, cpu, from_cpu, gap_ns, scheduling } = about;
    let latency = Distribution::recorded(&hist);
    let sample = WakeupSample {
        kind,
        cpu,
        from_cpu,
        gap_ns,
        scheduling,
        latency,
        n_late_starts,
        clock_read_ns,
        window,
        idle: None,
    };
    Ok(WakeupSlice { sample, hist, n_not_asleep: 0, n_skipped: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_gaps_stay_in_their_range_and_keep_the_mean() {
        let mut gaps = Gaps::new(1_000_000, Some(3));
        let all: Vec<u64> = (0..10_000).map(|_| gaps.next_ns()).collect();
        assert!(all.iter().all(|g| (100_000..=1_900_000).contains(g)));
        assert!((980_000..1_020_000).contains(&(all.iter().sum::<u64>() / 10_000)));
        assert_eq!(Gaps::new(7, None).next_ns(), 7);
    }
}

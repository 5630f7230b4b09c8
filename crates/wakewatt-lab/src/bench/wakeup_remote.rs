//! Cross-CPU wake-up: a thread on one CPU wakes a thread asleep on another, as a request wakes a server.
//!
//! The waker stamps CLOCK_MONOTONIC just before the call, the sleeper just after it runs. Two CPUs read one clock: where
//! the TSC is synchronised they agree within some ten nanoseconds; on the development VM the bound is ±150 ns, so
//! differences below that mean nothing. The waker's own wake-up is not in the sample, but its caches are cold after the
//! gap, as a real waker's are.
//!
//! Only wake-ups of a sleeper that had really gone to sleep count: its voluntary context switches must have grown
//! (getrusage, after the stamp). A planned wake-up that finds the sleeper still busy with the one before is counted from
//! its planned time until the sleeper ran (no coordinated omission). If the waker itself is late by a whole gap, the
//! missed plans say nothing about the woken CPU: they are skipped and counted apart.

use super::wakeup_timer::{Gaps, SampleHead, slice_of};
use super::*;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_core::samples::{Scheduling, Window};
use wakewatt_core::source::Source;
use wakewatt_core::stats::distribution::Recorder;
use wakewatt_host::clock;
use wakewatt_host::sched::{MeasuringThread, n_voluntary_switches};
use wakewatt_host::sleep::{Event, futex_wait, futex_wake, sleep_until};

/// Through what it is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteKind {
    /// FUTEX_WAKE.
    Futex,
    /// A write to an eventfd.
    Eventfd,
}

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteSpec {
    /// Through what.
    pub kind: RemoteKind,
    /// The CPU that is woken.
    pub cpu: Cpu,
    /// The CPU that wakes it.
    pub from_cpu: Cpu,
    /// Planned time between wake-ups.
    pub gap_ns: u64,
    /// Draw each gap from 0.1 to 1.9 times `gap_ns` with this seed.
    pub random_gap_seed: Option<u64>,
    /// Discarded first.
    pub warmup_ns: u64,
    /// Counted.
    pub duration_ns: u64,
    /// SCHED_FIFO priority to try for both threads; none for SCHED_OTHER.
    pub fifo_priority: Option<u8>,
}

impl RemoteSpec {
    /// A fixed gap of 1 ms.
    pub fn between(kind: RemoteKind, from_cpu: Cpu, cpu: Cpu, duration_ns: u64) -> RemoteSpec {
        RemoteSpec {
            kind,
            cpu,
            from_cpu,
            gap_ns: DEFAULT_GAP_NS,
            random_gap_seed: None,
            warmup_ns: DEFAULT_WARMUP_NS,
            duration_ns,
            fifo_priority: Some(DEFAULT_FIFO_PRIORITY),
        }
    }

    pub(crate) fn check(&self) -> Result<(), BenchError> {
        if self.cpu == self.from_cpu {
            return Err(BenchError::SameCpu(self.cpu));
        }
        check_cpu(self.cpu)?;
        check_cpu(self.from_cpu)?;
        check_gap(self.gap_ns)
    }
}

/// Measures, until done or stopped.
pub fn remote(spec: &RemoteSpec, stop: &AtomicBool, src: &dyn Source) -> Result<WakeupSlice, BenchError> {
    spec.check()?;
    let event = Event::new().map_err(|e| BenchError::system("making an eventfd", e))?;
    let count_from_ns = clock::monotonic_ns() + spec.warmup_ns;
    let bell = Bell {
        kind: spec.kind,
        event,
        count_from_ns,
        rung: AtomicU32::new(0),
        rung_at_ns: AtomicU64::new(0),
        answered: AtomicU32::new(u32::MAX),
        ran_at_ns: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    };
    let baseline = IdleBaseline::read(src, &[spec.cpu]);
    let (slept, woke) = std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| bell.sleep_loop(spec));
        let waker = scope.spawn(|| bell.wake_loop(spec, stop));
        (sleeper.join(), waker.join())
    });
    let woke = woke.map_err(|_| BenchError::Crashed)??;
    let mut slept = slept.map_err(|_| BenchError::Crashed)??;
    slept.hist.add(&woke.late);
    let kind = match spec.kind {
        RemoteKind::Futex => WakeKind::Futex,
        RemoteKind::Eventfd => WakeKind::Eventfd,
    };
    let (from_cpu, gap_ns) = (Some(spec.from_cpu), spec.gap_ns);
    let about = SampleHead { kind, cpu: spec.cpu, from_cpu, gap_ns, scheduling: slept.scheduling };
    let window = Window { start_at_ns: count_from_ns, end_at_ns: woke.end_at_ns.max(count_from_ns) };
    let mut slice = slice_of(about, slept.hist, woke.late.len(), slept.clock_read_ns, window)?;
    slice.n_not_asleep = slept.n_not_asleep;
    slice.n_skipped = woke.n_skipped;
    slice.sample.idle = baseline.since(src).into_iter().next();
    Ok(slice)
}

/// What the two threads share.
struct Bell {
    kind: RemoteKind,
    event: Event,
    count_from_ns: u64,
    /// Number of the last wake-up sent; what the futex waits on.
    rung: AtomicU32,
    rung_at_ns: AtomicU64,
    /// Number of the last wake-up the sleeper finished; not 0 until it is ready for the first.
    answered: AtomicU32,
    ran_at_ns: AtomicU64,
    is_over: AtomicBool,
}

/// Ends the other thread too, however this one ends.
struct EndsBoth<'a>(&'a Bell);

impl Drop for EndsBoth<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
        self.0.rung.fetch_add(1, Ordering::Release);
        self.0.ring();
    }
}

struct Slept {
    hist: Recorder,
    n_not_asleep: u64,
    scheduling: Scheduling,
    clock_read_ns: u64,
}

struct Woke {
    late: Recorder,
    n_skipped: u64,
    end_at_ns: u64,
}

impl Bell {
    fn ring(&self) {
        match self.kind {
            RemoteKind::Futex => {
                futex_wake(&self.rung);
            }
            // Only a full counter (2^64 - 2) could refuse.
            RemoteKind::Eventfd => {
                let _ = self.event.signal();
            }
        }
    }

    /// Sleeps until the next number; the time-out is a safety net.
    fn wait(&self, seen: u32) {
        while self.rung.load(Ordering::Acquire) == seen {
            match self.kind {
                RemoteKind::Futex => futex_wait(&self.rung, seen, 1_000_000_000),
                RemoteKind::Eventfd => {
                    let _ = self.event.wait();
                }
            }
        }
    }

    fn sleep_loop(&self, spec: &RemoteSpec) -> Result<Slept, BenchError> {
        let _ends = EndsBoth(self);
        let thread = MeasuringThread::enter(Some(spec.cpu), spec.fifo_priority)
            .map_err(|e| BenchError::system(format!("pinning a thread to CPU {}", spec.cpu), e))?;
        let clock_read_ns = clock::read_cost_ns();
        let (mut hist, mut n_not_asleep, mut seen) = (Recorder::default(), 0, 0);
        let mut n_switches = n_voluntary_switches();
        self.answered.store(seen, Ordering::Release);
        loop {
            self.wait(seen);
            let now_ns = clock::monotonic_ns();
            if self.is_over.load(Ordering::Acquire) {
                let scheduling = thread.scheduling().clone();
                return Ok(Slept { hist, n_not_asleep, scheduling, clock_read_ns });
            }
            let rung_at_ns = self.rung_at_ns.load(Ordering::Acquire);
            let n_switches_before = std::mem::replace(&mut n_switches, n_voluntary_switches());
            if rung_at_ns >= self.count_from_ns {
                if n_switches > n_switches_before {
                    hist.saturating_record(now_ns.saturating_sub(rung_at_ns).max(1));
                } else {
                    n_not_asleep += 1;
                }
            }
            seen = self.rung.load(Ordering::Acquire);
            self.ran_at_ns.store(now_ns, Ordering::Release);
            self.answered.store(seen, Ordering::Release);
        }
    }

    fn wake_loop(&self, spec: &RemoteSpec, stop: &AtomicBool) -> Result<Woke, BenchError> {
        let _ends = EndsBoth(self);
        let _thread = MeasuringThread::enter(Some(spec.from_cpu), spec.fifo_priority)
            .map_err(|e| BenchError::system(format!("pinning a thread to CPU {}", spec.from_cpu), e))?;
        let mut gaps = Gaps::new(spec.gap_ns, spec.random_gap_seed);
        let (mut late, mut n_skipped) = (Recorder::default(), 0);
        // Plans that found the sleeper busy; more than this at once (a stall of a second) is not worth keeping.
        let mut waiting: Vec<u64> = Vec::with_capacity(1024);
        let end_at_ns = self.count_from_ns + spec.duration_ns;
        let (mut rung, mut now_ns) = (0u32, clock::monotonic_ns());
        let mut planned_at_ns = now_ns + gaps.next_ns();
        while planned_at_ns < end_at_ns && !stop.load(Ordering::Relaxed) && !self.is_over.load(Ordering::Relaxed) {
            if sleep_until(planned_at_ns).is_err() {
                continue;
            }
            if self.answered.load(Ordering::Acquire) == rung {
                self.count_late(&mut waiting, &mut late);
                rung = rung.wrapping_add(1);
                self.rung_at_ns.store(clock::monotonic_ns(), Ordering::Release);
                self.rung.store(rung, Ordering::Release);
                self.ring();
            } else if planned_at_ns >= self.count_from_ns && waiting.len() < waiting.capacity() {
                waiting.push(planned_at_ns);
            }
            now_ns = clock::monotonic_ns();
            planned_at_ns += gaps.next_ns();
            while planned_at_ns <= now_ns {
                planned_at_ns += gaps.next_ns();
                n_skipped += 1;
            }
        }
        for _ in 0..50 {
            if self.answered.load(Ordering::Acquire) == rung || self.is_over.load(Ordering::Relaxed) {
                self.count_late(&mut waiting, &mut late);
                break;
            }
            let _ = sleep_until(clock::monotonic_ns() + 1_000_000);
        }
        Ok(Woke { late, n_skipped, end_at_ns: now_ns })
    }

    fn count_late(&self, waiting: &mut Vec<u64>, late: &mut Recorder) {
        let ran_at_ns = self.ran_at_ns.load(Ordering::Acquire);
        // A plan made while the sleeper had run and was only finishing its notes was not late.
        for planned_at_ns in waiting.drain(..).filter(|p| *p < ran_at_ns) {
            late.saturating_record(ran_at_ns - planned_at_ns);
        }
    }
}

//! Cross-CPU wake-up: a thread on one CPU wakes a thread asleep on another, as a request wakes a server.
//!
//! The waker stamps CLOCK_MONOTONIC just before the call, the sleeper just after it runs. Two CPUs read one clock: where
//! the TSC is synchronised they agree within some ten nanoseconds; on the development VM the bound is ±150 ns, so
//! differences below that mean nothing. The waker's own wake-up is not in the sample, but its caches are cold after the
//! gap, as a real waker's are.
//!
//! A sample is from the ring to running. The waker sleeps between its rings and comes late itself: how late is kept in a
//! histogram of its own, and what it missed altogether is counted, because a reader must know both before believing the
//! rest (see [`wakewatt_core::samples::waker`]). Only wake-ups of a sleeper that had really gone to sleep count: its
//! voluntary context switches must have grown (getrusage, after the stamp). A ring that finds the one before unanswered
//! is counted from itself until the sleeper ran (no coordinated omission).

use super::gaps::Gaps;
use super::slice::with_lateness;
use super::wakeup_timer::{SampleHead, slice_of};
use super::*;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use wakewatt_core::samples::waker::{Pauses, Waker};
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
    /// How the gaps are drawn.
    pub pauses: Pauses,
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
            pauses: Pauses::Fixed,
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
    let clock_bound_ns = clock_bound(spec.from_cpu, spec.cpu)?;
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
    slept.hist.add(&woke.unanswered);
    let kind = match spec.kind {
        RemoteKind::Futex => WakeKind::Futex,
        RemoteKind::Eventfd => WakeKind::Eventfd,
    };
    let (from_cpu, gap) = (Some(spec.from_cpu), (spec.gap_ns, spec.pauses));
    let about = SampleHead { kind, cpu: spec.cpu, from_cpu, gap, scheduling: slept.scheduling };
    let window = Window { start_at_ns: count_from_ns, end_at_ns: woke.end_at_ns.max(count_from_ns) };
    let mut slice = slice_of(about, slept.hist, woke.unanswered.len(), slept.clock_read_ns, window)?;
    let n_not_asleep = slept.n_not_asleep + woke.n_not_asleep;
    let waker = Waker { n_planned: woke.n_planned, n_missed: woke.n_missed, n_not_asleep, ..Waker::default() };
    slice.sample.waker = Some(with_lateness(waker, &woke.late));
    slice.sample.clock_bound_ns = clock_bound_ns;
    slice.late = woke.late;
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
    /// From a ring that found the one before unanswered until the sleeper ran.
    unanswered: Recorder,
    /// From the plan to the ring.
    late: Recorder,
    n_planned: u64,
    n_missed: u64,
    n_not_asleep: u64,
    end_at_ns: u64,
}

impl Woke {
    fn new() -> Woke {
        Woke {
            unanswered: Recorder::default(),
            late: Recorder::default(),
            n_planned: 0,
            n_missed: 0,
            n_not_asleep: 0,
            end_at_ns: 0,
        }
    }
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
        let mut gaps = Gaps::new(spec.gap_ns, spec.pauses);
        let mut woke = Woke::new();
        // Rings that found the sleeper busy; more than this at once (a stall of a second) is not worth keeping.
        let mut waiting: Vec<u64> = Vec::with_capacity(1024);
        let end_at_ns = self.count_from_ns + spec.duration_ns;
        let (mut rung, mut now_ns) = (0u32, clock::monotonic_ns());
        let mut planned_at_ns = now_ns + gaps.next_ns();
        while planned_at_ns < end_at_ns && !stop.load(Ordering::Relaxed) && !self.is_over.load(Ordering::Relaxed) {
            if sleep_until(planned_at_ns).is_err() {
                continue;
            }
            let is_answered = self.answered.load(Ordering::Acquire) == rung;
            if is_answered {
                self.count_unanswered(&mut waiting, &mut woke);
            }
            let rung_at_ns = clock::monotonic_ns();
            // The sleeper counts by the ring: a plan before the counted time may ring within it.
            let is_counted = rung_at_ns >= self.count_from_ns;
            if is_counted {
                woke.n_planned += 1;
                woke.late.saturating_record(rung_at_ns.saturating_sub(planned_at_ns).max(1));
            }
            if is_answered {
                rung = rung.wrapping_add(1);
                self.rung_at_ns.store(rung_at_ns, Ordering::Release);
                self.rung.store(rung, Ordering::Release);
                self.ring();
            } else if is_counted {
                match waiting.len() < waiting.capacity() {
                    true => waiting.push(rung_at_ns),
                    false => woke.n_missed += 1,
                }
            }
            now_ns = clock::monotonic_ns();
            planned_at_ns += gaps.next_ns();
            while planned_at_ns <= now_ns {
                if planned_at_ns >= self.count_from_ns && planned_at_ns < end_at_ns {
                    woke.n_planned += 1;
                    woke.n_missed += 1;
                }
                planned_at_ns += gaps.next_ns();
            }
        }
        for _ in 0..50 {
            if self.answered.load(Ordering::Acquire) == rung || self.is_over.load(Ordering::Relaxed) {
                self.count_unanswered(&mut waiting, &mut woke);
                break;
            }
            let _ = sleep_until(clock::monotonic_ns() + 1_000_000);
        }
        // What was never answered has no sample, nor has the last ring.
        woke.n_missed += waiting.len() as u64;
        if self.answered.load(Ordering::Acquire) != rung && woke.n_planned > 0 {
            woke.n_missed += 1;
        }
        Ok(Woke { end_at_ns: now_ns, ..woke })
    }

    fn count_unanswered(&self, waiting: &mut Vec<u64>, woke: &mut Woke) {
        let ran_at_ns = self.ran_at_ns.load(Ordering::Acquire);
        for rung_at_ns in waiting.drain(..) {
            // While the sleeper had run and was only finishing its notes nobody was asleep.
            match rung_at_ns < ran_at_ns {
                true => woke.unanswered.saturating_record(ran_at_ns - rung_at_ns),
                false => woke.n_not_asleep += 1,
            }
        }
    }
}

//! From idle to full speed: sleep, then quanta of known work with a clock reading between them.
//!
//! The work is a chain of xorshift steps, each needing the one before, so a quantum's time is its number of steps over
//! the clock's frequency and nothing else: no memory, no width to hide in. The thread is not real-time on purpose:
//! schedutil gives a SCHED_FIFO thread full speed at once (kernel/sched/cpufreq_schedutil.c), which would hide what is
//! measured. So others may take the CPU; such quanta stand out and are dropped ([`wakewatt_core::stats::ramp`]).
//! Lengths of idle time come in random order. FTaLaT (Mazouz et al. 2014) and synthmark measure alike.
//!
//! Effective frequency is read from the cycle counter at marks that double, so the readings do not disturb the curve.

use super::*;
use crate::bench::speed_parts::{Run, after_idle, vector_start};
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::samples::Window;
use wakewatt_core::samples::speed::{SpeedSample, VectorStart};
use wakewatt_core::stats::middle::median;
use wakewatt_core::stats::random::Random;
use wakewatt_host::cycles::Cycles;
use wakewatt_host::sched::MeasuringThread;
use wakewatt_host::vector::Width;
use wakewatt_host::{clock, sleep};

/// Aimed at.
const QUANTUM_NS: u64 = 10_000;
const VECTOR_QUANTUM_NS: u64 = 5_000;
const VECTOR_QUANTA: usize = 600;
const VECTOR_REPEATS: usize = 16;
/// Scalar quanta on either side of the vectors.
const SCALAR_QUANTA: usize = 300;
/// Warm-up before calibration: long enough for any governor.
const CALIBRATION_NS: u64 = 50_000_000;

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeedSpec {
    pub cpu: Cpu,
    /// Idle times, and how often each. An interruption is obeyed after the one under way.
    pub idle: Vec<(u64, u32)>,
    /// How long to work after each.
    pub work_ns: u64,
    /// Order.
    pub seed: u64,
    /// Look at wide vectors too.
    pub has_vector: bool,
}

impl SpeedSpec {
    /// 1 ms to 1 s, 40 ms of work after each; some 8 s.
    pub fn on(cpu: Cpu) -> SpeedSpec {
        let ms = 1_000_000;
        let idle = vec![(ms, 24), (10 * ms, 24), (100 * ms, 12), (1000 * ms, 4)];
        SpeedSpec { cpu, idle, work_ns: 40 * ms, seed: 1, has_vector: true }
    }
}

/// Measures, until done or stopped.
pub fn speed(spec: &SpeedSpec, stop: &AtomicBool) -> Result<SpeedSample, BenchError> {
    check_cpu(spec.cpu)?;
    std::thread::scope(|scope| scope.spawn(|| measure(spec, stop)).join()).map_err(|_| BenchError::Crashed)?
}

#[inline(never)]
pub(crate) fn chain(mut x: u64, steps: u64) -> u64 {
    for _ in 0..steps {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

fn measure(spec: &SpeedSpec, stop: &AtomicBool) -> Result<SpeedSample, BenchError> {
    let thread = MeasuringThread::enter(Some(spec.cpu), None)
        .map_err(|e| BenchError::system(format!("pinning a thread to CPU {}", spec.cpu), e))?;
    let start_at_ns = clock::monotonic_ns();
    let (steps, quantum_ns) = calibrate(|n| _ = black_box(chain(black_box(1), n)), QUANTUM_NS, CALIBRATION_NS, stop)?;
    let counter = Cycles::of_this_thread();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some thousands
    let n_quanta = (spec.work_ns as f64 / quantum_ns).ceil().max(1.0) as usize;
    let mut order: Vec<usize> = Vec::new();
    for (at, (_, n)) in spec.idle.iter().enumerate() {
        order.extend((0..*n).map(|_| at));
    }
    Random::new(spec.seed).shuffle(&mut order);
    let mut runs: Vec<Vec<Run>> = spec.idle.iter().map(|_| Vec::new()).collect();
    for at in order {
        // Room for a slow clock: the time ends the run, the number of quanta only bounds it.
        let mut run = Run::with_room(n_quanta);
        if !work_after(spec.idle[at].0, steps, counter.as_ref().ok(), &mut run, stop) {
            break;
        }
        runs[at].push(run);
    }
    let after: Vec<_> =
        spec.idle.iter().zip(&runs).filter_map(|((idle_ns, _), runs)| after_idle(*idle_ns, runs, quantum_ns)).collect();
    if after.is_empty() {
        return Err(BenchError::NoSamples);
    }
    let width = Width::widest().filter(|_| spec.has_vector && !stop.load(Ordering::Relaxed));
    let vector = width.and_then(|width| vector(width, steps, stop));
    let no_counters = counter.err().map(|e| {
        format!("no cycle counter ({e}: a guest without a virtual PMU, or perf_event_paranoid above 2), so speed is relative")
    });
    let scheduling = thread.scheduling().clone();
    let end_at_ns = clock::monotonic_ns();
    Ok(SpeedSample {
        cpu: spec.cpu,
        steps_per_quantum: steps,
        quantum_ns,
        worked_ns: spec.work_ns,
        after,
        vector,
        no_counters,
        scheduling,
        window: Window { start_at_ns, end_at_ns },
    })
}

/// Work units for a quantum, and what it takes at full speed.
fn calibrate(work: impl Fn(u64), aim_ns: u64, warm_ns: u64, stop: &AtomicBool) -> Result<(u64, f64), BenchError> {
    let mut steps = 64;
    let end_ns = clock::monotonic_ns() + warm_ns;
    // Medians, since a single time may be a preemption, and the minimum a lucky boost.
    let time = |steps: u64| {
        let mut times = [0.0; 31];
        for time in &mut times {
            let start_ns = clock::monotonic_ns();
            work(steps);
            *time = (clock::monotonic_ns() - start_ns) as f64;
        }
        median(&mut times).unwrap_or(1.0).max(1.0)
    };
    loop {
        let took_ns = time(steps);
        let is_warm = clock::monotonic_ns() >= end_ns;
        if (is_warm && took_ns > aim_ns as f64 * 0.9 && took_ns < aim_ns as f64 * 1.1) || stop.load(Ordering::Relaxed) {
            return Ok((steps, took_ns));
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most eight times as many
        let next = (steps as f64 * (aim_ns as f64 / took_ns).clamp(0.5, 8.0)).ceil() as u64;
        steps = next.max(1);
        if clock::monotonic_ns() > end_ns + 5_000_000_000 {
            let why =
                "a quantum of equal work never took an equal time: something keeps taking this CPU away".to_string();
            return Err(BenchError::Unavailable(why));
        }
    }
}

/// Sleeps, then works; false when stopped.
fn work_after(idle_ns: u64, steps: u64, counter: Option<&Cycles>, run: &mut Run, stop: &AtomicBool) -> bool {
    let planned_at_ns = clock::monotonic_ns() + idle_ns;
    // One sleep, so that the idle time is one; a look at the flag in between would be a wake-up. A stop waits for its end.
    while !stop.load(Ordering::Relaxed) && clock::monotonic_ns() < planned_at_ns {
        let _ = sleep::sleep_until(planned_at_ns);
    }
    if stop.load(Ordering::Relaxed) {
        return false;
    }
    let mut before_ns = clock::monotonic_ns();
    run.exit_ns = before_ns.saturating_sub(planned_at_ns) as f64;
    let (mut x, mut next_mark) = (1, 0);
    while run.times_ns.len() < run.times_ns.capacity() {
        if run.times_ns.len() == next_mark {
            if let Some(cycles) = counter.and_then(|c| c.read().ok()) {
                run.marks.push((next_mark, cycles));
            }
            next_mark = (next_mark * 2).max(8);
            before_ns = clock::monotonic_ns();
        }
        x = black_box(chain(black_box(x), steps));
        let now_ns = clock::monotonic_ns();
        run.times_ns.push((now_ns - before_ns) as f64);
        before_ns = now_ns;
    }
    true
}

/// Wide vectors on a CPU at speed: scalar, vector, scalar.
fn vector(width: Width, steps: u64, stop: &AtomicBool) -> Option<VectorStart> {
    // Calibrated on few rounds after a short warm-up; it is the start that is measured, not this.
    let (rounds, _) =
        calibrate(|n| _ = black_box(width.work(black_box(n))), VECTOR_QUANTUM_NS, 5_000_000, stop).ok()?;
    let mut runs: Vec<[Vec<f64>; 3]> = Vec::with_capacity(VECTOR_REPEATS);
    for _ in 0..VECTOR_REPEATS {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        // Upper lanes power down after some 700 us without such an instruction.
        let _ = sleep::sleep_until(clock::monotonic_ns() + 2_000_000);
        let mut times =
            [Vec::with_capacity(SCALAR_QUANTA), Vec::with_capacity(VECTOR_QUANTA), Vec::with_capacity(SCALAR_QUANTA)];
        for (part, times) in times.iter_mut().enumerate() {
            while times.len() < times.capacity() {
                let start_ns = clock::monotonic_ns();
                if part == 1 {
                    black_box(width.work(black_box(rounds)));
                } else {
                    black_box(chain(black_box(1), steps));
                }
                times.push((clock::monotonic_ns() - start_ns) as f64);
            }
        }
        runs.push(times);
    }
    vector_start(width.name(), &runs)
}

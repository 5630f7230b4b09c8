//! A cache line handed to and fro between two CPUs.
//!
//! Both threads spin with compare-and-swap on one word: the leader turns 0 into 1, the follower 1 into 0. A batch of 500
//! round trips is timed as a whole on the leader's clock; half a round trip is one hand-over. That is the method of
//! core-to-core-latency's `cas` bench and of multichase's pingpong, so numbers compare. Each direction is a measurement
//! of its own with fresh pages, touched first by the leader, so the line's home is the leader's node: the known fault of
//! core-to-core-latency (issue 97) is one line for all pairs. Batches take turns over 16 lines, because where a line's
//! address hashes to decides which cache slice answers.
//!
//! Neither thread sleeps, so a follower that is taken off its CPU (by a hypervisor, a quota, or CPU hotplug) would leave
//! the leader spinning for ever at real-time priority: each gives up after a second without an answer.

use super::*;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use wakewatt_core::samples::Scheduling;
use wakewatt_core::stats::middle::{Middle, middle};
use wakewatt_host::line::Lines;
use wakewatt_host::{clock, sched::MeasuringThread};

/// Round trips in a batch: some 100 us, so that reading the clock is nothing.
pub const ROUND_TRIPS: u32 = 500;
/// Batches that count.
const BATCHES: usize = 300;
/// Batches before that are discarded: the clock of a CPU that slept needs some milliseconds to rise.
const WARMUP_NS: u64 = 10_000_000;
const LINES: usize = 16;
const OURS: u32 = 0;
const THEIRS: u32 = 1;
const OVER: u32 = 2;
/// Failed attempts between two looks at the clock, and how long to wait for an answer.
const LOOK_EVERY: u32 = 1 << 14;
const PATIENCE_NS: u64 = 1_000_000_000;

/// One direction of one pair.
#[derive(Clone, Debug)]
pub struct HandOverSlice {
    /// One hand-over, one way, over the batches.
    pub one_way_ns: Middle,
    /// Batches counted.
    pub n_batches: u32,
    /// Where the line lay.
    pub line_node: Option<u32>,
    /// How the leader was scheduled.
    pub scheduling: Scheduling,
}

/// Measures one direction.
pub fn hand_over(from_cpu: Cpu, to_cpu: Cpu, stop: &AtomicBool) -> Result<HandOverSlice, BenchError> {
    if from_cpu == to_cpu {
        return Err(BenchError::SameCpu(to_cpu));
    }
    check_cpu(from_cpu)?;
    check_cpu(to_cpu)?;
    let (lines, is_over) = (OnceLock::new(), AtomicBool::new(false));
    let (led, followed) = std::thread::scope(|scope| {
        let leader = scope.spawn(|| lead(from_cpu, to_cpu, &lines, &is_over, stop));
        let follower = scope.spawn(|| follow(to_cpu, &lines, &is_over));
        (leader.join(), follower.join())
    });
    followed.map_err(|_| BenchError::Crashed)??;
    led.map_err(|_| BenchError::Crashed)?
}

/// Ends the other thread, however this one ends.
struct EndsBoth<'a>(&'a OnceLock<Lines>, &'a AtomicBool);

impl Drop for EndsBoth<'_> {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Release);
        if let Some(lines) = self.0.get() {
            (0..LINES).for_each(|k| lines.line(k).store(OVER, Ordering::Release));
        }
    }
}

/// Turns `from` into `to` when it comes; false when it is over or nobody answers.
fn turn(line: &AtomicU32, from: u32, to: u32) -> bool {
    let (mut n_failed, mut since_ns) = (0u32, 0);
    loop {
        match line.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(OVER) => return false,
            Err(_) => n_failed = n_failed.wrapping_add(1),
        }
        if n_failed % LOOK_EVERY == 0 {
            let now_ns = clock::monotonic_ns();
            if since_ns == 0 {
                since_ns = now_ns;
            } else if now_ns - since_ns > PATIENCE_NS {
                return false;
            }
        }
    }
}

fn enter(cpu: Cpu) -> Result<MeasuringThread, BenchError> {
    MeasuringThread::enter(Some(cpu), Some(DEFAULT_FIFO_PRIORITY))
        .map_err(|e| BenchError::system(format!("pinning a thread to CPU {cpu}"), e))
}

fn lead(
    cpu: Cpu,
    to_cpu: Cpu,
    shared: &OnceLock<Lines>,
    is_over: &AtomicBool,
    stop: &AtomicBool,
) -> Result<HandOverSlice, BenchError> {
    let _ends = EndsBoth(shared, is_over);
    let thread = enter(cpu)?;
    let fresh = Lines::here(LINES).map_err(|e| BenchError::system("mapping fresh pages", e))?;
    let line_node = fresh.node();
    let lines = shared.get_or_init(|| fresh);
    let mut one_way_ns = [0.0; BATCHES];
    let (mut n, mut warm_at_ns) = (0, None);
    for line in (0..LINES).cycle().map(|k| lines.line(k)) {
        if n == BATCHES || stop.load(Ordering::Relaxed) {
            break;
        }
        let start_ns = clock::monotonic_ns();
        for _ in 0..ROUND_TRIPS {
            if !turn(line, OURS, THEIRS) {
                let why = format!(
                    "CPU {to_cpu} did not answer CPU {cpu} within a second; is it kept from running (quota, hypervisor, hotplug)?"
                );
                return Err(BenchError::Unavailable(why));
            }
        }
        // The last answer is not awaited: the batch has as many hand-overs there as back but for the last one.
        let length_ns = clock::monotonic_ns().saturating_sub(start_ns);
        // From the first answer on: before it the other thread may not have been there.
        if start_ns >= *warm_at_ns.get_or_insert(start_ns + length_ns + WARMUP_NS) {
            one_way_ns[n] = length_ns as f64 / f64::from(2 * ROUND_TRIPS - 1);
            n += 1;
        }
    }
    let scheduling = thread.scheduling().clone();
    let one_way_ns = middle(&mut one_way_ns[..n]).ok_or(BenchError::NoSamples)?;
    Ok(HandOverSlice { one_way_ns, n_batches: u32::try_from(n).unwrap_or(0), line_node, scheduling })
}

fn follow(cpu: Cpu, shared: &OnceLock<Lines>, is_over: &AtomicBool) -> Result<(), BenchError> {
    let _ends = EndsBoth(shared, is_over);
    let _thread = enter(cpu)?;
    let lines = loop {
        match shared.get() {
            Some(lines) => break lines,
            None if is_over.load(Ordering::Acquire) => return Ok(()),
            None => std::thread::yield_now(),
        }
    };
    for line in (0..LINES).cycle().map(|k| lines.line(k)) {
        for _ in 0..ROUND_TRIPS {
            if !turn(line, THEIRS, OURS) {
                return Ok(());
            }
        }
    }
    Ok(())
}

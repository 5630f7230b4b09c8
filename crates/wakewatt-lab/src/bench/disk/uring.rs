//! io_uring: one thread keeps up to `depth` reads under way, and sleeps in the kernel until one completes.
//!
//! The submission is part of a read's latency: the clock is read before the system call that submits and waits. With
//! several reads under way the ones queued first wait for the others to be queued, as they do in every program.

use super::{Job, Offsets, Read, ReadSchedule, Tally, broken, pinning, schedule};
use crate::bench::BenchError;
use std::sync::atomic::Ordering;
use wakewatt_core::units::Cpu;
use wakewatt_host::clock;
use wakewatt_host::disk::ring::ReadRing;
use wakewatt_host::sched::MeasuringThread;

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    planned_at_ns: Option<u64>,
    submitted_at_ns: u64,
    at_bytes: u64,
    is_late: bool,
}

/// All reads, from one CPU.
pub(crate) fn measure(job: &Job<'_>, cpu: Cpu) -> Result<Tally, BenchError> {
    let spec = job.spec;
    let thread = MeasuringThread::enter(Some(cpu), spec.fifo_priority).map_err(|e| pinning(cpu, e))?;
    let failed = |e| BenchError::system("waiting for io_uring", e);
    let block_bytes = u32::try_from(job.block_len).unwrap_or(u32::MAX);
    let mut ring = ReadRing::new(job.target.fd(), spec.depth, block_bytes)
        .map_err(|e| BenchError::Unavailable(format!("io_uring: {e}; --engine psync does without it")))?;
    let mut offsets = Offsets::new(spec.access, job.target.size_bytes, spec.block_bytes, spec.seed, (0, 1));
    let mut plan = ReadSchedule::new(spec.planned_per_s, spec.seed ^ 1, job.start_at_ns);
    let mut tally = Tally::from(job.count_from_ns, thread.scheduling().clone());
    let mut slots = vec![Slot::default(); spec.depth as usize];
    let mut free: Vec<u32> = (0..spec.depth).rev().collect();
    // A start that was waited for is not late, however long the wake-up took.
    let mut waited_for_ns = 0;
    let mut now_ns = clock::monotonic_ns();
    while now_ns < job.end_at_ns && !job.stop.load(Ordering::Relaxed) {
        while let Some(slot) = free.pop() {
            let planned_at_ns = plan.next_at_ns();
            if planned_at_ns.is_some_and(|at| at > now_ns || at >= job.end_at_ns) {
                free.push(slot);
                break;
            }
            let at_bytes = offsets.next_bytes();
            let is_late = planned_at_ns.is_some_and(|at| at != waited_for_ns);
            slots[slot as usize] = Slot { planned_at_ns, submitted_at_ns: clock::monotonic_ns(), at_bytes, is_late };
            ring.queue(slot, at_bytes).map_err(failed)?;
            plan.advance();
        }
        let next_at_ns = plan.next_at_ns().filter(|_| !free.is_empty());
        if free.len() == slots.len() {
            let Some(at_ns) = next_at_ns.filter(|at| *at < job.end_at_ns) else { break };
            schedule::sleep_towards(at_ns, job.stop);
            waited_for_ns = at_ns;
        } else {
            // Closed loop, or every slot is busy: then only a completion matters, and it will come.
            let at_most_ns = next_at_ns.map(|at| at.saturating_sub(clock::monotonic_ns()).max(1));
            ring.wait(at_most_ns).map_err(failed)?;
            waited_for_ns = next_at_ns.unwrap_or(0);
        }
        now_ns = clock::monotonic_ns();
        while let Some((slot, result)) = ring.completed() {
            let Some(&Slot { planned_at_ns, submitted_at_ns, at_bytes, is_late }) = slots.get(slot as usize) else {
                continue;
            };
            free.push(slot);
            match result {
                Ok(n) if n == job.block_len => {}
                other => return Err(broken(at_bytes, job.block_len, other)),
            }
            tally.record(Read { planned_at_ns, submitted_at_ns, done_at_ns: now_ns }, is_late);
        }
    }
    if !job.stop.load(Ordering::Relaxed) {
        tally.n_never_started = plan.n_left_before(job.end_at_ns);
    }
    Ok(tally)
}

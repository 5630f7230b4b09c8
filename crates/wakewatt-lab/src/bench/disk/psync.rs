//! `pread`, one read after the other: what most programs do. More reads under way need more threads.

use super::{Job, Offsets, Read, ReadSchedule, Tally, broken, pinning, schedule};
use crate::bench::BenchError;
use std::sync::atomic::Ordering;
use wakewatt_core::units::Cpu;
use wakewatt_host::clock;
use wakewatt_host::disk::aligned::Aligned;
use wakewatt_host::sched::MeasuringThread;

/// Thread `share` of `spec.depth`, on its CPU.
pub(crate) fn measure(job: &Job<'_>, share: u32, cpu: Cpu) -> Result<Tally, BenchError> {
    let spec = job.spec;
    let thread = MeasuringThread::enter(Some(cpu), spec.fifo_priority).map_err(|e| pinning(cpu, e))?;
    let mut offsets =
        Offsets::new(spec.access, job.target.size_bytes, spec.block_bytes, spec.seed, (share, spec.depth));
    let per_s = spec.planned_per_s.map(|all| all / f64::from(spec.depth));
    let mut plan = ReadSchedule::new(per_s, spec.seed ^ u64::from(share + 1), job.start_at_ns);
    let mut tally = Tally::from(job.count_from_ns, thread.scheduling().clone());
    let mut buffer = Aligned::new(job.block_len);
    let mut now_ns = clock::monotonic_ns();
    while now_ns < job.end_at_ns && !job.stop.load(Ordering::Relaxed) {
        let planned_at_ns = plan.next_at_ns();
        let mut is_late = false;
        if let Some(at_ns) = planned_at_ns {
            if at_ns >= job.end_at_ns {
                break;
            }
            is_late = at_ns <= now_ns;
            if !is_late {
                schedule::sleep_towards(at_ns, job.stop);
                now_ns = clock::monotonic_ns();
                if now_ns < at_ns {
                    continue; // a signal: sleep on, or stop
                }
            }
        }
        let at_bytes = offsets.next_bytes();
        let submitted_at_ns = clock::monotonic_ns();
        let result = job.target.read_at(buffer.bytes(), at_bytes);
        now_ns = clock::monotonic_ns();
        match result {
            Ok(n) if n == job.block_len => {}
            Err(rustix::io::Errno::INTR) => continue,
            other => return Err(broken(at_bytes, job.block_len, other)),
        }
        tally.record(Read { planned_at_ns, submitted_at_ns, done_at_ns: now_ns }, is_late);
        plan.advance();
    }
    if !job.stop.load(Ordering::Relaxed) {
        tally.n_never_started = plan.n_left_before(job.end_at_ns);
    }
    Ok(tally)
}

//! Hand-overs through pipes: two threads give one byte back and forth without a pause, as `perf bench sched pipe` does.
//!
//! Each hand-over wakes the other thread and puts this one to sleep, so a round trip is two wake-ups, and a sample is one
//! of them, from one thread running to the other running. There is one stamp per hand-over, from which the next one
//! counts: the samples leave nothing out, and twice their mean is perf's "usecs/op". Like perf's, the threads are in the
//! ordinary class. With both on one CPU the switch alone is measured and the CPU never idles; across two, each is idle
//! while the other runs, but so briefly that a governor seldom lets it sleep deep. The gap of the other kinds is not used.

use super::wakeup_timer::{SampleHead, slice_of};
use super::*;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wakewatt_core::samples::waker::Pauses;
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_core::samples::{Scheduling, Window};
use wakewatt_core::source::Source;
use wakewatt_core::stats::distribution::Recorder;
use wakewatt_host::clock;
use wakewatt_host::sched::MeasuringThread;

/// Measures, until done or stopped. `spec.kind`, its gap and its priority are not looked at; both CPUs may be the same.
pub fn pipe(spec: &RemoteSpec, stop: &AtomicBool, src: &dyn Source) -> Result<WakeupSlice, BenchError> {
    check_cpu(spec.cpu)?;
    check_cpu(spec.from_cpu)?;
    let made = || std::io::pipe().map_err(|e| BenchError::system("making a pipe", e));
    let ((there_out, there_in), (back_out, back_in)) = (made()?, made()?);
    let count_from_ns = clock::monotonic_ns() + spec.warmup_ns;
    let end_at_ns = count_from_ns + spec.duration_ns;
    let shared = Shared { count_from_ns, end_at_ns, last_at_ns: AtomicU64::new(0) };
    let baseline = IdleBaseline::read(src, &[spec.cpu]);
    let (first, second) = std::thread::scope(|scope| {
        let second = scope.spawn(|| shared.answer(spec.cpu, there_out, back_in));
        let first = scope.spawn(|| shared.lead(spec.from_cpu, back_out, there_in, stop));
        (first.join(), second.join())
    });
    let first = first.map_err(|_| BenchError::Crashed)??;
    let mut second = second.map_err(|_| BenchError::Crashed)??;
    second.hist.add(&first.hist);
    let end_at_ns = shared.last_at_ns.load(Ordering::Acquire).max(count_from_ns);
    let window = Window { start_at_ns: count_from_ns, end_at_ns };
    let about = SampleHead {
        kind: WakeKind::Pipe,
        cpu: spec.cpu,
        from_cpu: Some(spec.from_cpu),
        gap: (0, Pauses::Fixed),
        scheduling: second.scheduling,
    };
    let mut slice = slice_of(about, second.hist, 0, second.clock_read_ns, window)?;
    slice.sample.idle = baseline.since(src).into_iter().next();
    Ok(slice)
}

struct Shared {
    count_from_ns: u64,
    end_at_ns: u64,
    /// When the byte last arrived somewhere.
    last_at_ns: AtomicU64,
}

struct Half {
    hist: Recorder,
    scheduling: Scheduling,
    clock_read_ns: u64,
}

impl Shared {
    /// Stamps an arrival: the time since the other side's is a sample.
    fn arrived(&self, hist: &mut Recorder) -> u64 {
        let now_ns = clock::monotonic_ns();
        let before_ns = self.last_at_ns.swap(now_ns, Ordering::AcqRel);
        if before_ns >= self.count_from_ns {
            hist.saturating_record(now_ns.saturating_sub(before_ns).max(1));
        }
        now_ns
    }

    fn enter(cpu: Cpu) -> Result<(MeasuringThread, Half), BenchError> {
        let thread = MeasuringThread::enter(Some(cpu), None)
            .map_err(|e| BenchError::system(format!("pinning a thread to CPU {cpu}"), e))?;
        let scheduling = thread.scheduling().clone();
        Ok((thread, Half { hist: Recorder::default(), scheduling, clock_read_ns: clock::read_cost_ns() }))
    }

    /// Hands over first and decides when it is over. Its ends of the pipes close when it returns, which ends the other.
    fn lead(&self, cpu: Cpu, mut from: PipeReader, mut to: PipeWriter, stop: &AtomicBool) -> Result<Half, BenchError> {
        let (_thread, mut half) = Shared::enter(cpu)?;
        let mut now_ns = clock::monotonic_ns();
        while now_ns < self.end_at_ns && !stop.load(Ordering::Relaxed) {
            if to.write_all(&[1]).is_err() || from.read_exact(&mut [0]).is_err() {
                break;
            }
            now_ns = self.arrived(&mut half.hist);
        }
        Ok(half)
    }

    fn answer(&self, cpu: Cpu, mut from: PipeReader, mut to: PipeWriter) -> Result<Half, BenchError> {
        let (_thread, mut half) = Shared::enter(cpu)?;
        while from.read_exact(&mut [0]).is_ok() {
            self.arrived(&mut half.hist);
            if to.write_all(&[1]).is_err() {
                break;
            }
        }
        Ok(half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    fn spec(from_cpu: Cpu, cpu: Cpu) -> RemoteSpec {
        RemoteSpec { warmup_ns: 1_000_000, ..RemoteSpec::between(RemoteKind::Futex, from_cpu, cpu, 20_000_000) }
    }

    #[test]
    fn the_samples_lie_in_the_window_even_on_one_cpu() {
        let cpu = wakewatt_host::affinity::allowed_cpus().unwrap().first().unwrap();
        // A CPU that others keep for all of the 20 ms yields nothing.
        let mut slices = (0..2000).map(|_| pipe(&spec(cpu, cpu), &AtomicBool::new(false), &Tree::default()));
        let slice = slices.find(|slice| !matches!(slice, Err(BenchError::NoSamples))).unwrap().unwrap();
        let window_ns = (slice.sample.window.end_at_ns - slice.sample.window.start_at_ns) as f64;
        let sum_ns = slice.sample.latency.mean_ns * slice.hist.len() as f64;
        // Histograms keep three digits; on a busy machine the first sample starts long after the window.
        assert!(sum_ns > 0.0 && sum_ns / window_ns < 1.01, "{sum_ns} of {window_ns}");
        assert_eq!((slice.sample.kind, slice.sample.from_cpu), (WakeKind::Pipe, Some(cpu)));
    }

    #[test]
    fn a_stop_ends_it_and_a_foreign_cpu_is_refused() {
        let cpu = wakewatt_host::affinity::allowed_cpus().unwrap().first().unwrap();
        let stopped = pipe(&spec(cpu, cpu), &AtomicBool::new(true), &Tree::default());
        assert!(matches!(stopped, Err(BenchError::NoSamples)), "{stopped:?}");
        let foreign = pipe(&spec(cpu, 4000), &AtomicBool::new(false), &Tree::default());
        assert!(matches!(foreign, Err(BenchError::CpuNotAllowed { cpu: 4000, .. })), "{foreign:?}");
    }
}

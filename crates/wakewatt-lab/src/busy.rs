//! Keeps CPUs busy for a share of the time, so that a meter has something to see.
//!
//! One thread per CPU, in the ordinary class so that other work is not starved. It works and sleeps in turns of two
//! milliseconds together: long against a wake-up, short against a meter's reading. Dropping it ends the threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_host::sched::MeasuringThread;
use wakewatt_host::{clock, sleep};

const TURN_NS: u64 = 2_000_000;

/// Threads at work.
#[derive(Debug)]
pub struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    /// Starts one thread on each CPU, at work for so many hundredths of its time. A CPU that refuses stays idle.
    pub fn start(cpus: &CpuSet, percent: u8) -> Busy {
        let stop = Arc::new(AtomicBool::new(false));
        let work_ns = TURN_NS / 100 * u64::from(percent.min(100));
        let thread = |cpu| {
            let stop = Arc::clone(&stop);
            let run = move || {
                let Ok(_thread) = MeasuringThread::enter(Some(cpu), None) else { return };
                while !stop.load(Ordering::Relaxed) {
                    let start_at_ns = clock::monotonic_ns();
                    while clock::monotonic_ns() < start_at_ns + work_ns {
                        std::hint::black_box(start_at_ns.wrapping_mul(3));
                    }
                    if work_ns < TURN_NS {
                        let _ = sleep::sleep_until(start_at_ns + TURN_NS);
                    }
                }
            };
            std::thread::Builder::new().name(format!("busy-{cpu}")).spawn(run).ok()
        };
        let threads = cpus.iter().filter_map(thread).collect();
        Busy { stop, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

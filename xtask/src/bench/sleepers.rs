//! A load that comes alike each time: a thread on each CPU that sleeps by a seeded series and works a little.

use anyhow::{Result, ensure};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Threads that sleep by a seeded series and work a little, one on each CPU; dropping it ends them.
pub(super) struct Sleepers {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Sleepers {
    /// Each sleeps up to the first, and works for the second.
    pub(super) fn start(longest: Duration, work: Duration) -> Result<Sleepers> {
        let stop = Arc::new(AtomicBool::new(false));
        let n = std::thread::available_parallelism()?.get();
        ensure!(n <= 1024, "more CPUs than this load is for");
        let one = |cpu: usize| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let mut own = rustix::thread::CpuSet::new();
                own.set(cpu);
                let _ = rustix::thread::sched_setaffinity(None, &own);
                let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
                let mut seed = cpu as u64 + 1;
                while !stop.load(Ordering::Relaxed) {
                    seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                    std::thread::sleep(longest.mul_f64((seed >> 40) as f64 / (1u64 << 24) as f64));
                    let begun = Instant::now();
                    while begun.elapsed() < work {
                        std::hint::spin_loop();
                    }
                }
            })
        };
        Ok(Sleepers { threads: (0..n).map(one).collect(), stop: Arc::clone(&stop) })
    }
}

impl Drop for Sleepers {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

//! What a transaction does: a mix of integer arithmetic and memory, in units that are the same work on every machine.
//!
//! A unit is a chain of 32 steps, each of which needs the one before: shift, exclusive or, multiply (as hash functions do),
//! then a load from a table at the place the hash says and a store back. So a unit takes as long as the core's latencies,
//! at whatever clock it runs, and a compiler has nothing to shorten. The table is 256 KiB a thread, which lies in the second
//! level of caches: the mix is arithmetic with some memory, not a memory benchmark (`measure memory` is).
//!
//! The number of units in a transaction is found once, with all threads at work together and after a warm-up, and then stays:
//! fixed work takes longer when the clock drops or a sibling thread is busy, and the latency shows it.

/// Words in the table: 256 KiB.
const WORDS: usize = 32 * 1024;
/// Steps in a unit.
const STEPS: usize = 32;
/// Work before anything is timed, so that clocks are up.
const WARMUP_NS: u64 = 300_000_000;
/// Batches that are timed: so long each, so many.
const BATCH_NS: u64 = 5_000_000;
const BATCHES: usize = 41;

/// The table of one thread, and where it is.
#[derive(Clone, Debug)]
pub struct Work {
    table: Vec<u64>,
    state: u64,
}

impl Work {
    /// A table of its own; every page is touched, by the thread that will use it.
    pub fn new(seed: u64) -> Work {
        let mut random = wakewatt_core::stats::random::Random::new(seed);
        Work { table: (0..WORDS).map(|_| random.bits()).collect(), state: seed | 1 }
    }

    /// Does so many units.
    pub fn run(&mut self, n_units: u64) {
        let mut x = self.state;
        for _ in 0..n_units {
            for _ in 0..STEPS {
                x = (x ^ (x >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                #[allow(clippy::cast_possible_truncation)] // the top 15 bits
                let at = (x >> 49) as usize % WORDS;
                // WORDS is the table's length, so there always is one.
                if let Some(word) = self.table.get_mut(at) {
                    x = x.wrapping_add(*word);
                    *word = x;
                }
            }
        }
        self.state = std::hint::black_box(x);
    }

    /// What a unit takes on this thread now: the median of many batches.
    pub fn cost_ns(&mut self, now_ns: impl Fn() -> u64) -> f64 {
        let until_ns = now_ns().saturating_add(WARMUP_NS);
        let mut n_warm = 0u64;
        let start_ns = now_ns();
        while now_ns() < until_ns {
            self.run(16);
            n_warm += 16;
        }
        let about_ns = (now_ns().saturating_sub(start_ns) as f64 / n_warm.max(1) as f64).max(0.1);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let n_units = ((BATCH_NS as f64 / about_ns) as u64).max(1);
        let mut costs: Vec<f64> = (0..BATCHES)
            .map(|_| {
                let start_ns = now_ns();
                self.run(n_units);
                now_ns().saturating_sub(start_ns) as f64 / n_units as f64
            })
            .collect();
        costs.sort_by(f64::total_cmp);
        costs.get(BATCHES / 2).copied().unwrap_or(about_ns)
    }
}

/// Units that take this long, at these costs of a unit on the threads.
pub fn units_for(service_ns: u64, costs_ns: &[f64]) -> u64 {
    let mean = costs_ns.iter().sum::<f64>() / costs_ns.len().max(1) as f64;
    if mean.is_nan() || mean <= 0.0 {
        return 1;
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let units = (service_ns as f64 / mean).round() as u64;
    units.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_the_same_every_time() {
        let done = |n| {
            let mut work = Work::new(5);
            work.run(n);
            work.state
        };
        assert_eq!(done(100), done(100));
        assert_ne!(done(100), done(101));
        let (mut at_once, mut in_parts) = (Work::new(5), Work::new(5));
        at_once.run(30);
        (0..30).for_each(|_| in_parts.run(1));
        assert_eq!((at_once.state, at_once.table), (in_parts.state, in_parts.table));
    }

    #[test]
    fn units_come_from_the_mean_cost() {
        assert_eq!(units_for(500_000, &[200.0, 300.0]), 2000);
        assert_eq!(units_for(10, &[200.0]), 1, "never no work");
        assert_eq!((units_for(10, &[]), units_for(10, &[0.0]), units_for(10, &[f64::NAN])), (1, 1, 1));
    }
}

//! `cargo xtask bench coverage`: how often the 95 % intervals of `simulate` hold, for queues whose truth is
//! known.
//!
//! The table of docs/methods/simulate-coverage.md; --seeds gives a shorter or a longer one.

use anyhow::Result;
use wakewatt_sim::coverage::{Coverage, Queue, coverage};

/// Seeds of a queue at a load.
pub(crate) const SEEDS: u64 = 200;
const LOADS: [f64; 4] = [0.5, 0.8, 0.9, 0.95];
/// At least this part of the intervals must hold.
const GOAL: f64 = 0.93;

/// Prints the table; did every cell reach the goal?
pub(crate) fn run(n_seeds: u64) -> Result<bool> {
    let n_threads = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "| queue | load | mean held | p50 held | p99 held | ± mean | ± p50 | ± p99 | bias of p99 | simulated | refused |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut is_met = true;
    for queue in Queue::ALL {
        for rho in LOADS {
            let found = coverage(queue, rho, 1..=n_seeds, n_threads)?;
            println!("{}", row(queue, rho, &found));
            let least = f64::from(found.n_shown) * GOAL;
            // Few that are shown may be those that happened to be right.
            let is_mostly_shown = 4 * u64::from(found.n_shown) >= 3 * n_seeds;
            is_met &= is_mostly_shown && found.n_held.iter().all(|n| f64::from(*n) >= least);
        }
    }
    Ok(is_met)
}

fn row(queue: Queue, rho: f64, c: &Coverage) -> String {
    let percent = |ratio: f64| format!("{:.1} %", ratio * 100.0);
    let held = c.n_held.map(|n| percent(f64::from(n) / f64::from(c.n_shown.max(1)))).join(" | ");
    let half = c.half_ratio.map(percent).join(" | ");
    let n = c.n_shown + c.n_refused;
    format!(
        "| {} | {rho} | {held} | {half} | {:+.1} % | 8 × {:.0} s | {} of {n} |",
        queue.name(),
        c.bias_ratio[2] * 100.0,
        c.seconds,
        c.n_refused
    )
}

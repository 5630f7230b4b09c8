//! Published truth: figures that others measured, and what the models make of a workload that could have given them.
//!
//! Nobody published the recordings behind these figures, so nothing here can be exact. What can be asked: with the sleeps stated, does the order
//! come out, and roughly the ratio? Each file is one publication: its figures as facts, a life made from a seed with every assumption said
//! (`life` in the page), and what came of it. Where a number was chosen to meet a published one, the page says which. `cargo xtask truth` writes
//! docs/truth.md from here; a test holds the page to the code, and the orders and ratios that it claims to the models.

pub mod cpu;
mod page;
mod pseries;
mod rk3399;
mod shares;

pub use page::page;

use crate::accounting::Counts;
use wakewatt_core::stats::random::Random;

/// One published set of figures, beside ours.
#[derive(Clone, Debug)]
pub struct Truth {
    /// What it is about.
    pub title: &'static str,
    /// Who published what, where and when.
    pub source: &'static str,
    /// The life that we made, with all that was assumed.
    pub life: &'static str,
    /// Heads of the table's columns.
    pub columns: &'static [&'static str],
    /// Its rows.
    pub rows: Vec<Vec<String>>,
    /// How near that is, and why no nearer.
    pub nearness: &'static str,
}

/// All of them, in the order of the page.
pub const ALL: &[fn() -> Truth] = &[pseries::truth, rk3399::truth, shares::truth];

/// Sums over the states of a CPU, as shares are made from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    n: u64,
    above: u64,
    below: u64,
    time_ns: u64,
}

impl Sums {
    fn of(counts: &[Counts]) -> Sums {
        counts.iter().fold(Sums::default(), |sum, c| Sums {
            n: sum.n + c.usage,
            above: sum.above + c.above,
            below: sum.below + c.below,
            time_ns: sum.time_ns + c.time_ns,
        })
    }

    /// Entries that were wrong, either way.
    fn misses(self) -> u64 {
        self.above + self.below
    }

    fn percent(self, n: u64) -> f64 {
        100.0 * n as f64 / self.n.max(1) as f64
    }
}

/// Time in each state, in percent of all idle time.
fn time_percent(counts: &[Counts]) -> Vec<f64> {
    let whole = Sums::of(counts).time_ns.max(1) as f64;
    counts.iter().map(|c| 100.0 * c.time_ns as f64 / whole).collect()
}

/// A time from an exponential distribution, in whole nanoseconds.
#[allow(clippy::cast_possible_truncation)] // Means are milliseconds; a draw beyond 2^63 ns has no probability in 64 bits.
fn exponential_ns(random: &mut Random, mean_ns: f64) -> i64 {
    (-mean_ns * (1.0 - random.unit()).ln()) as i64
}

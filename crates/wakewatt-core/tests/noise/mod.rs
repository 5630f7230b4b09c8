//! The noise that machines make, block by block: what the gates judge the method by.

use std::sync::atomic::{AtomicUsize, Ordering};
use wakewatt_core::stats::random::Random;

/// One block varies by 8 % on a quiet guest (docs/methods/statistics.md).
const BLOCK_NOISE: f64 = 0.08;

/// Logarithms of block values, one after the other as a machine makes them; the setting's effect is not in them.
pub(crate) type Noise = fn(&mut Random, &mut State) -> f64;

/// What a machine remembers from block to block.
#[derive(Default)]
pub(crate) struct State {
    n_blocks: u32,
    last: f64,
    n_burst_left: u32,
}

fn normal(random: &mut Random, _: &mut State) -> f64 {
    BLOCK_NOISE * random.normal()
}

/// Student's t of three degrees of freedom.
fn heavy(random: &mut Random, _: &mut State) -> f64 {
    let chi: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
    BLOCK_NOISE * random.normal() / (chi / 3.0).sqrt()
}

/// Somebody else's job of three blocks, now and then.
fn bursty(random: &mut Random, state: &mut State) -> f64 {
    if state.n_burst_left == 0 && random.below(20) == 0 {
        state.n_burst_left = 3;
    }
    let burst = if state.n_burst_left > 0 { 0.5 } else { 0.0 };
    state.n_burst_left = state.n_burst_left.saturating_sub(1);
    burst + BLOCK_NOISE * random.normal()
}

/// A machine that warms up, half a percent a block, and whose blocks resemble their neighbours.
fn drifting(random: &mut Random, state: &mut State) -> f64 {
    state.n_blocks += 1;
    state.last = 0.8 * state.last + BLOCK_NOISE * 0.6 * random.normal();
    state.last + 0.005 * f64::from(state.n_blocks)
}

/// Most blocks are alike, one in seven is late by up to several times the noise, never early.
fn skewed(random: &mut Random, _: &mut State) -> f64 {
    let late = if random.below(7) == 0 { -0.3 * (1.0 - random.unit()).ln() } else { 0.0 };
    0.05 * random.normal() + late
}

pub(crate) const NOISES: [(&str, Noise); 5] = [
    ("normal", normal),
    ("heavy-tailed (t, 3)", heavy),
    ("bursts of three blocks", bursty),
    ("AR(1) 0.8 and drift", drifting),
    ("skewed mixture", skewed),
];

/// Each of these by itself, on all CPUs; what comes of them in their order. A gate is one test, and would leave all but one idle.
pub(crate) fn on_all_cpus<T: Sync, R: Send>(items: &[T], one: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut own = Vec::new();
        while let Some((at, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
        {
            own.push((at, one(item)));
        }
        own
    };
    let n_threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut found: Vec<(usize, R)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_threads).map(|_| scope.spawn(worker)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("simulating noise does not panic")).collect()
    });
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, result)| result).collect()
}

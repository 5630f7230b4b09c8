//! The same work twice: by how much does this machine differ from itself?
//!
//! One thread on one CPU does a fixed number of steps again and again, in windows of some 50 ms (the same work in each). Each pair of neighbouring
//! windows is dealt, one to A and one to B, by a coin. Nothing differs between A and B, so what is found between them is what
//! any benchmark of that length would find between two builds that are the same: the hypervisor, other processes, the
//! clock. A pair lies within a tenth of a second, so slow drift cancels, and what lies between today and tomorrow is not in it:
//! the number is the least that runs on this machine differ by, and never the most.
//!
//! The thread is not real-time: a benchmark is not, either.

use crate::bench::speed::chain;
use serde::Serialize;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::stats::normal::student_point;
use wakewatt_core::stats::random::Random;
use wakewatt_core::units::Cpu;
use wakewatt_host::clock::monotonic_ns;
use wakewatt_host::sched::MeasuringThread;

/// How long the clock gets to settle, and to say how much work fits a slice.
const WARM_NS: u64 = 150_000_000;
/// How long is worked after that.
const WORK_NS: u64 = 1_600_000_000;
/// Work between two readings of the clock.
const SLICE_NS: u64 = 500_000;
/// Windows on a CPU that nobody else wants; where others have it for half of the time, as many shorter ones.
const N_WINDOWS: usize = 32;
/// Fewer slices in a window, and one interruption is all of it.
const MIN_SLICES: usize = 8;
/// A slice that takes so much longer than the middle one was interrupted.
const INTERRUPTED: f64 = 1.05;

/// What the machine differs from itself by.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SelfDifference {
    /// The CPU that worked.
    pub cpu: Cpu,
    /// B over A minus one, which would be 0 on a machine without noise.
    pub ratio: f64,
    /// Lower end of the 95 % interval of that.
    pub low_ratio: f64,
    /// Upper end of that interval.
    pub high_ratio: f64,
    /// The score: the end of the interval that lies further from 0. So much may two runs of the same differ.
    pub at_most_ratio: f64,
    /// The longest window over the middle one, minus one.
    pub worst_window_ratio: f64,
    /// Share of the time that went to interruptions: slices that took 5 % longer than the middle one and more.
    pub interrupted_ratio: f64,
    /// The longest single interruption.
    pub longest_ns: u64,
    /// Pairs of windows.
    pub n_pairs: usize,
    /// Middle of the windows' lengths.
    pub window_ns: u64,
}

/// Works for some two seconds on a CPU. None where it was stopped, or too little was done to say anything.
pub(super) fn measure(cpu: Cpu, seed: u64, stop: &AtomicBool) -> Result<Option<SelfDifference>, String> {
    let work = || -> Result<Vec<u64>, String> {
        let _thread =
            MeasuringThread::enter(Some(cpu), None).map_err(|e| format!("pinning a thread to CPU {cpu}: {e}"))?;
        Ok(slices(stop))
    };
    let slices = std::thread::scope(|scope| scope.spawn(work).join());
    let slices = slices.map_err(|_| "the measuring thread ended early".to_string())??;
    Ok(judge(cpu, &slices, seed))
}

/// The length of every slice.
fn slices(stop: &AtomicBool) -> Vec<u64> {
    let time = |steps: u64| {
        let start_ns = monotonic_ns();
        black_box(chain(black_box(1), steps));
        monotonic_ns() - start_ns
    };
    let start_ns = monotonic_ns();
    // The quickest of the last few: a slice that was interrupted says nothing of its work.
    let mut steps = 100_000u64;
    while monotonic_ns() < start_ns + WARM_NS && !stop.load(Ordering::Relaxed) {
        let quickest_ns = (0..5).map(|_| time(steps)).min().unwrap_or(SLICE_NS);
        steps = scaled(steps, quickest_ns).max(1);
    }
    let end_ns = monotonic_ns() + WORK_NS;
    // Reserved, so that nothing is allocated while it counts; twice as many as are expected.
    let mut all = Vec::with_capacity(2 * usize::try_from(WORK_NS / SLICE_NS).unwrap_or(0));
    while all.len() < all.capacity() && monotonic_ns() < end_ns && !stop.load(Ordering::Relaxed) {
        all.push(time(steps));
    }
    all
}

/// Steps for a slice of the length that is aimed at, given what so many took.
fn scaled(steps: u64, took_ns: u64) -> u64 {
    u64::try_from(u128::from(steps) * u128::from(SLICE_NS) / u128::from(took_ns.max(1))).unwrap_or(u64::MAX)
}

/// What the lengths of slices come to.
fn judge(cpu: Cpu, slices: &[u64], seed: u64) -> Option<SelfDifference> {
    let n_slices = slices.len() / N_WINDOWS;
    if n_slices < MIN_SLICES {
        return None;
    }
    let windows: Vec<u64> = slices.chunks_exact(n_slices).map(|window| window.iter().sum()).collect();
    let mut random = Random::new(seed);
    let log_ratio = |pair: &[u64]| {
        let ln = (pair[1].max(1) as f64 / pair[0].max(1) as f64).ln();
        if random.unit() < 0.5 { ln } else { -ln }
    };
    let pairs: Vec<f64> = windows.chunks_exact(2).map(log_ratio).collect();
    let n = pairs.len() as f64;
    let mean = pairs.iter().sum::<f64>() / n;
    let variance = pairs.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = student_point(0.025, n - 1.0) * (variance / n).sqrt();
    let share = |ln: f64| ln.exp() - 1.0;
    let middle = |values: &[u64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted[sorted.len() / 2].max(1)
    };
    let (slice_ns, window_ns) = (middle(slices), middle(&windows));
    let lost_ns = |ns: &u64| ns.saturating_sub(slice_ns);
    let is_interrupted = |ns: &&u64| **ns as f64 > slice_ns as f64 * INTERRUPTED;
    let longest_ns = slices.iter().max().map_or(0, lost_ns);
    let (low_ratio, high_ratio) = (share(mean - half), share(mean + half));
    Some(SelfDifference {
        cpu,
        ratio: share(mean),
        low_ratio,
        high_ratio,
        at_most_ratio: low_ratio.abs().max(high_ratio.abs()),
        worst_window_ratio: windows.iter().max().map_or(0.0, |worst| *worst as f64 / window_ns as f64 - 1.0),
        interrupted_ratio: slices.iter().filter(is_interrupted).map(lost_ns).sum::<u64>() as f64
            / slices.iter().sum::<u64>().max(1) as f64,
        longest_ns,
        n_pairs: pairs.len(),
        window_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slices of a machine that takes each a little longer by chance, and now and then much longer.
    fn made_up(seed: u64, jitter: f64, n_interrupted: usize) -> Vec<u64> {
        let mut random = Random::new(seed);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // made up
        let mut all: Vec<u64> = (0..3200).map(|_| (500_000.0 * (1.0 + jitter * random.unit())) as u64).collect();
        for at in 0..n_interrupted {
            all[at * 97 % 3200] += 4_000_000;
        }
        all
    }

    #[test]
    fn a_quiet_machine_differs_from_itself_by_little_and_a_disturbed_one_by_more() {
        let quiet = judge(1, &made_up(1, 0.01, 0), 7).unwrap();
        assert!(quiet.n_pairs == 16 && quiet.at_most_ratio < 0.001 && quiet.interrupted_ratio == 0.0, "{quiet:?}");
        let loud = judge(1, &made_up(1, 0.01, 12), 7).unwrap();
        assert!(loud.at_most_ratio > 10.0 * quiet.at_most_ratio && loud.worst_window_ratio > 0.05, "{loud:?}");
        assert!((loud.interrupted_ratio - 12.0 * 4e6 / 1.65e9).abs() < 2e-3, "{loud:?}");
        assert!(loud.longest_ns > 3_900_000 && loud.low_ratio < loud.ratio && loud.ratio < loud.high_ratio, "{loud:?}");
    }

    /// Of machines that differ from themselves by nothing but noise the interval leaves 0 out as often as it may.
    #[test]
    fn the_interval_covers() {
        let outside = |seed: &u64| {
            let found = judge(0, &made_up(*seed, 0.2, 0), seed ^ 0x5eed).unwrap();
            found.low_ratio > 0.0 || found.high_ratio < 0.0
        };
        let n = (0..400).filter(outside).count();
        assert!((6..=36).contains(&n), "{n} of 400 leave 0 out, 20 are expected");
    }

    #[test]
    fn too_little_says_nothing() {
        assert_eq!(judge(0, &made_up(1, 0.1, 0)[..200], 1), None);
        assert_eq!(judge(0, &[], 1), None);
        assert_eq!((scaled(100, 250_000), scaled(1, 0), scaled(u64::MAX, 1)), (200, 500_000, u64::MAX));
    }
}

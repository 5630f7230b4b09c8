//! From slow to full speed: what a series of fixed-work times says about the way there.
//!
//! Times become logarithms, so that a step is a ratio; disturbed quanta are dropped; levels are found by
//! [`change`](super::change). Full speed is the median of the second half. The ramp is what stands at the very start:
//! the leading levels more than 5 % below full speed (docs/methods/cores-and-clock.md). Slow levels later are no ramp
//! but a neighbour at work, such as an SMT sibling of a guest's CPU that belongs to somebody else. Where the ramp fills
//! half of the series, the clock may still change, and the time is a lower bound.

use super::change::{is_spike, noise, segments};
use super::middle::median;

/// A quantum this many times longer than its neighbours was not run undisturbed.
pub const SPIKE_RATIO: f64 = 1.25;
/// A level within this of full speed is full speed.
const FULL: f64 = 0.05;

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Ramp {
    /// Time from the start of the series until full speed; none where it is there from the first quantum.
    pub reached_after_ns: Option<f64>,
    /// Speed of the slowest level before, as a share of full speed.
    pub slowest_ratio: f64,
    /// Time of a quantum at full speed.
    pub steady_ns: f64,
    /// Is the ramp shorter than half of the series?
    pub is_steady: bool,
    /// Disturbed quanta, dropped.
    pub n_discarded: u64,
    /// The smallest change of speed that would have been seen, as a ratio.
    pub resolution_ratio: f64,
}

/// Looks for a ramp in times of equal work; `min_step` is a ratio (0.03), `min_length` a number of quanta. None with
/// too few quanta. A slow start of up to half a neighbourhood looks like spikes; an infinite `spike_ratio` keeps all.
pub fn ramp(times_ns: &[f64], min_step: f64, min_length: usize, spike_ratio: f64) -> Option<Ramp> {
    let spikes = is_spike(times_ns, spike_ratio);
    let mut at_ns = 0.0;
    let (mut kept, mut starts_ns) = (Vec::with_capacity(times_ns.len()), Vec::with_capacity(times_ns.len()));
    for (time, is_spike) in times_ns.iter().zip(&spikes) {
        if !is_spike && *time > 0.0 {
            kept.push(time.ln());
            starts_ns.push(at_ns);
        }
        at_ns += time;
    }
    if kept.len() < 4 * min_length.max(1) {
        return None;
    }
    let levels = segments(&kept, min_step, min_length);
    let full = median(&mut kept[kept.len() / 2..].to_vec())?;
    let leading = levels.iter().take_while(|s| s.mean - full > FULL);
    let slowest = leading.clone().map(|s| s.mean).fold(full, f64::max);
    let reached = leading.last().map(|s| s.end);
    let resolution_ratio = min_step.max(3.0 * noise(&kept) * (2.0 / min_length.max(1) as f64).sqrt()).max(FULL);
    Some(Ramp {
        reached_after_ns: reached.map(|at| starts_ns.get(at).copied().unwrap_or(at_ns)),
        slowest_ratio: (full - slowest).exp(),
        steady_ns: full.exp(),
        is_steady: reached.unwrap_or(0) < kept.len() / 2,
        n_discarded: spikes.iter().filter(|s| **s).count() as u64,
        resolution_ratio,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    /// 10 us of work: at 40 % speed for `slow` quanta, 80 % for as many, then full; with noise, preemptions and steal.
    fn series(slow: usize, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..3000)
            .map(|i| {
                let speed = if i < slow {
                    0.4
                } else if i < 2 * slow {
                    0.8
                } else {
                    1.0
                };
                let lost = if random.below(100) == 0 { 50_000.0 + 3e6 * random.unit() } else { 0.0 };
                10_000.0 / speed * (1.0 + 0.01 * random.normal()) + lost
            })
            .collect()
    }

    #[test]
    fn a_ramp_is_timed_within_a_quantum_although_the_cpu_was_taken_away() {
        for seed in 0..20 {
            let times = series(100, seed);
            let found = ramp(&times, 0.03, 4, SPIKE_RATIO).unwrap();
            let truth: f64 = times[..200].iter().sum();
            assert!((found.reached_after_ns.unwrap() - truth).abs() <= 3.1e6, "seed {seed}: {found:?}, truth {truth}");
            assert!((found.slowest_ratio - 0.4).abs() < 0.02, "{found:?}");
            assert!((found.steady_ns / 10_000.0 - 1.0).abs() < 0.01 && found.is_steady);
            assert!((15..60).contains(&found.n_discarded), "{found:?}");
        }
    }

    #[test]
    fn no_ramp_is_said_with_its_resolution() {
        let found = ramp(&series(0, 3), 0.03, 4, SPIKE_RATIO).unwrap();
        assert_eq!(found.reached_after_ns, None);
        assert!((found.resolution_ratio - 0.05).abs() < 0.01, "{found:?}");
        assert_eq!(ramp(&[1.0; 5], 0.03, 4, SPIKE_RATIO), None);
        let late: Vec<f64> =
            (0..1000).map(|i| if i < 600 { 20_000.0 - 15.0 * f64::from(i) } else { 9_000.0 }).collect();
        assert!(!ramp(&late, 0.03, 4, SPIKE_RATIO).unwrap().is_steady);
        // A neighbour who slows the middle is no ramp.
        let mut shared = series(0, 5);
        shared[500..1400].iter_mut().for_each(|t| *t *= 1.5);
        assert_eq!(ramp(&shared, 0.03, 4, SPIKE_RATIO).unwrap().reached_after_ns, None);
    }
}

//! Where a noisy series changes its level: change points by binary segmentation.
//!
//! The split that lowers the squared error most is taken, then each half is split again (Scott & Knott 1974; the
//! approximation that Killick, Fearnhead & Eckley 2012 compare PELT with). A split stays when it gains more than
//! `PENALTY` times noise variance times ln(n), the form of Schwarz's criterion, *and* its step is at least `min_step`,
//! because real timing noise is not white and would otherwise show steps too small to care about. The noise is taken
//! from the median absolute difference of neighbours, which a step does not move.
//!
//! [`is_spike`] comes first: a quantum that lost its CPU (steal, preemption, an interrupt) is one long value among
//! normal neighbours, while a slow clock makes all neighbours slow.

use super::middle::median;

/// In units of noise variance times ln(n); Schwarz's is 1 to 3, and real noise is correlated.
const PENALTY: f64 = 8.0;
/// Neighbours on each side that a spike is compared with.
pub const NEIGHBOURS: usize = 5;

/// A stretch of one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// First index.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// Mean.
    pub mean: f64,
}

/// Which values stand out above `ratio` times the median of their neighbourhood.
pub fn is_spike(values: &[f64], ratio: f64) -> Vec<bool> {
    let mut near = Vec::with_capacity(2 * NEIGHBOURS + 1);
    let mut of = |at: usize| {
        // At the ends the window moves inwards rather than shrinking, so that the first value has judges too.
        let start = at.saturating_sub(NEIGHBOURS).min(values.len().saturating_sub(2 * NEIGHBOURS + 1));
        near.clear();
        near.extend_from_slice(&values[start..(start + 2 * NEIGHBOURS + 1).min(values.len())]);
        median(&mut near).is_some_and(|m| values[at] > ratio * m)
    };
    (0..values.len()).map(&mut of).collect()
}

/// Standard deviation of the noise, from differences of neighbours.
pub fn noise(values: &[f64]) -> f64 {
    let mut steps: Vec<f64> = values.windows(2).map(|w| (w[1] - w[0]).abs()).collect();
    // 1.4826 makes the median absolute deviation a standard deviation; a difference has two variances.
    median(&mut steps).unwrap_or(0.0) * 1.4826 / std::f64::consts::SQRT_2
}

/// The levels of a series; neighbours differ by at least `min_step`, and none is shorter than `min_length`.
pub fn segments(values: &[f64], min_step: f64, min_length: usize) -> Vec<Segment> {
    let (n, min_length) = (values.len(), min_length.max(1));
    if n == 0 {
        return Vec::new();
    }
    let sums: Vec<f64> = std::iter::once(0.0)
        .chain(values.iter().scan(0.0, |sum, v| {
            *sum += v;
            Some(*sum)
        }))
        .collect();
    let mean = |start: usize, end: usize| (sums[end] - sums[start]) / (end - start) as f64;
    let sigma = noise(values);
    let floor = PENALTY * sigma * sigma * (n.max(2) as f64).ln();
    let mut ends = vec![n];
    let mut open = vec![(0, n)];
    while let Some((start, end)) = open.pop() {
        let mut best = (0.0, 0);
        for at in start + min_length..(end + 1).saturating_sub(min_length) {
            let (left, right) = (mean(start, at), mean(at, end));
            let (a, b) = ((at - start) as f64, (end - at) as f64);
            let gain = a * b / (a + b) * (left - right) * (left - right);
            if gain > best.0 {
                best = (gain, at);
            }
        }
        let (gain, at) = best;
        // The step is judged after all splits are made: of three levels, the first split sees two as one.
        if at > 0 && gain > floor && gain > min_step * min_step * min_length as f64 / 2.0 {
            ends.push(at);
            open.extend([(start, at), (at, end)]);
        }
    }
    ends.sort_unstable();
    let mut start = 0;
    let mut found: Vec<Segment> = Vec::with_capacity(ends.len());
    for end in ends {
        found.push(Segment { start, end, mean: mean(start, end) });
        start = end;
    }
    // The smallest step goes first, until all are large enough.
    loop {
        let step = |w: &[Segment]| (w[1].mean - w[0].mean).abs();
        let smallest = found.windows(2).enumerate().map(|(at, w)| (at, step(w))).min_by(|a, b| a.1.total_cmp(&b.1));
        match smallest {
            Some((at, size)) if size < min_step => {
                let right = found.remove(at + 1);
                found[at].end = right.end;
                found[at].mean = mean(found[at].start, right.end);
            }
            _ => return found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    fn series(levels: &[(usize, f64)], sigma: f64, seed: u64) -> Vec<f64> {
        let mut random = Random::new(seed);
        levels
            .iter()
            .flat_map(|(n, level)| (0..*n).map(|_| level + sigma * random.normal()).collect::<Vec<_>>())
            .collect()
    }

    #[test]
    fn steps_are_found_where_they_are() {
        for seed in 0..50 {
            let found = segments(&series(&[(40, 1.0), (300, 0.4), (1000, 0.0)], 0.03, seed), 0.03, 4);
            assert_eq!(found.len(), 3, "seed {seed}: {found:?}");
            assert!(found[1].start.abs_diff(40) <= 1 && found[2].start.abs_diff(340) <= 1, "{found:?}");
            assert!((found[1].mean - 0.4).abs() < 0.01);
        }
        let short = segments(&series(&[(4, 0.5), (996, 0.0)], 0.02, 7), 0.03, 4);
        assert_eq!(short.iter().map(|s| s.start).collect::<Vec<_>>(), [0, 4]);
    }

    #[test]
    fn noise_is_one_level() {
        let n = (0..200).filter(|seed| segments(&series(&[(2000, 0.0)], 0.02, *seed), 0.03, 4).len() > 1).count();
        assert_eq!(n, 0, "false steps");
        assert!((noise(&series(&[(500, 0.0), (500, 3.0)], 0.02, 1)) - 0.02).abs() < 0.003);
        assert!(segments(&[], 0.1, 4).is_empty());
        assert_eq!(segments(&[1.0, 1.0], 0.1, 4).len(), 1);
    }

    #[test]
    fn a_gradual_ramp_becomes_stairs_downwards() {
        let values: Vec<f64> = (0..500).map(|i| if i < 200 { 1.0 - i as f64 / 200.0 } else { 0.0 }).collect();
        let found = segments(&values, 0.03, 4);
        assert!(found.len() > 3 && found.windows(2).all(|w| w[1].mean < w[0].mean), "{found:?}");
    }

    #[test]
    fn spikes_are_single_and_a_slow_stretch_is_not() {
        let mut values = vec![10.0; 100];
        (20..60).for_each(|i| values[i] = 30.0);
        values[40] = 900.0;
        values[0] = 15.0;
        let spikes: Vec<usize> = is_spike(&values, 1.25).iter().enumerate().filter(|s| *s.1).map(|s| s.0).collect();
        assert_eq!(spikes, [0, 40]);
    }
}

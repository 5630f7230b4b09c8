//! What two groups of windows differ by, when nothing pairs them: two runs, made at different times.
//!
//! The datum is one number per window (a round, a repetition, a CPU), as its logarithm. This is the weaker sister of
//! [`super::paired`]: what drifted between the runs is inside the difference and no statistics takes it out.
//! - Estimate: Hodges-Lehmann shift, the median of all differences b - a (Hodges & Lehmann 1963).
//! - Interval: bootstrap over the windows of each run on its own, expanded for few windows as in [`super::paired`]. Groups below [`MIN_WINDOWS`] get none: a
//!   percentile interval of three values is their range, whatever it is called.
//! - Test: permutation of the group labels on the difference of means; all of them up to 20,000, seeded Monte Carlo above.

use super::normal::{above, student_point};
use super::paired::median;
use super::random::Random;

/// Fewer windows on either side are too few to speak of how a run varies: with 4 and 4 the smallest p-value is 2/70.
pub const MIN_WINDOWS: usize = 4;
const N_RESAMPLES: usize = 2000;
const EXACT_UP_TO: u64 = 20_000;
const N_SHUFFLES: u32 = 9_999;
/// More windows than this add nothing but time: the shift looks at every pair.
const MAX_WINDOWS: usize = 200;

/// A shift from a to b.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The estimate.
    pub shift: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Permutation test.
    pub p_value: f64,
}

/// The shift, its interval and its test; none with too few windows or with values that are no numbers.
pub fn shift(a: &[f64], b: &[f64], seed: u64) -> Option<Shift> {
    let (a, b) = (&a[..a.len().min(MAX_WINDOWS)], &b[..b.len().min(MAX_WINDOWS)]);
    if a.len().min(b.len()) < MIN_WINDOWS || a.iter().chain(b).any(|x| !x.is_finite()) {
        return None;
    }
    let mut random = Random::new(seed);
    let mut draw = |from: &[f64]| -> Vec<f64> { from.iter().map(|_| from[random.index(from.len())]).collect() };
    let mut shifts: Vec<f64> = (0..N_RESAMPLES).map(|_| hodges_lehmann(&draw(a), &draw(b))).collect();
    shifts.sort_by(f64::total_cmp);
    let tail = expanded_tail(0.05, a.len().min(b.len()));
    Some(Shift {
        shift: hodges_lehmann(a, b),
        low: at_quantile(&shifts, tail),
        high: at_quantile(&shifts, 1.0 - tail),
        p_value: permutation_p(a, b, seed),
    })
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the position is within 0..len
fn at_quantile(sorted: &[f64], q: f64) -> f64 {
    let position = (q * sorted.len() as f64 - 0.5).clamp(0.0, (sorted.len() - 1) as f64);
    let (below, part) = (position.floor() as usize, position.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] * (1.0 - part) + sorted[above] * part
}

/// The tail of each side: Phi(-t * sqrt(n / (n-1))).
fn expanded_tail(level: f64, n: usize) -> f64 {
    let n = n as f64;
    above(student_point(level / 2.0, n - 1.0) * (n / (n - 1.0)).sqrt())
}

/// Median of all differences.
fn hodges_lehmann(a: &[f64], b: &[f64]) -> f64 {
    let differences: Vec<f64> = b.iter().flat_map(|y| a.iter().map(move |x| y - x)).collect();
    median(&differences)
}

fn permutation_p(a: &[f64], b: &[f64], seed: u64) -> f64 {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let (n, k) = (all.len(), a.len());
    let total: f64 = all.iter().sum();
    let statistic = |sum_a: f64| ((total - sum_a) / (n - k) as f64 - sum_a / k as f64).abs();
    let observed = statistic(a.iter().sum());
    // Rounding must not make the observed grouping look rarer than itself.
    let limit = observed - 1e-9 * observed.max(1e-12);
    if choose(n, k).is_some_and(|n| n <= EXACT_UP_TO) {
        let (mut n_extreme, mut n_all) = (0u32, 0u32);
        let mut chosen: Vec<usize> = (0..k).collect();
        loop {
            n_all += 1;
            n_extreme += u32::from(statistic(chosen.iter().map(|i| all[*i]).sum()) >= limit);
            // The next combination in lexicographic order.
            let Some(at) = (0..k).rev().find(|at| chosen[*at] != at + n - k) else { break };
            chosen[at] += 1;
            for next in at + 1..k {
                chosen[next] = chosen[next - 1] + 1;
            }
        }
        return f64::from(n_extreme) / f64::from(n_all);
    }
    let mut random = Random::new(seed);
    let mut mixed = all.clone();
    let mut n_extreme = 1u32;
    for _ in 0..N_SHUFFLES {
        random.shuffle(&mut mixed);
        n_extreme += u32::from(statistic(mixed[..k].iter().sum()) >= limit);
    }
    f64::from(n_extreme) / f64::from(N_SHUFFLES + 1)
}

/// n over k; none beyond what is enumerated.
fn choose(n: usize, k: usize) -> Option<u64> {
    let mut result: u64 = 1;
    for i in 0..k.min(n - k) as u64 {
        result = result.checked_mul(n as u64 - i)? / (i + 1);
        if result > EXACT_UP_TO {
            return None;
        }
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_shift_is_found_with_its_interval_and_its_p() {
        let a: Vec<f64> = (0..8).map(|i| 4.0 + f64::from(i % 4) * 0.01).collect();
        let b: Vec<f64> = a.iter().map(|x| x + 0.3).collect();
        let found = shift(&a, &b, 1).unwrap();
        assert!((found.shift - 0.3).abs() < 1e-9 && found.low > 0.28 && found.high < 0.32, "{found:?}");
        assert!((found.p_value - 2.0 / 12870.0).abs() < 1e-9, "all 16 over 8 groupings: {found:?}");
        assert_eq!(shift(&a, &b, 1), Some(found), "seeded");
        assert_eq!(shift(&a[..3], &b, 1), None, "three windows are too few");
        assert_eq!(shift(&[1.0, f64::NAN, 1.0, 1.0], &b, 1), None);
        assert_eq!(shift(&a, &a, 1).unwrap().p_value, 1.0);
    }

    #[test]
    fn the_interval_covers_at_least_nineteen_times_in_twenty() {
        let mut random = Random::new(3);
        let covered = (0..120).filter(|_| {
            let mut draw = |n: usize| (0..n).map(|_| random.normal()).collect::<Vec<f64>>();
            let (a, b) = (draw(6), draw(6));
            shift(&a, &b, 1).is_some_and(|s| s.low <= 0.0 && 0.0 <= s.high)
        });
        let covered = covered.count();
        assert!(covered >= 110, "{covered} of 120; with few windows it is wider than it need be");
    }

    proptest! {
        #[test]
        fn swapping_the_groups_changes_the_sign(a in prop::collection::vec(-2.0f64..2.0, 4..7), b in prop::collection::vec(-2.0f64..2.0, 4..7)) {
            let (there, back) = (shift(&a, &b, 1).unwrap(), shift(&b, &a, 1).unwrap());
            prop_assert!((there.shift + back.shift).abs() < 1e-9);
            prop_assert!((there.p_value - back.p_value).abs() < 1e-9 && there.p_value > 0.0 && there.p_value <= 1.0);
            prop_assert!(there.low <= there.high);
        }
    }
}

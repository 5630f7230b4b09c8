//! What two settings differ by, from rounds in which each was held once.
//!
//! The datum is one number per round, d = ln(baseline / arm): samples inside a block are correlated, rounds are not.
//! - Estimate: Hodges-Lehmann, the median of all pairwise means (Hodges & Lehmann 1963): nearly as efficient as the
//!   mean, and one spoilt round cannot move it far.
//! - Interval: percentile bootstrap over rounds, expanded for small n (Hesterberg 2015, "What Teachers Should Know
//!   About the Bootstrap", section 5.3: take the quantile at Phi(-t(n-1) * sqrt(n / (n-1))), because the plain one is
//!   too narrow by that factor).
//! - Test: sign-flip permutation. With the order of the arms drawn at random in each round, d is as likely as -d if the
//!   setting does nothing, so the p-value is exact whatever the distribution; all 2^n flips up to 20 rounds, seeded
//!   Monte Carlo above. Its smallest value is 2 / 2^n: below 6 rounds nothing can be proven at 5 %.
//! - Several secondary metrics: Holm 1979.
//!
//! "Different" needs both the interval and the test.

use super::random::Random;
use crate::samples::experiment::{Effect, Verdict};

/// A ratio within this factor of 1 is no difference worth a change.
pub const NEGLIGIBLE_RATIO: f64 = 1.05;
const EXACT_UP_TO: usize = 20;
const N_FLIPS: u32 = 19_999;

/// How to judge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judge {
    /// Error rate of interval and test: 0.05, or the share of it that a sequential look may use.
    pub level: f64,
    /// Bootstrap resamples.
    pub n_resamples: usize,
    /// Seed of bootstrap and Monte Carlo.
    pub seed: u64,
}

impl Judge {
    /// 95 %, 4000 resamples.
    pub fn new(seed: u64) -> Judge {
        Judge { level: 0.05, n_resamples: 4000, seed }
    }

    /// The effect of one metric from (baseline, arm) values per round. None with fewer than two usable rounds.
    pub fn effect(&self, metric: &str, baseline: &str, arm: &str, pairs_ns: &[(f64, f64)]) -> Option<Effect> {
        let ratios = log_ratios(pairs_ns);
        if ratios.len() < 2 {
            return None;
        }
        let usable = pairs_ns.iter().filter(|(a, b)| is_usable(*a) && is_usable(*b));
        let differences: Vec<f64> = usable.map(|(a, b)| a - b).collect();
        let (low, high) = self.interval(&ratios, hodges_lehmann);
        let (difference_low, difference_high) = self.interval(&differences, median);
        let p_value = sign_flip_p(&ratios, self.seed);
        Some(Effect {
            metric: metric.into(),
            baseline: baseline.into(),
            arm: arm.into(),
            ratio: hodges_lehmann(&ratios).exp(),
            ratio_low: low.exp(),
            ratio_high: high.exp(),
            difference: median(&differences),
            difference_low,
            difference_high,
            p_value,
            n_pairs: ratios.len(),
            verdict: self.verdict(low.exp(), high.exp(), p_value),
        })
    }

    /// In a word. A proven small difference is reported as proven, with its size beside it.
    pub fn verdict(&self, ratio_low: f64, ratio_high: f64, p_value: f64) -> Verdict {
        let is_proven = p_value <= self.level;
        if ratio_low > 1.0 && is_proven {
            Verdict::Higher
        } else if ratio_high < 1.0 && is_proven {
            Verdict::Lower
        } else if ratio_low >= 1.0 / NEGLIGIBLE_RATIO && ratio_high <= NEGLIGIBLE_RATIO {
            Verdict::NoDifference
        } else {
            Verdict::Undecided
        }
    }

    /// Expanded-percentile bootstrap interval of a statistic over rounds.
    pub fn interval(&self, values: &[f64], statistic: fn(&[f64]) -> f64) -> (f64, f64) {
        let n = values.len();
        if n < 2 {
            return (f64::NEG_INFINITY, f64::INFINITY);
        }
        let mut random = Random::new(self.seed);
        let mut sample = vec![0.0; n];
        let mut estimates: Vec<f64> = (0..self.n_resamples.max(100))
            .map(|_| {
                sample.iter_mut().for_each(|slot| *slot = values[random.index(n)]);
                statistic(&sample)
            })
            .collect();
        estimates.sort_by(f64::total_cmp);
        let tail = expanded_tail(self.level, n);
        (at_quantile(&estimates, tail), at_quantile(&estimates, 1.0 - tail))
    }
}

/// Adjusts the p-values of the secondary effects together (Holm) and their verdicts with them.
pub fn adjust_secondary(secondary: &mut [Effect], judge: &Judge) {
    let adjusted = holm(&secondary.iter().map(|e| e.p_value).collect::<Vec<_>>());
    for (effect, p_value) in secondary.iter_mut().zip(adjusted) {
        effect.p_value = p_value;
        effect.verdict = judge.verdict(effect.ratio_low, effect.ratio_high, p_value);
    }
}

/// ln(baseline / arm) of the rounds where both are positive numbers.
pub fn log_ratios(pairs_ns: &[(f64, f64)]) -> Vec<f64> {
    pairs_ns.iter().filter(|(a, b)| is_usable(*a) && is_usable(*b)).map(|(a, b)| (a / b).ln()).collect()
}

fn is_usable(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// Median of all pairwise means, each value with itself included. 0 of nothing.
pub fn hodges_lehmann(values: &[f64]) -> f64 {
    let mut means = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (i, a) in values.iter().enumerate() {
        means.extend(values[i..].iter().map(|b| (a + b) / 2.0));
    }
    median_of(&mut means)
}

/// The median. 0 of nothing.
pub fn median(values: &[f64]) -> f64 {
    median_of(&mut values.to_vec())
}

fn median_of(values: &mut [f64]) -> f64 {
    let n = values.len();
    if n == 0 {
        return 0.0;
    }
    let (below, upper, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    let upper = *upper;
    if n % 2 == 1 { upper } else { (below.iter().copied().fold(f64::NEG_INFINITY, f64::max) + upper) / 2.0 }
}

/// Two-sided sign-flip permutation p-value of the mean: exact up to 20 rounds, else Monte Carlo (Phipson & Smyth 2010:
/// the observed order counts as one, so it is never 0).
pub fn sign_flip_p(d: &[f64], seed: u64) -> f64 {
    let n = d.len();
    let observed = d.iter().sum::<f64>().abs();
    let limit = observed - 1e-9 * d.iter().map(|x| x.abs()).sum::<f64>();
    if n == 0 || observed == 0.0 {
        return 1.0;
    }
    if n <= EXACT_UP_TO {
        // Gray code: one sign changes per step. The last sign stays, since flipping all gives the same |sum|.
        let mut signed = d.to_vec();
        let mut sum: f64 = signed.iter().sum();
        let total = 1u64 << (n - 1);
        let mut n_extreme = 1u64;
        for step in 1..total {
            let i = step.trailing_zeros() as usize;
            signed[i] = -signed[i];
            sum += 2.0 * signed[i];
            n_extreme += u64::from(sum.abs() >= limit);
        }
        return n_extreme as f64 / total as f64;
    }
    let mut random = Random::new(seed);
    let mut n_extreme = 1u32;
    for _ in 0..N_FLIPS {
        let (mut bits, mut sum) = (0, 0.0);
        for (i, x) in d.iter().enumerate() {
            if i % 64 == 0 {
                bits = random.bits();
            }
            sum += if bits & 1 == 0 { *x } else { -x };
            bits >>= 1;
        }
        n_extreme += u32::from(sum.abs() >= limit);
    }
    f64::from(n_extreme) / f64::from(N_FLIPS + 1)
}

/// Holm's step-down adjustment, in the order given.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        largest = largest.max((p_values[i] * (p_values.len() - rank) as f64).min(1.0));
        adjusted[i] = largest;
    }
    adjusted
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the position is within 0..len
pub(super) fn at_quantile(sorted: &[f64], q: f64) -> f64 {
    let position = (q * sorted.len() as f64 - 0.5).clamp(0.0, (sorted.len() - 1) as f64);
    let (below, part) = (position.floor() as usize, position.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] * (1.0 - part) + sorted[above] * part
}

/// The tail of each side: Phi(-t * sqrt(n / (n-1))).
pub(super) fn expanded_tail(level: f64, n: usize) -> f64 {
    let n = n as f64;
    normal_tail(student_point(level / 2.0, n - 1.0) * (n / (n - 1.0)).sqrt())
}

/// The t above which this much of the distribution lies.
pub(super) fn student_point(tail: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1000.0);
    for _ in 0..60 {
        let mid = (low + high) / 2.0;
        if student_tail(mid, freedom) > tail { low = mid } else { high = mid }
    }
    low
}

/// P(T > t), by the finite series for whole degrees of freedom (Abramowitz & Stegun 26.7.3 and 26.7.4).
fn student_tail(t: f64, freedom: f64) -> f64 {
    let theta = (t / freedom.sqrt()).atan();
    let (sin, cos) = theta.sin_cos();
    let is_odd = freedom % 2.0 == 1.0;
    let mut k = if is_odd { 3.0 } else { 2.0 };
    let mut term = if is_odd { cos } else { 1.0 };
    let mut sum = if is_odd && freedom < 2.0 { 0.0 } else { term };
    while k < freedom {
        term *= cos * cos * (k - 1.0) / k;
        sum += term;
        k += 2.0;
    }
    let inside = if is_odd { (theta + sin * sum) * std::f64::consts::FRAC_2_PI } else { sin * sum };
    (1.0 - inside) / 2.0
}

/// P(Z > z) for z of 0 and more (Abramowitz & Stegun 26.2.17, error below 7.5e-8).
fn normal_tail(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let poly = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_53];
    let sum = poly.iter().fold(0.0, |acc, c| (acc + c) * t);
    (sum * (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tails_match_the_tables() {
        assert!((student_tail(2.570_58, 5.0) - 0.025).abs() < 1e-5);
        assert!((student_tail(2.262_16, 9.0) - 0.025).abs() < 1e-5);
        assert!((student_tail(2.446_91, 6.0) - 0.025).abs() < 1e-5);
        assert!((student_tail(12.706_2, 1.0) - 0.025).abs() < 1e-5);
        assert!((normal_tail(1.959_964) - 0.025).abs() < 1e-6);
    }

    #[test]
    fn p_is_two_over_two_to_the_n_when_all_agree() {
        assert_eq!(sign_flip_p(&[0.1, 0.2, 0.3, 0.15, 0.12, 0.4], 1), 2.0 / 64.0);
        assert_eq!(sign_flip_p(&[0.0; 8], 1), 1.0);
        let long: Vec<f64> = (0..30).map(|i| 0.1 + f64::from(i) * 1e-3).collect();
        assert!(sign_flip_p(&long, 1) < 1e-3);
        assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
    }

    #[test]
    fn an_effect_is_the_ratio_of_baseline_to_arm() {
        let pairs: Vec<(f64, f64)> =
            (0..8).map(|i| (60_000.0 + f64::from(i) * 100.0, 30_000.0 - f64::from(i % 3) * 50.0)).collect();
        let judge = Judge::new(3);
        let effect = judge.effect("wakeup.eventfd.p50", "default", "poll", &pairs).unwrap();
        assert!((effect.ratio - 2.0).abs() < 0.03, "{effect:?}");
        assert!(effect.ratio_low < effect.ratio && effect.ratio < effect.ratio_high);
        assert!((effect.difference - 30_400.0).abs() < 200.0);
        assert_eq!((effect.verdict, effect.n_pairs), (Verdict::Higher, 8));
        assert_eq!(judge.effect("m", "a", "b", &pairs), judge.effect("m", "a", "b", &pairs), "seeded");
        let same: Vec<(f64, f64)> = (0..8).map(|i| (100.0, 100.0 + f64::from(i % 2) - 0.5)).collect();
        assert_eq!(judge.effect("m", "a", "b", &same).unwrap().verdict, Verdict::NoDifference);
        assert!(judge.effect("m", "a", "b", &[(0.0, 1.0), (f64::NAN, 1.0), (1.0, 1.0)]).is_none());
        let mut three = vec![effect.clone(), effect.clone(), effect];
        adjust_secondary(&mut three, &judge);
        assert_eq!(three[0].p_value, 3.0 * 2.0 / 256.0);
    }

    #[test]
    fn the_interval_of_eight_rounds_covers_nineteen_times_in_twenty() {
        let mut random = Random::new(5);
        let judge = Judge { level: 0.05, n_resamples: 400, seed: 1 };
        let covered = (0..500)
            .filter(|_| {
                let d: Vec<f64> = (0..8).map(|_| random.normal()).collect();
                let (low, high) = judge.interval(&d, hodges_lehmann);
                low <= 0.0 && 0.0 <= high
            })
            .count();
        assert!((455..=490).contains(&covered), "{covered} of 500");
    }

    proptest! {
        #[test]
        fn flipping_all_signs_changes_only_the_sign(d in prop::collection::vec(-2.0f64..2.0, 2..12)) {
            let flipped: Vec<f64> = d.iter().map(|x| -x).collect();
            prop_assert!((hodges_lehmann(&d) + hodges_lehmann(&flipped)).abs() < 1e-9);
            let p = sign_flip_p(&d, 1);
            prop_assert!((p - sign_flip_p(&flipped, 1)).abs() < 1e-9 && p > 0.0 && p <= 1.0);
            let (low, high) = Judge { level: 0.05, n_resamples: 200, seed: 1 }.interval(&d, hodges_lehmann);
            let (min, max) = d.iter().fold((f64::MAX, f64::MIN), |(a, b), x| (a.min(*x), b.max(*x)));
            prop_assert!(min - 1e-9 <= low && low <= high && high <= max + 1e-9);
        }

        #[test]
        fn holm_never_lowers_a_p(p in prop::collection::vec(0.0f64..1.0, 0..8)) {
            prop_assert!(holm(&p).iter().zip(&p).all(|(a, p)| a >= p && *a <= 1.0));
        }
    }
}

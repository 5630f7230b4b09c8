//! What two settings differ by, from rounds in which each was held once.
//!
//! The datum is one number per round, d = ln(baseline / arm): samples inside a block are correlated, rounds are not.
//! - Estimate: Hodges-Lehmann, the median of all pairwise means (Hodges & Lehmann 1963): nearly as efficient as the
//!   mean, and one spoilt round cannot move it far.
//! - Interval and test: Wilcoxon's signed rank, inverted (`signed_rank`). With the order of the arms drawn at random in each
//!   round, d is as likely as -d if the setting does nothing, so both are exact whatever the distribution, and they never
//!   disagree. The smallest p-value is 2 / 2^n: below 6 rounds nothing can be proven at 5 %, and the interval is the range of
//!   the rounds, with the confidence that a range has.
//! - Several secondary metrics: Holm 1979.

use super::signed_rank::{self, Interval};
use crate::arrange::Arrange as _;
use crate::samples::experiment::{Effect, Verdict};

/// A ratio within this factor of 1 is no difference worth a change.
pub const NEGLIGIBLE_RATIO: f64 = 1.05;

/// How to judge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judge {
    /// Error rate of interval and test: 0.05, or the share of it that a sequential look may use.
    pub level: f64,
}

impl Default for Judge {
    fn default() -> Judge {
        Judge { level: 0.05 }
    }
}

impl Judge {
    /// The effect of one metric from (baseline, arm) values per round. None with fewer than two usable rounds.
    pub fn effect(&self, metric: &str, baseline: &str, arm: &str, pairs_ns: &[(f64, f64)]) -> Option<Effect> {
        let ratios = log_ratios(pairs_ns);
        if ratios.len() < 2 {
            return None;
        }
        let usable = pairs_ns.iter().filter(|(a, b)| is_usable(*a) && is_usable(*b));
        let differences: Vec<f64> = usable.map(|(a, b)| a - b).collect();
        let ends = self.interval(&ratios);
        let difference = self.interval(&differences);
        let p_value = signed_rank::p_value(&ratios);
        Some(Effect {
            covers: crate::covers::Covers::Run,
            metric: metric.into(),
            baseline: baseline.into(),
            arm: arm.into(),
            ratio: hodges_lehmann(&ratios).exp(),
            ratio_low: ends.low.exp(),
            ratio_high: ends.high.exp(),
            difference: hodges_lehmann(&differences),
            difference_low: difference.low,
            difference_high: difference.high,
            confidence: Some(ends.confidence),
            p_value,
            at_look: None,
            n_pairs: ratios.len(),
            verdict: self.verdict(ends, p_value),
        })
    }

    /// In a word, from the interval of the log ratios. A proven small difference is reported as proven, with its size
    /// beside it.
    fn verdict(&self, ends: Interval, p_value: f64) -> Verdict {
        let negligible = NEGLIGIBLE_RATIO.ln();
        if p_value <= self.level {
            match (ends.low > 0.0, ends.high < 0.0) {
                (true, _) => Verdict::Higher,
                (_, true) => Verdict::Lower,
                _ => Verdict::Undecided,
            }
        } else if ends.is_at(self.level) && ends.low >= -negligible && ends.high <= negligible {
            Verdict::NoDifference
        } else {
            Verdict::Undecided
        }
    }

    /// The same effect with a p-value that knows of the other comparisons, and the verdict that it leaves; `pairs` are the values of its
    /// rounds.
    pub fn adjust(&self, effect: &mut Effect, p_value: f64, pairs: &[(f64, f64)]) {
        let alone = effect.p_value;
        let (low, high) = (effect.ratio_low.ln(), effect.ratio_high.ln());
        let ends = Interval { low, high, confidence: effect.confidence.unwrap_or(0.0) };
        effect.p_value = p_value;
        effect.verdict = self.verdict(ends, p_value);
        if effect.verdict == Verdict::Undecided {
            self.leave_open(effect, alone, pairs);
        }
    }

    /// Undecided because of the other comparisons: then the interval is taken at the level that these leave to it, `alone` being its p-value by
    /// itself, and so holds 1, as far as the rounds allow such an interval.
    pub fn leave_open(&self, effect: &mut Effect, alone: f64, pairs: &[(f64, f64)]) {
        effect.verdict = Verdict::Undecided;
        if effect.interval().is_some() {
            return;
        }
        let left = self.level * alone / effect.p_value.max(alone);
        let wider = Judge { level: left.min(alone * 0.999_999) };
        let Some(again) = wider.effect(&effect.metric, &effect.baseline, &effect.arm, pairs) else { return };
        (effect.ratio_low, effect.ratio_high) = (again.ratio_low, again.ratio_high);
        (effect.difference_low, effect.difference_high) = (again.difference_low, again.difference_high);
        effect.confidence = again.confidence;
    }

    /// Where the centre of values per round lies.
    pub fn interval(&self, values: &[f64]) -> Interval {
        signed_rank::interval(values, self.level)
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
    median_of(&mut signed_rank::walsh(values))
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

/// Holm's step-down adjustment, in the order given.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.arrange_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        largest = largest.max((p_values[i] * (p_values.len() - rank) as f64).min(1.0));
        adjusted[i] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn holm_steps_down() {
        assert_eq!(holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
    }

    #[test]
    fn an_effect_is_the_ratio_of_baseline_to_arm() {
        let pairs: Vec<(f64, f64)> =
            (0..8).map(|i| (60_000.0 + f64::from(i) * 100.0, 30_000.0 - f64::from(i % 3) * 50.0)).collect();
        let judge = Judge::default();
        let effect = judge.effect("wakeup.eventfd.p50", "default", "poll", &pairs).unwrap();
        assert!((effect.ratio - 2.0).abs() < 0.03, "{effect:?}");
        assert!(effect.ratio_low < effect.ratio && effect.ratio < effect.ratio_high);
        assert!((effect.difference - 30_400.0).abs() < 200.0);
        assert_eq!((effect.verdict, effect.n_pairs), (Verdict::Higher, 8));
        assert!(effect.confidence.is_some_and(|c| (0.95..0.97).contains(&c)), "{effect:?}");
        let same: Vec<(f64, f64)> = (0..8).map(|i| (100.0, 100.0 + f64::from(i % 2) - 0.5)).collect();
        assert_eq!(judge.effect("m", "a", "b", &same).unwrap().verdict, Verdict::NoDifference);
        assert!(judge.effect("m", "a", "b", &[(0.0, 1.0), (f64::NAN, 1.0), (1.0, 1.0)]).is_none());
        // Three rounds within a hair of each other are a range and no proof of anything.
        assert_eq!(judge.effect("m", "a", "b", &same[..3]).unwrap().verdict, Verdict::Undecided);
        let mut adjusted = effect;
        judge.adjust(&mut adjusted, 3.0 * 2.0 / 256.0, &pairs);
        assert_eq!((adjusted.p_value, adjusted.verdict), (3.0 * 2.0 / 256.0, Verdict::Higher));
        // Eight rounds that agree make no interval at a level below theirs: none is shown.
        judge.adjust(&mut adjusted, 0.06, &pairs);
        assert_eq!((adjusted.verdict, adjusted.interval()), (Verdict::Undecided, None));
    }

    /// Nine rounds of twelve agree: alone that is a difference, and among nine others it is none.
    #[test]
    fn an_interval_beside_undecided_holds_one() {
        let pairs: Vec<(f64, f64)> =
            (0..12u32).map(|i| (if i % 4 == 3 { 97.0 } else { 108.0 } + f64::from(i) * 0.1, 100.0)).collect();
        let judge = Judge::default();
        let alone = judge.effect("m", "a", "b", &pairs).unwrap();
        assert!(alone.verdict == Verdict::Higher && alone.ratio_low > 1.0, "{alone:?}");
        let mut adjusted = alone.clone();
        judge.adjust(&mut adjusted, alone.p_value * 10.0, &pairs);
        assert_eq!(adjusted.verdict, Verdict::Undecided);
        assert!(adjusted.ratio_low <= 1.0 && adjusted.ratio_high >= alone.ratio_high, "{adjusted:?}");
        assert!(adjusted.interval().is_some() && adjusted.confidence > alone.confidence);
        assert!(adjusted.difference_low <= 0.0 && adjusted.ratio == alone.ratio);
    }

    proptest! {
        #[test]
        fn holm_never_lowers_a_p(p in prop::collection::vec(0.0f64..1.0, 0..8)) {
            prop_assert!(holm(&p).iter().zip(&p).all(|(a, p)| a >= p && *a <= 1.0));
        }
    }
}

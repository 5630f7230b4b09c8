//! Many comparisons on one page: at which level each is judged, so that of those called different few are not.
//!
//! Benjamini and Hochberg 1995: with the p-values in order, the largest rank k whose p is at most k/m of the rate decides, and
//! everything up to it is called. The share of false ones among what is called is then at most the rate, in the mean over pages; on a
//! page without a difference the chance to call anything is at most the rate. It holds where the tests are independent, and where
//! they are positively dependent (Benjamini and Yekutieli 2001), as quantities of one run are: a slow hour slows them all.
//! Intervals at the same level agree with what is called, and of those called at most the rate miss, in the mean (Benjamini
//! and Yekutieli 2005). Where nothing is called the level is that of the first rank.

use crate::arrange::Arrange as _;

/// The level of each test and each interval; the rate itself for one comparison.
pub fn level(p_values: &[f64], rate: f64) -> f64 {
    let n_called = adjusted(p_values).iter().filter(|q| **q <= rate).count();
    rate * n_called.max(1) as f64 / p_values.len().max(1) as f64
}

/// The smallest rate at which each would be called, in the order given. What is no number is never called.
pub fn adjusted(p_values: &[f64]) -> Vec<f64> {
    let n = p_values.len();
    let p = |i: usize| if p_values[i].is_finite() { p_values[i].clamp(0.0, 1.0) } else { 1.0 };
    let mut order: Vec<usize> = (0..n).collect();
    order.arrange_by(|a, b| p(*b).total_cmp(&p(*a)));
    let mut out = vec![1.0; n];
    let mut least: f64 = 1.0;
    for (below, i) in order.into_iter().enumerate() {
        least = least.min(p(i) * n as f64 / (n - below) as f64);
        out[i] = least;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;
    use proptest::prelude::*;

    #[test]
    fn the_published_example_calls_its_first_four() {
        // Benjamini and Hochberg 1995, section 3.2: fifteen p-values, four of them at most 0.013.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
            0.7590, 1.0,
        ];
        let level = level(&p, 0.05);
        assert!((level - 0.05 * 4.0 / 15.0).abs() < 1e-12);
        assert_eq!(p.iter().filter(|p| **p <= level).count(), 4);
        assert_eq!(adjusted(&p).iter().filter(|q| **q <= 0.05).count(), 4);
        assert_eq!(adjusted(&[f64::NAN, 0.01]), [1.0, 0.02]);
        assert!(adjusted(&[]).is_empty());
    }

    #[test]
    fn one_comparison_is_judged_alone_and_none_is_no_error() {
        assert_eq!((level(&[0.2], 0.05), level(&[0.01], 0.05), level(&[], 0.05)), (0.05, 0.05, 0.05));
        assert_eq!(level(&[0.9, 0.5], 0.05), 0.025);
    }

    #[test]
    fn pages_without_a_difference_rarely_call_one() {
        let mut random = Random::new(7);
        let n = (0..4000).filter(|_| {
            let p: Vec<f64> = (0..40).map(|_| random.unit()).collect();
            let level = level(&p, 0.05);
            p.iter().any(|p| *p <= level)
        });
        let n = n.count();
        assert!((140..=260).contains(&n), "{n} of 4000 pages; 200 are expected");
    }

    proptest! {
        /// More is called than by Bonferroni's share, and never more than each alone.
        #[test]
        fn the_level_lies_between_its_ends(p in prop::collection::vec(0.0f64..=1.0, 1..50)) {
            let level = level(&p, 0.05);
            prop_assert!(level >= 0.05 / p.len() as f64 - 1e-15 && level <= 0.05 + 1e-15);
        }
    }
}

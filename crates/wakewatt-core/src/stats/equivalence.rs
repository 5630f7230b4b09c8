//! "No harm": is it shown that a difference, if there is one, is too small to matter?
//!
//! A test that finds nothing shows nothing; it may have been too weak. Equivalence is its own claim with its own two
//! one-sided tests (TOST, Schuirmann 1987): the ratio lies above the lower margin, and it lies below the upper one; both
//! must be shown at the level. The tests are signed ranks of the log ratios against the margin (`signed_rank`), exact for any
//! symmetric noise, like the test of the difference. "No harm" needs only the side on which the arm would be worse.

use super::signed_rank::{p_above, p_below};

/// The two one-sided tests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Equivalence {
    /// Against "the ratio is at or above the upper margin".
    pub below_p: f64,
    /// Against "the ratio is at or below the lower margin".
    pub above_p: f64,
}

impl Equivalence {
    /// Of log ratios with a margin such as 1.05.
    pub fn of(log_ratios: &[f64], margin_ratio: f64) -> Equivalence {
        let margin = margin_ratio.max(1.0).ln();
        Equivalence { below_p: p_below(log_ratios, margin), above_p: p_above(log_ratios, -margin) }
    }

    /// Of the claim that the ratio lies within the margins on both sides.
    pub fn p_value(&self) -> f64 {
        self.below_p.max(self.above_p)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    #[test]
    fn small_differences_are_shown_small_and_large_ones_are_not() {
        let small: Vec<f64> = (0..8).map(|i| 0.01 + 0.002 * f64::from(i % 3)).collect();
        let e = Equivalence::of(&small, 1.05);
        assert_eq!((e.below_p, e.above_p), (1.0 / 256.0, 1.0 / 256.0));
        assert!(Equivalence::of(&small, 1.01).p_value() > 0.5);
        // A gain is no harm, and no equivalence either.
        let gain = Equivalence::of(&[0.5; 8], 1.05);
        assert!(gain.above_p < 0.01 && gain.below_p == 1.0 && gain.p_value() == 1.0);
        let long: Vec<f64> = (0..24).map(|i| 0.001 * f64::from(i % 5)).collect();
        assert!(Equivalence::of(&long, 1.05).p_value() < 1e-3);
        assert_eq!(Equivalence::of(&[], 1.05).p_value(), 1.0);
    }

    /// At the very margin the claim is wrong, and may be made once in twenty times.
    #[test]
    fn a_difference_at_the_margin_is_rarely_called_none() {
        let mut random = Random::new(9);
        let n_called = (0..1000)
            .filter(|_| {
                let d: Vec<f64> = (0..10).map(|_| 1.05f64.ln() + 0.02 * random.normal()).collect();
                Equivalence::of(&d, 1.05).p_value() <= 0.05
            })
            .count();
        assert!((25..=70).contains(&n_called), "{n_called} of 1000");
    }
}

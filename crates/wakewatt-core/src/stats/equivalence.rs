//! "No harm": is it shown that a difference, if there is one, is too small to matter?
//!
//! A test that finds nothing shows nothing; it may have been too weak. Equivalence is its own claim with its own two
//! one-sided tests (TOST, Schuirmann 1987): the ratio lies above the lower margin, and it lies below the upper one; both
//! must be shown at the level. The tests are sign flips of the log ratios shifted by the margin, so they are exact for any
//! symmetric noise, like the test of the difference. "No harm" needs only the side on which the arm would be worse.

use super::random::Random;

const EXACT_UP_TO: usize = 16;
const N_FLIPS: u32 = 19_999;

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
    pub fn of(log_ratios: &[f64], margin_ratio: f64, seed: u64) -> Equivalence {
        let margin = margin_ratio.max(1.0).ln();
        let shifted = |by: f64, sign: f64| log_ratios.iter().map(|d| sign * (d + by)).collect::<Vec<f64>>();
        Equivalence {
            below_p: one_sided_p(&shifted(-margin, -1.0), seed),
            above_p: one_sided_p(&shifted(margin, 1.0), seed),
        }
    }

    /// Of the claim that the ratio lies within the margins on both sides.
    pub fn p_value(&self) -> f64 {
        self.below_p.max(self.above_p)
    }
}

/// Sign-flip p-value of "the centre is above 0": exact up to 16 rounds, else Monte Carlo.
pub fn one_sided_p(d: &[f64], seed: u64) -> f64 {
    let n = d.len();
    let observed: f64 = d.iter().sum();
    let limit = observed - 1e-9 * d.iter().map(|x| x.abs()).sum::<f64>();
    if n == 0 || observed <= 0.0 {
        return 1.0;
    }
    if n <= EXACT_UP_TO {
        // Gray code: one sign changes per step.
        let mut signed = d.to_vec();
        let mut sum = observed;
        let total = 1u64 << n;
        let mut n_extreme = 1u64;
        for step in 1..total {
            let i = step.trailing_zeros() as usize;
            signed[i] = -signed[i];
            sum += 2.0 * signed[i];
            n_extreme += u64::from(sum >= limit);
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
        n_extreme += u32::from(sum >= limit);
    }
    f64::from(n_extreme) / f64::from(N_FLIPS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_differences_are_shown_small_and_large_ones_are_not() {
        let small: Vec<f64> = (0..8).map(|i| 0.01 + 0.002 * f64::from(i % 3)).collect();
        let e = Equivalence::of(&small, 1.05, 1);
        assert_eq!((e.below_p, e.above_p), (1.0 / 256.0, 1.0 / 256.0));
        assert!(Equivalence::of(&small, 1.01, 1).p_value() > 0.5);
        // A gain is no harm, and no equivalence either.
        let gain = Equivalence::of(&[0.5; 8], 1.05, 1);
        assert!(gain.above_p < 0.01 && gain.below_p == 1.0 && gain.p_value() == 1.0);
        let long: Vec<f64> = (0..24).map(|i| 0.001 * f64::from(i % 5)).collect();
        assert!(Equivalence::of(&long, 1.05, 1).p_value() < 1e-3);
        assert_eq!(Equivalence::of(&[], 1.05, 1).p_value(), 1.0);
    }

    /// At the very margin the claim is wrong, and may be made once in twenty times.
    #[test]
    fn a_difference_at_the_margin_is_rarely_called_none() {
        let mut random = Random::new(9);
        let n_called = (0..1000)
            .filter(|_| {
                let d: Vec<f64> = (0..10).map(|_| 1.05f64.ln() + 0.02 * random.normal()).collect();
                Equivalence::of(&d, 1.05, 1).p_value() <= 0.05
            })
            .count();
        assert!((25..=70).contains(&n_called), "{n_called} of 1000");
    }
}

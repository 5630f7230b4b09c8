//! An interval that may be looked at after every round, and joined over sessions: a confidence sequence.
//!
//! Somebody bets on the sign of each round before seeing it. If the centre is at a guess, the signs of (d - guess) are as
//! fair as a coin, whatever the sizes and whatever came before, so a stake that depends on sizes and on the past wins nothing
//! in the long run: the capital is an e-process, and by Ville's inequality it ever reaches 1 / alpha with a chance of at
//! most alpha (Ramdas, Grünwald, Vovk & Shafer, "Game-theoretic statistics and safe anytime-valid inference", 2023; bets on
//! signs: Ramdas, Ruf, Larsson & Koolen 2020, section 5). All guesses against which nobody got rich are the interval. It is
//! wider than the one of a declared look, and it holds at every round at once: a run may stop whenever it likes, and the
//! rounds of another session of the same experiment may be added behind.
//!
//! The stake grows with the size of |d - guess| among the rounds so far, by a mean of five slopes and both directions.

use super::paired::hodges_lehmann;
use super::signed_rank::Interval;

/// From nearly even stakes for all rounds down to stakes on large ones only.
const SLOPES: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 8.0];
/// Never all of it: one round that goes the other way must not end the game.
const BOLDNESS: f64 = 0.95;

/// What somebody owns who bet 1 that the centre is not here. Values of 20 and more refute the guess at 5 %.
pub fn capital(values: &[f64], guess: f64) -> f64 {
    let mut sizes: Vec<f64> = Vec::with_capacity(values.len());
    let mut stakes = [[1.0f64; 2]; SLOPES.len()];
    for value in values {
        let (size, sign) = ((value - guess).abs(), (value - guess).signum());
        let at = sizes.partition_point(|s| *s < size);
        sizes.insert(at, size);
        // Sizes may be looked at before the bet, signs may not.
        let typical = sizes[sizes.len() / 2];
        if size == 0.0 || typical == 0.0 {
            continue;
        }
        for (capital, slope) in stakes.iter_mut().zip(SLOPES) {
            let stake = BOLDNESS * (slope * size / typical).tanh();
            capital[0] *= 1.0 + sign * stake;
            capital[1] *= 1.0 - sign * stake;
        }
    }
    stakes.iter().flatten().sum::<f64>() / (2 * SLOPES.len()) as f64
}

/// The guesses that are not refuted at this error rate after these rounds, and would not have been had one stopped earlier.
pub fn interval(values: &[f64], level: f64) -> Interval {
    let open = Interval { low: f64::NEG_INFINITY, high: f64::INFINITY, confidence: 1.0 - level };
    if values.len() < 2 || values.iter().any(|v| !v.is_finite()) {
        return open;
    }
    let limit = 1.0 / level;
    let middle = hodges_lehmann(values);
    let span = values.iter().fold(1e-12, |span: f64, v| span.max((v - middle).abs()));
    let end = |direction: f64| {
        let is_refuted = |by: f64| capital(values, middle + direction * by) >= limit;
        // Where even far away nothing is refuted there are too few rounds.
        let far = 4.0 * span;
        if !is_refuted(far) {
            return direction * f64::INFINITY;
        }
        let (mut inside, mut outside) = (0.0, far);
        for _ in 0..50 {
            let by = (inside + outside) / 2.0;
            if is_refuted(by) { outside = by } else { inside = by }
        }
        middle + direction * outside
    };
    Interval { low: end(-1.0), high: end(1.0), ..open }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    #[test]
    fn a_clear_effect_is_seen_in_few_rounds_and_none_in_five() {
        let d = |n: usize| (0..n).map(|i| 1.0 + 0.01 * (i % 3) as f64).collect::<Vec<f64>>();
        assert!(interval(&d(4), 0.05).low.is_infinite(), "four coins can all be heads");
        let found = interval(&d(10), 0.05);
        assert!(found.low > 0.9 && found.high < 1.1, "{found:?}");
        assert!(interval(&[], 0.05).low.is_infinite() && interval(&[f64::NAN; 9], 0.05).high.is_infinite());
        assert_eq!(capital(&[0.0; 20], 0.0), 1.0);
    }

    /// Looked at after every one of 64 rounds, over skewed sizes: the truth is ever refuted in at most one of twenty runs.
    #[test]
    fn whoever_looks_after_every_round_is_misled_rarely() {
        let mut random = Random::new(11);
        let ever = (0..2000).filter(|_| {
            let d: Vec<f64> = (0..64).map(|_| (random.normal()).powi(3) * 0.1).collect();
            (2..=64).any(|n| capital(&d[..n], 0.0) >= 20.0)
        });
        let n = ever.count();
        assert!(n <= 110, "{n} of 2000");
    }
}

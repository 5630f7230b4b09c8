//! How small a difference could have been found? The answer to "it found nothing", from the noise that was seen.
//!
//! The minimum detectable effect is the difference that an experiment of so many rounds finds with 80 % chance, given the
//! spread of its own log ratios. A difference is found where the interval of the noise, moved by it, lies above 0, so the
//! answer is the 80th percentile of minus the lower ends of many intervals of pure noise: no formula of another test stands
//! in for the one that is used (the t formula said 80 % where 64 to 71 % were true). The noise is normal with the spread that was
//! seen; where it is heavier tailed the signed rank finds more than is said here. Below the rounds at which the test can prove
//! anything there is no detectable effect at all.

use super::random::Random;
use super::sequential::least_rounds;
use super::signed_rank;

/// The chance with which a difference of that size is found.
const POWER: f64 = 0.8;
/// Runs of noise: the percentile is right to 2 % of itself.
const N_NOISES: usize = 1000;
/// Rounds that are played through.
const MOST_PLAYED: usize = 100;
/// Part of the method: the same rounds give the same answer.
const SEED: u64 = 0x4d44_4500;

/// Standard deviation of some values; none with fewer than two.
pub fn spread(values: &[f64]) -> Option<f64> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    Some((values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / (n - 1) as f64).sqrt())
}

/// The smallest ratio above 1 (1.08 for 8 %) that so many rounds of this spread find at this level, adjusted for the
/// comparisons made together.
pub fn detectable_ratio(spread: f64, n_rounds: usize, level: f64, n_comparisons: usize) -> Option<f64> {
    if n_rounds < least_rounds(n_comparisons, level) || !spread.is_finite() {
        return None;
    }
    let level = level / n_comparisons.max(1) as f64;
    // The detectable effect shrinks with the square root of the rounds; more than a hundred are extrapolated.
    let n_played = n_rounds.min(MOST_PLAYED);
    let scale = (n_played as f64 / n_rounds as f64).sqrt();
    let mut random = Random::new(SEED);
    let mut needed: Vec<f64> = (0..N_NOISES)
        .map(|_| {
            let mut noise: Vec<f64> = (0..n_played).map(|_| random.normal()).collect();
            // A run knows its own spread and not the true one.
            let own = self::spread(&noise).unwrap_or(1.0).max(f64::MIN_POSITIVE);
            noise.iter_mut().for_each(|value| *value /= own);
            -signed_rank::interval(&noise, level).low
        })
        .collect();
    needed.sort_by(f64::total_cmp);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a position in the list
    let at = ((N_NOISES as f64 * POWER) as usize).min(N_NOISES - 1);
    Some((needed[at] * spread * scale).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_detectable_difference_is_found_four_times_in_five() {
        let s = 0.1;
        let ratio = detectable_ratio(s, 12, 0.05, 1).unwrap();
        assert!((1.08..1.12).contains(&ratio), "{ratio}");
        let mut random = Random::new(3);
        let n_found = (0..400)
            .filter(|_| {
                let d: Vec<f64> = (0..12).map(|_| ratio.ln() + s * random.normal()).collect();
                signed_rank::p_value(&d) <= 0.05
            })
            .count();
        assert!((305..=335).contains(&n_found), "{n_found} of 400");
        assert_eq!(detectable_ratio(s, 5, 0.05, 1), None, "five rounds prove nothing, however large it is");
        assert_eq!(detectable_ratio(s, 8, 0.05, 13), None);
        assert!((spread(&[1.0, 2.0, 3.0]).unwrap() - 1.0).abs() < 1e-12 && spread(&[1.0]).is_none());
    }
}

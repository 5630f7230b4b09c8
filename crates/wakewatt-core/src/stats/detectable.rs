//! How small a difference could have been found? The answer to "it found nothing", from the noise that was seen.
//!
//! The minimum detectable effect is the difference that an experiment of so many rounds finds with 80 % chance, given the
//! spread of its own log ratios: (t(1 - level/2) + t(0.8)) * s / sqrt(n) with n - 1 degrees of freedom (Bloom 1995,
//! "Minimum Detectable Effects"). The test here is a sign flip and not a t-test; they need nearly the same rounds where
//! the noise is symmetric. Below the rounds at which a sign flip can prove anything there is no detectable effect at all.

use super::paired::student_point;
use super::sequential::least_rounds;

/// The chance with which a difference of that size is found.
const POWER: f64 = 0.8;

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
    let (n, level) = (n_rounds as f64, level / n_comparisons.max(1) as f64);
    let points = student_point(level / 2.0, n - 1.0) + student_point(1.0 - POWER, n - 1.0);
    Some((points * spread / n.sqrt()).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::paired::sign_flip_p;
    use crate::stats::random::Random;

    #[test]
    fn the_detectable_difference_is_found_four_times_in_five() {
        let s = 0.1;
        let ratio = detectable_ratio(s, 12, 0.05, 1).unwrap();
        assert!((1.08..1.11).contains(&ratio), "{ratio}");
        let mut random = Random::new(3);
        let n_found = (0..400)
            .filter(|_| {
                let d: Vec<f64> = (0..12).map(|_| ratio.ln() + s * random.normal()).collect();
                sign_flip_p(&d, 1) <= 0.05
            })
            .count();
        assert!((280..=360).contains(&n_found), "{n_found} of 400");
        assert_eq!(detectable_ratio(s, 5, 0.05, 1), None, "five rounds prove nothing, however large it is");
        assert_eq!(detectable_ratio(s, 8, 0.05, 13), None);
        assert!((spread(&[1.0, 2.0, 3.0]).unwrap() - 1.0).abs() < 1e-12 && spread(&[1.0]).is_none());
    }
}

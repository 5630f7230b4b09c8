//! What stopping early does to a p-value and to an estimate, and both without it.
//!
//! Whoever stops at the first proof stops when chance was on the side of the effect: the estimate of such a run is too large,
//! and its p-value knows nothing of the looks before. Results are put in order by the look they ended at, the earlier the
//! stronger ("stage-wise", Armitage 1957; Jennison & Turnbull, "Group Sequential Methods", 8.4 and 8.5):
//! - the p-value is the chance of a result at least as strong if nothing differs: at most what the looks before could spend,
//!   plus the p-value of this look (Bonferroni, as the looks themselves);
//! - the estimate is the effect under which a stronger result is as likely as a weaker one, so it is too large as often as too
//!   small. The scatter is the run's own: signs of the deviations from a guess are as good as their opposites.
//!
//! Of all runs, that is. Of those that ended at their first look most still show too much: nothing that a run knows tells a
//! lucky one from a large effect, and only more rounds do.

use super::paired::hodges_lehmann;
use super::random::Random;
use super::sequential::{Look, StopReason};
use super::signed_rank;

/// Runs that are played through: the middle is right to a tenth of the estimate's own error.
const N_PLAYED: usize = 300;
/// Part of the method and no choice of a run: the same rounds give the same estimate.
const SEED: u64 = 0x5745_4947_4854;

/// The p-value of a run that ended at the last of these looks, from the p-value of that look.
pub fn stage_wise_p(p_value: f64, taken: &[Look]) -> f64 {
    let before = taken.split_last().map_or(0.0, |(_, before)| before.iter().map(|l| l.level).sum());
    (p_value + before).min(1.0)
}

/// The estimate from log ratios by round of a run that ended at the last of these looks; the plain one where there was but
/// one look.
pub fn unbiased(values: &[f64], taken: &[Look]) -> f64 {
    let plain = hodges_lehmann(values);
    if taken.len() < 2 || values.len() < 2 || plain == 0.0 {
        return plain;
    }
    let sign = plain.signum();
    let values: Vec<f64> = values.iter().map(|v| sign * v).collect();
    let observed = sign * plain;
    let ends = signed_rank::interval(&values, 0.001);
    let (mut low, mut high) = (ends.low.min(0.0), ends.high);
    for _ in 0..10 {
        let guess = (low + high) / 2.0;
        if share_stronger(&values, taken, guess, observed) < 0.5 { low = guess } else { high = guess }
    }
    sign * (low + high) / 2.0
}

/// How often a run with this effect ends with a stronger result than the one observed.
fn share_stronger(values: &[f64], taken: &[Look], effect: f64, observed: f64) -> f64 {
    let mut random = Random::new(SEED);
    let mut played = vec![0.0; values.len()];
    let mut n_stronger = 0.0;
    for _ in 0..N_PLAYED {
        for (slot, value) in played.iter_mut().zip(values) {
            let deviation = value - effect;
            *slot = effect + if random.bits() & 1 == 0 { deviation } else { -deviation };
        }
        n_stronger += strength(&played, taken, observed);
    }
    n_stronger / N_PLAYED as f64
}

/// 1 where it ended earlier with the same proof or at the same look with a larger estimate, a half where it equals it.
fn strength(played: &[f64], taken: &[Look], observed: f64) -> f64 {
    let Some((_, before)) = taken.split_last() else { return 0.0 };
    for look in before {
        let so_far = &played[..look.n_rounds.min(played.len())];
        match super::sequential::reached(so_far, look.level) {
            Some(StopReason::EffectProven) => return if hodges_lehmann(so_far) > 0.0 { 1.0 } else { 0.0 },
            Some(_) => return 0.0,
            None => {}
        }
    }
    let estimate = hodges_lehmann(played);
    match (estimate - observed).abs() <= 1e-12 * observed.abs() {
        true => 0.5,
        false => f64::from(u8::from(estimate > observed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::sequential::{Decision, Looks};

    fn taken(looks: &Looks, n: usize) -> Vec<Look> {
        looks.all().iter().filter(|l| l.n_rounds <= n).copied().collect()
    }

    #[test]
    fn the_first_look_changes_nothing_and_later_ones_cost() {
        let looks = Looks::standard();
        assert_eq!(stage_wise_p(0.02, &taken(&looks, 8)), 0.02);
        assert!((stage_wise_p(0.004, &taken(&looks, 12)) - 0.011_812_5).abs() < 1e-9);
        let d: Vec<f64> = (0..12).map(|i| 0.1 + 0.01 * f64::from(i)).collect();
        assert_eq!(unbiased(&d[..8], &taken(&looks, 8)), hodges_lehmann(&d[..8]));
        assert_eq!((unbiased(&[], &[]), stage_wise_p(0.99, &taken(&looks, 20))), (0.0, 1.0));
        let turned: Vec<f64> = d.iter().map(|x| -x).collect();
        let (one, other) = (unbiased(&d, &taken(&looks, 12)), unbiased(&turned, &taken(&looks, 12)));
        assert!((one + other).abs() < 1e-12, "{one} {other}");
    }

    /// With a true effect of 10 % and realistic scatter, the plain estimate is too large more often than too small.
    #[test]
    fn the_estimate_is_too_large_as_often_as_too_small() {
        let (looks, effect) = (Looks::standard(), 1.1f64.ln());
        let (mut plain_above, mut above, n) = (0, 0, 200);
        for seed in 0..n {
            let mut random = Random::new(seed);
            let mut d: Vec<f64> = Vec::new();
            loop {
                d.push(effect + 0.113 * random.normal());
                if let Decision::Stop(_) = looks.decide(d.len(), &d) {
                    break;
                }
            }
            plain_above += u32::from(hodges_lehmann(&d) > effect);
            above += u32::from(unbiased(&d, &taken(&looks, d.len())) > effect);
        }
        assert!((80..=120).contains(&above) && above <= plain_above, "{above} and {plain_above} of {n}");
    }
}

//! Several settings against one baseline, looked at several times: what may be said of each, and when is it enough?
//!
//! At each declared look the exact tests of all settings are adjusted together (Holm 1979) and compared with that look's
//! share of the 5 %. So at one look the chance to call any difference that is none is at most that share, whatever the
//! settings have in common (they share the baseline's blocks), and over all looks at most 5 % by Bonferroni's inequality.
//! A setting is decided when it is shown to differ, or shown not to (`equivalence`); the experiment ends when all are.
//!
//! A look is due after so many rounds in which every setting counted. A setting that lost more than half of its blocks
//! holds nobody back. Between two looks nothing is decided: the estimate may be shown, a verdict may not.

use super::equivalence::Equivalence;
use super::paired::{hodges_lehmann, holm};
use super::sequential::{Decision, Look, Looks, StopReason};
use super::signed_rank;

/// Log ratios of the primary metric, per other arm and by round; none where a block did not count.
pub type ByRound = Vec<Vec<Option<f64>>>;

/// How several arms are judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Family {
    /// Declared beforehand.
    pub looks: Looks,
    /// 1.05: differences within 5 % do not matter.
    pub margin_ratio: f64,
}

/// Where an experiment stands between its looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    /// Rounds in which all counted.
    pub n_counted: usize,
    /// The look that is due now, if one is.
    pub look: Option<Look>,
    /// The last look taken before or now.
    pub last: Option<Look>,
}

impl Family {
    /// Of these looks.
    pub fn new(looks: Looks, margin_ratio: f64) -> Family {
        Family { looks, margin_ratio }
    }

    /// Where it stands after so many rounds.
    pub fn standing(&self, arms: &ByRound, n_rounds: usize) -> Standing {
        let taken = |n: usize| self.looks.all().iter().rev().find(|l| l.n_rounds <= n).copied();
        let (now, before) = (counted(arms, n_rounds), counted(arms, n_rounds.saturating_sub(1)));
        let (last, earlier) = (taken(now), taken(before));
        Standing { n_counted: now, look: last.filter(|_| last != earlier), last }
    }

    /// Stop or go on after so many rounds.
    pub fn decide(&self, arms: &ByRound, n_rounds: usize) -> Decision {
        let standing = self.standing(arms, n_rounds);
        let next = self.looks.all().iter().find(|l| l.n_rounds > standing.n_counted).map(|l| l.n_rounds);
        let go_on = next.map_or(Decision::Stop(StopReason::LastLook), Decision::Continue);
        let Some(look) = standing.look else { return go_on };
        let series: Vec<Vec<f64>> =
            arms.iter().map(|arm| arm.iter().take(n_rounds).flatten().copied().collect()).collect();
        let differ = self.differing(&series, look.level);
        let same = self.equivalent(&series, look.level);
        let is_decided = differ.iter().zip(&same).all(|(d, s)| *d || *s);
        // One that is proven not to matter is no difference.
        match (is_decided, differ.iter().zip(&same).any(|(d, s)| *d && !*s)) {
            (true, true) => Decision::Stop(StopReason::EffectProven),
            (true, false) => Decision::Stop(StopReason::NoDifference),
            _ => go_on,
        }
    }

    /// Which are shown to differ, adjusted together.
    pub fn differing(&self, series: &[Vec<f64>], level: f64) -> Vec<bool> {
        let p_values: Vec<f64> = series.iter().map(|d| signed_rank::p_value(d)).collect();
        holm(&p_values).iter().map(|p| *p <= level).collect()
    }

    /// Which are shown to lie within the margin.
    pub fn equivalent(&self, series: &[Vec<f64>], level: f64) -> Vec<bool> {
        let margin = self.margin_ratio.ln();
        let p_value = |d: &Vec<f64>| {
            let is_near = hodges_lehmann(d).abs() < margin;
            if is_near { Equivalence::of(d, self.margin_ratio).p_value() } else { 1.0 }
        };
        holm(&series.iter().map(p_value).collect::<Vec<_>>()).iter().map(|p| *p <= level).collect()
    }
}

/// Rounds of the first `n` in which every arm counted that did not lose more than half of the best one's.
fn counted(arms: &ByRound, n: usize) -> usize {
    // The running maximum: what was reached stays reached.
    let at = |n: usize| {
        let counts = || arms.iter().map(|arm| arm.iter().take(n).flatten().count());
        let most = counts().max().unwrap_or(0);
        counts().filter(|c| c * 2 >= most).min().unwrap_or(0)
    };
    // A file may claim any number of rounds.
    let n = n.min(arms.iter().map(Vec::len).max().unwrap_or(0));
    (1..=n).map(at).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    /// Blocks with a CV of 8 %, one in twenty spoilt; the arms share the baseline's block.
    fn simulate(family: &Family, n_arms: usize, effect: f64, seed: u64) -> (StopReason, Vec<bool>) {
        let mut random = Random::new(seed);
        let mut noisy = || 0.08 * random.normal() * if random.below(20) == 0 { 4.0 } else { 1.0 };
        let mut arms: ByRound = vec![Vec::new(); n_arms];
        loop {
            let baseline = noisy();
            for (at, arm) in arms.iter_mut().enumerate() {
                let value = baseline - noisy() + if at == 0 { effect } else { 0.0 };
                arm.push(Some(value));
            }
            let n = arms[0].len();
            if let Decision::Stop(reason) = family.decide(&arms, n) {
                let level = family.standing(&arms, n).last.map_or(0.05, |l| l.level);
                let series: Vec<Vec<f64>> = arms.iter().map(|a| a.iter().flatten().copied().collect()).collect();
                return (reason, family.differing(&series, level));
            }
        }
    }

    fn family(rounds: &[usize], n_arms: usize) -> Family {
        let (looks, _) = Looks::spread(rounds, n_arms).unwrap();
        Family::new(looks, 1.05)
    }

    /// The acceptance test of the method: of 1000 experiments on nothing with stopping and several arms, at most 6.4 %
    /// call any difference.
    #[test]
    fn a_thousand_families_on_nothing_rarely_find_something() {
        for n_arms in [1, 4] {
            let family = family(&[8, 11, 15], n_arms);
            let n = (0..1000).filter(|seed| simulate(&family, n_arms, 0.0, *seed).1.contains(&true)).count();
            assert!(n <= 64, "{n_arms} arms: {n} false positives in 1000");
        }
    }

    #[test]
    fn one_real_effect_among_others_is_found_and_the_others_are_not_called() {
        let family = family(&[8, 12, 16], 4);
        let ended: Vec<_> = (0..60).map(|seed| simulate(&family, 4, 2.0f64.ln(), seed)).collect();
        assert!(ended.iter().filter(|(_, d)| d[0]).count() >= 57);
        assert!(ended.iter().filter(|(_, d)| d[1..].contains(&true)).count() <= 6);
        assert!(ended.iter().any(|(why, _)| *why == StopReason::LastLook), "the undecided ones keep it going");
    }

    #[test]
    fn a_look_is_taken_once_and_an_arm_that_never_counts_holds_nobody_back() {
        let family = family(&[6, 9], 1);
        let mut arms: ByRound = vec![vec![Some(0.5); 5], vec![None; 5]];
        assert_eq!(family.decide(&arms, 5), Decision::Continue(6));
        arms.iter_mut().zip([Some(0.5), None]).for_each(|(a, d)| a.push(d));
        assert_eq!(family.standing(&arms, 6).look.map(|l| l.n_rounds), Some(6));
        arms.iter_mut().for_each(|a| a.push(None));
        let standing = family.standing(&arms, 7);
        assert_eq!((standing.look, standing.last.map(|l| l.n_rounds)), (None, Some(6)), "not a second time");
        let small = (0..6).map(|i| Some(if i % 2 == 0 { 0.002 } else { -0.001 })).collect();
        assert_eq!(family.decide(&vec![small], 6), Decision::Stop(StopReason::NoDifference));
    }
}

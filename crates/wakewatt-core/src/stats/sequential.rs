//! When an experiment may stop: a few looks declared before it ran, each with its share of the error rate.
//!
//! Looking after every round and stopping at the first p < 0.05 finds something in a quarter of all experiments on
//! nothing. Here the looks and their levels are fixed beforehand and the levels add up to alpha, so by Bonferroni's
//! inequality the chance that any look calls a difference where there is none is at most alpha, whatever the
//! correlation between looks; each look's test is exact (`signed_rank`). The intervals are taken at the same level: they
//! are repeated confidence intervals (Jennison & Turnbull 1989), right all together, and somewhat wider than a plain
//! 95 % one. Little is spent early and most late, as O'Brien & Fleming 1979, as far as exactness allows: n rounds that
//! all agree have p = 2 / 2^n, so a look at 6 costs 0.031 and a look at 8 only 0.0078.

use super::equivalence::Equivalence;
use super::paired::{Judge, NEGLIGIBLE_RATIO};
use super::signed_rank;
use wakewatt_words::say;

/// The error rate of a whole experiment.
const ALPHA: f64 = 0.05;

/// The fewest rounds in which so many comparisons, adjusted together, can reach a level.
pub fn least_rounds(n_comparisons: usize, level: f64) -> usize {
    (1..64)
        .find(|n| n_comparisons.max(1) as f64 * 0.5f64.powi(n - 1) <= level)
        .map_or(64, |n| n.unsigned_abs() as usize)
}

/// One look.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Look {
    /// After this many complete rounds.
    pub n_rounds: usize,
    /// The part of alpha it may use.
    pub level: f64,
}

/// The looks, in order, declared beforehand. One primary comparison: the first metric against the first other arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Looks(Vec<Look>);

/// What a look decides.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// No look is due; the next is after this many rounds.
    Continue(usize),
    /// Enough.
    Stop(StopReason),
}

/// Why it is enough.
#[derive(Clone, Debug, PartialEq)]
pub enum StopReason {
    /// Interval and test exclude 1.
    EffectProven,
    /// The interval lies within ±5 % of 1.
    NoDifference,
    /// The last declared look.
    LastLook,
}

impl StopReason {
    /// For the record.
    pub fn text(&self) -> &'static str {
        match self {
            StopReason::EffectProven => "the primary difference is proven",
            StopReason::NoDifference => "the primary difference is proven to be below 5%",
            StopReason::LastLook => "all planned rounds ran",
        }
    }

    /// The same where several arms are judged together.
    pub fn for_all(&self) -> &'static str {
        match self {
            StopReason::EffectProven => "every arm is decided",
            StopReason::NoDifference => "every arm is shown to differ by less than the margin",
            StopReason::LastLook => "all planned rounds ran",
        }
    }
}

/// Reasons as run files have them, looked up where they are shown.
pub(crate) fn words() -> impl Iterator<Item = &'static str> {
    let all = [StopReason::EffectProven, StopReason::NoDifference, StopReason::LastLook];
    all.into_iter().flat_map(|reason| [reason.text(), reason.for_all()])
}

impl Looks {
    /// For rounds of short measurements, of which there are some three per second: interim analyses after 24, 60, 120, 250
    /// and 500 rounds. Most runs end at the first one, within ten seconds, so it gets a fifth of the 5 %: its interval is
    /// the one that people see. Hundreds of rounds find a small effect at any level.
    pub fn short() -> Looks {
        let looks = [(24, 0.010), (60, 0.008), (120, 0.008), (250, 0.010), (500, 0.014)];
        Looks(looks.map(|(n_rounds, level)| Look { n_rounds, level }).to_vec())
    }

    /// For whole measurements of seconds: at 8, 12, 20 and 32 rounds; most of the 5 % is left for the later ones, so that
    /// 10 % effects are found.
    pub fn standard() -> Looks {
        let looks = [(8, 2.0 / 256.0), (12, 0.006), (20, 0.012), (32, 0.024)];
        Looks(looks.map(|(n_rounds, level)| Look { n_rounds, level }).to_vec())
    }

    /// Exactly so many rounds, one look.
    pub fn fixed(n_rounds: usize) -> Looks {
        Looks(vec![Look { n_rounds, level: ALPHA }])
    }

    /// At these numbers of rounds, for so many comparisons that are adjusted together (Holm). Every look gets what it
    /// needs at least: the smallest p-value of its rounds, 2 / 2^n, times the comparisons. The rest of the 5 % goes to the
    /// looks by the square of their rounds, so that most is spent late. Looks that could prove nothing are left out and
    /// named; none left is an error.
    pub fn spread(rounds: &[usize], n_comparisons: usize) -> Result<(Looks, Vec<usize>), String> {
        let mut rounds: Vec<usize> = rounds.iter().copied().filter(|n| *n > 0).collect();
        rounds.sort_unstable();
        rounds.dedup();
        let n_comparisons = n_comparisons.max(1);
        let need = |n: usize| n_comparisons as f64 * 0.5f64.powi(i32::try_from(n).unwrap_or(i32::MAX) - 1);
        let total = |looks: &[usize]| looks.iter().map(|n| need(*n)).sum::<f64>();
        let mut first = 0;
        // The earliest costs most and is the first to go.
        while first < rounds.len() && total(&rounds[first..]) > ALPHA {
            first += 1;
        }
        let kept = &rounds[first..];
        if kept.is_empty() {
            return Err(say!(
                "{} rounds cannot prove a difference among {n_comparisons} comparisons, however large it is: {} are needed",
                rounds.last().copied().unwrap_or(0),
                least_rounds(n_comparisons, ALPHA)
            ));
        }
        let rest = ALPHA - total(kept);
        let squares: f64 = kept.iter().map(|n| (n * n) as f64).sum();
        let look = |n: &usize| Look { n_rounds: *n, level: need(*n) + rest * (n * n) as f64 / squares };
        Ok((Looks(kept.iter().map(look).collect()), rounds[..first].to_vec()))
    }

    /// The looks.
    pub fn all(&self) -> &[Look] {
        &self.0
    }

    /// Most rounds that can run.
    pub fn max_rounds(&self) -> usize {
        self.0.last().map_or(0, |l| l.n_rounds)
    }

    /// How to judge after so many complete rounds: at the level of the look reached last. An experiment that was
    /// interrupted before its first look is judged at the first look's level, which it cannot reach.
    pub fn judge(&self, n_rounds: usize) -> Judge {
        let reached = self.0.iter().rev().find(|l| l.n_rounds <= n_rounds).or(self.0.first());
        Judge { level: reached.map_or(0.05, |l| l.level) }
    }

    /// Stop or go on, after so many rounds; `log_ratios` are those of the primary comparison. Rounds are counted as
    /// they ran: a rejected block must not let a look be repeated with other data.
    pub fn decide(&self, n_rounds: usize, log_ratios: &[f64]) -> Decision {
        let next = self.0.iter().find(|l| l.n_rounds > n_rounds).map(|l| l.n_rounds);
        let last_or_next = next.map_or(Decision::Stop(StopReason::LastLook), Decision::Continue);
        if !self.0.iter().any(|l| l.n_rounds == n_rounds) {
            return last_or_next;
        }
        reached(log_ratios, self.judge(n_rounds).level).map_or(last_or_next, Decision::Stop)
    }

    /// The same where more rounds cost seconds only: a proven effect whose size is still vague is measured on, and one that
    /// is proven not to matter is no difference. The run is judged at the look that ends it, so nothing is spent twice.
    pub fn decide_size(&self, n_rounds: usize, log_ratios: &[f64]) -> Decision {
        let decision = self.decide(n_rounds, log_ratios);
        if decision != Decision::Stop(StopReason::EffectProven) {
            return decision;
        }
        match self.0.iter().find(|l| l.n_rounds > n_rounds) {
            _ if is_negligible(log_ratios, self.judge(n_rounds).level) => Decision::Stop(StopReason::NoDifference),
            Some(next) if self.is_vague(n_rounds, log_ratios) => Decision::Continue(next.n_rounds),
            _ => decision,
        }
    }

    /// Is the interval of an effect wide, or does it reach from a difference that does not matter to one that does?
    pub fn is_vague(&self, n_rounds: usize, log_ratios: &[f64]) -> bool {
        let ends = self.judge(n_rounds).interval(log_ratios);
        let (nearest, farthest) = (ends.low.abs().min(ends.high.abs()), ends.low.abs().max(ends.high.abs()));
        let margin = NEGLIGIBLE_RATIO.ln();
        ends.high - ends.low > WIDE_RATIO.ln() || (nearest < margin && farthest > margin)
    }
}

/// An interval that spans more than this factor says little of the size.
const WIDE_RATIO: f64 = 1.4;

/// Does an interval of that level lie within the margins?
fn is_negligible(log_ratios: &[f64], level: f64) -> bool {
    2.0 * Equivalence::of(log_ratios, NEGLIGIBLE_RATIO).p_value() <= level
}

/// What these rounds show at one look's level, if anything.
pub(super) fn reached(log_ratios: &[f64], level: f64) -> Option<StopReason> {
    if signed_rank::p_value(log_ratios) <= level {
        return Some(StopReason::EffectProven);
    }
    is_negligible(log_ratios, level).then_some(StopReason::NoDifference)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    /// How many of so many simulated experiments stop with a proven effect; `noise` draws one log ratio.
    fn n_proven(looks: &Looks, n_experiments: u64, noise: impl Fn(&mut Random) -> f64) -> u64 {
        let one = |seed: u64| {
            let mut random = Random::new(seed);
            let mut d: Vec<f64> = Vec::new();
            loop {
                d.push(noise(&mut random));
                match looks.decide(d.len(), &d) {
                    Decision::Continue(_) => {}
                    Decision::Stop(reason) => return reason == StopReason::EffectProven,
                }
            }
        };
        (0..n_experiments).filter(|seed| one(*seed)).count() as u64
    }

    /// Between-round noise of two blocks with a CV of 8 % each, and sometimes a spoilt block, as measured
    /// (docs/methods/statistics.md).
    fn noisy(random: &mut Random) -> f64 {
        let spoilt = if random.below(20) == 0 { 4.0 } else { 1.0 };
        0.08 * std::f64::consts::SQRT_2 * random.normal() * spoilt
    }

    #[test]
    fn a_proven_effect_is_measured_on_until_its_size_is_known() {
        let looks = Looks::short();
        let d = |centre: f64, spread: f64| -> Vec<f64> {
            (0..24).map(|i| centre.ln() + spread * (f64::from(i) - 11.5) / 11.5).collect()
        };
        let stop = Decision::Stop;
        for (rounds, whole, sized) in [
            (d(7.0, 0.1), stop(StopReason::EffectProven), stop(StopReason::EffectProven)),
            (d(7.0, 1.0), stop(StopReason::EffectProven), Decision::Continue(60)),
            (d(1.05, 0.04), stop(StopReason::EffectProven), Decision::Continue(60)),
            (d(1.02, 0.02), stop(StopReason::EffectProven), stop(StopReason::NoDifference)),
            (d(1.00, 0.02), stop(StopReason::NoDifference), stop(StopReason::NoDifference)),
            (d(1.00, 0.50), Decision::Continue(60), Decision::Continue(60)),
        ] {
            assert_eq!(looks.decide(24, &rounds), whole, "{rounds:?}");
            assert_eq!(looks.decide_size(24, &rounds), sized, "{rounds:?}");
        }
        let last = Looks::fixed(24).decide_size(24, &d(7.0, 1.0));
        assert_eq!(last, stop(StopReason::EffectProven), "the last look has nothing to wait for");
    }

    #[test]
    fn levels_add_up_to_five_percent_and_each_can_be_reached() {
        for looks in [Looks::standard(), Looks::short(), Looks::fixed(8)] {
            assert!(looks.all().iter().map(|l| l.level).sum::<f64>() <= 0.05 + 1e-12);
            for look in looks.all() {
                assert!(0.5f64.powi(i32::try_from(look.n_rounds).unwrap() - 1) <= look.level, "{look:?}");
            }
        }
        for n_comparisons in [1, 4, 13] {
            let (looks, dropped) = Looks::spread(&[8, 32, 12, 20, 12], n_comparisons).unwrap();
            assert!((looks.all().iter().map(|l| l.level).sum::<f64>() - 0.05).abs() < 1e-12);
            let is_reachable =
                |l: &Look| n_comparisons as f64 * 2.0 / 2f64.powi(i32::try_from(l.n_rounds).unwrap()) <= l.level;
            assert!(looks.all().iter().all(is_reachable), "{looks:?}");
            assert_eq!(dropped, if n_comparisons == 13 { vec![8] } else { vec![] });
        }
        assert!(Looks::spread(&[5], 1).unwrap_err().contains("6 are needed"));
        assert_eq!((least_rounds(1, 0.05), least_rounds(13, 0.05)), (6, 10));
        assert_eq!(Looks::short().decide(23, &[0.3; 23]), Decision::Continue(24));
        let clear: Vec<f64> = (0..24).map(|i| 0.3 + 0.01 * f64::from(i % 3)).collect();
        assert_eq!(Looks::short().decide(24, &clear), Decision::Stop(StopReason::EffectProven));
        assert_eq!(Looks::short().decide(500, &[]), Decision::Stop(StopReason::LastLook));
    }

    /// What docs/methods/statistics.md promises: 1000 A/A experiments with stopping, at most 6.4 % call a difference.
    #[test]
    fn a_thousand_experiments_on_nothing_rarely_find_something() {
        let n = n_proven(&Looks::standard(), 1000, noisy);
        assert!(n <= 64, "standard: {n} false positives in 1000");
        let n = n_proven(&Looks::short(), 1000, noisy);
        assert!(n <= 64, "short: {n} false positives in 1000");
    }

    #[test]
    fn a_ten_percent_effect_is_mostly_found_and_a_large_one_at_once() {
        let n = n_proven(&Looks::standard(), 200, |r| 1.1f64.ln() + 0.08 * std::f64::consts::SQRT_2 * r.normal());
        assert!(n >= 160, "{n} of 200");
        // Short measurements scatter more, and there are many of them.
        let n = n_proven(&Looks::short(), 100, |r| 1.1f64.ln() + 0.3 * r.normal());
        assert!(n >= 98, "{n} of 100");
        assert_eq!(n_proven(&Looks::short(), 100, |r| 2.0f64.ln() + 0.3 * r.normal()), 100);
    }
}

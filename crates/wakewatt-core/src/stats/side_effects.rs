//! Do arms differ in what else they change? Paired by round, on plain differences, adjusted together.
//!
//! Differences and not ratios, because a steal of 0 has none. The test is the signed rank, as everywhere; Holm over all that
//! could be looked at in this run. What nothing was counted of is no test and costs the others nothing.

use super::paired::{hodges_lehmann, holm, median};
use super::signed_rank;
use crate::samples::experiment::{Block, ExperimentRun};
use crate::samples::side_effect::{SideEffect, Witnessed};
use std::collections::BTreeSet;

/// Of each by itself, and of all together.
const LEVEL: f64 = 0.05;

/// All of a run's, per arm in the order of [`Witnessed::ALL`].
pub fn of(run: &ExperimentRun) -> Vec<SideEffect> {
    let Some((baseline, others)) = run.arms.split_first() else { return Vec::new() };
    let one = |arm: &str, what| of_one(run, &baseline.id, arm, what);
    let mut all: Vec<SideEffect> =
        others.iter().flat_map(|arm| Witnessed::ALL.into_iter().filter_map(|what| one(&arm.id, what))).collect();
    let adjusted = holm(&all.iter().map(|e| e.own_p_value).collect::<Vec<_>>());
    for (effect, p_value) in all.iter_mut().zip(adjusted) {
        (effect.p_value, effect.is_shown) = (p_value, p_value <= LEVEL);
    }
    all
}

fn value_in(block: &Block, what: Witnessed) -> Option<f64> {
    match what {
        Witnessed::Steal => block.taken.map(|taken| taken.steal_ratio),
        Witnessed::Sleeps => block.sleeps_per_wake(),
        Witnessed::Frequency => block.frequency_khz.map(|khz| khz as f64),
        Witnessed::Temperature => block.temperature_mc.map(|mc| mc as f64),
    }
}

fn of_one(run: &ExperimentRun, baseline: &str, arm: &str, what: Witnessed) -> Option<SideEffect> {
    let value = |arm: &str, round| run.counted(arm).find(|b| b.round == round).and_then(|b| value_in(b, what));
    let rounds: BTreeSet<usize> = run.blocks.iter().map(|b| b.round).collect();
    let pairs: Vec<(f64, f64)> =
        rounds.into_iter().filter_map(|round| value(baseline, round).zip(value(arm, round))).collect();
    if pairs.len() < 2 {
        return None;
    }
    let differences: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
    let ends = signed_rank::interval(&differences, LEVEL);
    let middle = |of: fn(&(f64, f64)) -> f64| median(&pairs.iter().map(of).collect::<Vec<_>>());
    Some(SideEffect {
        what,
        baseline: baseline.into(),
        arm: arm.into(),
        baseline_value: middle(|pair| pair.0),
        arm_value: middle(|pair| pair.1),
        difference: hodges_lehmann(&differences),
        difference_low: ends.low.max(-1e18),
        difference_high: ends.high.min(1e18),
        own_p_value: signed_rank::p_value(&differences),
        p_value: 1.0,
        n_pairs: pairs.len(),
        is_shown: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::experiment::Arm;
    use crate::samples::taken::Taken;

    fn run(steal: &[(f64, f64)]) -> ExperimentRun {
        let block = |round: usize, arm: &str, steal_ratio: f64| Block {
            round,
            arm: arm.into(),
            taken: Some(Taken { steal_ratio, foreign_ratio: None }),
            ..Block::default()
        };
        let blocks = steal.iter().enumerate();
        let blocks = blocks.flat_map(|(r, (a, b))| [block(r, "found", *a), block(r, "poll", *b)]).collect();
        let arms = ["found", "poll"].map(|id| Arm { id: id.into(), title: id.into(), settings: vec![] }).to_vec();
        ExperimentRun { arms, blocks, ..ExperimentRun::default() }
    }

    #[test]
    fn a_steal_that_differs_in_eight_of_eight_rounds_is_shown_and_none_is_not() {
        let shared: Vec<(f64, f64)> = (0..8).map(|i| (0.10 + 0.002 * f64::from(i), 0.02)).collect();
        let found = of(&run(&shared));
        assert_eq!(found.len(), 1, "nothing else was counted");
        let steal = &found[0];
        assert_eq!((steal.is_shown, steal.n_pairs, steal.own_p_value), (true, 8, 2.0 / 256.0));
        assert!((steal.difference - 0.087).abs() < 1e-9, "{steal:?}");
        assert_eq!(steal.say(), "steal 10.7 % with found, 2.0 % with poll (8 rounds)");
        let none = of(&run(&[(0.0, 0.0); 8]));
        assert_eq!((none[0].is_shown, none[0].own_p_value), (false, 1.0));
        assert!(of(&run(&shared[..1])).is_empty() && of(&ExperimentRun::default()).is_empty());
    }

    #[test]
    fn side_effects_are_adjusted_together() {
        let mut hot = run(&(0..8).map(|i| (0.10 + 0.002 * f64::from(i), 0.02)).collect::<Vec<_>>());
        for block in &mut hot.blocks {
            let is_poll = block.arm == "poll";
            block.temperature_mc = Some(50_000 + if is_poll { 5_000 + 10 * block.round as i64 } else { 0 });
            block.frequency_khz = Some(3_000_000 + block.round as u64 % 2 * if is_poll { 10 } else { 12 });
        }
        let found = of(&hot);
        assert_eq!(
            found.iter().map(|e| e.what).collect::<Vec<_>>(),
            [Witnessed::Steal, Witnessed::Frequency, Witnessed::Temperature]
        );
        assert_eq!((found[0].p_value, found[0].is_shown), (3.0 * 2.0 / 256.0, true));
        assert!(found[2].p_value == 3.0 * 2.0 / 256.0 && found[2].is_shown && found[2].difference < 0.0);
        assert!(!found[1].is_shown);
    }
}

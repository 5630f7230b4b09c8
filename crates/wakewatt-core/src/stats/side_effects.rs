//! Do variants differ in what else they change? Paired by round, on plain differences, adjusted together.
//!
//! Differences and not ratios, because a steal of 0 has none. The kernel counts steal in ticks of 10 ms, so in a
//! measurement of 150 ms it is mostly 0: many rounds are averaged in batches of neighbours first, and a value is a mean over
//! all of them, not a median. The test on the batches is the signed rank; Holm over all quantities that this run counted.

use super::paired::{hodges_lehmann, holm};
use super::signed_rank;
use crate::samples::experiment::{Block, ExperimentRun};
use crate::samples::side_effect::{SideEffect, Witnessed};
use std::collections::BTreeSet;

/// Of each by itself, and of all together.
const LEVEL: f64 = 0.05;
/// So many batches at most.
const MOST_BATCHES: usize = 20;

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
    let all: Vec<f64> = pairs.iter().map(|(a, b)| a - b).collect();
    let differences: Vec<f64> = all.chunks(all.len().div_ceil(MOST_BATCHES)).map(mean).collect();
    let ends = signed_rank::interval(&differences, LEVEL);
    let value = |of: fn(&(f64, f64)) -> f64| mean(&pairs.iter().map(of).collect::<Vec<_>>());
    Some(SideEffect {
        what,
        baseline: baseline.into(),
        arm: arm.into(),
        baseline_value: value(|pair| pair.0),
        arm_value: value(|pair| pair.1),
        difference: hodges_lehmann(&differences),
        difference_low: ends.low.max(-1e18),
        difference_high: ends.high.min(1e18),
        own_p_value: signed_rank::p_value(&differences),
        p_value: 1.0,
        n_pairs: pairs.len(),
        is_shown: false,
    })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
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
    fn a_steal_that_mostly_rounds_to_no_tick_is_seen_over_many_short_rounds() {
        // One tick of 10 ms in every fourth measurement of 150 ms and two CPUs, none in the other variant.
        let short: Vec<(f64, f64)> = (0..60).map(|i| (if i % 4 == 0 { 0.0333 } else { 0.0 }, 0.0)).collect();
        let steal = &of(&run(&short))[0];
        assert!(steal.is_shown && (steal.baseline_value - 0.0083).abs() < 1e-3, "{steal:?}");
        assert_eq!((steal.n_pairs, steal.arm_value), (60, 0.0));
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

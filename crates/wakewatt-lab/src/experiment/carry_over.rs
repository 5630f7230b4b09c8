//! Does it matter what ran before? The effect of the order, variant by variant, with its p-value.
//!
//! The comparison of two variants assumes that neither leaves anything to the next. A governor with a memory, a package that
//! is still warm or a timer that was put off break that. The classical check of an AB/BA design (Senn, "Cross-over Trials in
//! Clinical Research", chapter 3): take the ratios of the rounds in which the baseline ran before the variant, and of those
//! in which it ran after it, and test whether they differ. Which order a round had was drawn, so the rank sum is exact. It
//! shows that the order matters, not why; a steady drift within the rounds shows as well.

use std::collections::BTreeSet;
use wakewatt_core::samples::experiment::{Block, CarryOver, ExperimentRun};
use wakewatt_core::stats::paired::median;
use wakewatt_core::stats::rank_sum;

/// Of each order: four and four can just be told apart.
const LEAST_OF_ORDER: usize = 4;

/// Of every arm but the baseline of which enough is known.
pub(super) fn of(run: &ExperimentRun) -> Vec<CarryOver> {
    let Some((baseline, others)) = run.arms.split_first() else { return Vec::new() };
    others.iter().filter_map(|arm| of_arm(run, &baseline.id, &arm.id)).collect()
}

fn of_arm(run: &ExperimentRun, baseline: &str, arm: &str) -> Option<CarryOver> {
    let rounds: BTreeSet<usize> = run.blocks.iter().map(|b| b.round).collect();
    let block = |round: usize, id: &str| {
        run.blocks.iter().enumerate().find(|(_, b)| b.round == round && b.arm == id && b.rejected.is_none())
    };
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for round in rounds {
        let Some(((at, a), (other_at, b))) = block(round, baseline).zip(block(round, arm)) else { continue };
        let Some(ratio) = log_ratio(a, b) else { continue };
        if at < other_at { first.push(ratio) } else { second.push(ratio) }
    }
    if first.len().min(second.len()) < LEAST_OF_ORDER {
        return None;
    }
    let apart: Vec<f64> = first.iter().flat_map(|x| second.iter().map(move |y| x - y)).collect();
    let (ratio, n_rounds) = (median(&apart).exp(), first.len() + second.len());
    Some(CarryOver { arm: arm.into(), ratio, p_value: rank_sum::p_value(&first, &second), n_rounds })
}

fn log_ratio(a: &Block, b: &Block) -> Option<f64> {
    let of = |block: &Block| block.values.first().copied().flatten().filter(|v| *v > 0.0);
    Some((of(a)? / of(b)?).ln())
}

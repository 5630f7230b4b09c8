//! Does it matter what ran before? The effect of the order, arm by arm, with its p-value.
//!
//! The comparison of two arms takes it that an arm finds the machine as if nothing had been before it. A governor with a
//! memory, a package that is still warm or a timer that was put off break that. The classical check of an AB/BA design
//! (Senn, "Cross-over Trials in Clinical Research", chapter 3): take the ratio where the baseline came first and where it came
//! second, and look whether they differ. Interleaved blocks have both orders in every round, and drawn which began, so the
//! difference of a round is as likely as its opposite if the order does nothing: signed rank, exact. Of whole blocks each
//! round has one order: the two groups of rounds are compared by rank sum, exact as
//! well: which order a round had was drawn. It says whether the order shows, not why; a
//! steady drift within the rounds shows as well.

use std::collections::BTreeSet;
use wakewatt_core::samples::experiment::{Block, CarryOver, ExperimentRun, Slice};
use wakewatt_core::stats::paired::{hodges_lehmann, median};
use wakewatt_core::stats::{rank_sum, signed_rank};

/// Of fewer rounds with both orders not even a strong effect could be told at 5 %.
const LEAST_ROUNDS: usize = 6;
/// Of each order, where a round has one: four and four can just be told apart.
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
    let (mut within, mut first, mut second) = (Vec::new(), Vec::new(), Vec::new());
    for round in rounds {
        let Some(((at, a), (other_at, b))) = block(round, baseline).zip(block(round, arm)) else { continue };
        if let Some(both) = of_slices(&a.slices, &b.slices) {
            within.push(both);
        } else if let (true, Some(ratio)) = (a.slices.is_empty() && b.slices.is_empty(), log_ratio(a, b)) {
            if at < other_at { first.push(ratio) } else { second.push(ratio) }
        }
    }
    if within.len() >= LEAST_ROUNDS {
        let ratio = hodges_lehmann(&within).exp();
        let p_value = signed_rank::p_value(&within);
        return Some(CarryOver { arm: arm.into(), ratio, p_value, n_rounds: within.len() });
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

/// The mean log ratio of the slices in which the first came first, less that of the others; none where an order is missing.
fn of_slices(a: &[Slice], b: &[Slice]) -> Option<f64> {
    let (mut first, mut second) = (Vec::new(), Vec::new());
    for (a, b) in a.iter().zip(b) {
        let Some((x, y)) = a.value.zip(b.value).filter(|(x, y)| *x > 0.0 && *y > 0.0) else { continue };
        let is_first = a.window.start_at_ns < b.window.start_at_ns;
        if is_first { first.push((x / y).ln()) } else { second.push((x / y).ln()) }
    }
    let mean = |v: &[f64]| (!v.is_empty()).then(|| v.iter().sum::<f64>() / v.len() as f64);
    Some(mean(&first)? - mean(&second)?)
}

//! What the progress line of an experiment says: where it is, how long it may still take, what it seems to find.

use std::io::IsTerminal;
use wakewatt_core::samples::experiment::{Arm, ExperimentRun};
use wakewatt_core::stats::paired::{Judge, log_ratios};
use wakewatt_core::units::show_ns;
use wakewatt_lab::experiment::Moment;
use wakewatt_words::say;

/// So many blocks, none of which counted, are told.
const FEW_BLOCKS: usize = 4;

/// Arm, time left, and the primary estimate so far.
pub(crate) fn words(moment: &Moment, run: &ExperimentRun) -> String {
    let left = say!(
        "{doing}, at most {left} left",
        doing = moment.words,
        left = show_ns(moment.left_ns / 1_000_000_000 * 1_000_000_000)
    );
    let first_why = || run.blocks.iter().find_map(|b| b.rejected.as_ref());
    // Who waits for hours must hear of it early.
    let none_counts = run.blocks.len() >= FEW_BLOCKS && run.blocks.iter().all(|b| b.rejected.is_some());
    if let (true, Some(why)) = (none_counts, first_why()) {
        return say!("{left}; NO block counted so far: {why}");
    }
    if !std::io::stderr().is_terminal() {
        return left;
    }
    let judge = Judge::default();
    let estimate = |arm: &Arm| {
        let pairs = run.pairs(0, &arm.id);
        let is_enough = log_ratios(&pairs).len() >= 3;
        let effect = judge.effect("", "", &arm.id, &pairs).filter(|_| is_enough)?;
        Some(format!("{} x{:.2} ({:.2}-{:.2})", arm.id, effect.ratio, effect.ratio_low, effect.ratio_high))
    };
    // So far, and only to watch: verdicts wait for the looks.
    let all: Vec<String> = run.arms.iter().skip(1).filter_map(estimate).take(3).collect();
    if all.is_empty() { left } else { say!("{left}; so far {found}", found = all.join(", ")) }
}

//! Does the baseline, measured twice in a round, differ from itself by about as much as the variants differ?

use super::paired::{hodges_lehmann, log_ratios};
use super::sequential::least_rounds;
use super::signed_rank;
use crate::samples::compared::AGAIN;
use crate::samples::experiment::ExperimentRun;
use crate::samples::grade::Flaw;

/// Believed at this level: by chance it happens once in a hundred runs.
pub const LEVEL: f64 = 0.01;
/// An effect this many times as large as what the baseline differs from itself is not explained by it.
const MANY_TIMES: f64 = 4.0;

/// Then no size can be reported.
pub fn of(run: &ExperimentRun) -> Option<Flaw> {
    let ratios = log_ratios(&run.pairs(0, AGAIN));
    let (p_value, apart) = (signed_rank::p_value(&ratios), hodges_lehmann(&ratios));
    let is_shown = ratios.len() >= least_rounds(1, 0.05) && p_value <= LEVEL;
    let effect = run.primary().map_or(0.0, |effect| effect.ratio.ln().abs());
    (is_shown && MANY_TIMES * apart.abs() > effect).then(|| Flaw::Unstable { ratio: apart.exp(), p_value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::experiment::{Arm, Block, Metric};
    use crate::samples::grade::{Grade, Graded};
    use crate::stats::paired::Judge;

    #[test]
    fn a_baseline_that_differs_from_itself_refuses_an_effect_of_its_size_and_no_larger_one() {
        let value = |round: usize, arm: &str, ns: f64| Block {
            round,
            arm: arm.into(),
            values: vec![Some(ns + round as f64)],
            ..Block::default()
        };
        let run = |again: f64, poll: f64| {
            let round = |r| [value(r, "found", 10_000.0), value(r, AGAIN, again), value(r, "poll", poll)];
            let arms = ["found", "poll"].map(|id| Arm { id: id.into(), title: id.into(), settings: vec![] });
            let mut run = ExperimentRun {
                arms: arms.to_vec(),
                metrics: vec![Metric::latency("p50", "median")],
                blocks: (0..10).flat_map(round).collect(),
                ..ExperimentRun::default()
            };
            run.effects.extend(Judge::default().effect("p50", "found", "poll", &run.pairs(0, "poll")));
            Graded::of(&run).with(of(&run))
        };
        assert_eq!(run(9_000.0, 8_500.0).grade, Grade::Refused);
        assert!(run(9_000.0, 8_500.0).reasons().contains("differ by a factor of 1.11"));
        assert_eq!(run(9_000.0, 2_000.0).grade, Grade::Clean, "a fifth is not explained by 11 %");
        assert_eq!(run(10_000.0, 8_500.0).grade, Grade::Clean);
    }
}

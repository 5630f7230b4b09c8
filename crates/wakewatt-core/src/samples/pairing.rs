//! What the blocks of an experiment say, paired by round: which count, what value each has, and which values belong together.
//!
//! A value that is no number above 0 has no ratio, so it is no value: neither tests nor drawings see it. A run
//! file may number its rounds as it likes, so nothing here counts up to the greatest number.

use super::experiment::{Block, Effect, ExperimentRun};
use std::collections::BTreeMap;

impl ExperimentRun {
    /// Where a metric stands in the values of a block.
    pub fn metric_at(&self, id: &str) -> Option<usize> {
        self.metrics.iter().position(|m| m.id == id)
    }

    /// The blocks of an arm that count.
    pub fn counted<'a>(&'a self, arm: &'a str) -> impl Iterator<Item = &'a Block> {
        self.blocks.iter().filter(move |b| b.arm == arm && b.rejected.is_none())
    }

    /// How many blocks do not count.
    pub fn n_rejected(&self) -> usize {
        self.blocks.iter().filter(|b| b.rejected.is_some()).count()
    }

    /// How many rounds were begun.
    pub fn n_rounds(&self) -> usize {
        self.blocks.iter().map(|b| b.round.saturating_add(1)).max().unwrap_or(0)
    }

    /// An arm's values of a metric in the blocks that count, with their rounds.
    pub fn values<'a>(&'a self, arm: &'a str, metric: usize) -> impl Iterator<Item = (usize, f64)> + 'a {
        self.counted(arm).filter_map(move |b| Some((b.round, b.value(metric)?)))
    }

    /// The value of a metric in the block of a round, where that counts.
    pub fn value(&self, round: usize, arm: &str, metric: usize) -> Option<f64> {
        self.counted(arm).find(|b| b.round == round)?.value(metric)
    }

    /// Baseline's and arm's values of the rounds in which both count. The arm is named, so that the baseline's second block
    /// can be one.
    pub fn pairs(&self, metric: usize, arm: &str) -> Vec<(f64, f64)> {
        self.arms.first().map_or(Vec::new(), |baseline| self.pairs_between(metric, &baseline.id, arm))
    }

    /// Both values of each round that an effect rests on.
    pub fn pairs_of(&self, effect: &Effect) -> Vec<(f64, f64)> {
        let metric = self.metric_at(&effect.metric);
        metric.map_or(Vec::new(), |metric| self.pairs_between(metric, &effect.baseline, &effect.arm))
    }

    fn pairs_between(&self, metric: usize, baseline: &str, arm: &str) -> Vec<(f64, f64)> {
        let of = |id: &str| -> BTreeMap<usize, f64> {
            self.counted(id).filter_map(|b| Some((b.round, b.value(metric)?))).collect()
        };
        let other = of(arm);
        of(baseline).into_iter().filter_map(|(round, a)| Some((a, *other.get(&round)?))).collect()
    }
}

impl Block {
    fn value(&self, metric: usize) -> Option<f64> {
        self.values.get(metric).copied().flatten().filter(|v| v.is_finite() && *v > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Window;
    use crate::samples::experiment::{Arm, Metric};

    #[test]
    fn a_round_is_a_pair_where_both_blocks_count_and_have_a_number_above_0() {
        let block = |round: usize, arm: &str, value: f64, is_bad: bool| Block {
            round,
            arm: arm.into(),
            window: Window::default(),
            values: vec![Some(value)],
            rejected: is_bad.then(|| "spoilt".into()),
            ..Block::default()
        };
        let rows = [(2.0, 1.0, false), (2.0, 0.0, false), (3.0, 1.0, true), (f64::NAN, 1.0, false), (4.0, 2.0, false)];
        let blocks = rows.iter().enumerate().flat_map(|(round, (found, fast, is_bad))| {
            [block(round, "found", *found, false), block(round, "fast", *fast, *is_bad)]
        });
        let run = ExperimentRun {
            arms: ["found", "fast"].map(|id| Arm { id: id.into(), title: id.into(), settings: vec![] }).to_vec(),
            metrics: vec![Metric::latency("p50", "median")],
            blocks: blocks.collect(),
            ..ExperimentRun::default()
        };
        assert_eq!(run.pairs(0, "fast"), [(2.0, 1.0), (4.0, 2.0)]);
        assert_eq!(run.pairs(0, "found"), [(2.0, 2.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.0)]);
        assert_eq!((run.n_rounds(), run.n_rejected(), run.counted("fast").count()), (5, 1, 4));
        assert_eq!(run.values("fast", 0).collect::<Vec<_>>(), [(0, 1.0), (3, 1.0), (4, 2.0)]);
        assert_eq!(run.pairs(1, "fast"), []);
        // A file may claim any number of a round.
        let mut run = run;
        run.blocks.iter_mut().filter(|b| b.round == 4).for_each(|b| b.round = usize::MAX);
        assert_eq!(run.pairs(0, "fast"), [(2.0, 1.0), (4.0, 2.0)]);
        assert_eq!(run.n_rounds(), usize::MAX);
    }
}

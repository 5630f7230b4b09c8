//! Blocks whose losses differ from those of the baseline beside them: they do not count.
//!
//! A wake-up that was planned and has no sample was lost because something kept the waker or the sleeper, and the same thing
//! would have made it late. Where an arm loses more of them than the baseline in the same round, its samples are a choice of
//! the better ones, and the ratio of the two would show that choice. The baseline's block stays: the other arms of the round
//! may have lost as it did.

use super::experiment::{Block, ExperimentRun};
use super::rejection::Rejection;
use super::waker::Waker;
use std::collections::BTreeMap;

impl ExperimentRun {
    /// Marks them; doing it again changes nothing.
    pub fn reject_unequal_losses(&mut self) {
        let Some(baseline) = self.arms.first().map(|a| a.id.clone()) else { return };
        let counted = |b: &&Block| b.arm == baseline && b.rejected.is_none();
        let known: BTreeMap<usize, Waker> =
            self.blocks.iter().filter(counted).filter_map(|b| Some((b.round, b.waker?))).collect();
        for block in self.blocks.iter_mut().filter(|b| b.arm != baseline && b.rejected.is_none()) {
            let pair = block.waker.zip(known.get(&block.round));
            block.rejected = pair.filter(|(waker, of)| waker.differs(of)).map(|(waker, of)| Rejection::UnequalLoss {
                per_mille: per_mille(&waker),
                baseline_per_mille: per_mille(of),
            });
        }
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share, 0 to 1
fn per_mille(waker: &Waker) -> u32 {
    (waker.lost_ratio().unwrap_or(0.0) * 1000.0).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Window;
    use crate::samples::experiment::{Arm, Metric};

    fn block(round: usize, arm: &str, n_missed: Option<u64>) -> Block {
        Block {
            round,
            arm: arm.into(),
            window: Window::default(),
            values: vec![Some(1.0)],
            waker: n_missed.map(|n_missed| Waker { n_planned: 1000, n_missed, ..Waker::default() }),
            ..Block::default()
        }
    }

    #[test]
    fn an_arm_that_lost_otherwise_than_the_baseline_does_not_count_in_that_round() {
        let arm = |id: &str| Arm { id: id.into(), title: id.into(), settings: vec![] };
        let mut run = ExperimentRun {
            arms: ["found", "shallow", "poll"].map(arm).to_vec(),
            metrics: vec![Metric::latency("wakeup.eventfd.p50", "wake-up, median")],
            // The order within a round is drawn: the baseline may come last.
            blocks: vec![
                block(0, "poll", Some(27)),
                block(0, "shallow", Some(105)),
                block(0, "found", Some(111)),
                block(1, "found", Some(3)),
                block(1, "poll", Some(1)),
                block(1, "shallow", None),
                block(2, "poll", Some(900)),
            ],
            ..ExperimentRun::default()
        };
        run.reject_unequal_losses();
        let rejected: Vec<usize> = (0..7).filter(|at| run.blocks[*at].rejected.is_some()).collect();
        assert_eq!(rejected, [0], "the same loss, no loss known, and no baseline to compare with");
        assert_eq!(
            run.blocks[0].rejected.as_ref().map(ToString::to_string).as_deref(),
            Some("of the planned wake-ups 27 ‰ have no sample, and 111 ‰ in the baseline's block of this round")
        );
        assert_eq!(run.pairs(0, "poll").len(), 1);
        let once = run.clone();
        run.reject_unequal_losses();
        assert_eq!(run, once);
    }
}

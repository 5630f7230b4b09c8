//! Was the machine busy while it was measured, and with what share of the measured CPUs' time?
//!
//! Random order spreads other work over the variants, so the direction and the size of an effect stand, for a machine
//! under that load. The shares are counted by the kernel per measurement (/proc/stat: steal, and busy time less our own),
//! in ticks of 10 ms, so only their mean over the run says something.

use super::experiment::{Block, ExperimentRun};
use super::not_done::TooBusy;
use super::rejection::Rejection;
use super::taken::Taken;
use serde::{Deserialize, Serialize};

/// Mean steal and foreign load over a run; none where they were not counted.
pub fn mean(run: &ExperimentRun) -> Option<Taken> {
    let of = |share: fn(&Taken) -> Option<f64>| {
        let all = || run.blocks.iter().filter_map(|b| Some((share(b.taken.as_ref()?)?, b.window.length_ns().max(1))));
        let length_ns = all().map(|(_, ns)| ns as f64).sum::<f64>();
        (length_ns > 0.0).then(|| all().map(|(share, ns)| share * ns as f64).sum::<f64>() / length_ns)
    };
    Some(Taken { steal_ratio: of(|t| Some(t.steal_ratio))?, foreign_ratio: of(|t| t.foreign_ratio) })
}

/// The same where it is enough to be in the numbers.
pub fn during(run: &ExperimentRun) -> Option<Taken> {
    mean(run).filter(Taken::is_disturbing)
}

/// Was the run lost to other work, because most measurements met no idle CPU? Then what that had of the CPUs' time.
pub fn lost_to_others(run: &ExperimentRun) -> Option<TooBusy> {
    let is_busy = |b: &&Block| matches!(b.rejected, Some(Rejection::Busy { .. }));
    let n_busy = run.blocks.iter().filter(is_busy).count();
    (2 * n_busy > run.blocks.len()).then(|| mean(run)).flatten().map(TooBusy::of)
}

/// How waiting for a quiet spell ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitEnd {
    /// The machine was quiet.
    Quiet,
    /// The time was up, and it was measured all the same.
    GaveUp,
    /// The wait was ended by a signal (Ctrl-C).
    Interrupted,
    /// The kernel does not say how busy the CPUs are.
    Unknown,
}

/// What was seen while waiting for a quiet spell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuietWait {
    /// How the wait ended: quiet, time used up, or interrupted.
    pub end: WaitEnd,
    /// How long the wait took, in nanoseconds.
    pub waited_ns: u64,
    /// How many looks of a second were taken.
    pub n_looks: usize,
    /// How many of the looks were quiet.
    pub n_quiet: usize,
    /// What the last look saw; none if there was none.
    pub last: Option<Taken>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Window;
    use crate::samples::experiment::Block;

    fn run(taken: &[Option<Taken>]) -> ExperimentRun {
        let block = |(at, taken): (usize, &Option<Taken>)| Block {
            window: Window { start_at_ns: 0, end_at_ns: 1_000 * (at as u64 + 1) },
            taken: *taken,
            ..Block::default()
        };
        ExperimentRun { blocks: taken.iter().enumerate().map(block).collect(), ..ExperimentRun::default() }
    }

    #[test]
    fn a_share_is_a_mean_over_the_run_and_what_is_not_known_is_none() {
        let taken = |steal_ratio, foreign_ratio| Some(Taken { steal_ratio, foreign_ratio });
        let (quiet, tick) = (taken(0.0, Some(0.02)), taken(0.03, None));
        let busy = during(&run(&[quiet, tick, None])).unwrap();
        assert!((busy.steal_ratio - 0.02).abs() < 1e-9, "by length: {busy:?}");
        assert_eq!(busy.foreign_ratio, Some(0.02));
        assert_eq!(during(&run(&[tick, quiet, quiet, quiet, quiet])), None, "one tick of 10 ms in a while");
        assert_eq!(during(&run(&[None, None])), None, "nobody counted");
        assert!(!taken(0.005, Some(0.05)).unwrap().is_disturbing());
    }
}

//! Was the machine busy while it was measured, and with what share of the measured CPUs' time?
//!
//! Wake-ups beside other work measure the other work too. Randomised order spreads it over the arms, so the direction of
//! an effect stands; its size does not, and what is sure of it is the near end of its interval. The shares are counted by
//! the kernel per block (/proc/stat: steal, and busy time less our own). A run in which at least half of the blocks were
//! disturbed was measured on a busy machine.

use super::experiment::ExperimentRun;
use super::taken::Taken;
use serde::{Deserialize, Serialize};

/// How busy the machine was during experiments.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Busy {
    /// How many blocks of the experiment were measured.
    pub n_blocks: usize,
    /// Of these, disturbed by the hypervisor or by other processes.
    pub n_disturbed: usize,
    /// The most that the hypervisor took in a block.
    pub most_steal_ratio: f64,
    /// The most that other processes used in a block.
    pub most_foreign_ratio: f64,
}

impl Busy {
    /// Of these runs, together; none where less than half of the blocks were disturbed.
    pub fn during(runs: &[&ExperimentRun]) -> Option<Busy> {
        let taken: Vec<Taken> = runs.iter().flat_map(|run| &run.blocks).filter_map(|block| block.taken).collect();
        let n_disturbed = taken.iter().filter(|t| t.is_disturbing()).count();
        let most = |of: fn(&Taken) -> f64| taken.iter().map(of).fold(0.0, f64::max);
        (n_disturbed > 0 && 2 * n_disturbed >= taken.len()).then(|| Busy {
            n_blocks: taken.len(),
            n_disturbed,
            most_steal_ratio: most(|t| t.steal_ratio),
            most_foreign_ratio: most(|t| t.foreign_ratio.unwrap_or(0.0)),
        })
    }
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
        let block = |taken: &Option<Taken>| Block {
            round: 0,
            arm: "found".into(),
            window: Window::default(),
            values: vec![],
            taken: *taken,
            ..Block::default()
        };
        ExperimentRun { blocks: taken.iter().map(block).collect(), ..ExperimentRun::default() }
    }

    #[test]
    fn half_of_the_blocks_make_a_busy_machine_and_what_is_not_known_is_none() {
        let taken = |steal_ratio, foreign_ratio| Some(Taken { steal_ratio, foreign_ratio });
        let (quiet, stolen, shared) = (taken(0.001, Some(0.02)), taken(0.3, None), taken(0.0, Some(0.4)));
        let half = Busy::during(&[&run(&[quiet, stolen]), &run(&[shared, quiet])]).unwrap();
        assert_eq!((half.n_blocks, half.n_disturbed), (4, 2));
        assert_eq!((half.most_steal_ratio, half.most_foreign_ratio), (0.3, 0.4));
        assert_eq!(Busy::during(&[&run(&[quiet, quiet, stolen])]), None);
        assert_eq!(Busy::during(&[&run(&[None, None])]), None, "a run of an earlier version");
        assert_eq!(Busy::during(&[]), None);
        assert!(!taken(0.005, Some(0.05)).unwrap().is_disturbing());
    }
}

//! Grading an experiment: from what its blocks counted, and from its side effects (`grade` says what the grades mean).

use super::busy;
use super::experiment::{Block, ExperimentRun};
use super::grade::{Flaw, Graded};
use super::side_effect::{SideEffect, Witnessed};
use super::taken::STEAL_RATIO;

/// Fewer idle entries per wake-up than this: the CPU was busy when somebody woke it.
const MIN_IDLES_PER_WAKE: f64 = 0.9;
/// Steal that differs between variants is believed at this level.
const LEVEL: f64 = 0.05;

impl Graded {
    /// From its blocks and side effects.
    pub fn of(run: &ExperimentRun) -> Graded {
        let mut because: Vec<Flaw> = busy::during(run).map(Flaw::Busy).into_iter().collect();
        because.extend(awake(&run.blocks));
        because.extend(run.side_effects.iter().filter_map(steal_differs));
        Graded::default().with(because)
    }

    /// With further flaws.
    pub fn with(mut self, flaws: impl IntoIterator<Item = Flaw>) -> Graded {
        self.because.extend(flaws);
        self.grade = self.because.iter().map(Flaw::grade).max().unwrap_or_default();
        self
    }
}

fn is_half(n: usize, of: usize) -> bool {
    n > 0 && 2 * n >= of
}

fn awake(blocks: &[Block]) -> Option<Flaw> {
    let ratios: Vec<f64> = blocks.iter().filter(|b| b.rejected.is_none()).filter_map(Block::idles_per_wake).collect();
    let n_awake = ratios.iter().filter(|ratio| **ratio < MIN_IDLES_PER_WAKE).count();
    let least_ratio = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    is_half(n_awake, ratios.len()).then_some(Flaw::Awake { n_awake, n_blocks: ratios.len(), least_ratio })
}

fn steal_differs(effect: &SideEffect) -> Option<Flaw> {
    let is_it = effect.what == Witnessed::Steal && effect.own_p_value <= LEVEL && effect.difference.abs() > STEAL_RATIO;
    is_it.then(|| Flaw::StealDiffers {
        arm: effect.arm.clone(),
        baseline_ratio: effect.baseline_value,
        arm_ratio: effect.arm_value,
        p_value: effect.own_p_value,
        n_pairs: effect.n_pairs,
    })
}

impl ExperimentRun {
    /// As it was graded when it ended, or what its blocks say.
    pub fn graded(&self) -> Graded {
        self.grade.clone().unwrap_or_else(|| Graded::of(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::grade::Grade;
    use crate::samples::taken::Taken;
    use crate::samples::woken::Woken;
    use crate::samples::{IdleDelta, StateDelta};

    fn block(steal_ratio: f64, foreign_ratio: f64, n_idle: u64) -> Block {
        let state = StateDelta { index: 1, name: "C1".into(), n_usage: n_idle, time_ns: 1 };
        Block {
            taken: Some(Taken { steal_ratio, foreign_ratio: Some(foreign_ratio) }),
            woken: Some(Woken::new(1, 1000)),
            idle: vec![IdleDelta { cpu: 1, states: vec![state] }],
            ..Block::default()
        }
    }

    fn graded(blocks: Vec<Block>) -> Graded {
        Graded::of(&ExperimentRun { blocks, ..ExperimentRun::default() })
    }

    #[test]
    fn half_of_the_blocks_make_the_grade_and_each_reason_is_said() {
        let (quiet, stolen, awake) = (block(0.0, 0.01, 1000), block(0.02, 0.01, 1000), block(0.0, 0.0, 800));
        assert_eq!(
            graded(vec![quiet.clone(), quiet.clone(), quiet.clone(), quiet.clone(), stolen.clone()]),
            Graded::default()
        );
        assert_eq!(graded(vec![]).grade, Grade::Clean);
        let busy = graded(vec![quiet.clone(), stolen]);
        assert_eq!(busy.grade, Grade::Loaded);
        assert_eq!(busy.reasons(), "other processes 1.0 %, steal 1.0 %");
        let awake = graded(vec![awake.clone(), awake, quiet.clone()]);
        assert_eq!(awake.grade, Grade::Loaded);
        assert!(awake.reasons().contains("in 2 of 3 measurements"), "{}", awake.reasons());
        let most = graded(vec![block(0.3, 0.55, 1000), quiet]);
        assert_eq!(
            (most.grade, most.is_diluted()),
            (Grade::Loaded, false),
            "noise that all variants share refuses nothing"
        );
        assert!(awake.is_diluted());
    }

    #[test]
    fn steal_that_differs_between_variants_is_reported_and_refuses_no_size() {
        let effect = |difference: f64, own_p_value: f64| SideEffect {
            what: Witnessed::Steal,
            baseline: "found".into(),
            arm: "poll".into(),
            baseline_value: 0.106,
            arm_value: 0.02,
            difference,
            difference_low: 0.0,
            difference_high: 0.2,
            own_p_value,
            p_value: 1.0,
            n_pairs: 8,
            is_shown: false,
        };
        let grade = |effect| {
            let run = ExperimentRun { side_effects: vec![effect], ..ExperimentRun::default() };
            let graded = run.graded();
            (graded.grade, graded.reasons())
        };
        let (loaded, why) = grade(effect(0.086, 0.0078));
        assert_eq!(loaded, Grade::Loaded);
        assert_eq!(why, "steal 10.6 % with current settings and 2.0 % with poll (p 0.0078, 8 rounds)");
        assert_eq!(grade(effect(-0.086, 0.0078)).0, Grade::Loaded, "either way");
        assert_eq!(grade(effect(0.001, 0.0078)).0, Grade::Clean, "a tenth of a percent is no part of anything");
        assert_eq!(grade(effect(0.086, 0.2)).0, Grade::Clean);
        assert_eq!(grade(SideEffect { what: Witnessed::Frequency, ..effect(1e6, 0.001) }).0, Grade::Clean);
    }
}

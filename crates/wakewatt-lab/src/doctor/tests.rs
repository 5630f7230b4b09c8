//! Doctor's steps without a machine: a run that is told to end says what is missing, and waits for nothing.

use super::*;
use crate::context::{MachineClock, Unheard};
use std::sync::atomic::AtomicBool;
use wakewatt_core::samples::busy::WaitEnd;
use wakewatt_core::source::Tree;

struct Nobody;

impl Onlooker for Nobody {
    fn part(&self, _: &str) {}
    fn looked(&self, _: &QuietWait, _: f64) {}
    fn waited(&self, _: &QuietWait) {}
    fn block(&self, _: &Moment, _: &ExperimentRun) {}
}

fn with_stopped<T>(run: impl FnOnce(Lab<'_>) -> T) -> T {
    let (src, clock) = (Tree::default(), MachineClock::default());
    run(Lab { src: &src, stop: &AtomicBool::new(true), tell: &Unheard, clock: &clock })
}

#[test]
fn what_is_read_only_and_interrupted_says_both() {
    let mut evidence = Evidence::default();
    let plan = DoctorPlan { is_read_only: true, ..DoctorPlan::default() };
    with_stopped(|lab| measure(&plan, lab, &Nobody, &mut evidence));
    let why = |step: &Step| evidence.not_done.iter().find(|left| left.step == *step).map(|left| &left.why);
    for step in [Step::Trace, Step::Disk, Step::Experiment] {
        assert!(matches!(why(&step), Some(Why::ReadOnly(_))), "{step:?}: {:?}", evidence.not_done);
    }
    assert_eq!(why(&Step::Rest), Some(&Why::Interrupted));
    assert!(evidence.samples.wakeups.is_empty() && evidence.samples.experiment.is_none());
}

#[test]
fn a_run_that_is_cut_short_before_its_experiment_says_so() {
    let mut evidence = Evidence::default();
    with_stopped(|lab| measure(&DoctorPlan::default(), lab, &Nobody, &mut evidence));
    let why = evidence.not_done.iter().find(|left| left.step == Step::Experiment).map(|left| &left.why);
    assert_eq!(why, Some(&Why::Interrupted), "{:?}", evidence.not_done);
}

#[test]
fn what_was_seen_is_kept_and_nothing_is_waited_for_unasked() {
    let (cpus, mut evidence) = (CpuSet::parse("0").unwrap(), Evidence::default());
    assert_eq!(with_stopped(|lab| quiet::wait(None, &cpus, lab, &Nobody, &mut evidence)), 0);
    assert_eq!(evidence.quiet_wait, None);
    with_stopped(|lab| quiet::wait(Some(600_000_000_000), &cpus, lab, &Nobody, &mut evidence));
    assert_eq!(evidence.quiet_wait.map(|wait| wait.end), Some(WaitEnd::Interrupted));
}

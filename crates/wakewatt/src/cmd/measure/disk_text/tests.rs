//! What is said of shallow sleep and of none: both sides of the first sleep.

use super::*;

#[test]
fn against_shallow_sleep_it_is_the_depth_that_costs() {
    let effect = |arm: &str| Effect {
        metric: "disk.psync.p50".into(),
        baseline: "found".into(),
        arm: arm.into(),
        ratio: 2.0,
        ratio_low: 1.8,
        ratio_high: 2.2,
        difference: 40_000.0,
        difference_low: 35_000.0,
        difference_high: 45_000.0,
        p_value: 0.008,
        n_pairs: 8,
        verdict: Verdict::Higher,
    };
    let said = |arm| sentence(&ExperimentRun::default(), &effect(arm));
    let deep = said("shallow");
    assert!(deep.starts_with("CPUs in deep sleep make a read 2.0 times slower: 40us each, 50 % (44 to 55)"), "{deep}");
    assert!(said("poll").starts_with("Sleeping CPUs make a read 2.0 times slower: "));
}

//! Names that a run file has for its arms and metrics, in the language in force.
//!
//! They are data, kept in English as they were measured, so a page that is made in another language looks them up here, part by
//! part: `graduated load at 10 %, median` is the median of a level. A name that somebody gave in a plan stays.

use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::titles;
use wakewatt_words::{say, told};

/// Whole names, what is measured, and what of it.
pub(crate) const NAMES: &[&str] = &[
    "current settings",
    "idle states disabled (polling)",
    "shallow",
    "per-CPU limits lifted",
    "governor as found",
    "SMT on",
    "SMT off",
    "with it",
    "without it",
    "automatic NUMA balancing on",
    "automatic NUMA balancing off",
    "cross-CPU wake-up",
    "cross-CPU wake-up, from the ring to running",
    "timer wake-up",
    "timer wake-up, from the planned time to running",
    "UDP round trip over loopback",
    "UDP round trip",
    "TCP round trip",
    "lateness of the waker, from its plan to its ring",
    "graduated load",
    "online shop",
    "load",
    "random read",
    "sequential read",
    "median",
    "mean",
    "99th percentile",
    "median answer",
    "99th percentile answer",
    "mean power",
    "mean answer",
    "work done",
    "work per energy",
    "CPU time per operation",
    "kernel time per operation",
    "wall time of the command",
    "machine left alone",
    "context switches",
    "wake-ups from idle",
    "interrupts",
    "CPU time used in a second",
    "power",
];

/// Every name of the evidence.
pub(super) fn translate(evidence: &mut Evidence) {
    let samples = &mut evidence.samples;
    let runs = samples.experiment.iter_mut().chain(&mut samples.disk_experiment).chain(&mut samples.experiments);
    runs.for_each(of_run);
    samples.load.iter_mut().for_each(|load| load.title = name(&load.title));
}

fn of_run(run: &mut ExperimentRun) {
    run.arms.iter_mut().for_each(|arm| arm.title = name(&arm.title));
    run.metrics.iter_mut().for_each(|metric| metric.title = name(&metric.title));
    run.pooled.iter_mut().for_each(|pooled| pooled.title = name(&pooled.title));
}

/// Looked up only if it is one of ours: a person's arm called "off" is no column head.
fn known(english: &str) -> &str {
    if NAMES.contains(&english) { told(english) } else { english }
}

/// One, where its parts are known; else as it is.
fn name(english: &str) -> String {
    let whole = known(english);
    if whole != english {
        return whole.to_string();
    }
    if let Some(governor) = english.strip_prefix("governor ") {
        return say!("governor {governor}");
    }
    if let Some(state) = english.strip_suffix(" only") {
        return say!("{state} only");
    }
    if let Some((what, of_it)) = english.rsplit_once(", ")
        && known(of_it) != of_it
    {
        let (of_it, what) = (known(of_it), name(what));
        return say!("{what}, {of_it}");
    }
    if let Some(n) = english.strip_prefix("online shop ").and_then(|rest| rest.strip_suffix(" clients")) {
        return say!("online shop {n} clients");
    }
    // What has more parts than it and its statistic: the engine and the depth of reads.
    if english.split(", ").next().is_some_and(|what| known(what) != what) {
        return titles::shown(english);
    }
    match english.split_once(" at ").map(|(load, level)| (known(load), load, level)) {
        Some((load, english_load, level)) if load != english_load => say!("{load} at {level}"),
        _ => english.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_up_part_by_part_and_a_strange_one_stays() {
        for english in
            ["cross-CPU wake-up, median", "governor powersave", "C1 only", "graduated load at 10 %, median", "x"]
        {
            assert_eq!(name(english), english);
        }
        let chinese = |english: &str| wakewatt_words::within(wakewatt_words::Language::Chinese, || name(english));
        assert_eq!(chinese("graduated load at 10 %, median"), "分级负载（10 %）的中位数");
        assert_eq!((chinese("C1 only"), chinese("current settings")), ("只用 C1".into(), "当前设置".into()));
        assert_eq!(chinese("random read, psync, depth 1, median"), "随机读，psync，深度 1的中位数");
        assert_eq!(chinese("my own arm, tuned"), "my own arm, tuned");
        assert_eq!((chinese("off"), chinese("low, off")), ("off".into(), "low, off".into()));
    }
}

//! The experiment that matters most on this machine, chosen from what was measured as found.
//!
//! `choice` in core ranks what could be turned by what a request has at stake. The first gets most of the time; with
//! `--quick` it is the only one. Turning the frequency governor is measured as requests see it: transactions of 500 us at a
//! tenth of the load the machine can carry, from the planned start, so idle exit and slow clock are both in the number.

use super::{Times, experiment};
use crate::interrupt::Interrupt;
use wakewatt_core::choice::{self, Candidate, Subject};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::source::Source;

/// Part of the time that the first of several gets.
const FIRST_RATIO: f64 = 0.6;
/// Less than this is not worth an experiment of its own beside another.
const SMALL_NS: f64 = 5_000.0;

/// Calibration takes so many intervals, of 1.3 times what is recorded, and it comes before the budget begins.
const CALIBRATION_RATIO: f64 = 6.0 * 1.3;

/// What turning the governor is asked for, with blocks and looks that fit into the time there is.
fn frequency_plan(budget_ns: u64) -> (String, u64) {
    let (measure_s, looks) = match budget_ns / 1_000_000_000 {
        110.. => (3.0, "[8, 12]"),
        70.. => (2.0, "[8, 12]"),
        _ => (1.0, "[6]"),
    };
    let plan = format!("measure = \"{measure_s}s\"\nlooks = {looks}\n{FREQUENCY}");
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // some seconds
    let calibration_ns = (measure_s * CALIBRATION_RATIO * 1e9) as u64;
    (plan, budget_ns.saturating_sub(calibration_ns))
}

const FREQUENCY: &str = r#"
format = 1
name = "doctor-frequency"
question = "What does the frequency governor cost a request that comes after a pause?"
primary = "steps.10.p50"
settle = "300ms"
again_every = 0

[[arm]]
name = "found"
title = "governor as found"

[[arm]]
name = "performance"
title = "governor performance"
set = ["freq.governor=performance"]

[[workload]]
kind = "steps"
levels = [10]
service = "500us"
"#;

/// Runs what there is time for, and says why.
pub(super) fn run(
    seed: Option<u64>,
    cpu: u32,
    allowed: &CpuSet,
    times: Times,
    src: &dyn Source,
    evidence: &mut Evidence,
    interrupt: &Interrupt,
) {
    let ranked = choice::experiments(evidence);
    let Some((first, others)) = ranked.split_first() else {
        // Says itself what is missing.
        return experiment::run(seed, cpu, allowed, times, src, evidence, interrupt);
    };
    let worthy: Vec<&Candidate> = others.iter().filter(|c| c.at_stake_ns >= SMALL_NS && !times.is_quick).collect();
    for left in others.iter().filter(|c| !worthy.contains(c)) {
        let why = if times.is_quick { "--quick has time for one" } else { "too little is at stake" };
        let why = format!("{why}; {}; wakewatt experiment does it alone", left.because);
        evidence.not_done.push(NotDone::named(format!("experiment on {}", word(left.subject)), why));
    }
    let first_ratio = if worthy.is_empty() { 1.0 } else { FIRST_RATIO };
    let rest_ratio = (1.0 - first_ratio) / worthy.len().max(1) as f64;
    let all = std::iter::once((first, first_ratio)).chain(worthy.iter().map(|c| (*c, rest_ratio)));
    for (candidate, ratio) in all {
        if interrupt.is_set() {
            return;
        }
        evidence.chosen_because.push(format!("{}: {}", word(candidate.subject), candidate.because));
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a part of some minutes
        let times = Times { experiment_ns: (times.experiment_ns as f64 * ratio) as u64, ..times };
        match candidate.subject {
            Subject::Idle => experiment::run(seed, cpu, allowed, times, src, evidence, interrupt),
            Subject::Frequency => {
                let (plan, budget_ns) = frequency_plan(times.experiment_ns);
                match crate::cmd::experiment::for_doctor(&plan, budget_ns, seed, interrupt) {
                    Ok(study) => evidence.samples.experiments.push(study.run),
                    Err(why) => {
                        let why = format!("on the frequency governor: {why:#}");
                        evidence.not_done.push(NotDone::new(Step::Experiment, why));
                    }
                }
            }
        }
    }
}

fn word(subject: Subject) -> &'static str {
    match subject {
        Subject::Idle => "idle states",
        Subject::Frequency => "the frequency governor",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::units::show_ns;

    #[test]
    fn the_plan_is_one() {
        for budget_s in [42, 86, 129, 215] {
            let (text, budget_ns) = frequency_plan(budget_s * 1_000_000_000);
            let plan = wakewatt_lab::plan::parse(&text, &|name| Err(format!("no profile {name}"))).unwrap();
            let arms: Vec<&str> = plan.arms.iter().map(|a| a.name.as_str()).collect();
            assert_eq!((&arms[..], plan.workloads.len()), (&[choice::FOUND, choice::PERFORMANCE][..], 1));
            assert!(text.contains(&format!("service = \"{}\"", show_ns(choice::REQUEST_NS))), "{text}");
            let round_ns = 2 * (plan.settle_ns + plan.measure_ns * 12 / 10);
            let first_look_ns = plan.looks[0] as u64 * round_ns;
            assert!(first_look_ns < budget_ns, "{budget_s} s: {first_look_ns} of {budget_ns} ns");
        }
    }
}

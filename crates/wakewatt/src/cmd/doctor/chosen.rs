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
use wakewatt_core::source::Source;

/// Part of the time that the first of several gets.
const FIRST_RATIO: f64 = 0.6;
/// Less than this is not worth an experiment of its own beside another.
const SMALL_NS: f64 = 5_000.0;

/// What turning the governor is asked for; budget and seed are given beside.
const FREQUENCY: &str = r#"
format = 1
name = "doctor-frequency"
question = "What does the frequency governor cost a request that comes after a pause?"
primary = "steps.10.p50"
settle = "300ms"
measure = "4s"
looks = [8, 12]
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
        evidence.not_done.push(format!(
            "experiment on {}: {why}; {}; wakewatt experiment does it alone",
            word(left.subject),
            left.because
        ));
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
                match crate::cmd::experiment::for_doctor(FREQUENCY, times.experiment_ns, seed, interrupt) {
                    Ok(study) => evidence.experiments.push(study.run),
                    Err(why) => evidence.not_done.push(format!("experiment on the frequency governor: {why:#}")),
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

    #[test]
    fn the_plan_is_one() {
        let plan = wakewatt_lab::plan::parse(FREQUENCY, &|name| Err(format!("no profile {name}"))).unwrap();
        assert_eq!((plan.arms.len(), plan.workloads.len()), (2, 1));
    }
}

//! The experiment that matters most on this machine, chosen from what was measured as found.
//!
//! `choice` in core ranks what could be turned by what a request has at stake. The first gets most of the time; with
//! `--quick` it is the only one. What each of them is, is data of the lab: `idle_plan` and `frequency_plan`.

use super::{Times, experiment};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::watching;
use wakewatt_core::choice::{self, Candidate, Subject};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::samples::study::Study;
use wakewatt_core::source::Source;
use wakewatt_lab::conduct::{self, Conduct};
use wakewatt_lab::experiment::Moment;
use wakewatt_lab::frequency_plan::frequency_plan;
use wakewatt_lab::meters::Meters;
use wakewatt_lab::pick;
use wakewatt_lab::plan::Plan;
use wakewatt_lab::refusal::Refusal;

/// Part of the time that the first of several gets.
const FIRST_RATIO: f64 = 0.6;
/// Less than this is not worth an experiment of its own beside another.
const SMALL_NS: f64 = 5_000.0;

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
                let plan = frequency_plan(times.experiment_ns);
                match conduct(&plan, seed, src, interrupt) {
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

/// A plan of doctor's own. It is kept nowhere: what it found goes into the report.
fn conduct(plan: &Plan, seed: Option<u64>, src: &dyn Source, interrupt: &Interrupt) -> Result<Study, Refusal> {
    let bar = Progress::start(&plan.name);
    let watch = |moment: &Moment, run: &ExperimentRun| bar.set(moment.share, &watching::words(moment, run));
    let seed = seed.unwrap_or_else(pick::seed_of_now);
    let conduct = Conduct { plan, seed, meters: Meters::of_this_machine(), keeping: None, watch: &watch };
    Ok(conduct::run(conduct, interrupt.lab(src, &bar))?.study)
}

fn word(subject: Subject) -> &'static str {
    match subject {
        Subject::Idle => "idle states",
        Subject::Frequency => "the frequency governor",
    }
}

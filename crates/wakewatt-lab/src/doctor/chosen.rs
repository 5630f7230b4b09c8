//! The experiment that matters most on this machine, chosen from what was measured as found.
//!
//! `choice` in core ranks what could be turned by what a request has at stake. The first gets most of the time; with
//! `--quick` it is the only one. What each of them is, is data of the lab: `idle_plan` and `frequency_plan`.

use super::{Ground, idle};
use crate::conduct::{self, Conduct};
use crate::experiment::Moment;
use crate::frequency_plan::frequency_plan;
use crate::meters::Meters;
use crate::plan::Plan;
use crate::refusal::Refusal;
use wakewatt_core::choice::{self, Candidate, Subject};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::not_done::{NotDone, Step};

/// Part of the time that the first of several gets.
const FIRST_RATIO: f64 = 0.6;
/// Less than this is not worth an experiment of its own beside another.
const SMALL_NS: f64 = 5_000.0;

/// Runs what there is time for, and says why.
pub(super) fn run(ground: Ground<'_>, evidence: &mut Evidence) {
    let (times, is_quick) = (ground.times, ground.plan.is_quick);
    let ranked = choice::experiments(evidence);
    let Some((first, others)) = ranked.split_first() else {
        // Says itself what is missing.
        return idle::run(ground, evidence);
    };
    let worthy: Vec<&Candidate> = others.iter().filter(|c| c.at_stake_ns >= SMALL_NS && !is_quick).collect();
    for left in others.iter().filter(|c| !worthy.contains(c)) {
        let why = if is_quick { "--quick has time for one" } else { "too little is at stake" };
        let why = format!("{why}; {}; wakewatt experiment does it alone", left.because);
        evidence.not_done.push(NotDone::named(format!("experiment on {}", word(left.subject)), why));
    }
    let first_ratio = if worthy.is_empty() { 1.0 } else { FIRST_RATIO };
    let rest_ratio = (1.0 - first_ratio) / worthy.len().max(1) as f64;
    let all = std::iter::once((first, first_ratio)).chain(worthy.iter().map(|c| (*c, rest_ratio)));
    for (candidate, ratio) in all {
        if ground.lab.is_stopped() {
            return;
        }
        evidence.chosen_because.push(format!("{}: {}", word(candidate.subject), candidate.because));
        let times = times.with_part(ratio);
        match candidate.subject {
            Subject::Idle => idle::run(Ground { times, ..ground }, evidence),
            Subject::Frequency => {
                let plan = frequency_plan(times.experiment_ns);
                match conduct(&plan, ground) {
                    Ok(run) => evidence.samples.experiments.push(run),
                    Err(why) => {
                        let why = format!("on the frequency governor: {why}");
                        evidence.not_done.push(NotDone::new(Step::Experiment, why));
                    }
                }
            }
        }
    }
}

/// A plan of doctor's own. It is kept nowhere: what it found goes into the report.
fn conduct(plan: &Plan, ground: Ground<'_>) -> Result<ExperimentRun, Refusal> {
    ground.onlooker.part(&plan.name);
    let watch = |moment: &Moment, run: &ExperimentRun| ground.onlooker.block(moment, run);
    let meters = Meters::of_this_machine();
    let conduct = Conduct { plan, seed: ground.seed(), meters, keeping: None, watch: &watch };
    Ok(conduct::run(conduct, ground.lab)?.study.run)
}

fn word(subject: Subject) -> &'static str {
    match subject {
        Subject::Idle => "idle states",
        Subject::Frequency => "the frequency governor",
    }
}

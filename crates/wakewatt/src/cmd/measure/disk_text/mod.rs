//! What an experiment on disk reads comes to, in one sentence for each arm; its numbers are in the page's section.

use crate::view::wrap::wrap;
use std::fmt::Write as _;
use wakewatt_core::samples::compared::Compared;
use wakewatt_core::samples::experiment::{Effect, ExperimentRun, Metric, Verdict};
use wakewatt_words::{say, word};

/// A sentence per arm; what was put back beside it.
pub(super) fn text(out: &mut String, run: &ExperimentRun, width: usize) {
    let Some(primary) = run.metrics.first() else { return };
    for effect in run.effects.iter().filter(|e| e.metric == primary.id) {
        let _ = writeln!(out, "{}", wrap("", "", &sentence(run, effect), width));
    }
    out.push('\n');
}

/// What the primary comparison with one arm allows to say.
fn sentence(run: &ExperimentRun, effect: &Effect) -> String {
    let metric = run.metrics.iter().find(|m| m.id == effect.metric).map_or(effect.metric.clone(), Metric::phrase);
    let against = arm(run, &effect.arm);
    let numbers = say!("{metric} takes {ratio} as long as with {against}", ratio = run.in_numbers(effect));
    match effect.verdict {
        Verdict::Higher => say!(
            "{slower}, {share} of it: {numbers}.",
            slower = run.slower(effect, word!("a read")),
            share = run.as_share(effect)
        ),
        Verdict::Lower => say!("{what}: {numbers}.", what = no_cost(effect.compared())),
        Verdict::NoDifference if !run.is_sized() => {
            say!(
                "Undecided: the hour does not allow to say that there is no difference ({why}).",
                why = run.graded().reasons()
            )
        }
        Verdict::NoDifference => say!("No difference worth a change: {numbers}."),
        Verdict::Undecided => say!("Undecided: {numbers}; give a longer --budget or a quieter machine."),
    }
}

/// The machine as found is faster than what it was compared with.
fn no_cost(compared: Compared) -> &'static str {
    match compared {
        Compared::NoSleep => word!("Sleep does not cost"),
        Compared::ShallowSleep => word!("Deep sleep costs no more than shallow sleep"),
        Compared::LimitsLifted => word!("The latency limits found on single CPUs make reads faster"),
        Compared::Other => word!("What was tried makes reads slower"),
    }
}

fn arm<'a>(run: &'a ExperimentRun, id: &'a str) -> &'a str {
    run.arms.iter().find(|a| a.id == id).map_or(id, |a| &a.title)
}

#[cfg(test)]
mod tests;

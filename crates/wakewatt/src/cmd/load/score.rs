//! What a graduated load came to, in one sentence: a score, per watt where watts were measured, and whether it may be quoted.

use super::words::rate;
use wakewatt_core::samples::load::{Ask, LoadRun, Overall};
use wakewatt_core::units::show_uw;

/// The sentence.
pub(super) fn sentence(run: &LoadRun, overall: Option<&Overall>) -> String {
    if run.is_repeated() {
        return "The same levels several times: values over time, and no score. Kept with --save, report draws them; for proof \
                of what a change does: wakewatt experiment."
            .into();
    }
    let Some(all) = overall else {
        return match run.levels.iter().filter(|l| !l.broken_rules.is_empty()).count() {
            0 => "No level was a share of what the machine can do, so there is no score.".into(),
            n => format!("No level was a share of what the machine can do, so there is no score; {n} are invalid."),
        };
    };
    let n_loads = run.levels.iter().filter(|l| matches!(l.ask, Ask::Share(_))).count();
    let score = match all.is_partial {
        false => format!("Score {}/s (sum over {n_loads} load levels)", rate(all.score_per_s)),
        true => format!(
            "Partial score {}/s (sum over {n_loads} load levels; a score has 100, 90 … 10 % and active idle)",
            rate(all.score_per_s)
        ),
    };
    let watts = match all.sum_uw.zip(all.per_joule) {
        Some((uw, per_joule)) => {
            let idle = all
                .idle_fraction
                .map_or(String::new(), |f| format!("; active idle draws {:.0} % of full load", f * 100.0));
            let even = all.proportionality.map_or(String::new(), |p| format!(", energy proportionality {p:.2}"));
            format!(" at {} (sum of all levels): {} per second and watt{idle}{even}.", show_uw(uw), rate(per_joule))
        }
        None => "; watts are unmeasured, so there is no score per watt.".into(),
    };
    let invalid = match (all.n_invalid, run.levels.len()) {
        (0, _) => String::new(),
        (n, of) => format!(" {n} of {of} levels are invalid, so it is not to be quoted."),
    };
    score + &watts + &invalid
}

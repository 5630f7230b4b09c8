//! What else ran while it was measured: one line, under the verdict.

use super::words::{clauses, ended, ns, percent};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::busy::{QuietWait, WaitEnd};
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::grade::{Grade, Graded};
use wakewatt_core::samples::taken::Taken;
use wakewatt_words::{say, word};

/// What to type where other work kept the machine busy.
pub(super) const RETRY: &str = "wakewatt doctor --wait-quiet 10min";

/// The line; none where every run is graded clean.
pub(super) fn line(evidence: &Evidence, runs: &[&ExperimentRun]) -> Option<String> {
    let graded: Vec<Graded> = runs.iter().map(|run| run.graded()).collect();
    let reasons: Vec<String> = graded.iter().filter(|g| g.grade == Grade::Loaded).map(Graded::reasons).collect();
    let busy = (!reasons.is_empty()).then(|| say!("Measured beside other load: {}", clauses(&reasons)));
    let waited = evidence.quiet_wait.filter(|wait| wait.end == WaitEnd::GaveUp).map(|wait| self::waited(&wait));
    let what = match (busy, waited) {
        (None, None) => return None,
        (Some(busy), None) => busy,
        (None, Some(waited)) => waited,
        (Some(busy), Some(waited)) => format!("{} {waited}", ended(&busy)),
    };
    let advice = match evidence.quiet_wait {
        // An experiment over settings has no such option.
        None if evidence.samples.conclusions.is_some() => {
            word!("The effect is that of this load; repeat it when the machine is quiet.").to_string()
        }
        Some(_) => word!("The effect is that of this load; repeat it at a quieter hour.").to_string(),
        None => say!("The effect is that of this load; without it: {}", RETRY),
    };
    Some(format!("{} {advice}", ended(&what)))
}

fn waited(wait: &QuietWait) -> String {
    let last = wait.last.map_or(String::new(), |taken| say!(", in the last one {}", of(&taken)));
    say!(
        "No quiet spell came in {}: {} of {} looks were quiet{last}",
        ns(wait.waited_ns as f64),
        wait.n_quiet,
        wait.n_looks
    )
}

/// What a look saw, for whoever waits.
pub fn of(taken: &Taken) -> String {
    say!(
        "the hypervisor took {} of the CPUs' time, other processes {}",
        percent(taken.steal_ratio),
        percent(taken.foreign_ratio.unwrap_or(0.0))
    )
}

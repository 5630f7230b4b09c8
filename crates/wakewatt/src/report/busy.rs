//! What a reader must know at once of a machine that was busy while it was measured: one line, under the verdict.

use super::words::{ns, percent};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::busy::{Busy, QuietWait, WaitEnd};
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::samples::taken::Taken;

/// The line; none where no run was made on a busy machine.
pub(super) fn line(evidence: &Evidence, runs: &[&ExperimentRun]) -> Option<String> {
    let disturbed: Vec<&ExperimentRun> = runs.iter().copied().filter(|run| Busy::during(&[run]).is_some()).collect();
    let busy = Busy::during(&disturbed).map(|busy| {
        format!(
            "The machine was busy: {} of {} blocks were disturbed ({})",
            busy.n_disturbed,
            busy.n_blocks,
            shares("up to ", busy.most_steal_ratio, busy.most_foreign_ratio)
        )
    });
    let waited = evidence.quiet_wait.filter(|wait| wait.end == WaitEnd::GaveUp).map(|wait| self::waited(&wait));
    let what = match (busy, waited) {
        (None, None) => return None,
        (Some(busy), None) => busy,
        (None, Some(waited)) => waited,
        (Some(busy), Some(waited)) => format!("{busy}. {waited}"),
    };
    let advice = match evidence.quiet_wait {
        // An experiment over settings has no such option.
        None if evidence.samples.conclusions.is_some() => "Repeat it when the machine is quiet.",
        Some(_) => "Repeat it at a quieter hour.",
        None => "Repeat it when it is quiet: wakewatt doctor --wait-quiet 10min waits for that.",
    };
    Some(format!("{what}. {advice}"))
}

fn waited(wait: &QuietWait) -> String {
    let last = wait.last.map_or(String::new(), |taken| format!(", in the last one {}", of(&taken)));
    format!(
        "No quiet spell came in {}: {} of {} looks were quiet{last}",
        ns(wait.waited_ns as f64),
        wait.n_quiet,
        wait.n_looks
    )
}

/// What a look saw, for whoever waits.
pub fn of(taken: &Taken) -> String {
    shares("", taken.steal_ratio, taken.foreign_ratio.unwrap_or(0.0))
}

fn shares(how: &str, steal_ratio: f64, foreign_ratio: f64) -> String {
    format!(
        "the hypervisor took {how}{} of the CPUs' time, other processes {how}{}",
        percent(steal_ratio),
        percent(foreign_ratio)
    )
}

//! What is shown of doctor while it measures: its bar, and what came of waiting for a quiet spell.

use crate::progress::Progress;
use crate::report::busy;
use crate::watching;
use wakewatt_core::samples::busy::{QuietWait, WaitEnd};
use wakewatt_core::samples::experiment::ExperimentRun;
use wakewatt_core::units::show_ns;
use wakewatt_lab::context::Tell;
use wakewatt_lab::doctor::Onlooker;
use wakewatt_lab::experiment::Moment;

/// On this bar.
pub(super) struct Shown<'a>(pub(super) &'a Progress);

impl Onlooker for Shown<'_> {
    fn part(&self, name: &str) {
        self.0.part(name);
    }

    fn looked(&self, wait: &QuietWait, share: f64) {
        let seen = wait.last.map_or(String::new(), |taken| busy::of(&taken));
        self.0.set(share, &format!("waiting for a quiet spell: {seen}"));
    }

    fn waited(&self, wait: &QuietWait) {
        self.0.remark(&word(wait));
    }

    fn block(&self, moment: &Moment, run: &ExperimentRun) {
        self.0.set(moment.share, &watching::words(moment, run));
    }
}

fn word(waited: &QuietWait) -> String {
    let after = show_ns(waited.waited_ns);
    let looks = format!("{} of {} looks were quiet", waited.n_quiet, waited.n_looks);
    let last = waited.last.map_or(String::new(), |taken| format!("; in the last one {}", busy::of(&taken)));
    match waited.end {
        WaitEnd::Quiet => format!("Quiet after {after}; {looks}."),
        WaitEnd::GaveUp => format!("Not quiet in {after}: {looks}{last}. Measuring all the same, and saying so."),
        WaitEnd::Interrupted => format!("Interrupted after {after} of waiting for a quiet spell."),
        WaitEnd::Unknown => "Cannot tell whether the machine is quiet; measuring all the same.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_wait_ended_is_said() {
        let wait = |end| QuietWait { end, waited_ns: 8_000_000_000, n_looks: 8, n_quiet: 6, last: None };
        assert_eq!(word(&wait(WaitEnd::Quiet)), "Quiet after 8s; 6 of 8 looks were quiet.");
        assert!(word(&wait(WaitEnd::GaveUp)).starts_with("Not quiet in 8s: 6 of 8 looks were quiet. Measuring"));
    }
}

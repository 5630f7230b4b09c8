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
use wakewatt_words::{say, spoken, told};

/// On this bar.
pub(super) struct Shown<'a>(pub(super) &'a Progress);

impl Onlooker for Shown<'_> {
    fn part(&self, name: &str) {
        self.0.part(spoken(|| told(name)));
    }

    fn looked(&self, wait: &QuietWait, share: f64) {
        let seen = spoken(|| wait.last.map_or(String::new(), |taken| busy::of(&taken)));
        self.0.set(share, &spoken(|| say!("waiting for a quiet spell: {seen}")));
    }

    fn waited(&self, wait: &QuietWait) {
        self.0.remark(&spoken(|| word(wait)));
    }

    fn block(&self, moment: &Moment, run: &ExperimentRun) {
        self.0.set(moment.share, &spoken(|| watching::words(moment, run)));
    }
}

fn word(waited: &QuietWait) -> String {
    let after = show_ns(waited.waited_ns);
    let looks = say!("{n_quiet} of {n_looks} looks were quiet", n_quiet = waited.n_quiet, n_looks = waited.n_looks);
    let last = waited.last.map_or(String::new(), |taken| say!("; in the last one {seen}", seen = busy::of(&taken)));
    match waited.end {
        WaitEnd::Quiet => say!("Quiet after {after}; {looks}."),
        WaitEnd::GaveUp => say!("Not quiet in {after}: {looks}{last}. Measuring all the same, and saying so."),
        WaitEnd::Interrupted => say!("Interrupted after {after} of waiting for a quiet spell."),
        WaitEnd::Unknown => say!("Cannot tell whether the machine is quiet; measuring all the same."),
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

//! `doctor --wait-quiet`: a quiet spell is waited for; what was seen meanwhile is in the report.

use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::Progress;
use crate::report::busy;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::busy::{QuietWait, WaitEnd};
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::source::Source;
use wakewatt_core::units::show_ns;
use wakewatt_lab::quiet::{self, ThisMachine};

/// Waits, if it is asked to, and says how long that took.
pub(super) fn wait(
    at_most_ns: Option<u64>,
    allowed: &CpuSet,
    src: &dyn Source,
    evidence: &mut Evidence,
    interrupt: &Interrupt,
) -> u64 {
    let Some(at_most_ns) = at_most_ns else { return 0 };
    let waited = {
        let progress = Progress::start("doctor");
        let mut machine = ThisMachine { src, cpus: allowed, stop: interrupt.flag() };
        quiet::wait(&mut machine, at_most_ns, |wait| {
            let seen = wait.last.map_or(String::new(), |taken| busy::of(&taken));
            progress
                .set(wait.waited_ns as f64 / at_most_ns.max(1) as f64, &format!("waiting for a quiet spell: {seen}"));
        })
    };
    output::remark(&word(&waited));
    if waited.end == WaitEnd::Unknown {
        let why = "/proc/stat does not say how busy the CPUs are";
        evidence.not_done.push(NotDone::new(Step::QuietWait, why));
    }
    evidence.quiet_wait = Some(waited);
    waited.waited_ns
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
    use wakewatt_core::source::Tree;

    #[test]
    fn what_was_seen_is_kept_and_nothing_is_waited_for_unasked() {
        let (cpus, interrupt, src) = (CpuSet::parse("0").unwrap(), Interrupt::default(), Tree::default());
        let mut evidence = Evidence::default();
        assert_eq!(wait(None, &cpus, &src, &mut evidence, &interrupt), 0);
        assert_eq!(evidence.quiet_wait, None);
        interrupt.flag().store(true, std::sync::atomic::Ordering::Relaxed);
        wait(Some(600_000_000_000), &cpus, &src, &mut evidence, &interrupt);
        assert_eq!(evidence.quiet_wait.map(|wait| wait.end), Some(WaitEnd::Interrupted));
    }
}

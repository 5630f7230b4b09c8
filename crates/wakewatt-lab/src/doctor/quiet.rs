//! `doctor --wait-quiet`: a quiet spell is waited for; what was seen meanwhile is kept.

use super::Onlooker;
use crate::context::Lab;
use crate::quiet::{self, ThisMachine};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::busy::WaitEnd;
use wakewatt_core::samples::not_done::{NotDone, Step};

/// Waits, if it is asked to, and says how long that took, in nanoseconds.
pub(super) fn wait(
    at_most_ns: Option<u64>,
    allowed: &CpuSet,
    lab: Lab<'_>,
    onlooker: &dyn Onlooker,
    evidence: &mut Evidence,
) -> u64 {
    let Some(at_most_ns) = at_most_ns else { return 0 };
    let mut machine = ThisMachine { src: lab.src, cpus: allowed, stop: lab.stop };
    onlooker.part("doctor");
    let waited = quiet::wait(&mut machine, at_most_ns, |wait| {
        onlooker.looked(wait, wait.waited_ns as f64 / at_most_ns.max(1) as f64);
    });
    onlooker.waited(&waited);
    if waited.end == WaitEnd::Unknown {
        let why = "/proc/stat does not say how busy the CPUs are";
        evidence.not_done.push(NotDone::new(Step::QuietWait, why));
    }
    evidence.quiet_wait = Some(waited);
    waited.waited_ns
}

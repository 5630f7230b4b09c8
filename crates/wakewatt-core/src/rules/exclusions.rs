//! What findings take for granted of the machine, and which of it cannot be true together.
//!
//! Rules are written one by one, and each is easily right by itself while two of them contradict each other on one host. So
//! a rule states what its finding takes for granted as types, [`excludes`] is the table of what rules out what, and
//! `core/tests/every_host/` holds the findings of every recorded and edited host against it.

use super::{Answer, RULES, Rule};
use crate::cpuset::CpuSet;
use crate::evidence::Evidence;

/// What a finding takes for granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assertion {
    /// These CPUs spin when idle.
    Spins(CpuSet),
    /// These CPUs enter a sleeping state when idle.
    Sleeps(CpuSet),
    /// These CPUs halt without an idle driver.
    Halts(CpuSet),
    /// This boot argument decides something on this machine.
    ArgumentActs(String),
    /// This boot argument decides nothing on this machine.
    ArgumentIgnored(String),
    /// An idle package may sleep.
    PackageMaySleep,
    /// An idle package stays awake.
    PackageStaysAwake,
    /// The uncore clock falls when the package is mostly idle.
    UncoreFalls,
    /// The uncore clock stays up.
    UncoreStaysUp,
    /// These CPUs ask for a state that takes long to leave.
    EntersDeep(CpuSet),
    /// No idle state of these CPUs takes long to leave.
    NeverDeep(CpuSet),
    /// These CPUs run at no more than this, in kHz.
    ClockAtMost(CpuSet, u64),
    /// These CPUs run at no less than this, in kHz.
    ClockAtLeast(CpuSet, u64),
}

use Assertion::{
    ArgumentActs, ArgumentIgnored, ClockAtLeast, ClockAtMost, EntersDeep, Halts, NeverDeep, PackageMaySleep,
    PackageStaysAwake, Sleeps, Spins, UncoreFalls, UncoreStaysUp,
};

/// The table, one way round.
fn rules_out(a: &Assertion, b: &Assertion) -> bool {
    let meet = |x: &CpuSet, y: &CpuSet| !x.and(y).is_empty();
    match (a, b) {
        (Spins(x), Sleeps(y) | Halts(y)) | (Sleeps(x), Halts(y)) => meet(x, y),
        (ArgumentActs(x), ArgumentIgnored(y)) => x == y,
        (PackageMaySleep, PackageStaysAwake) => true,
        (UncoreFalls, UncoreStaysUp) => true,
        (EntersDeep(x), NeverDeep(y) | Spins(y) | Halts(y)) => meet(x, y),
        (ClockAtMost(x, most), ClockAtLeast(y, least)) => meet(x, y) && least > most,
        _ => false,
    }
}

/// Can both not be true of one machine?
pub fn excludes(a: &Assertion, b: &Assertion) -> bool {
    rules_out(a, b) || rules_out(b, a)
}

/// The pairs of rules whose findings on one machine exclude each other.
pub fn contradictions(evidence: &Evidence) -> Vec<(&'static str, &'static str)> {
    let says_yes = |rule: &&&dyn Rule| matches!(rule.answer(evidence), Answer::Yes(_));
    let granted = RULES.iter().filter(says_yes).map(|rule| (rule.id(), rule.takes_for_granted(evidence)));
    let granted: Vec<(&str, Vec<Assertion>)> = granted.collect();
    let mut all = Vec::new();
    for (at, (one, says)) in granted.iter().enumerate() {
        for (other, also) in &granted[at + 1..] {
            if says.iter().any(|a| also.iter().any(|b| excludes(a, b))) {
                all.push((*one, *other));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_cpu_cannot_spin_and_sleep() {
        let cpus = |list: &str| CpuSet::parse(list).unwrap();
        assert!(excludes(&Spins(cpus("0-3")), &Sleeps(cpus("3"))) && excludes(&Sleeps(cpus("3")), &Spins(cpus("3"))));
        assert!(!excludes(&Spins(cpus("0-3")), &Sleeps(cpus("4-7"))), "some may spin while others sleep");
        assert!(excludes(&ArgumentActs("idle".into()), &ArgumentIgnored("idle".into())));
        assert!(!excludes(&ArgumentActs("idle".into()), &ArgumentIgnored("nohz".into())));
    }
}

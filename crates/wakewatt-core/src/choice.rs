//! Which experiment matters most on this machine: the one whose setting has most at stake for a request.
//!
//! An experiment takes minutes, so `doctor` has time for one or two and must choose before it knows the answer. What is
//! at stake is estimated from what was measured as found: a wake-up can become at best as short as one of a polling CPU; a
//! ramp to full speed can at best vanish. The estimate is an upper bound of the gain, used for the order and for nothing
//! else: what a setting costs is said by the experiment.

use crate::evidence::Evidence;
use crate::samples::wakeup::WakeKind;
use crate::units::show_ns;
use serde::Serialize;

/// What a cross-CPU wake-up takes where nobody sleeps (MEASURE 3.3 and the journals: 3 to 5 us); no gain goes below.
const AWAKE_NS: f64 = 4_000.0;

/// What an experiment turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// How deep idle CPUs may sleep.
    Idle,
    /// The frequency governor.
    Frequency,
}

/// One experiment that could be run.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Candidate {
    /// What it turns.
    pub subject: Subject,
    /// At most this much of a request could be won, by what was measured or claimed.
    pub at_stake_ns: f64,
    /// Why, in words with figures.
    pub because: String,
}

/// The candidates, what matters most first; what cannot be turned here is not among them.
pub fn experiments(evidence: &Evidence) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = [idle(evidence), frequency(evidence)].into_iter().flatten().collect();
    all.sort_by(|a, b| b.at_stake_ns.total_cmp(&a.at_stake_ns));
    all
}

fn idle(evidence: &Evidence) -> Option<Candidate> {
    if evidence.facts.idle.states.is_empty() {
        return None;
    }
    let cross = |kind: WakeKind| matches!(kind, WakeKind::Futex | WakeKind::Eventfd);
    let measured =
        evidence.wakeups.iter().filter(|w| cross(w.kind)).filter_map(|w| Some((w, w.latency.p50_ns()? as f64)));
    if let Some((sample, p50_ns)) = measured.max_by(|a, b| a.1.total_cmp(&b.1)) {
        return Some(Candidate {
            subject: Subject::Idle,
            at_stake_ns: (p50_ns - AWAKE_NS).max(0.0),
            because: format!(
                "a {} wake-up takes {} as found; where nobody sleeps it would take a few microseconds",
                sample.kind.word(),
                words(p50_ns)
            ),
        });
    }
    let deepest = |rows: Vec<crate::facts::idle::TableRow>| {
        rows.into_iter().filter(|r| r.is_enabled != Some(false)).filter_map(|r| r.exit_latency_ns).max()
    };
    let claimed_ns = evidence.facts.idle.tables().into_iter().filter_map(|(_, rows)| deepest(rows)).max()? as f64;
    Some(Candidate {
        subject: Subject::Idle,
        at_stake_ns: claimed_ns,
        because: format!("the deepest enabled idle state claims an exit latency of {}", words(claimed_ns)),
    })
}

fn frequency(evidence: &Evidence) -> Option<Candidate> {
    let policies = &evidence.facts.freq.policies;
    let governors = policies.by_cpu(&policies.governor);
    if governors.is_unknown() || governors.uniform().is_some_and(|g| g == "performance") {
        return None;
    }
    let ramps = evidence.speed.iter().flat_map(|s| &s.after).filter(|a| a.is_ramp());
    let worst = ramps.filter_map(|a| Some((a, a.lost_ns()?))).max_by(|a, b| a.1.total_cmp(&b.1));
    let (at_stake_ns, because) = match worst {
        Some((after, lost_ns)) => (
            lost_ns,
            format!(
                "after {} of idle work ends up to {} later than at full speed",
                show_ns(after.idle_ns),
                words(lost_ns)
            ),
        ),
        None => (0.0, "no ramp was seen after idle".to_string()),
    };
    Some(Candidate { subject: Subject::Frequency, at_stake_ns, because })
}

fn words(ns: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not negative, far below 2^64
    let ns = ns.max(0.0).round() as u64;
    show_ns(ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Snapshot;
    use crate::samples::speed::testing::ramped;
    use crate::source::Tree;

    const GOVERNED: &str = "//- /sys/devices/system/cpu/online\n0\n//- /sys/devices/system/cpu/present\n0\n
        //- /sys/devices/system/cpu/cpufreq/policy0/affected_cpus\n0\n//- /sys/devices/system/cpu/cpufreq/policy0/related_cpus\n0\n
        //- /sys/devices/system/cpu/cpufreq/policy0/scaling_governor\nondemand\n
        //- /sys/devices/system/cpu/cpu0/cpuidle/state0/name\nPOLL\n//- /sys/devices/system/cpu/cpu0/cpuidle/state0/latency\n0\n
        //- /sys/devices/system/cpu/cpu0/cpuidle/state1/name\nC6\n//- /sys/devices/system/cpu/cpu0/cpuidle/state1/latency\n133\n";

    fn host(text: &str) -> Evidence {
        Evidence { facts: Snapshot::read(&Tree::from_text(text), |_| true), ..Evidence::default() }
    }

    #[test]
    fn what_has_most_at_stake_comes_first_and_what_cannot_be_turned_not_at_all() {
        let subjects = |e: &Evidence| experiments(e).iter().map(|c| c.subject).collect::<Vec<_>>();
        let mut found = host(GOVERNED);
        assert_eq!(subjects(&found), [Subject::Idle, Subject::Frequency]);
        assert!(experiments(&found)[0].because.contains("133us"), "{:?}", experiments(&found));
        found.speed.push(ramped(10, 8e6, 0.5));
        assert_eq!(subjects(&found), [Subject::Frequency, Subject::Idle]);
        assert_eq!(experiments(&found)[0].at_stake_ns, 4e6);
        assert_eq!(subjects(&host(&GOVERNED.replace("ondemand", "performance"))), [Subject::Idle]);
        assert_eq!(subjects(&host("")), []);
    }
}

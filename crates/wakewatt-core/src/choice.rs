//! Which experiment matters most on this machine: the one whose setting has most at stake for a request.
//!
//! An experiment takes minutes, so `doctor` has time for one or two and must choose before it knows the answer. What is
//! at stake is estimated from what was measured as found: a wake-up can become at best as short as one of a polling CPU; a
//! ramp to full speed can at best vanish. The estimate is an upper bound of the gain, used for the order and for nothing
//! else: what a setting costs is said by the experiment.
//!
//! Like is compared with like: what one request of [`REQUEST_NS`] pays at the median after one and the same pause, that of
//! the wake-ups, which is also about the pause that both experiments make. The longest ramp after the longest pause says
//! nothing beside a median wake-up after a millisecond: such a request comes a hundred times more rarely, neither
//! experiment would see it, and a request of half a millisecond is over before a ramp of ten is.

use crate::arrange::Arrange as _;
use crate::enterable;
use crate::evidence::Evidence;
use crate::samples::experiment::ExperimentRun;
use crate::samples::speed::AfterIdle;
use crate::samples::wakeup::{WakeKind, WakeupSample};
use crate::units::show_ns;
use serde::Serialize;
use wakewatt_words::{say, word};

/// What a cross-CPU wake-up takes on a polling CPU (docs/journal: 3 to 5 us). It orders candidates and is never reported:
/// the experiment measures what polling takes on this machine.
const AWAKE_NS: f64 = 4_000.0;
/// The pause of doctor's wake-ups, where none was measured.
const PAUSE_NS: u64 = 1_000_000;
/// A pause longer or shorter by more than this factor is another question.
const MOST_APART: f64 = 10.0;

/// The work of a request in the frequency experiment, at full speed.
pub const REQUEST_NS: u64 = 500_000;
/// Arms of the frequency experiment.
pub const FOUND: &str = "found";
/// See [`FOUND`].
pub const PERFORMANCE: &str = "performance";

/// Doctor's frequency experiment, if it ran: known by its arms, because experiments of the user stand beside it.
pub fn frequency_run(evidence: &Evidence) -> Option<&ExperimentRun> {
    let is_it = |run: &&ExperimentRun| matches!(&run.arms[..], [a, b] if a.id == FOUND && b.id == PERFORMANCE);
    evidence.samples.experiments.iter().find(is_it)
}

/// What an experiment turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// How deep idle CPUs may sleep.
    Idle,
    /// The frequency governor, turned between arms.
    Frequency,
}

/// One experiment that could be run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Candidate {
    /// What an experiment about it would turn.
    pub subject: Subject,
    /// At most this much of a request could be won, by what was measured or claimed.
    pub at_stake_ns: f64,
    /// Why, in words with figures.
    pub because: String,
}

/// The candidates, what matters most first; what cannot be turned here is not among them.
pub fn experiments(evidence: &Evidence) -> Vec<Candidate> {
    let mut all: Vec<Candidate> = [idle(evidence), frequency(evidence)].into_iter().flatten().collect();
    all.arrange_by(|a, b| b.at_stake_ns.total_cmp(&a.at_stake_ns));
    all
}

/// The wake-up that the idle experiment turns: eventfd, which is its primary metric, else futex.
fn wakeup(evidence: &Evidence) -> Option<(&WakeupSample, f64)> {
    let of = |kind| {
        evidence.samples.wakeups.iter().find(|w| w.kind == kind).and_then(|w| Some((w, w.latency.p50_ns()? as f64)))
    };
    of(WakeKind::Eventfd).or_else(|| of(WakeKind::Futex))
}

/// What followed the pause that is nearest to that of the wake-ups, on the same CPU where it was measured there.
fn after_pause(evidence: &Evidence) -> Option<&AfterIdle> {
    let woken = wakeup(evidence).map(|(sample, _)| sample);
    let pause_ns = woken.map_or(PAUSE_NS, |w| w.gap_ns).max(1) as f64;
    let apart = |a: &AfterIdle| (a.idle_ns.max(1) as f64 / pause_ns).ln().abs();
    let sample = evidence
        .samples
        .speed
        .iter()
        .find(|s| woken.is_some_and(|w| w.cpu == s.cpu))
        .or(evidence.samples.speed.first())?;
    sample.after.iter().filter(|a| apart(a) <= MOST_APART.ln()).min_by(|a, b| apart(a).total_cmp(&apart(b)))
}

fn idle(evidence: &Evidence) -> Option<Candidate> {
    if evidence.facts.idle.states.is_empty() {
        return None;
    }
    let candidate = |at_stake_ns, because| Some(Candidate { subject: Subject::Idle, at_stake_ns, because });
    if let Some((sample, p50_ns)) = wakeup(evidence) {
        let because = say!("median {} wake-up {} with current settings", sample.kind.word(), words(p50_ns));
        return candidate((p50_ns - AWAKE_NS).max(0.0), because);
    }
    if let Some(after) = after_pause(evidence) {
        let exit_ns = after.exit.median_ns;
        let because = say!("after {} of idle a CPU takes {} to run (median)", show_ns(after.idle_ns), words(exit_ns));
        return candidate((exit_ns - AWAKE_NS).max(0.0), because);
    }
    // Nothing was measured, so nothing stands beside this claim either.
    let claimed_ns = enterable::deepest_ns(&enterable::of(&evidence.facts))? as f64;
    candidate(
        claimed_ns,
        say!("the deepest idle state that can be entered claims an exit latency of {}", words(claimed_ns)),
    )
}

fn frequency(evidence: &Evidence) -> Option<Candidate> {
    let policies = &evidence.facts.freq.policies;
    let governors = policies.by_cpu(&policies.governor);
    if governors.is_unknown() || governors.uniform().is_some_and(|g| g == "performance") {
        return None;
    }
    let candidate = |at_stake_ns, because| Some(Candidate { subject: Subject::Frequency, at_stake_ns, because });
    let Some(after) = after_pause(evidence) else {
        return candidate(0.0, word!("how fast a CPU is after such a pause was not measured").to_string());
    };
    let pause = show_ns(after.idle_ns);
    match after.is_ramp().then(|| lost_ns(after)).flatten() {
        Some(lost_ns) => candidate(
            lost_ns,
            say!(
                "after {pause} of idle {} of work ends up to {} later than at full speed (median)",
                show_ns(REQUEST_NS),
                words(lost_ns)
            ),
        ),
        None => candidate(0.0, say!("no ramp was seen after {pause} of idle")),
    }
}

/// What a request loses to a ramp: it is slow while the ramp lasts, or until it is done, which comes first.
fn lost_ns(after: &AfterIdle) -> Option<f64> {
    let slowest_ratio = after.slowest_ratio?.clamp(0.01, 1.0);
    let slow_for_ns = after.ramp?.median_ns.min(REQUEST_NS as f64 / slowest_ratio);
    Some(slow_for_ns * (1.0 - slowest_ratio))
}

fn words(ns: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not negative, far below 2^64
    let ns = ns.max(0.0).round() as u64;
    show_ns(ns)
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::samples::ended::Ended;
    use crate::samples::experiment::{Arm, Effect, Metric, Verdict};

    /// The frequency experiment as it could have ended.
    pub(crate) fn frequency_run(verdict: Verdict) -> ExperimentRun {
        let arm = |id: &str| Arm { id: id.into(), title: format!("governor {id}"), settings: Vec::new() };
        let metric = Metric::latency("steps.10.p50", "load at 10 %, median answer");
        ExperimentRun {
            arms: vec![arm(FOUND), arm(PERFORMANCE)],
            effects: vec![Effect {
                covers: crate::covers::Covers::Run,
                metric: metric.id.clone(),
                baseline: FOUND.into(),
                arm: PERFORMANCE.into(),
                ratio: 1.4,
                ratio_low: 1.3,
                ratio_high: 1.5,
                difference: 200_000.0,
                difference_low: 150_000.0,
                difference_high: 250_000.0,
                confidence: None,
                p_value: 0.008,
                at_look: None,
                n_pairs: 8,
                verdict,
            }],
            metrics: vec![metric],
            seed: 1,
            ended: Ended::enough("narrow"),
            ..ExperimentRun::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Snapshot;
    use crate::samples::Samples;
    use crate::samples::experiment::Verdict;
    use crate::samples::speed::SpeedSample;
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
        found.samples.speed.push(after(1_000_000, 8e6, 0.5));
        assert_eq!(subjects(&found), [Subject::Frequency, Subject::Idle]);
        assert_eq!(subjects(&host(&GOVERNED.replace("ondemand", "performance"))), [Subject::Idle]);
        assert_eq!(subjects(&host("")), []);
    }

    /// CPU 3 after such a pause.
    fn after(idle_ns: u64, ramp_ns: f64, slowest_ratio: f64) -> SpeedSample {
        let mut sample = ramped(10, ramp_ns, slowest_ratio);
        sample.after[0].idle_ns = idle_ns;
        sample
    }

    fn stake(evidence: &Evidence, subject: Subject) -> f64 {
        experiments(evidence).iter().find(|c| c.subject == subject).unwrap().at_stake_ns
    }

    #[test]
    fn one_request_after_one_pause_is_what_is_compared() {
        let mut found = host(GOVERNED);
        // A ramp that outlasts the request costs what the request loses, a short one what it lasts.
        found.samples.speed = vec![after(1_000_000, 8e6, 0.5)];
        assert_eq!(stake(&found, Subject::Frequency), 500_000.0);
        found.samples.speed = vec![after(1_000_000, 1e5, 0.5)];
        assert_eq!(stake(&found, Subject::Frequency), 50_000.0);
        // The exit after the same pause stands in for wake-ups that could not be measured, not the claim.
        assert_eq!(stake(&found, Subject::Idle), 3e4 - AWAKE_NS);
        // After a tenth of a second the ramp is huge; the wake-ups were measured after a millisecond.
        found.samples.speed[0].after.push(after(100_000_000, 9e6, 0.1).after.remove(0));
        assert_eq!(stake(&found, Subject::Frequency), 50_000.0);
        found.samples.speed[0].after.remove(0);
        let stakes = experiments(&found);
        assert_eq!((stakes[1].subject, stakes[1].at_stake_ns), (Subject::Frequency, 0.0));
        assert!(stakes[1].because.contains("was not measured"), "{stakes:?}");
    }

    #[test]
    fn the_frequency_experiment_is_known_by_its_arms() {
        let mut evidence =
            Evidence::of(Samples { experiments: vec![testing::frequency_run(Verdict::Higher)], ..Samples::default() });
        assert!(frequency_run(&evidence).is_some());
        evidence.samples.experiments[0].arms[0].id = "default".into();
        assert!(frequency_run(&evidence).is_none());
    }
}

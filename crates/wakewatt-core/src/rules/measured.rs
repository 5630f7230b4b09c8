//! What rules make of an experiment: how sure it makes them, what they propose on it, and what it says of polling in a guest.
//!
//! Confidence is computed: low where no size is reported or half of the measurements were discarded; medium beside other load, where a
//! quarter was discarded, or where the near end of the interval is no effect worth a change; else high. A fix is proposed where
//! the variant deserves its name: a CPU that was awake at most of its wake-ups says nothing about idle states.
//!
//! That goes for every rule, also for one that has no experiment of its own: on a machine too busy to be measured, a plan
//! that rests on a setting alone is withheld and the reason given ([`offered`]). A cost that follows from facts holds at any
//! hour.

use super::{Answer, Confidence, CostBasis, joined};
use crate::evidence::Evidence;
use crate::samples::compared::{Compared, POLL};
use crate::samples::experiment::{Effect, ExperimentRun};
use crate::samples::grade::Grade;
use crate::samples::not_done::{NotDone, Step, Why};
use crate::samples::side_effect::Witnessed;
use crate::stats::paired::NEGLIGIBLE_RATIO;
use wakewatt_words::{say, word};

/// How sure an effect makes a rule.
pub(super) fn confidence(run: &ExperimentRun, effect: &Effect) -> Confidence {
    let (n, lost) = (run.blocks.len(), run.n_rejected());
    let near = if effect.ratio >= 1.0 { effect.ratio_low } else { 1.0 / effect.ratio_high };
    let grade = run.graded().grade;
    if grade == Grade::Refused || 2 * lost > n {
        Confidence::Low
    } else if grade == Grade::Loaded || 4 * lost > n || near < NEGLIGIBLE_RATIO || !run.ended.is_final() {
        Confidence::Medium
    } else {
        Confidence::High
    }
}

/// Why no fix is proposed on this run, as a sentence to put before what could be done; none where one is.
pub(super) fn not_proposed(run: &ExperimentRun) -> Option<String> {
    let graded = run.graded();
    (graded.grade == Grade::Refused)
        .then(|| say!("No setting is proposed on this run: {}. Repeat it (wakewatt doctor).", graded.reasons()))
}

/// Why nothing could be measured here, as a sentence; none where an experiment ran, or was not tried.
pub(super) fn too_busy(evidence: &Evidence) -> Option<String> {
    let is_it = |left: &&NotDone| left.step == Step::Experiment && matches!(left.why, Why::TooBusy(_));
    let left = evidence.not_done.iter().find(is_it)?;
    Some(say!(
        "Not measured: {}. Before changing anything, repeat it when the machine is quiet (wakewatt doctor --wait-quiet 10min).",
        left.why
    ))
}

/// What may be offered on a machine that is too busy, for this reason: words, and a plan only where the cost is predicted.
pub(super) fn offered(answer: Answer, too_busy: Option<&str>) -> Answer {
    match (answer, too_busy) {
        (Answer::Yes(mut finding), Some(why)) => {
            if finding.cost.basis != CostBasis::Predicted && finding.plan.take().is_some() {
                finding.remedy = joined(why, &finding.remedy);
            }
            Answer::Yes(finding)
        }
        (answer, _) => answer,
    }
}

/// Was the CPU awake at most of its wake-ups as found, though idle states were allowed? Then this comparison is not about
/// sleep, and why, as a clause.
pub(super) fn not_asleep(run: &ExperimentRun, effect: &Effect) -> Option<String> {
    let is_about_sleep = matches!(effect.compared(), Compared::NoSleep | Compared::ShallowSleep);
    let ratio = run.slept_ratio(&effect.baseline).filter(|_| is_about_sleep && !run.is_asleep_in(&effect.baseline))?;
    Some(say!("idle states were allowed as found and were entered before {:.0} % of the wake-ups", ratio * 100.0))
}

/// What was measured of polling and the hypervisor, as a sentence.
pub(super) fn polling_and_steal(evidence: &Evidence) -> String {
    let is_it = |what: Witnessed, arm: &str| what == Witnessed::Steal && arm == POLL;
    let found = evidence.idle_experiment().and_then(|run| run.side_effects.iter().find(|e| is_it(e.what, &e.arm)));
    let Some(steal) = found else {
        return word!(
            "Whether polling makes the host take more or less differs from host to host; wakewatt doctor as root \
                measures it."
        )
        .into();
    };
    let numbers = steal.say();
    match (steal.is_shown, steal.difference > 0.0) {
        (true, true) => say!("Measured here, the host takes less from a guest that polls: {numbers}."),
        (true, false) => say!("Do not poll in this guest: measured here, it makes the host take more: {numbers}."),
        (false, _) => {
            say!("Whether polling makes the host take more or less was measured and is not shown: {numbers}.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{evidence, haltpoll, slept};
    use super::super::{Cost, Finding, Weight, judge};
    use super::*;
    use crate::covers::Covers;
    use crate::samples::experiment::{Block, Verdict};
    use crate::samples::grade::{Flaw, Graded};
    use crate::samples::not_done::TooBusy;
    use crate::samples::taken::Taken;

    fn effect() -> Effect {
        Effect {
            metric: "w.p50".into(),
            baseline: "found".into(),
            arm: POLL.into(),
            ratio: 2.0,
            ratio_low: 1.5,
            ratio_high: 2.5,
            difference: 1e4,
            difference_low: 5e3,
            difference_high: 2e4,
            confidence: None,
            covers: Covers::Run,
            p_value: 0.008,
            at_look: None,
            n_pairs: 8,
            verdict: Verdict::Higher,
        }
    }

    fn run(n_bad: usize, steal_ratio: f64) -> ExperimentRun {
        let block = |at: usize| Block {
            rejected: (at < n_bad).then(|| "spoilt".into()),
            taken: Some(Taken { steal_ratio, foreign_ratio: None }),
            ..slept("found")
        };
        ExperimentRun { blocks: (0..8).map(block).collect(), ..ExperimentRun::default() }
    }

    #[test]
    fn confidence_follows_from_interval_losses_and_grade() {
        assert_eq!(confidence(&run(0, 0.0), &effect()), Confidence::High);
        assert_eq!(confidence(&run(3, 0.0), &effect()), Confidence::Medium, "three of eight blocks lost");
        assert_eq!(confidence(&run(5, 0.0), &effect()), Confidence::Low);
        assert_eq!(confidence(&run(0, 0.02), &effect()), Confidence::Medium, "beside other load");
        let barely = Effect { ratio_low: 1.02, ..effect() };
        assert_eq!(confidence(&run(0, 0.0), &barely), Confidence::Medium);
        assert_eq!(confidence(&run(0, 0.0), &barely.inverted()), Confidence::Medium);
        assert_eq!(confidence(&run(0, 0.0), &effect().inverted()), Confidence::High);
        let cut = ExperimentRun { ended: crate::samples::ended::How::Interrupted.into(), ..run(0, 0.0) };
        assert_eq!(confidence(&cut, &effect()), Confidence::Medium);
    }

    #[test]
    fn a_setting_alone_sells_nothing_on_a_machine_too_busy_to_measure() {
        let zero = "//- /sys/devices/system/cpu/cpuidle/current_governor\nhaltpoll\n\
                    //- /sys/module/haltpoll/parameters/guest_halt_poll_ns\n0\n";
        let asked = |steal_ratio: Option<f64>| {
            let mut host = evidence(&(haltpoll() + zero));
            host.samples.experiment = steal_ratio.map(|steal| run(0, steal));
            let ruling = judge(&host).into_iter().find(|r| r.rule == "rule.haltpoll-guest").unwrap();
            match ruling.answer {
                Answer::Yes(finding) => *finding,
                other => panic!("{other:?}"),
            }
        };
        let quiet = asked(Some(0.0));
        assert!(quiet.plan.is_some() && quiet.remedy.starts_with("To wake faster"), "{}", quiet.remedy);
        assert_eq!(asked(None), quiet, "without an experiment there is no hour to blame");
        assert!(asked(Some(0.4)).plan.is_some(), "an experiment beside other load is one");
        let mut host = evidence(&(haltpoll() + zero));
        let busy = Why::TooBusy(TooBusy { others: 97, steal: 3 });
        host.not_done.push(NotDone::new(Step::Experiment, busy));
        let ruling = judge(&host).into_iter().find(|r| r.rule == "rule.haltpoll-guest").unwrap();
        let Answer::Yes(busy) = ruling.answer else { panic!("{ruling:?}") };
        assert_eq!(busy.plan, None);
        assert!(busy.remedy.starts_with("Not measured: this machine was too busy to measure (other processes 97 %"));
        assert!(busy.remedy.contains("To wake faster"), "what could be done is still said");
    }

    #[test]
    fn a_prediction_holds_at_any_hour() {
        let step = crate::plan::Step {
            knob: "idle.governor".into(),
            on: None,
            to: "menu".into(),
            path: "/x".into(),
            reason: "y".into(),
        };
        let finding = |cost: Cost| {
            let finding = Finding::new(&super::super::steal::Steal, Weight::Risk, Confidence::High, "x", cost);
            Finding { plan: Some(crate::plan::Plan::of([step.clone()])), ..finding }.yes()
        };
        let has_plan =
            |answer| matches!(offered(answer, Some("busy.")), Answer::Yes(finding) if finding.plan.is_some());
        assert!(has_plan(finding(Cost::predicted_ratio(0.3, "x"))));
        assert!(!has_plan(finding(Cost::unknown("x"))) && !has_plan(finding(Cost::measured_ns(1.0, "x"))));
    }

    #[test]
    fn a_fix_is_proposed_beside_other_load_and_not_on_cpus_that_were_awake() {
        assert_eq!((not_proposed(&run(0, 0.0)), not_proposed(&run(0, 0.4))), (None, None));
        let grade =
            Some(Graded { grade: Grade::Refused, because: vec![Flaw::Unstable { ratio: 1.4, p_value: 0.001 }] });
        let refused = ExperimentRun { grade, ..run(0, 0.0) };
        assert!(not_proposed(&refused).unwrap().starts_with("No setting is proposed on this run: current settings"));
        assert_eq!(confidence(&refused, &effect()), Confidence::Low);
        assert_eq!(not_asleep(&run(0, 0.0), &effect()), None);
        let mut awake = run(0, 0.0);
        awake.blocks.iter_mut().filter_map(|b| b.woken.as_mut()).for_each(|w| w.n = 450);
        assert!(not_asleep(&awake, &effect()).unwrap().ends_with("before 2 % of the wake-ups"));
        let lifted = Effect { arm: "lifted".into(), ..effect() };
        assert_eq!(not_asleep(&awake, &lifted), None, "that one is about limits");
        awake.blocks.iter_mut().for_each(|b| b.woken = None);
        assert_eq!(not_asleep(&awake, &effect()), None, "nobody counted");
    }
}

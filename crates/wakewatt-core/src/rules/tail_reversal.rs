//! Does not sleeping help the median and hurt the tail?
//!
//! Seen in guests (with cyclictest: median 17us against 29us, p99.9 610us against 276us): a virtual CPU that spins uses
//! up its share, and the host takes it away at the wrong moment. Only the experiment can tell: it compares the effects
//! on the same arm at the median and at p99 or p99.9. An effect counts when its interval excludes 1.
//! "No" is a claim of its own: the 99th percentile of what the primary metric is the median of was declared with it, and is
//! shown not to be worse (`samples::tail`). What the rounds or the samples do not allow to show is not told.

use super::{Answer, Cost, Finding, Rule, Weight, Where, measured};
use crate::evidence::Evidence;
use crate::samples::compared::Compared;
use crate::samples::experiment::{Effect, ExperimentRun, Verdict};
use crate::samples::stated::Stated;
use crate::samples::tail::{TailAnswer, tail_of};
use crate::units::three_digits;
use wakewatt_words::{say, word};

pub(super) struct TailReversal;

impl Rule for TailReversal {
    fn id(&self) -> &'static str {
        "rule.tail-reversal"
    }
    fn question(&self) -> &'static str {
        word!("does not sleeping help the median and hurt the tail?")
    }
    fn applies(&self) -> &'static [Where] {
        &[Where::Sleep]
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let Some(run) = evidence.idle_experiment() else {
            return Answer::cannot_tell(
                word!("only the idle experiment can tell, and it did not run"),
                word!("wakewatt doctor as root"),
            );
        };
        let Some((median, tail)) = reversed(run) else { return unreversed(run) };
        let spinning = if tail.compared() == Compared::LimitsLifted {
            word!("The machine as found").to_string()
        } else {
            say!("Arm \"{}\"", tail.arm)
        };
        let range = |e: &Effect| {
            let ratio = run.stated_ratio(e).say(three_digits);
            say!("{ratio} ({} to {})", three_digits(e.ratio_low), three_digits(e.ratio_high))
        };
        let title = say!(
            "{spinning} has the better {} (found over arm {}) and the worse {} ({})",
            median.metric,
            range(median),
            tail.metric,
            range(tail)
        );
        let longer = if tail.difference < 0.0 { tail.inverted() } else { tail.clone() };
        let longer = run.stated_difference(&longer);
        let text = match longer {
            Stated::Open => word!("the tail is longer").to_string(),
            _ => say!("the tail is {} longer", longer.say(|ns| format!("{}us", three_digits(ns / 1e3)))),
        };
        let cost = Cost::stated_ns(longer, text);
        Finding::new(self, Weight::Risk, measured::confidence(run, tail), title, cost)
            .on(say!("experiment, seed {}", run.seed), say!("{} rounds", tail.n_pairs))
            .remedy(
                word!(
                    "Do not poll to lower a median if it is the tail that hurts. In a guest, ask for a CPU of its own \
                    or for halt polling on the host; on bare metal, allow the shallowest sleeping state instead of \
                    none."
                ),
                word!("The median stays where it is."),
                word!("wakewatt measure wakeup before and after, and read p99 and p99.9, not the median"),
            )
            .yes()
    }
}

/// Median and tail of one quantity under one arm that go opposite ways. With limits lifted the machine as found is the one that spins.
fn reversed(run: &ExperimentRun) -> Option<(&Effect, &Effect)> {
    run.effects.iter().find_map(|tail| {
        let (what, _) = tail.metric.rsplit_once(".p99")?;
        let median = run.effects.iter().find(|e| e.arm == tail.arm && e.metric == format!("{what}.p50"))?;
        let wanted = match tail.compared() {
            Compared::LimitsLifted => (Verdict::Lower, Verdict::Higher),
            _ => (Verdict::Higher, Verdict::Lower),
        };
        ((median.verdict, tail.verdict) == wanted).then_some((median, tail))
    })
}

/// No tail is shown to be worse. That is "no" only where the tail that was declared is shown not to be.
fn unreversed(run: &ExperimentRun) -> Answer {
    let cannot =
        |why: String| Answer::cannot_tell(why, word!("run wakewatt doctor with its default duration, at a quiet hour"));
    let Some((primary, tail)) = run.metrics.first().and_then(|m| Some((&m.id, tail_of(&m.id)?))) else {
        return cannot(word!("the experiment has no tail metric").into());
    };
    let medians = || run.effects.iter().filter(|e| e.metric == *primary);
    let mut held = Vec::new();
    for median in medians() {
        let is_lifted = median.compared() == Compared::LimitsLifted;
        let helped = if is_lifted { Verdict::Lower } else { Verdict::Higher };
        if median.verdict == Verdict::Undecided {
            return cannot(say!("with arm \"{}\" not even the median is decided", median.arm));
        }
        if median.verdict != helped {
            continue;
        }
        let test = run.tails.iter().find(|t| t.arm == median.arm && !is_lifted);
        let effect = run.effects.iter().find(|e| e.metric == tail && e.arm == median.arm);
        let is_fine = |e: &Effect| e.verdict == helped || e.verdict == Verdict::NoDifference;
        match (test, effect) {
            (Some(test), _) if test.answer == TailAnswer::NoHarm => held.push(format!("\"{}\"", median.arm)),
            (Some(test), _) => return cannot(say!("{tail} with arm \"{}\": {}", median.arm, test.why_not())),
            (None, Some(effect)) if is_fine(effect) => held.push(format!("\"{}\"", median.arm)),
            (None, Some(_)) => return cannot(say!("{tail} with arm \"{}\" is undecided", median.arm)),
            (None, None) => return cannot(say!("no block had a value of {tail}")),
        }
    }
    match &held[..] {
        [] if medians().next().is_none() => cannot(word!("the experiment compared nothing").into()),
        [] => Answer::no(word!("no arm made the median better, so nothing is bought with the tail")),
        arms => Answer::no(say!("{tail} is shown to be no worse where the median is better (arm {})", arms.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, line};
    use super::*;
    use crate::samples::Samples;
    use crate::samples::experiment::Metric;
    use crate::samples::tail::TailTest;

    fn effect(metric: &str, verdict: Verdict, ratio: f64) -> Effect {
        Effect {
            covers: crate::covers::Covers::Run,
            metric: metric.into(),
            baseline: "default".into(),
            arm: "poll".into(),
            ratio,
            ratio_low: ratio * 0.9,
            ratio_high: ratio * 1.1,
            difference: (ratio - 1.0) * 1e5,
            difference_low: 0.0,
            difference_high: 0.0,
            confidence: None,
            p_value: 0.01,
            at_look: None,
            n_pairs: 8,
            verdict,
        }
    }

    fn run(what: &str, effects: Vec<Effect>) -> ExperimentRun {
        let metrics = ["p50", "p99"].map(|q| Metric::latency(format!("{what}.{q}"), q)).to_vec();
        ExperimentRun { effects, metrics, seed: 1, ..ExperimentRun::default() }
    }

    fn host(what: &str, effects: Vec<Effect>) -> Evidence {
        Evidence::of(Samples { experiment: Some(run(what, effects)), ..Samples::default() })
    }

    #[test]
    fn better_median_and_worse_tail() {
        let what = "wakeup.timer";
        let median = || effect("wakeup.timer.p50", Verdict::Higher, 1.7);
        let said = line(&TailReversal, &host(what, vec![median(), effect("wakeup.timer.p999", Verdict::Lower, 0.5)]));
        assert!(said.starts_with("yes risk measured"), "{said}");
        let both = host(what, vec![median(), effect("wakeup.timer.p99", Verdict::Higher, 1.5)]);
        assert!(line(&TailReversal, &both).starts_with("no"));
        assert!(line(&TailReversal, &host(what, vec![median()])).starts_with("cannot tell"));
        let lifted = |metric, verdict, ratio| Effect { arm: "lifted".into(), ..effect(metric, verdict, ratio) };
        let found = host("w", vec![lifted("w.p50", Verdict::Lower, 0.5), lifted("w.p99", Verdict::Higher, 2.0)]);
        assert!(
            line(&TailReversal, &found).starts_with("yes risk measured: the machine as found has the better w.p50")
        );
        assert!(ask(&TailReversal, "").starts_with("cannot tell"));
    }

    #[test]
    fn a_tail_that_could_not_be_shown_is_not_called_harmless() {
        let with = |answer, n_pairs| {
            let mut run =
                run("w", vec![effect("w.p50", Verdict::Higher, 1.7), effect("w.p99", Verdict::Undecided, 1.0)]);
            run.tails.push(TailTest {
                metric: "w.p99".into(),
                baseline: "default".into(),
                arm: "poll".into(),
                margin_ratio: 1.05,
                no_harm_p: 0.02,
                level: 0.0078,
                n_pairs,
                n_needed: 7,
                answer,
            });
            line(&TailReversal, &Evidence::of(Samples { experiment: Some(run), ..Samples::default() }))
        };
        assert!(
            with(TailAnswer::CannotTell, 6).contains("cannot tell: w.p99 with arm \"poll\": 6 rounds cannot show it")
        );
        assert!(with(TailAnswer::CannotTell, 8).contains("neither to stay within 5 % nor to get worse"));
        assert!(with(TailAnswer::NoHarm, 8).starts_with("no: w.p99 is shown to be no worse"));
        let open = line(&TailReversal, &host("w", vec![effect("w.p50", Verdict::Undecided, 1.1)]));
        assert!(open.starts_with("cannot tell: with arm \"poll\" not even the median is decided"), "{open}");
        let same = line(&TailReversal, &host("w", vec![effect("w.p50", Verdict::NoDifference, 1.0)]));
        assert!(same.starts_with("no: no arm made the median better"), "{same}");
    }
}

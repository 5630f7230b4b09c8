//! Does not sleeping help the median and hurt the tail?
//!
//! Seen in guests (with cyclictest: median 17us against 29us, p99.9 610us against 276us): a virtual CPU that spins uses
//! up its share, and the host takes it away at the wrong moment. Only the experiment can tell: it compares the effects
//! on the same arm at the median and at p99 or p99.9. An effect counts when its interval excludes 1.

use super::{Answer, Confidence, Cost, Finding, Rule, Weight};
use crate::evidence::Evidence;
use crate::samples::compared::Compared;
use crate::samples::experiment::{Effect, Verdict};
use crate::samples::stated::Stated;
use crate::units::three_digits;

pub(super) struct TailReversal;

impl Rule for TailReversal {
    fn id(&self) -> &'static str {
        "rule.tail-reversal"
    }
    fn question(&self) -> &'static str {
        "does not sleeping help the median and hurt the tail?"
    }
    fn check(&self, evidence: &Evidence) -> Answer {
        let Some(run) = evidence.idle_experiment() else {
            return Answer::cannot_tell(
                "only the idle experiment can tell, and it did not run",
                "wakewatt doctor as root",
            );
        };
        let is_tail = |e: &Effect| e.metric.contains(".p99");
        if !run.effects.iter().any(is_tail) {
            return Answer::cannot_tell(
                "the experiment has no tail metric",
                "wakewatt doctor with its default duration",
            );
        }
        // Same quantity, same arm, opposite verdicts. With limits lifted the machine as found is the one that spins.
        let median_of = |tail: &Effect| {
            let what = tail.metric.rsplit_once(".p99").map_or("", |(front, _)| front).to_string();
            run.effects.iter().find(|e| e.arm == tail.arm && e.metric == format!("{what}.p50"))
        };
        let reversed = run.effects.iter().filter(|e| is_tail(e)).find_map(|tail| {
            let median = median_of(tail)?;
            let wanted = if tail.compared() == Compared::LimitsLifted {
                (Verdict::Lower, Verdict::Higher)
            } else {
                (Verdict::Higher, Verdict::Lower)
            };
            ((median.verdict, tail.verdict) == wanted).then_some((median, tail))
        });
        let Some((median, tail)) = reversed else {
            return Answer::no("no tail got worse where the median got better, as far as the experiment can resolve");
        };
        let spinning = if tail.compared() == Compared::LimitsLifted {
            "The machine as found".to_string()
        } else {
            format!("Arm \"{}\"", tail.arm)
        };
        let range = |e: &Effect| {
            let ratio = run.stated_ratio(e).say(three_digits);
            format!("{ratio} ({} to {})", three_digits(e.ratio_low), three_digits(e.ratio_high))
        };
        let title = format!(
            "{spinning} has the better {} (found over arm {}) and the worse {} ({})",
            median.metric,
            range(median),
            tail.metric,
            range(tail)
        );
        let longer = if tail.difference < 0.0 { tail.inverted() } else { tail.clone() };
        let longer = run.stated_difference(&longer);
        let text = match longer {
            Stated::Open => "the tail is longer".to_string(),
            _ => format!("the tail is {} longer", longer.say(|ns| format!("{}us", three_digits(ns / 1e3)))),
        };
        let cost = Cost::stated_ns(longer, text);
        Finding::new(self, Weight::Risk, Confidence::High, title, cost)
            .on(format!("experiment, seed {}", run.seed), format!("{} rounds", tail.n_pairs))
            .remedy(
                "Do not poll to lower a median if it is the tail that hurts. In a guest, ask for a CPU of its own \
                    or for halt polling on the host; on metal, allow the shallowest sleeping state instead of \
                    none.",
                "The median stays where it is.",
                "wakewatt measure wakeup before and after, and read p99 and p99.9, not the median",
            )
            .yes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ask, line};
    use super::*;
    use crate::samples::Samples;
    use crate::samples::ended::Ended;
    use crate::samples::experiment::ExperimentRun;

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

    fn host(effects: Vec<Effect>) -> Evidence {
        let run = ExperimentRun {
            arms: Vec::new(),
            metrics: Vec::new(),
            blocks: Vec::new(),
            effects,
            carry_over: vec![],
            pooled: Vec::new(),
            seed: 1,
            warmup_ns: 0,
            ended: Ended::default(),
            before: Vec::new(),
            after: Vec::new(),
        };
        Evidence::of(Samples { experiment: Some(run), ..Samples::default() })
    }

    #[test]
    fn better_median_and_worse_tail() {
        let median = || effect("wakeup.timer.p50", Verdict::Higher, 1.7);
        let said = line(&TailReversal, &host(vec![median(), effect("wakeup.timer.p999", Verdict::Lower, 0.5)]));
        assert!(said.starts_with("yes risk measured"), "{said}");
        let both = host(vec![median(), effect("wakeup.timer.p99", Verdict::Higher, 1.5)]);
        assert!(line(&TailReversal, &both).starts_with("no"));
        assert!(line(&TailReversal, &host(vec![median()])).starts_with("cannot tell"));
        let lifted = |metric, verdict, ratio| Effect { arm: "lifted".into(), ..effect(metric, verdict, ratio) };
        let found = host(vec![lifted("w.p50", Verdict::Lower, 0.5), lifted("w.p99", Verdict::Higher, 2.0)]);
        assert!(
            line(&TailReversal, &found).starts_with("yes risk measured: the machine as found has the better w.p50")
        );
        assert!(ask(&TailReversal, "").starts_with("cannot tell"));
    }
}

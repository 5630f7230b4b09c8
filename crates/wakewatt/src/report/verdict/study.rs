//! The verdict of an experiment over settings: its own sentences, one per arm, as the experiment's plan allows them.
//!
//! With many arms the head of the page has the two that matter most, and says where the others are: the arm that improves
//! the primary metric most, and how many could not be told from the baseline. Nothing is said here that the comparisons,
//! adjusted for their number, do not allow.

use super::super::words::plural;
use super::{Kind, Verdict};
use wakewatt_core::samples::experiment::{Better, ExperimentRun, Verdict as Word};
use wakewatt_core::samples::study::{Comparison, Conclusions};
use wakewatt_words::{say, word};

/// So many arms are told in full.
const N_TOLD: usize = 3;

/// The verdict of it, with the warnings of its run.
pub(super) fn of(run: &ExperimentRun, conclusions: &Conclusions, warnings: Vec<String>) -> Verdict {
    let primary = run.metrics.first();
    let comparisons = || conclusions.comparisons.iter().filter(|c| primary.is_some_and(|m| m.id == c.effect.metric));
    let better = primary.map_or(Better::Lower, |m| m.better);
    let is_shown = |c: &&Comparison| matches!(c.effect.verdict, Word::Higher | Word::Lower);
    let is_same = |c: &Comparison| c.effect.verdict == Word::NoDifference;
    let kind = match () {
        () if comparisons().any(|c| is_shown(&c)) => Kind::Shown,
        () if comparisons().count() > 0 && comparisons().all(is_same) => Kind::NoDifference,
        () => Kind::Undecided,
    };
    let sentence = match &conclusions.sentences[..] {
        [] => say!("Undecided: the experiment ended ({}) before anything could be compared.", run.ended),
        few if few.len() <= N_TOLD => few.join(" "),
        many => {
            // How many times better than the baseline.
            let gain = |c: &&Comparison| match better {
                Better::Lower => c.effect.ratio,
                Better::Higher => c.effect.inverted().ratio,
            };
            let best =
                comparisons().filter(is_shown).max_by(|a, b| gain(a).total_cmp(&gain(b))).filter(|c| gain(c) > 1.0);
            let told = best.and_then(|c| conclusions.sentence_on(run, &c.effect.arm));
            let n_shown = comparisons().filter(is_shown).count();
            let head = told.unwrap_or(word!("No arm is shown to be better than the baseline."));
            say!(
                "{head} Of {} other arms {n_shown} are shown to differ in the primary metric; all stand below.",
                many.len()
            )
        }
    };
    Verdict { kind, sentence, how_sure: how_sure(run, conclusions), busy: None, warnings }
}

fn how_sure(run: &ExperimentRun, conclusions: &Conclusions) -> String {
    let n_rounds = run.n_rounds();
    let n_bad = run.n_rejected();
    let sure = (1.0 - conclusions.level) * 100.0;
    let intervals = match conclusions.is_final {
        true => say!(
            "Each interval holds at {sure:.1} %, so that all declared looks together hold at 95 %, and covers this run"
        ),
        false => word!("It ended between two looks, so no interval can be relied on").into(),
    };
    say!(
        "{intervals}; arms in an order drawn at random in each of {}; {n_bad} of {} measurements discarded; it ended because {}.",
        plural(n_rounds, "round"),
        run.blocks.len(),
        run.ended
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::experiment::{Arm, Effect, Metric};

    fn comparison(arm: &str, verdict: Word, ratio: f64) -> Comparison {
        let effect = Effect {
            covers: wakewatt_core::covers::Covers::Run,
            metric: "m".into(),
            baseline: "found".into(),
            arm: arm.into(),
            ratio,
            ratio_low: ratio,
            ratio_high: ratio,
            difference: 0.0,
            difference_low: 0.0,
            difference_high: 0.0,
            confidence: None,
            p_value: 0.01,
            at_look: None,
            n_pairs: 8,
            verdict,
        };
        Comparison {
            effect,
            equivalence_p: 1.0,
            no_harm_p: 1.0,
            is_no_harm: false,
            detectable_ratio: None,
            any_time: None,
        }
    }

    fn said(comparisons: Vec<Comparison>) -> Verdict {
        let arm = |id: &str| Arm { id: id.into(), title: id.into(), settings: vec![] };
        let arms = std::iter::once("found").chain(comparisons.iter().map(|c| c.effect.arm.as_str())).map(arm).collect();
        let run = ExperimentRun { arms, metrics: vec![Metric::latency("m", "m")], ..ExperimentRun::default() };
        let sentences = comparisons.iter().map(|c| format!("{} does so.", c.effect.arm)).collect();
        let conclusions =
            Conclusions { sentences, comparisons, level: 0.0078, is_final: true, ..Conclusions::default() };
        of(&run, &conclusions, vec![])
    }

    #[test]
    fn few_arms_are_told_and_of_many_the_best() {
        let few = said(vec![comparison("a", Word::NoDifference, 1.0), comparison("b", Word::Undecided, 1.1)]);
        assert_eq!((few.kind, few.sentence.as_str()), (Kind::Undecided, "a does so. b does so."));
        assert!(few.how_sure.starts_with("Each interval holds at 99.2 %"), "{}", few.how_sure);
        let arms =
            [("a", Word::Higher, 1.5), ("b", Word::Higher, 2.0), ("c", Word::Lower, 0.5), ("d", Word::Undecided, 3.0)];
        let many = said(arms.map(|(arm, verdict, ratio)| comparison(arm, verdict, ratio)).to_vec());
        assert_eq!(many.kind, Kind::Shown);
        assert!(many.sentence.starts_with("b does so. Of 4 other arms 3 are shown"), "{}", many.sentence);
        let worse = ["a", "b", "c", "d"].map(|arm| comparison(arm, Word::Lower, 0.5)).to_vec();
        assert!(said(worse).sentence.starts_with("No arm is shown to be better"));
        assert_eq!(said(vec![comparison("a", Word::NoDifference, 1.0)]).kind, Kind::NoDifference);
        assert!(said(vec![]).sentence.starts_with("Undecided"));
    }
}

//! Comparisons of one run that are judged together, and the claim on the tail that stands beside the primary one.
//!
//! Three families, whose members are declared by their metrics' ids (`Role`). Where each arm is judged by itself, the primary claims
//! are tested one after the other in their declared order, each at the whole level (`stats::sequence`). Else the arms are adjusted
//! by Holm, as the tail and everything secondary always are: polling may well spoil a tail that shallow sleep leaves alone, so
//! neither may wait for the other. "No difference" in several arms is a family of its own, by Holm as well.

use super::{Design, Rule};
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::experiment::{Arm, Effect, ExperimentRun, Verdict};
use wakewatt_core::samples::roles::Role;
use wakewatt_core::samples::tail::{TailAnswer, TailTest};
use wakewatt_core::stats::equivalence::Equivalence;
use wakewatt_core::stats::paired::{Judge, NEGLIGIBLE_RATIO, holm, log_ratios};
use wakewatt_core::stats::sequence::{Claim, in_sequence};

/// Gives all effects p-values that know of their family, and the verdicts that these leave; `judge` by arm.
pub(super) fn adjust(run: &ExperimentRun, rule: Rule, effects: &mut [Effect], judge: &dyn Fn(&str, &str) -> Judge) {
    for role in [Role::Primary, Role::Tail, Role::Secondary] {
        let mut family: Vec<&mut Effect> = effects.iter_mut().filter(|e| run.role(&e.metric) == role).collect();
        if (rule, role) == (Rule::EachArm, Role::Primary) {
            one_after_the_other(run, &mut family, judge);
            continue;
        }
        let adjusted = holm(&family.iter().map(|e| e.p_value).collect::<Vec<_>>());
        family.iter_mut().zip(adjusted).for_each(|(effect, p_value)| {
            let pairs = run.pairs_of(effect);
            judge(&effect.metric, &effect.arm).adjust(effect, p_value, &pairs);
        });
    }
}

fn one_after_the_other(run: &ExperimentRun, family: &mut [&mut Effect], judge: &dyn Fn(&str, &str) -> Judge) {
    family.arrange_by_key(|e| e.compared());
    let level = |e: &Effect| judge(&e.metric, &e.arm).level;
    let claims: Vec<Claim> = family.iter().map(|e| Claim { p_value: e.p_value, level: level(e) }).collect();
    let same = |e: &Effect| Equivalence::of(&log_ratios(&run.pairs(0, &e.arm)), NEGLIGIBLE_RATIO).p_value();
    let same = holm(&family.iter().map(|e| same(e)).collect::<Vec<_>>());
    for ((effect, place), same_p) in family.iter_mut().zip(in_sequence(&claims)).zip(same) {
        let judge = judge(&effect.metric, &effect.arm);
        let (alone, pairs) = (effect.p_value, run.pairs_of(effect));
        judge.adjust(effect, place.p_value, &pairs);
        // Hundreds of rounds prove differences that nobody would change a setting for.
        let is_within = effect.ratio_low >= 1.0 / NEGLIGIBLE_RATIO && effect.ratio_high <= NEGLIGIBLE_RATIO;
        if is_within && same_p <= judge.level && effect.verdict != Verdict::Undecided {
            effect.verdict = Verdict::NoDifference;
        }
        let is_left = match effect.verdict {
            Verdict::Higher | Verdict::Lower => place.is_proven,
            Verdict::NoDifference => same_p <= judge.level,
            Verdict::Undecided => false,
        };
        if !is_left {
            judge.leave_open(effect, alone, &pairs);
        }
    }
}

/// Does each arm leave the tail of the primary metric as it is? In the order of the arms; `judge` by arm.
pub(super) fn tails(
    run: &ExperimentRun,
    design: &Design,
    effects: &[Effect],
    judge: &dyn Fn(&str, &str) -> Judge,
) -> Vec<TailTest> {
    let (Some(at), Some((baseline, others))) = (run.tail_at(), run.arms.split_first()) else { return Vec::new() };
    let margin_ratio = match design.rule {
        Rule::EachArm => NEGLIGIBLE_RATIO,
        Rule::AllArms { margin_ratio } => margin_ratio,
    };
    let series: Vec<Vec<f64>> = others.iter().map(|arm| log_ratios(&run.pairs(at, &arm.id))).collect();
    // Worse is longer: then baseline over arm lies below 1.
    let adjusted = holm(&series.iter().map(|d| Equivalence::of(d, margin_ratio).above_p).collect::<Vec<_>>());
    let metric = &run.metrics[at].id;
    let test = |((arm, d), no_harm_p): ((&Arm, &Vec<f64>), f64)| {
        let level = judge(metric, &arm.id).level;
        let effect = effects.iter().find(|e| e.metric == *metric && e.arm == arm.id);
        let answer = match () {
            () if !run.ended.is_final() => TailAnswer::CannotTell,
            () if effect.is_some_and(|e| e.verdict == Verdict::Lower) => TailAnswer::Harm,
            () if no_harm_p <= level => TailAnswer::NoHarm,
            () => TailAnswer::CannotTell,
        };
        TailTest {
            metric: metric.clone(),
            baseline: baseline.id.clone(),
            arm: arm.id.clone(),
            margin_ratio,
            no_harm_p,
            level,
            n_pairs: d.len(),
            n_needed: least_one_sided(others.len(), level),
            answer,
        }
    };
    others.iter().zip(&series).zip(adjusted).map(test).collect()
}

/// The fewest rounds in which a one-sided test, adjusted for so many, can reach a level.
fn least_one_sided(n_tests: usize, level: f64) -> usize {
    (1..64).find(|n| n_tests as f64 * 0.5f64.powi(*n) <= level).map_or(64, |n| n.unsigned_abs() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::ended::Ended;
    use wakewatt_core::samples::experiment::{Block, Metric};
    use wakewatt_core::stats::sequential::Looks;

    /// Blocks of arms with a median and a tail each; the tails of all arms scatter by so much from round to round.
    fn run(n_rounds: usize, arms: &[(&str, f64, f64)], scatter: f64) -> ExperimentRun {
        let blocks = (0..n_rounds).flat_map(|round| {
            arms.iter().enumerate().map(move |(at, (arm, p50, p99))| {
                // A different jitter in each block, without drawing it.
                let jitter = 1.0 + 0.001 * ((round * 7 + at * 3) % 5) as f64;
                let wide = 1.0 + scatter * ((round * 5 + at * 4) % 7) as f64;
                Block {
                    round,
                    arm: (*arm).into(),
                    values: vec![Some(p50 * jitter), Some(p99 * jitter * wide)],
                    ..Block::default()
                }
            })
        });
        ExperimentRun {
            arms: arms.iter().map(|(id, ..)| Arm { id: (*id).into(), title: (*id).into(), settings: vec![] }).collect(),
            metrics: vec![Metric::latency("w.p50", "median"), Metric::latency("w.p99", "p99")],
            blocks: blocks.collect(),
            ended: Ended::enough("narrow"),
            ..ExperimentRun::default()
        }
    }

    fn judged(run: &ExperimentRun) -> (Vec<(String, Verdict)>, Vec<TailTest>) {
        let design = Design::new(Looks::standard(), 1);
        let effects = super::super::judging::effects(run, &design);
        let tails = super::super::judging::tails(run, &design, &effects);
        let primary = effects.iter().filter(|e| e.metric == "w.p50").map(|e| (e.arm.clone(), e.verdict));
        (primary.collect(), tails)
    }

    #[test]
    fn an_arm_after_one_that_shows_nothing_is_not_called() {
        let verdict = |poll_ns, shallow_ns| {
            let (mut found, _) =
                judged(&run(8, &[("found", 30e3, 90e3), ("shallow", shallow_ns, 90e3), ("poll", poll_ns, 90e3)], 0.0));
            found.sort_by(|a, b| a.0.cmp(&b.0));
            found.into_iter().map(|(_, verdict)| verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdict(6e3, 20e3), [Verdict::Higher, Verdict::Higher], "poll, then shallow");
        assert_eq!(
            verdict(30e3, 20e3),
            [Verdict::NoDifference, Verdict::Undecided],
            "poll comes first and shows nothing"
        );
        assert_eq!(verdict(6e3, 30e3), [Verdict::Higher, Verdict::NoDifference]);
        assert_eq!(verdict(60e3, 20e3), [Verdict::Lower, Verdict::Higher], "worse is shown as well");
        assert_eq!(verdict(29.4e3, 20e3), [Verdict::NoDifference, Verdict::Higher], "2 %, proven, do not matter");
    }

    #[test]
    fn a_tail_is_harmless_harmed_or_not_told() {
        let tail = |n_rounds, p99, scatter| {
            judged(&run(n_rounds, &[("found", 30e3, 90e3), ("poll", 6e3, p99)], scatter)).1.remove(0)
        };
        assert_eq!(tail(8, 80e3, 0.0).answer, TailAnswer::NoHarm);
        assert_eq!(tail(8, 200e3, 0.0).answer, TailAnswer::Harm);
        let noisy = tail(8, 90e3, 0.2);
        assert_eq!((noisy.answer, noisy.n_pairs), (TailAnswer::CannotTell, 8));
        let early = tail(6, 80e3, 0.0);
        assert_eq!((early.answer, early.n_needed), (TailAnswer::CannotTell, 7), "six rounds cannot");
        // At the first look of the standard looks it can be told of two arms, as declared.
        let both = judged(&run(8, &[("found", 30e3, 90e3), ("shallow", 20e3, 80e3), ("poll", 6e3, 80e3)], 0.0)).1;
        assert!(both.iter().all(|t| t.answer == TailAnswer::NoHarm && t.n_needed == 8), "{both:?}");
        let one = judged(&run(8, &[("found", 30e3, 90e3), ("shallow", 20e3, 80e3), ("poll", 6e3, 200e3)], 0.2)).1;
        assert_eq!(one.iter().map(|t| t.arm.as_str()).collect::<Vec<_>>(), ["shallow", "poll"]);
        assert_ne!(one[1].answer, TailAnswer::NoHarm);
        let mut cut = run(8, &[("found", 30e3, 90e3), ("poll", 6e3, 80e3)], 0.0);
        cut.ended = wakewatt_core::samples::ended::How::Interrupted.into();
        assert_eq!(judged(&cut).1[0].answer, TailAnswer::CannotTell, "between two looks nothing is told");
    }
}

//! When an experiment has enough, and what its blocks say: pairs by round, handed to the statistics of core.

use super::{Design, Rule, together};
use std::collections::{BTreeMap, BTreeSet};
use wakewatt_core::arrange::Arrange as _;
use wakewatt_core::samples::experiment::{Arm, AtLook, Block, Effect, ExperimentRun};
use wakewatt_core::samples::tail::TailTest;
use wakewatt_core::stats::family::{ByRound, Family};
use wakewatt_core::stats::paired::{Judge, log_ratios};
use wakewatt_core::stats::sequential::{Decision, Look, StopReason};
use wakewatt_core::stats::{looks, signed_rank};

pub use wakewatt_core::stats::family::Standing;

/// Log ratios of the primary metric, per other arm and by round. Rounds of which there is no block are left out, because a file
/// may number its rounds as it likes, and so are whole rounds after the short ones, which measure other metrics.
pub fn by_round(run: &ExperimentRun) -> ByRound {
    let Some((baseline, others)) = run.arms.split_first() else { return Vec::new() };
    let values = |arm: &str| -> BTreeMap<usize, f64> { run.values(arm, 0).collect() };
    let of_baseline = values(&baseline.id);
    let is_of_primary = |b: &&Block| b.rejected.is_some() || b.values.first().copied().flatten().is_some();
    let rounds: BTreeSet<usize> = run.blocks.iter().filter(is_of_primary).map(|b| b.round).collect();
    let of_arm = |arm: &Arm| {
        let of_arm = values(&arm.id);
        rounds.iter().map(|round| Some((of_baseline.get(round)? / of_arm.get(round)?).ln())).collect()
    };
    others.iter().map(of_arm).collect()
}

/// Where a run stands between its looks, when all arms are judged together.
pub fn standing(run: &ExperimentRun, family: &Family) -> Standing {
    let rounds = by_round(run);
    let n_rounds = rounds.first().map_or(0, Vec::len);
    family.standing(&rounds, n_rounds)
}

/// Should it stop after so many whole rounds? Then why.
pub(super) fn enough(run: &ExperimentRun, design: &Design, n_rounds: usize, spent_ns: u64) -> Option<String> {
    match design.rule {
        Rule::EachArm => each_arm(run, design, n_rounds, spent_ns),
        Rule::AllArms { margin_ratio } => all_arms(run, design, margin_ratio, n_rounds, spent_ns),
    }
}

fn all_arms(run: &ExperimentRun, design: &Design, margin_ratio: f64, n_rounds: usize, spent_ns: u64) -> Option<String> {
    // What a slow meter makes equal must not end the run: within a margin of nothing lies nothing.
    let is_by_meter = run.metrics.first().is_some_and(|primary| run.is_equal_by_meter(&primary.id));
    let margin_ratio = if is_by_meter { 1.0 } else { margin_ratio };
    let family = Family::new(design.looks.clone(), margin_ratio);
    let arms = by_round(run);
    let n_of_primary = arms.first().map_or(0, Vec::len);
    let standing = family.standing(&arms, n_of_primary);
    // Where more rounds cost seconds only, a proven effect is measured on until its size is known.
    let is_vague = |n: usize| {
        let proven = arms.iter().map(|arm| arm.iter().flatten().copied().collect::<Vec<f64>>());
        design.short.is_some() && proven.into_iter().any(|arm| design.looks.is_vague(n, &arm))
    };
    let later = design.looks.all().iter().find(|look| look.n_rounds > standing.n_counted);
    let next = match (family.decide(&arms, n_of_primary), later) {
        (Decision::Stop(StopReason::EffectProven), Some(later)) if is_vague(standing.n_counted) => later.n_rounds,
        (Decision::Stop(reason), _) => return Some(format!("{} after {n_rounds} rounds", reason.for_all())),
        (Decision::Continue(next), _) => next,
    };
    if n_rounds >= 2 * design.looks.max_rounds() {
        return Some(format!("{n_rounds} rounds ran and too few of their blocks counted"));
    }
    let per_round_ns = spent_ns / n_rounds.max(1) as u64;
    let to_next_ns = per_round_ns * next.saturating_sub(standing.n_counted) as u64;
    over_budget(design, n_rounds, spent_ns, per_round_ns, to_next_ns, standing.look.is_some())
}

/// Rounds that end between two looks would be judged at a level that is spent already: stop at the look.
fn over_budget(
    design: &Design,
    n_rounds: usize,
    spent_ns: u64,
    per_round_ns: u64,
    to_next_ns: u64,
    is_a_look: bool,
) -> Option<String> {
    if is_a_look && spent_ns.saturating_add(to_next_ns) > design.budget_ns {
        Some(format!("the time budget does not reach the next look, {n_rounds} rounds ran"))
    } else if spent_ns.saturating_add(per_round_ns) > design.budget_ns {
        Some(format!("the time budget was spent after {n_rounds} rounds"))
    } else {
        None
    }
}

/// Looks are taken at numbers of rounds in which every arm counted, each once: a round that did not count adds nothing to look
/// at, and an arm that lost more than half of its measurements holds nobody back.
fn each_arm(run: &ExperimentRun, design: &Design, n_rounds: usize, spent_ns: u64) -> Option<String> {
    let arms: Vec<Vec<f64>> = run.arms.iter().skip(1).map(|arm| log_ratios(&run.pairs(0, &arm.id))).collect();
    let standing = standing_of(run, design);
    let n = standing.n_counted;
    let next = design.looks.all().iter().find(|l| l.n_rounds > n).map(|l| l.n_rounds);
    let decided = |arm: &&Vec<f64>| match (standing.look, design.short.is_some()) {
        (None, _) => next.map_or(Decision::Stop(StopReason::LastLook), Decision::Continue),
        (Some(_), true) => design.looks.decide_size(n, arm),
        (Some(_), false) => design.looks.decide(n, arm),
    };
    let decisions: Vec<Decision> = arms.iter().filter(|arm| arm.len() >= n).map(|arm| decided(&arm)).collect();
    let reached = decisions.iter().find_map(|d| if let Decision::Continue(next) = d { Some(*next) } else { None });
    let per_round_ns = spent_ns / (n_rounds.max(1) as u64);
    if n_rounds >= 2 * design.looks.max_rounds() {
        return Some(format!("{n_rounds} rounds ran and too few of their blocks counted"));
    }
    match (reached, decisions.first()) {
        (None, Some(Decision::Stop(reason))) => Some(format!("{} after {n_rounds} rounds", reason.text())),
        (reached, _) => {
            let to_next_ns = per_round_ns * reached.map_or(1, |next| next.saturating_sub(n)) as u64;
            over_budget(design, n_rounds, spent_ns, per_round_ns, to_next_ns, standing.look.is_some())
        }
    }
}

/// Where a run stands, whatever its rule.
fn standing_of(run: &ExperimentRun, design: &Design) -> Standing {
    standing(run, &Family::new(design.looks.clone(), 1.0))
}

/// The level at which a run is judged: that of the look by which it was decided to stop, so that what is called proven then
/// is called so for ever; between two looks, that of the next one, which has not been spent yet.
pub fn level(run: &ExperimentRun, design: &Design) -> f64 {
    let standing = standing_of(run, design);
    let looks = design.looks.all();
    let next = || looks.iter().find(|l| l.n_rounds > standing.n_counted).or(looks.last()).copied();
    standing.look.or_else(next).map_or(0.05, |l| l.level)
}

/// How a metric is judged: by the look that judges the run, or, where it was measured after the primary one was decided, once,
/// at the whole 5 %.
fn judges(run: &ExperimentRun, design: &Design) -> impl Fn(&str, &str) -> Judge {
    let all = Judge { level: level(run, design) };
    let after: Vec<&str> = after_primary(run);
    move |metric: &str, _: &str| if after.contains(&metric) { Judge::default() } else { all }
}

/// Metrics that no measurement shares with the primary one.
fn after_primary(run: &ExperimentRun) -> Vec<&str> {
    let has = |at: usize| move |values: &Vec<Option<f64>>| values.get(at).copied().flatten().is_some();
    let values = || run.blocks.iter().map(|b| &b.values);
    let is_after = |at: usize| values().any(has(at)) && !values().any(|v| has(0)(v) && has(at)(v));
    let metrics = run.metrics.iter().enumerate().skip(1);
    metrics.filter(|(at, _)| is_after(*at)).map(|(_, metric)| metric.id.as_str()).collect()
}

/// Does each arm leave the tail of the primary metric as it is?
pub(super) fn tails(run: &ExperimentRun, design: &Design, effects: &[Effect]) -> Vec<TailTest> {
    together::tails(run, design, effects, &judges(run, design))
}

pub(super) fn effects(run: &ExperimentRun, design: &Design) -> Vec<Effect> {
    let judge_of = judges(run, design);
    let mut effects = Vec::new();
    for arm in run.arms.iter().skip(1) {
        let one = |metric: usize| {
            let name = &run.metrics.get(metric)?.id;
            judge_of(name, &arm.id).effect(name, &run.arms[0].id, &arm.id, &run.pairs(metric, &arm.id))
        };
        effects.extend((0..run.metrics.len()).filter_map(one));
    }
    together::adjust(run, design.rule, &mut effects, &judge_of);
    if run.ended.is_final() {
        effects.iter_mut().for_each(|effect| know_of_looks(run, design, effect));
    }
    effects.iter_mut().for_each(|effect| run.know_of_clocks(effect));
    effects.iter_mut().for_each(|effect| run.allow_for_meter(effect));
    // JSON has no infinity; an interval that says nothing says so with its verdict.
    for effect in &mut effects {
        for end in [&mut effect.ratio_high, &mut effect.difference_high] {
            *end = end.min(1e18);
        }
        effect.difference_low = effect.difference_low.max(-1e18);
    }
    // Primary metric first, in the order of the metrics.
    effects.arrange_by_key(|e| run.metrics.iter().position(|m| m.id == e.metric));
    effects
}

/// Stopping early flatters the primary comparison; what it showed by itself stays beside it. Rounds of short measurements
/// continue after the first proof until the size is known: then the first proof counts, and what all rounds together leave of
/// it, adjusted for the other arms, is the least that is said.
fn know_of_looks(run: &ExperimentRun, design: &Design, effect: &mut Effect) {
    let is_primary = run.metrics.first().is_some_and(|m| m.id == effect.metric);
    let n_rounds = standing_of(run, design).n_counted;
    let taken: Vec<Look> = design.looks.all().iter().filter(|l| l.n_rounds <= n_rounds).copied().collect();
    if !is_primary || taken.len() < 2 {
        return;
    }
    let plain = AtLook { ratio: effect.ratio, p_value: effect.p_value };
    let ratios = log_ratios(&run.pairs(0, &effect.arm));
    let p_at = |look: &Look| signed_rank::p_value(&ratios[..look.n_rounds.min(ratios.len())]);
    let is_proven = design.short.is_some() && taken.last().is_some_and(|last| plain.p_value <= last.level);
    let first = taken.iter().position(|look| p_at(look) <= look.level).filter(|_| is_proven);
    effect.p_value = match first {
        Some(at) => looks::stage_wise_p(p_at(&taken[at]), &taken[..=at]).max(plain.p_value),
        None => looks::stage_wise_p(plain.p_value, &taken),
    };
    // Where several arms must be decided none of them ends the run by its own luck.
    if run.arms.len() == 2 && design.short.is_none() {
        let unbiased = looks::unbiased(&ratios, &taken).exp();
        effect.ratio = unbiased.clamp(effect.ratio_low, effect.ratio_high);
    }
    effect.at_look = Some(plain);
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::samples::Window;
    use wakewatt_core::samples::experiment::{Block, Metric, Verdict};
    use wakewatt_core::samples::rejection::Rejection;
    use wakewatt_core::stats::sequential::Looks;

    fn block(round: usize, arm: &str, value: f64, is_bad: bool) -> Block {
        Block {
            round,
            arm: arm.into(),
            window: Window::default(),
            values: vec![Some(value)],
            rejected: is_bad.then(|| Rejection::Said("spoilt".into())),
            ..Block::default()
        }
    }

    #[test]
    fn a_round_of_an_absurd_number_is_one_round() {
        let arm = |id: &str| Arm { id: id.into(), title: id.into(), settings: vec![] };
        let rounds = [0, 1, 7_000_000_000, usize::MAX];
        let run = ExperimentRun {
            arms: ["found", "fast"].map(arm).to_vec(),
            metrics: vec![Metric::latency("p50", "median")],
            blocks: rounds
                .iter()
                .flat_map(|r| [block(*r, "found", 2.0, false), block(*r, "fast", 1.0, false)])
                .collect(),
            ..ExperimentRun::default()
        };
        assert_eq!(by_round(&run), vec![vec![Some(2f64.ln()); 4]]);
        let family = Family::new(Looks::spread(&[4, 8], 1).unwrap().0, 1.05);
        assert_eq!(standing(&run, &family).n_counted, 4);
        assert_eq!(family.standing(&by_round(&run), usize::MAX).n_counted, 4, "a claim of many rounds is none");
        let design = Design { rule: Rule::AllArms { margin_ratio: 1.05 }, ..Design::new(family.looks.clone(), 5) };
        assert_eq!(effects(&run, &design)[0].n_pairs, 4);
        assert!(enough(&run, &design, usize::MAX, 1).is_some());
    }

    /// Short rounds of three arms; `lost` are rounds in which the first other arm's measurement did not count.
    fn short(n_rounds: usize, poll: f64, lost: &[usize]) -> ExperimentRun {
        let arm = |id: &str| Arm { id: id.into(), title: id.into(), settings: vec![] };
        let round = |r: usize| {
            let jitter = 1.0 + 0.001 * (r % 5) as f64;
            [
                block(r, "found", 30.0 * jitter, false),
                block(r, "poll", poll, lost.contains(&r)),
                block(r, "shallow", 20.0, false),
            ]
        };
        ExperimentRun {
            arms: ["found", "poll", "shallow"].map(arm).to_vec(),
            metrics: vec![Metric::latency("p50", "median"), Metric::latency("p99", "99th")],
            blocks: (0..n_rounds).flat_map(round).collect(),
            ..ExperimentRun::default()
        }
    }

    fn designs() -> [Design; 2] {
        let each = Design::new(Looks::short(), 5);
        [Design { rule: Rule::AllArms { margin_ratio: 1.05 }, ..each.clone() }, each]
    }

    #[test]
    fn one_discarded_measurement_puts_a_look_off_by_a_round() {
        for design in designs() {
            let enough = |n, lost: &[usize]| super::enough(&short(n, 5.0, lost), &design, n, 1);
            assert_eq!(enough(23, &[]), None);
            assert!(enough(24, &[]).is_some());
            assert_eq!(enough(24, &[10]), None, "{:?}", design.rule);
            assert!(enough(25, &[10]).unwrap().contains("25 rounds"), "{:?}", design.rule);
            let run = short(25, 5.0, &[10]);
            assert_eq!(level(&run, &design), 0.010, "{:?}: the look that ended it", design.rule);
        }
    }

    #[test]
    fn whole_rounds_afterwards_do_not_change_the_level() {
        for design in designs() {
            let mut run = short(24, 5.0, &[]);
            for r in 24..32 {
                for arm in ["found", "poll", "shallow"] {
                    run.blocks.push(Block { values: vec![None, Some(1.0)], ..block(r, arm, 0.0, false) });
                }
            }
            assert_eq!(level(&run, &design), 0.010, "{:?}", design.rule);
        }
    }

    #[test]
    fn what_the_stop_calls_proven_the_verdicts_do_too_when_an_arm_is_often_rejected() {
        let arm = |id: &str| Arm { id: id.into(), title: id.into(), settings: vec![] };
        let rounds = (0..12).flat_map(|round| {
            let value = 1000.0 + round as f64;
            // The second arm is lost in most rounds, so it holds nobody back.
            let rare = block(round, "rare", value, round > 4);
            [block(round, "found", value, false), block(round, "fast", value / 2.0, false), rare]
        });
        let run = ExperimentRun {
            arms: ["found", "fast", "rare"].map(arm).to_vec(),
            metrics: vec![Metric::latency("p50", "median")],
            blocks: rounds.collect(),
            seed: 5,
            ..ExperimentRun::default()
        };
        let (looks, _) = Looks::spread(&[8, 12], 2).unwrap();
        let design = Design { rule: Rule::AllArms { margin_ratio: 1.05 }, ..Design::new(looks.clone(), 5) };
        let family = Family::new(looks.clone(), 1.05);
        let look = standing(&run, &family).look.unwrap();
        assert_eq!(
            (look.n_rounds, level(&run, &design)),
            (12, look.level),
            "the look that is due, not the rarest arm's"
        );
        let series: Vec<Vec<f64>> = by_round(&run).iter().map(|arm| arm.iter().flatten().copied().collect()).collect();
        let called: Vec<bool> = effects(&run, &design)
            .iter()
            .map(|e| e.verdict == Verdict::Higher || e.verdict == Verdict::Lower)
            .collect();
        assert_eq!(called, family.differing(&series, look.level));
        assert!(called[0]);
    }
}

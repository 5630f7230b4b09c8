//! From blocks to what may be said: comparisons with their families, "no harm", the host's own noise, rejected blocks.
//!
//! Three families are adjusted, each by Holm: all arms in the primary metric, which the looks decide by; the tail of that metric,
//! which must not get worse; and everything else.
//! A run that was cut short between its looks says nothing final: it may go on, and every peek would count as a look.

use crate::experiment::{AGAIN, Design, Rule, level};
use crate::plan::Plan;
use wakewatt_core::covers::Covers;
use wakewatt_core::samples::disturbance::Disturbance;
use wakewatt_core::samples::experiment::{Better, Effect, ExperimentRun, Verdict};
use wakewatt_core::samples::grade::Grade;
use wakewatt_core::samples::roles::Role;
use wakewatt_core::samples::study::{
    AaNoise, AnyTime, Comparison, Conclusions, DeclaredLook, Rejected, Skipped, Study, StudyHost,
};
use wakewatt_core::samples::watts_by::WattsBy;
use wakewatt_core::stats::any_time;
use wakewatt_core::stats::detectable::{detectable_ratio, spread};
use wakewatt_core::stats::equivalence::Equivalence;
use wakewatt_core::stats::paired::{Judge, holm, log_ratios};
use wakewatt_core::stats::sequential::least_rounds;

/// Above this share an arm's rejected blocks are told apart.
const MANY_REJECTED: f64 = 0.25;

/// What a study is made of, beside its run.
pub struct StudySubject<'a> {
    pub plan: &'a Plan,
    /// Where it ran.
    pub host: StudyHost,
    /// What did not take part.
    pub skipped: Vec<Skipped>,
    /// What is known already.
    pub remarks: Vec<String>,
    /// Where it is kept.
    pub run_dir: Option<String>,
}

/// Makes it; the sentences are for whoever talks to people.
pub fn study(about: StudySubject<'_>, design: &Design, mut run: ExperimentRun) -> Study {
    let margin_ratio = match design.rule {
        Rule::AllArms { margin_ratio } => margin_ratio,
        Rule::EachArm => about.plan.margin_ratio,
    };
    let is_final = run.ended.is_final();
    let level = level(&run, design);
    let mut comparisons = Vec::new();
    for role in [Role::Primary, Role::Tail, Role::Secondary] {
        comparisons.append(&mut family(&run, level, margin_ratio, role));
    }
    if !is_final {
        comparisons.iter_mut().for_each(|c| (c.effect.verdict, c.is_no_harm) = (Verdict::Undecided, false));
    }
    run.effects = comparisons.iter().map(|c| c.effect.clone()).collect();
    let noise = noise(&run);
    let mut remarks = about.remarks;
    remarks.extend(hour(&run));
    remarks.extend(what_to_know(&run, design, level, &comparisons, &noise));
    let conclusions = Conclusions {
        name: about.plan.name.clone(),
        question: about.plan.question.clone(),
        host: about.host,
        looks: design.looks.all().iter().map(|l| DeclaredLook { n_rounds: l.n_rounds, level: l.level }).collect(),
        margin_ratio,
        level,
        is_final,
        sentences: Vec::new(),
        comparisons,
        noise,
        skipped: about.skipped,
        rejected: rejected(&run),
        remarks,
        run_dir: about.run_dir,
    };
    Study { conclusions, run, loads: Vec::new() }
}

fn family(run: &ExperimentRun, level: f64, margin_ratio: f64, role: Role) -> Vec<Comparison> {
    let effects: Vec<&Effect> = run.effects.iter().filter(|e| run.role(&e.metric) == role).collect();
    let tests: Vec<(Vec<f64>, Equivalence, Better)> = effects
        .iter()
        .map(|effect| {
            let metric = run.metrics.iter().position(|m| m.id == effect.metric);
            let d = metric.map(|m| log_ratios(&run.pairs(m, &effect.arm))).unwrap_or_default();
            let equivalence = Equivalence::of(&d, margin_ratio);
            (d, equivalence, metric.map_or(Better::Lower, |m| run.metrics[m].better))
        })
        .collect();
    let same = holm(&tests.iter().map(|(_, e, _)| e.p_value()).collect::<Vec<_>>());
    // Worse is a higher value where lower is better: then baseline over arm lies below 1.
    let harm = |(_, e, better): &(Vec<f64>, Equivalence, Better)| match better {
        Better::Lower => e.above_p,
        Better::Higher => e.below_p,
    };
    let harm = holm(&tests.iter().map(harm).collect::<Vec<_>>());
    let one = |at: usize, effect: &Effect| {
        let mut effect = effect.clone();
        let may_be_same = !run.is_equal_by_meter(&effect.metric);
        // Of the primary metric the plan has declared what does not matter, however sure it is.
        let is_within = effect.ratio_low >= 1.0 / margin_ratio && effect.ratio_high <= margin_ratio;
        let is_small = role == Role::Primary && is_within && may_be_same && same[at] <= level;
        if is_small || !matches!(effect.verdict, Verdict::Higher | Verdict::Lower) {
            let is_same = may_be_same && same[at] <= level;
            effect.verdict = if is_same { Verdict::NoDifference } else { Verdict::Undecided };
        }
        let d = &tests[at].0;
        Comparison {
            effect,
            equivalence_p: same[at],
            no_harm_p: harm[at],
            is_no_harm: may_be_same && harm[at] <= level,
            any_time: (role == Role::Primary).then(|| at_any_time(d, tests.len())).flatten(),
            detectable_ratio: spread(d).and_then(|s| detectable_ratio(s, d.len(), level, tests.len())),
        }
    };
    effects.iter().enumerate().map(|(at, effect)| one(at, effect)).collect()
}

/// What the surroundings leave of it.
fn hour(run: &ExperimentRun) -> Option<String> {
    run.primary().filter(|effect| effect.n_pairs > 0)?;
    let graded = run.graded();
    let what = match graded.grade {
        Grade::Clean => return None,
        Grade::Loaded => {
            "an effect of that hour: the direction stands, its size is that of a machine with others on it"
        }
        Grade::Refused => "sizes are refused, because what was measured is mostly not the settings' doing",
    };
    Some(format!("{what} ({})", graded.reasons()))
}

/// Arms are told apart together, so each has its share of the 5 %.
fn at_any_time(log_ratios: &[f64], n_arms: usize) -> Option<AnyTime> {
    let found = any_time::interval(log_ratios, 0.05 / n_arms.max(1) as f64);
    let is_closed = found.low.is_finite() && found.high.is_finite();
    is_closed.then(|| AnyTime { ratio_low: found.low.exp(), ratio_high: found.high.exp(), covers: Covers::Run })
}

/// The baseline against itself, where it was held twice.
pub fn noise(run: &ExperimentRun) -> Vec<AaNoise> {
    (0..run.metrics.len()).filter_map(|metric| against_itself(run, metric)).collect()
}

/// Does the baseline differ from itself in the primary metric, beyond what chance does once in a hundred runs? Then why no
/// verdict of the run can be trusted.
pub fn differs_from_itself(run: &ExperimentRun, noise: &[AaNoise]) -> Option<String> {
    let is_primary = |n: &&AaNoise| run.metrics.first().is_some_and(|m| m.id == n.metric);
    let primary = noise.iter().find(is_primary).filter(|n| n.n_pairs >= least_rounds(1, 0.05) && n.p_value <= 0.01)?;
    Some(format!(
        "the baseline differs from itself by a factor of {:.2} (p {}): something else than the settings moves the primary metric here, so trust no verdict of this run",
        primary.ratio,
        wakewatt_core::units::p_value(primary.p_value)
    ))
}

/// The baseline against itself in one metric.
fn against_itself(run: &ExperimentRun, metric: usize) -> Option<AaNoise> {
    let pairs = run.pairs(metric, AGAIN);
    let id = &run.metrics.get(metric)?.id;
    let effect = Judge::default().effect(id, &run.arms.first()?.id, AGAIN, &pairs)?;
    Some(AaNoise {
        covers: Covers::Run,
        metric: id.clone(),
        n_pairs: effect.n_pairs,
        ratio: effect.ratio,
        ratio_low: effect.ratio_low,
        ratio_high: effect.ratio_high.min(1e18),
        p_value: effect.p_value,
        // A difference of two blocks varies by the square root of 2 more than one block.
        block_noise_ratio: spread(&log_ratios(&pairs)).map(|s| (s / std::f64::consts::SQRT_2).exp() - 1.0),
    })
}

/// Rejected blocks by arm and reason, whatever figures the reason has.
fn rejected(run: &ExperimentRun) -> Vec<Rejected> {
    let mut all: Vec<Rejected> = Vec::new();
    for block in &run.blocks {
        let Some(why) = &block.rejected else { continue };
        match all.iter_mut().find(|r| r.arm == block.arm && r.why.is_like(why)) {
            Some(same) => same.n += 1,
            None => all.push(Rejected { arm: block.arm.clone(), why: why.clone(), n: 1 }),
        }
    }
    all
}

/// Too few rounds held the baseline twice to say anything? None where it is never held twice: that was declared.
pub fn few_baseline_pairs(n_pairs: usize, again_every: usize) -> Option<String> {
    let needed = least_rounds(1, 0.05);
    (again_every > 0 && n_pairs < needed).then(|| {
        let pairs = if n_pairs == 1 { "pair" } else { "pairs" };
        format!("only {n_pairs} baseline {pairs} ({needed} are needed): what this host calls a difference where there is none is not known")
    })
}

fn what_to_know(
    run: &ExperimentRun,
    design: &Design,
    level: f64,
    comparisons: &[Comparison],
    noise: &[AaNoise],
) -> Vec<String> {
    let mut remarks = Vec::new();
    remarks.extend(few_baseline_pairs(run.pairs(0, AGAIN).len(), design.again_every));
    // What five rounds or fewer find means nothing.
    let tested: Vec<&AaNoise> = noise.iter().filter(|n| n.n_pairs >= least_rounds(1, 0.05)).collect();
    let called = tested.iter().filter(|n| n.p_value <= 0.05 && !(n.ratio_low..=n.ratio_high).contains(&1.0)).count();
    remarks.extend(differs_from_itself(run, noise));
    if !tested.is_empty() {
        remarks.push(format!(
            "the baseline against itself: {called} of {} metrics are called different at 5 %, where {:.1} are expected by chance",
            tested.len(),
            tested.len() as f64 * 0.05
        ));
    }
    for arm in &run.arms {
        let blocks = || run.blocks.iter().filter(|b| b.arm == arm.id);
        let (n, n_bad) = (blocks().count(), blocks().filter(|b| b.rejected.is_some()).count());
        let n_all = run.blocks.iter().filter(|b| b.rejected.is_some()).count();
        let (others, others_bad) = (run.blocks.len().saturating_sub(n), n_all.saturating_sub(n_bad));
        // What strikes all arms alike is the host's noise, not the arm's doing.
        let is_own = n_bad * others > 2 * others_bad * n;
        if is_own && n_bad >= 2 && n_bad as f64 > MANY_REJECTED * n as f64 {
            remarks.push(format!(
                "{n_bad} of {n} blocks of {} did not count; if the setting itself causes that, what is left shows it too well",
                arm.id
            ));
        }
    }
    let n_secondary = comparisons.iter().filter(|c| run.role(&c.effect.metric) == Role::Secondary).count();
    let n_pairs = comparisons.first().map_or(0, |c| c.effect.n_pairs);
    let needed = least_rounds(n_secondary, level);
    if n_secondary > 0 && n_pairs > 0 && needed > n_pairs {
        remarks.push(format!(
            "{n_secondary} secondary comparisons are adjusted together, which {n_pairs} rounds cannot prove one of: {needed} are needed"
        ));
    }
    remarks.extend(run.watts.as_ref().and_then(WattsBy::remark));
    let is_step = |d: &&Disturbance| matches!(d, Disturbance::WallClockSet { .. });
    let mut steps: Vec<&Disturbance> = run.blocks.iter().flat_map(|b| &b.disturbances).filter(is_step).collect();
    steps.dedup();
    remarks.extend(steps.into_iter().map(ToString::to_string));
    if !run.is_restored() {
        let differ = run.before.iter().zip(&run.after).find(|(a, b)| a != b);
        let where_ = differ.map_or(String::new(), |(a, b)| format!(": {} was {} and is {}", a.0, a.1, b.1));
        remarks.push(format!("not everything reads as it did before{where_}"));
    }
    remarks
}

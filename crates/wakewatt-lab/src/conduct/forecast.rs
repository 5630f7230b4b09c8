//! What a plan would do on a machine: what would be written per arm, what is left out and why, how long it takes. Reads
//! only, so it works for a recorded host too.

use super::arms;
use crate::load::Phases;
use crate::load::calibrate::FEWEST;
use crate::plan::{Plan, PlanKind, PlanWorkload};
use crate::setting_arms::resolve_arms;
use crate::study::few_baseline_pairs;
use crate::workloads::declared::{self, expected_samples};
use serde::Serialize;
use wakewatt_core::samples::experiment::{Arm, Metric};
use wakewatt_core::samples::study::Skipped;
use wakewatt_core::samples::tail::{MIN_SAMPLES_OF_P99, tail_of};
use wakewatt_core::source::Source;
use wakewatt_core::stats::sequential::Looks;
use wakewatt_tune::knob::Host;

/// Entering or leaving an arm, when nothing is known of it: a few files, each written and read back.
const ENTER_NS: u64 = 100_000_000;
/// Switching and the warm-up of a short measurement.
const SWITCH_NS: u64 = 22_000_000;
/// Looking which meters work.
const METER_NS: u64 = 1_100_000_000;
/// Opening the shop: a store is filled, a server started.
const SHOP_NS: u64 = 2_000_000_000;
/// A file to read is made at so many bytes per second, on a slow disk.
const MADE_BYTES_PER_S: u64 = 200_000_000;

/// The document of a dry run.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DryRun {
    /// Name of the plan.
    pub name: String,
    /// The question the plan asks.
    pub question: String,
    /// What each arm would write; the first is the baseline.
    pub arms: Vec<Arm>,
    /// What is left out, and why.
    pub skipped: Vec<Skipped>,
    /// What to know of an arm: arm and note.
    pub notes: Vec<(String, String)>,
    /// What is compared, on a machine that has everything; the looks decide by the first.
    pub metrics: Vec<Metric>,
    /// Before the first block: meters, files, a rehearsal of every arm, calibration. Estimated.
    pub prepare_ns: u64,
    /// Rounds at which the numbers are looked at.
    pub looks: Vec<usize>,
    /// Time of one round.
    pub round_ns: u64,
    /// Time until each look, preparation included; the budget may end it before.
    pub looks_ns: Vec<u64>,
    /// The time budget, in nanoseconds.
    pub budget_ns: u64,
    /// What else to know.
    pub remarks: Vec<String>,
}

/// One block of a workload, as long as it says.
fn workload_ns(workload: &PlanWorkload, settle_ns: u64) -> u64 {
    let level_ns = settle_ns + workload.measure_ns + workload.measure_ns / 5;
    let measure_ns = workload.measure_ns;
    match &workload.kind {
        PlanKind::Steps { shares, .. } => level_ns.saturating_mul(shares.len() as u64),
        PlanKind::Shop { clients } => level_ns.saturating_mul(clients.len() as u64),
        PlanKind::Command { .. }
        | PlanKind::Alone
        | PlanKind::Wakeup { .. }
        | PlanKind::Network { .. }
        | PlanKind::Disk { .. } => settle_ns + measure_ns,
    }
}

/// One block of everything.
fn block_ns(plan: &Plan) -> u64 {
    let work_ns = plan.workloads.iter().map(|w| workload_ns(w, plan.settle_ns)).fold(0, u64::saturating_add);
    work_ns.saturating_add(ENTER_NS)
}

/// One round of so many arms, with the baseline again where the plan has it.
pub(super) fn round_ns(plan: &Plan, n_arms: usize) -> u64 {
    let block_ns = block_ns(plan);
    let again_ns = if plan.again_every > 0 { block_ns / plan.again_every as u64 } else { 0 };
    block_ns.saturating_mul(n_arms as u64).saturating_add(again_ns)
}

/// One round of short measurements.
fn short_round_ns(plan: &Plan, n_arms: usize, measure_ns: u64) -> u64 {
    let one_ns = measure_ns.saturating_add(SWITCH_NS);
    let again_ns = if plan.again_every > 0 { one_ns / plan.again_every as u64 } else { 0 };
    one_ns.saturating_mul(n_arms as u64).saturating_add(again_ns)
}

/// Before the first block, for one workload.
fn prepare_ns(workload: &PlanWorkload) -> u64 {
    match &workload.kind {
        PlanKind::Steps { .. } => {
            let once_ns = Phases::custom(workload.measure_ns).total_ns();
            once_ns.saturating_mul(FEWEST as u64)
        }
        PlanKind::Shop { .. } => SHOP_NS,
        PlanKind::Disk { path: None, size_bytes, .. } => {
            size_bytes.saturating_mul(1000).saturating_div(MADE_BYTES_PER_S).saturating_mul(1_000_000)
        }
        _ => 0,
    }
}

/// Do blocks of this workload have too few samples for the tail that stands beside the primary metric? Where their number is
/// known beforehand, which is where a pause is between them.
fn few_for_tail(plan: &Plan, workload: &PlanWorkload) -> Option<String> {
    let metrics = declared::metrics(plan).ok()?;
    let tail = tail_of(&metrics.first()?.id)?;
    let name = workload.name.as_ref().map_or(String::new(), |name| format!("{name}."));
    let n = expected_samples(&workload.kind, workload.measure_ns)?;
    let is_its_own = tail.starts_with(&format!("{name}{}.", workload.kind.word()));
    (is_its_own && n < MIN_SAMPLES_OF_P99).then(|| {
        let needed_ns = workload.measure_ns.saturating_mul(MIN_SAMPLES_OF_P99).div_ceil(n.max(1));
        format!(
            "a block has about {n} samples for {tail}, and {MIN_SAMPLES_OF_P99} are needed: whether an arm makes the tail worse \
             cannot be told; measure at least {} s",
            needed_ns.div_ceil(1_000_000_000)
        )
    })
}

/// What it would do. It writes nothing and starts nothing.
pub fn forecast(plan: &Plan, source: &dyn Source) -> DryRun {
    let (ready, skipped) = resolve_arms(&Host::read(source), &plan.arms);
    let mut remarks = Vec::new();
    if let Err(why) = arms::check(plan, &ready, &skipped, &mut remarks) {
        remarks.push(format!("it would be refused: {why}"));
    }
    let metrics = declared::metrics(plan).unwrap_or_else(|why| {
        remarks.push(format!("it would be refused: {why}"));
        Vec::new()
    });
    let prepare_ns = plan.workloads.iter().map(prepare_ns).fold(METER_NS, u64::saturating_add);
    // Each arm is entered once in the rehearsal, and all is left after it.
    let prepare_ns = prepare_ns.saturating_add(ENTER_NS.saturating_mul(ready.len() as u64 + 1));
    let whole_ns = round_ns(plan, ready.len());
    let primary = metrics.first().map_or("", |metric| metric.id.as_str());
    let is_instant = ready.iter().all(|arm| arm.is_instant) && declared::is_short(plan, primary);
    let short_ns = plan.short_ns.filter(|_| is_instant);
    let round_ns = short_ns.map_or(whole_ns, |ns| short_round_ns(plan, ready.len(), ns));
    let looks = match Looks::spread(&plan.looks, ready.len().saturating_sub(1)) {
        Ok((looks, dropped)) => {
            if !dropped.is_empty() {
                remarks.push(format!("no look after {dropped:?} rounds: nothing could be proven so early"));
            }
            if let (Some(_), Some(first)) = (short_ns, looks.all().first()) {
                let whole_s = whole_ns.saturating_mul(first.n_rounds as u64).div_ceil(1_000_000_000);
                remarks.push(format!(
                    "the primary metric is measured in rounds of short measurements; {} whole rounds for the others follow, \
                     {whole_s} s, as far as the budget reaches",
                    first.n_rounds
                ));
            }
            let looks = if short_ns.is_some() { Looks::short() } else { looks };
            looks.all().iter().map(|l| l.n_rounds).collect()
        }
        Err(why) => {
            remarks.push(format!("it would be refused: {why}"));
            Vec::new()
        }
    };
    let rounds_ns = |n: usize| round_ns.saturating_mul(n as u64);
    let looks_ns: Vec<u64> = looks.iter().map(|n| prepare_ns.saturating_add(rounds_ns(*n))).collect();
    if let Some(few) = looks.first().and_then(|n| few_baseline_pairs(n / plan.again_every.max(1), plan.again_every)) {
        remarks.push(format!("if it ends at its first look: {few}"));
    }
    if let Some(with_meter) = &plan.primary_with_meter {
        remarks.push(format!(
            "where a power meter works the looks decide by {with_meter} instead; blocks are \
             lengthened to one that averages, as far as the budget reaches"
        ));
    }
    remarks.extend(plan.workloads.iter().filter_map(|w| few_for_tail(plan, w)));
    // The budget is for the rounds.
    if looks.first().is_some_and(|first| rounds_ns(*first) > plan.budget_ns) {
        remarks.push(
            "the time budget ends before the first look, so nothing could be concluded: give more, or measure shorter"
                .into(),
        );
    }
    if plan.workloads.iter().any(|w| matches!(w.kind, PlanKind::Command { .. })) {
        remarks.push("how long the command runs is not known here, so the times are too short".into());
    }
    DryRun {
        name: plan.name.clone(),
        question: plan.question.clone(),
        notes: ready.iter().flat_map(|a| a.notes.iter().map(|n| (a.arm.id.clone(), n.clone()))).collect(),
        arms: ready.into_iter().map(|a| a.arm).collect(),
        skipped,
        metrics,
        prepare_ns,
        looks,
        round_ns,
        looks_ns,
        budget_ns: plan.budget_ns,
        remarks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn a_dry_run_names_the_arms_and_the_time() {
        let text_of = "format = 1\nname = \"x\"\nquestion = \"Q?\"\nsettle = \"1s\"\nmeasure = \"9s\"\nlooks = [8]\nagain_every = 2\nbudget = \"1min\"\n[[arm]]\nname = \"found\"\n[[arm]]\nname = \"poll\"\nmax_latency = \"poll\"\n[[arm]]\nname = \"fast\"\nset = [\"freq.governor=performance\"]\n[[workload]]\nkind = \"wakeup\"\n";
        let instant = text_of;
        let whole = text_of.replace("again_every", "interleave = \"off\"\nagain_every");
        let (text_of, instant) = (whole.as_str(), instant.to_string());
        let plan = crate::plan::parse(text_of, &|_| Err("none".into())).unwrap();
        let tree = Tree::from_text(
            "//- /sys/devices/system/cpu/online\n0-1\n//- /sys/devices/system/cpu/present\n0-1\n//- /dev/cpu_dma_latency\nx\n",
        );
        let dry = forecast(&plan, &tree);
        assert!(dry.skipped.iter().any(|s| s.what == "arm fast" && s.why.contains("freq.governor")));
        assert!(dry.remarks.iter().any(|r| r.contains("before the first look")), "{dry:?}");
        // Two arms of 1 s and 9 s and the time to set them, and half a block of the baseline again; the rehearsal before.
        assert_eq!((dry.arms.len(), dry.round_ns, dry.prepare_ns), (2, 25_250_000_000, 1_400_000_000));
        assert_eq!(dry.looks_ns, [203_400_000_000]);
        // As it is, both are a limit: rounds of two short measurements, and of another one in every second round.
        let short = forecast(&crate::plan::parse(&instant, &|_| Err("none".into())).unwrap(), &tree);
        assert_eq!((short.round_ns, short.looks[0]), (430_000_000, 24));
        assert!(short.remarks.iter().any(|r| r.contains("8 whole rounds for the others follow")), "{short:?}");
        assert_eq!(dry.metrics[0].id, "wakeup.eventfd.p50");
        assert!(dry.remarks.iter().any(|r| r.contains("only 4 baseline pairs")), "{dry:?}");
        assert!(!dry.remarks.iter().any(|r| r.contains("samples for")), "{:?}", dry.remarks);
        let short = text_of.replace("measure = \"9s\"", "measure = \"1s\"");
        let short = forecast(&crate::plan::parse(&short, &|_| Err("none".into())).unwrap(), &tree);
        let few = short.remarks.iter().find(|r| r.contains("for wakeup.eventfd.p99, and 1000 are needed"));
        assert!(few.is_some_and(|r| r.ends_with("measure at least 2 s")), "{:?}", short.remarks);
        let wrong = text_of.replace("settle =", "primary = \"wakeup.eventfd.p51\"\nsettle =");
        let wrong = forecast(&crate::plan::parse(&wrong, &|_| Err("none".into())).unwrap(), &tree);
        assert!(wrong.remarks.iter().any(|r| r.contains("did you mean wakeup.eventfd.p50?")), "{wrong:?}");
    }
}

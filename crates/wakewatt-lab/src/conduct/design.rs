//! From a plan and the number of arms that are left to the design of the run: its looks, its rule, its limits.

use crate::experiment::{Design, Rule, Short};
use crate::meters::Meters;
use crate::plan::Plan;
use crate::refusal::Refusal;
use wakewatt_core::stats::sequential::Looks;

/// It; a look so early that nothing could be proven in it is dropped, and that is said.
pub(super) fn design(
    plan: &Plan,
    n_others: usize,
    (seed, meters): (u64, &Meters),
    remarks: &mut Vec<String>,
) -> Result<Design, Refusal> {
    let (looks, dropped) = Looks::spread(&plan.looks, n_others).map_err(Refusal::Asked)?;
    if !dropped.is_empty() {
        let dropped: Vec<String> = dropped.iter().map(ToString::to_string).collect();
        remarks.push(format!(
            "no look after {} rounds: among {n_others} arms nothing could be proven so early",
            dropped.join(", ")
        ));
    }
    let counted_ns = plan.workloads.iter().map(|w| w.measure_ns).min().unwrap_or(plan.measure_ns);
    // The tests of the metrics measured afterwards need as many rounds as the first look.
    let n_whole_rounds = looks.all().first().map_or(0, |look| look.n_rounds);
    let short = |measure_ns| Short { measure_ns, n_whole_rounds, looks: Looks::short() };
    Ok(Design {
        warmup_ns: plan.settle_ns,
        budget_ns: plan.budget_ns,
        rule: Rule::AllArms { margin_ratio: plan.margin_ratio },
        short: plan.short_ns.map(short),
        again_every: plan.again_every,
        limits: plan.limits,
        watts: meters.watts_by(plan.settle_ns, counted_ns),
        ..Design::new(looks, seed)
    })
}

//! All workloads of a plan that can be had here as one, with its primary metric first and watts where a meter works.

use super::arms::{all, strict};
use super::watts::Watts;
use super::workload::{WorkloadContext, parts};
use crate::experiment::Workload;
use crate::refusal::Refusal;
use crate::workloads::{Composite, WattMeter};
use wakewatt_core::samples::study::Skipped;
use wakewatt_host::disk::target::Target;

/// It; what is left out is added to `skipped`, what else to know to `remarks`.
pub(super) fn workload<'a>(
    context: &WorkloadContext<'a>,
    targets: &'a [Option<Result<Target, String>>],
    skipped: &mut Vec<Skipped>,
    remarks: &mut Vec<String>,
) -> Result<Composite<'a>, Refusal> {
    let plan = context.plan;
    let (parts, left_out) = parts(context, targets);
    strict(plan, &left_out)?;
    let is_all_there = left_out.is_empty();
    skipped.extend(left_out);
    if parts.is_empty() {
        return Err(Refusal::Unavailable(format!("nothing can be measured here: {}", all(skipped))));
    }
    let meters = &context.meters;
    let meter = meters.has_any().then(|| Box::new(Watts::by(meters)) as Box<dyn WattMeter>);
    // A primary metric of a workload that is left out cannot be had; another one is declared before the first block.
    let wanted = plan.primary_where(meters.has_any());
    let primary = wanted.filter(|id| {
        is_all_there || parts.iter().any(|p| p.workload.metrics().iter().any(|m| id.ends_with(m.id.as_str())))
    });
    let workload = Composite::new(parts, meter, plan.settle_ns, primary).map_err(Refusal::Asked)?;
    if let (Some(wanted), None) = (wanted, primary) {
        let first = workload.metrics().first().map_or(String::new(), |m| m.id.clone());
        remarks.push(format!("the plan's primary metric {wanted} cannot be had here; {first} takes its place"));
    }
    Ok(workload)
}

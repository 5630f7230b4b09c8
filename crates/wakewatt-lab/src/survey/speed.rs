//! How long CPUs take from idle to full speed.

use super::{Found, MAX_CPUS, allowed_cpus, each};
use crate::bench::{SpeedSpec, speed};
use crate::context::Lab;
use crate::pick;
use crate::refusal::Refusal;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::samples::speed::SpeedSample;
use wakewatt_core::units::{Cpu, show_ns};

/// Shorter shows no ramp, longer only costs time.
const WORK_NS: std::ops::RangeInclusive<u64> = 1_000_000..=1_000_000_000;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct SpeedPlan {
    /// These CPUs; the last that is allowed when none.
    pub cpus: Option<CpuSet>,
    /// Work after each idle time.
    pub work_ns: u64,
    /// Wide vector work too.
    pub has_vector: bool,
}

/// Measures them, CPU by CPU.
pub fn speeds(lab: Lab<'_>, plan: &SpeedPlan) -> Result<Found<SpeedSample>, Refusal> {
    let allowed = allowed_cpus()?;
    let asked = plan.cpus.clone().unwrap_or_else(|| pick::sleeper(&allowed).into_iter().collect());
    let cpus = pick::spread(&asked, MAX_CPUS);
    let mut found = Found::default();
    if asked.len() > cpus.len() {
        let why = format!("only CPUs {cpus} of {asked} were measured; name fewer with --cpu");
        found.not_done.push(NotDone::new(Step::Unnamed, why));
    }
    if !WORK_NS.contains(&plan.work_ns) {
        return Err(Refusal::Asked(format!("--work {}: choose from 1ms to 1s", show_ns(plan.work_ns))));
    }
    let cpus: Vec<Cpu> = cpus.iter().collect();
    each(
        lab,
        &cpus,
        |cpu| format!("idle to full speed on CPU {cpu}"),
        |cpu| {
            let spec = SpeedSpec { work_ns: plan.work_ns, has_vector: plan.has_vector, ..SpeedSpec::on(*cpu) };
            found.add(|| format!("speed of CPU {cpu}"), speed(&spec, lab.stop));
        },
    );
    Ok(found)
}

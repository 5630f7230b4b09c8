//! What a model of this machine is fitted to, and held against: the cost of leaving each idle state, and loads as found and without sleep.
//!
//! Two runs under one seed: every idle state by itself (`idle_cost`), then the shipped plan `fit` (`conduct`), its arms in random order. Where the
//! states cannot be measured one by one, the reason is kept and the loads run all the same.

use crate::conduct::{self, Conduct, Conducted};
use crate::context::Lab;
use crate::experiment::Progress;
use crate::idle_cost::{self, IdleCostPlan};
use crate::meters::Meters;
use crate::pick;
use crate::plan;
use crate::refusal::Refusal;
use crate::survey::allowed_cpus;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::not_done::NotDone;
use wakewatt_core::samples::state_cost::StateCosts;
use wakewatt_core::samples::wakeup::WakeKind;

/// Name of the plan.
const PLAN: &str = "fit";

/// What was measured.
pub struct FitRuns {
    /// What leaving each state costs; none where it could not be measured.
    pub costs: Option<StateCosts>,
    /// The loads.
    pub conducted: Conducted,
    /// What could not be measured, and why.
    pub not_done: Vec<NotDone>,
}

/// Measures.
pub fn measure(lab: Lab<'_>, seed: u64, meters: Meters, watch: Progress<'_>) -> Result<FitRuns, Refusal> {
    let mut not_done = Vec::new();
    let costs = costs(lab, seed, &mut not_done)
        .map_err(|why| not_done.push(NotDone::named("measure idle", why.to_string())))
        .ok();
    let no_profile = |name: &str| Err(format!("profile {name}: this plan has none"));
    let text = plan::shipped(PLAN).map_err(Refusal::Unavailable)?;
    let plan = plan::parse(text, &no_profile).map_err(Refusal::Unavailable)?;
    let conducted = conduct::run(Conduct { plan: &plan, seed, meters, keeping: None, watch }, lab)?;
    Ok(FitRuns { costs, conducted, not_done })
}

/// By a timer, as a planned request wakes its CPU.
fn costs(lab: Lab<'_>, seed: u64, not_done: &mut Vec<NotDone>) -> Result<StateCosts, Refusal> {
    let allowed = allowed_cpus()?;
    let cpu = pick::sleeper(&allowed).ok_or_else(|| Refusal::Unavailable("this process may use no CPU".into()))?;
    let facts = Snapshot::read(lab.src, |topic| ["idle", "topology", "qos"].contains(&topic));
    let kinds = vec![WakeKind::Timer];
    let plan =
        IdleCostPlan { cpu, allowed, states: Vec::new(), kinds, gap_ns: None, duration_ns: None, seed, meters: None };
    idle_cost::measure(&plan, &facts, lab, not_done)
}

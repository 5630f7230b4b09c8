//! What a model of this machine is fitted to, and held against: the cost of leaving each idle state, and loads as found and without sleep.
//!
//! Under one seed: every idle state by itself (`idle_cost`), after sleeps of several lengths, since a longer sleep may end in a deeper state of the
//! package or of a host; then the shipped plan `fit` (`conduct`), its arms in random order; then the states once more, because what leaving them costs
//! drifts within a quarter of an hour, on a guest by half. Where the states cannot be measured one by one, the reason is
//! kept and the loads run all the same.

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
/// Rounds of the loads, when nothing is said: the fewest that give a level an interval.
pub const ROUNDS: u32 = 6;
/// Lengths of sleep beside the usual one: those of requests at some thousands a second down to some fifty.
const OTHER_GAPS_NS: [u64; 5] = [300_000, 1_000_000, 4_000_000, 12_000_000, 25_000_000];
/// Wake-ups of each, and time at least and at most.
const N_OTHER: u64 = 300;
const LEAST_NS: u64 = 1_500_000_000;
const MOST_NS: u64 = 4_500_000_000;

/// What was measured.
pub struct FitRuns {
    /// What leaving each state costs, by the length of the sleep, the usual one first, before the loads and after them; empty where it could not be measured.
    pub costs: Vec<StateCosts>,
    /// The loads.
    pub conducted: Conducted,
    /// What could not be measured, and why.
    pub not_done: Vec<NotDone>,
}

/// Measures, with so many rounds of the loads.
pub fn measure(
    lab: Lab<'_>,
    n_rounds: u32,
    seed: u64,
    meters: Meters,
    watch: Progress<'_>,
) -> Result<FitRuns, Refusal> {
    let mut not_done = Vec::new();
    let mut all = costs(lab, seed, &mut not_done).unwrap_or_else(|why| {
        not_done.push(NotDone::named("measure idle", why.to_string()));
        Vec::new()
    });
    let no_profile = |name: &str| Err(format!("profile {name}: this plan has none"));
    let text = plan::shipped(PLAN).map_err(Refusal::Unavailable)?;
    let mut plan = plan::parse(text, &no_profile).map_err(Refusal::Unavailable)?;
    // The budget is for as many as are usual.
    plan.budget_ns = plan.budget_ns.saturating_mul(u64::from(n_rounds.div_ceil(ROUNDS)));
    plan.looks = vec![n_rounds as usize];
    let conducted = conduct::run(Conduct { plan: &plan, seed, meters, keeping: None, watch }, lab)?;
    if !all.is_empty() && !conducted.is_interrupted {
        // What cannot be measured was said before.
        let mut again = Vec::new();
        all.extend(costs(lab, seed, &mut again).unwrap_or_default());
        not_done.extend(again.into_iter().filter(|line| !not_done.contains(line)).collect::<Vec<_>>());
    }
    Ok(FitRuns { costs: all, conducted, not_done })
}

/// By a timer, as a planned request wakes its CPU, and by another CPU, as an answer does; an interruption ends it with what there is.
fn costs(lab: Lab<'_>, seed: u64, not_done: &mut Vec<NotDone>) -> Result<Vec<StateCosts>, Refusal> {
    let allowed = allowed_cpus()?;
    let cpu = pick::sleeper(&allowed).ok_or_else(|| Refusal::Unavailable("this process may use no CPU".into()))?;
    let facts = Snapshot::read(lab.src, |topic| ["idle", "topology", "qos"].contains(&topic));
    let plan = |gap_ns: Option<u64>| IdleCostPlan {
        cpu,
        allowed: allowed.clone(),
        states: Vec::new(),
        kinds: vec![WakeKind::Timer, WakeKind::Futex],
        has_first_work: true,
        gap_ns,
        duration_ns: gap_ns.map(|gap_ns| (N_OTHER * gap_ns).clamp(LEAST_NS, MOST_NS)),
        seed,
        meters: None,
    };
    let mut all = vec![idle_cost::measure(&plan(None), &facts, lab, not_done)?];
    let usual_ns = all[0].gap_ns;
    for gap_ns in OTHER_GAPS_NS.into_iter().filter(|gap_ns| *gap_ns != usual_ns) {
        if lab.is_stopped() {
            break;
        }
        match idle_cost::measure(&plan(Some(gap_ns)), &facts, lab, not_done) {
            Ok(costs) => all.push(costs),
            // What was measured until then stands.
            Err(why) => {
                not_done.push(NotDone::named("measure idle, other lengths of sleep", why.to_string()));
                break;
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_plan_has_the_usual_rounds_and_room_for_them() {
        let plan = plan::parse(plan::shipped(PLAN).unwrap(), &|_: &str| Err(String::new())).unwrap();
        assert_eq!(plan.looks, [ROUNDS as usize]);
        // Two arms a round, each with all its levels.
        let n_levels = 6;
        let least_ns = u64::from(ROUNDS) * 2 * (plan.settle_ns + n_levels * plan.measure_ns);
        assert!(plan.budget_ns > 2 * least_ns, "{} {least_ns}", plan.budget_ns);
    }
}

//! `measure idle` and its short form in `doctor`: which states of one CPU are measured, from where, for how long; then
//! settings are turned through tune and put back.
//!
//! That needs root, and without it nothing else could tell the states apart, so there is no lesser measurement to fall back
//! to.

use crate::context::Lab;
use crate::meters::Meters;
use crate::pick;
use crate::refusal::Refusal;
use crate::state_arms::{StateArms, sets, table_of};
use crate::state_cost::{StateCostSpec, state_costs};
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::idle::TableRow;
use wakewatt_core::samples::not_done::NotDone;
use wakewatt_core::samples::state_cost::StateCosts;
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_core::units::Cpu;
use wakewatt_tune::begin::{BeginError, begin};
use wakewatt_tune::knobs::qos_global::{self, HoldError};

/// A pause this many times the longest target residency lets every state pay.
const GAP_TO_RESIDENCY: u64 = 3;
const MIN_GAP_NS: u64 = 1_000_000;
const MAX_GAP_NS: u64 = 50_000_000;
/// So many wake-ups make a 99th percentile with ten samples beyond it.
const N_FOR_P99: u64 = 1200;
const MIN_DURATION_NS: u64 = 3_000_000_000;
const MAX_DURATION_NS: u64 = 12_000_000_000;
/// The short form's time for all states together.
const SHORT_NS: u64 = 6_000_000_000;
const SHORT_GAP_NS: u64 = 2_000_000;

/// What is to be measured; what is not said follows from the table.
#[derive(Clone)]
pub struct IdleCostPlan {
    /// The CPU that sleeps.
    pub cpu: Cpu,
    /// The CPUs that this process may use.
    pub allowed: CpuSet,
    /// Only these states, by name; all that are not disabled when empty.
    pub states: Vec<String>,
    /// Kinds of wake-up.
    pub kinds: Vec<WakeKind>,
    /// Measure what the first work after a pause takes, and what the CPU does for itself, as well?
    pub has_first_work: bool,
    /// Pause before each wake-up.
    pub gap_ns: Option<u64>,
    /// Time per state and kind.
    pub duration_ns: Option<u64>,
    /// Of the order.
    pub seed: u64,
    /// Meters for the energy of each state, some two minutes more where one works; none: watts are left out.
    pub meters: Option<Meters>,
}

impl IdleCostPlan {
    /// The interrupt alone, some 8 s in all whatever the number of states: for `doctor`.
    pub fn short(cpu: Cpu, allowed: &CpuSet, facts: &Snapshot, seed: u64) -> IdleCostPlan {
        let n_states = table_of(facts, cpu).len().max(1) as u64;
        IdleCostPlan {
            cpu,
            allowed: allowed.clone(),
            states: Vec::new(),
            kinds: vec![WakeKind::Ipi],
            has_first_work: false,
            gap_ns: Some(SHORT_GAP_NS),
            duration_ns: Some(SHORT_NS / n_states),
            seed,
            meters: None,
        }
    }
}

/// Measures each state. Reasons for what is missing are added to `not_done`.
pub fn measure(
    plan: &IdleCostPlan,
    facts: &Snapshot,
    lab: Lab<'_>,
    not_done: &mut Vec<NotDone>,
) -> Result<StateCosts, Refusal> {
    let could_not = |why: &dyn std::fmt::Display| {
        Refusal::Unavailable(format!("measuring one idle state at a time changes settings, which was refused: {why}"))
    };
    let cpu = plan.cpu;
    let table = table_of(facts, cpu);
    let states = wanted(&table, &plan.states, cpu, not_done).map_err(Refusal::Unavailable)?;
    let mut core = facts.topology.siblings_of(cpu).unwrap_or_default();
    core.insert(cpu);
    let sets = sets(&table, &states, &core).map_err(Refusal::Unavailable)?;
    // A sibling cannot wake the core it is part of: while it runs, the core does not sleep.
    let from_cpu = pick::partner(&facts.topology, &plan.allowed, cpu).filter(|from| !core.contains(*from));
    let longest_ns = states.iter().filter_map(|s| s.target_residency_ns).max().unwrap_or(0);
    let gap_ns = plan.gap_ns.unwrap_or((GAP_TO_RESIDENCY * longest_ns).clamp(MIN_GAP_NS, MAX_GAP_NS));
    let duration_ns = plan.duration_ns.unwrap_or((N_FOR_P99 * gap_ns).clamp(MIN_DURATION_NS, MAX_DURATION_NS));
    let (kinds, set_cpus, seed, meters) = (plan.kinds.clone(), core.clone(), plan.seed, plan.meters.clone());
    let has_first_work = plan.has_first_work;
    let spec = StateCostSpec { cpu, from_cpu, set_cpus, kinds, has_first_work, gap_ns, duration_ns, seed, meters };
    let _experiment = qos_global::Lock::take().map_err(|e| match e {
        HoldError::Busy => Refusal::Busy(e.to_string()),
        other => could_not(&other),
    })?;
    let tuner = begin("measure idle").map_err(|e| match e {
        BeginError::Busy(why) => Refusal::Busy(why),
        BeginError::Refused(why) => could_not(&why),
    })?;
    let session = tuner.session(sets).map_err(|e| could_not(&e))?;
    let arms = StateArms::new(states, core, session);
    Ok(state_costs(&spec, arms, facts, lab, not_done))
}

/// The rows to measure: those named, or all that are not disabled.
fn wanted(
    table: &[TableRow],
    names: &[String],
    cpu: Cpu,
    not_done: &mut Vec<NotDone>,
) -> Result<Vec<TableRow>, String> {
    if table.is_empty() {
        return Err(format!(
            "CPU {cpu} has no idle states (/sys/devices/system/cpu/cpu{cpu}/cpuidle is missing: no idle driver); \
             wakewatt measure wakeup measures what it does instead"
        ));
    }
    let has = |name: &String| table.iter().any(|row| row.name.eq_ignore_ascii_case(name));
    if let Some(unknown) = names.iter().find(|name| !has(name)) {
        let known: Vec<&str> = table.iter().map(|row| row.name.as_str()).collect();
        return Err(format!("CPU {cpu} has no idle state {unknown:?}; it has {}", known.join(", ")));
    }
    if !names.is_empty() {
        // Polling is the floor that the others are compared with, so it is always measured.
        let is_named = |row: &&TableRow| names.iter().any(|n| row.name.eq_ignore_ascii_case(n)) || row.is_polling();
        return Ok(table.iter().filter(is_named).cloned().collect());
    }
    for row in table.iter().filter(|row| row.is_enabled == Some(false)) {
        let why = "it was found disabled; name it with --state to measure it nevertheless";
        not_done.push(NotDone::named(row.name.clone(), why));
    }
    let states: Vec<TableRow> = table.iter().filter(|row| row.is_enabled != Some(false)).cloned().collect();
    if states.is_empty() { Err(format!("all idle states of CPU {cpu} are disabled")) } else { Ok(states) }
}

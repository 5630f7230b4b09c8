//! The result as it is published: how far it may be trusted first, then recorded beside predicted, in total and per CPU.

use super::lane::Lane;
use super::policy::Policy;
use super::same::Agreement;
use super::tally::Tally;
use crate::idle::Kind;
use crate::kernel::Basis;
use std::collections::{BTreeMap, BTreeSet};
use wakewatt_core::distribution::Distribution;

/// Below this share of identical decisions a result is not to be trusted.
const TRUSTED_RATIO: f64 = 0.95;
/// So many decisions must have been compared before there is a share to speak of.
const LEAST_COMPARED: u64 = 100;

/// Recorded idle time beside what it would have been.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replayed {
    /// How far the rest may be trusted, in a sentence.
    pub trust: String,
    /// May it be trusted? At least 95 % of decisions were identical; none where too few could be compared.
    pub is_trusted: Option<bool>,
    /// Which inputs that was told from: `exact`, the governor's own arguments, or `rebuilt`, from the tick's structure and events.
    pub inputs: String,
    /// The same comparison from rebuilt inputs, where the recording also holds exact ones; none where it does not.
    pub rebuilt: Option<RebuiltShare>,
    /// Share of decisions in which the model of the recorded policy decided as the kernel did, 0 to 1; none where none could be compared.
    pub identical_ratio: Option<f64>,
    /// How many decisions were compared.
    pub n_compared: u64,
    /// Of those, identical.
    pub n_identical: u64,
    /// Stays that only filled the models' memory.
    pub n_warm_up: u64,
    /// Stays without an input that the recorded governor needs.
    pub n_without_inputs: u64,
    /// What decided, by idle table: as recorded, then as asked.
    pub policies: Vec<[PolicyTold; 2]>,
    /// All CPUs, as recorded.
    pub recorded: Side,
    /// All CPUs, as predicted under what is asked.
    pub predicted: Side,
    /// All CPUs, as predicted under the recorded policy: how far it is from what was recorded is the method's own error.
    pub recorded_again: Side,
    /// Idle periods that were not followed: inputs missing, or longer than any machine has.
    pub n_left_out: u64,
    /// CPU by CPU.
    pub cpus: Vec<CpuReplay>,
    /// What the figures rest on, and what is left out.
    pub remarks: Vec<String>,
}

/// How far decisions are told from what was rebuilt of the governor's inputs.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RebuiltShare {
    /// Share of decisions that were identical, 0 to 1; none where none could be compared.
    pub identical_ratio: Option<f64>,
    /// How many decisions were compared.
    pub n_compared: u64,
    /// Of those, identical.
    pub n_identical: u64,
    /// Stays without an input that the recorded governor needs.
    pub n_without_inputs: u64,
}

/// What decides on the CPUs of an idle table.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyTold {
    /// Name of the idle governor, as the kernel calls it.
    pub governor: String,
    /// Release whose rules apply; `6.1.y` for the last of a series.
    pub kernel: String,
    /// Which form of the governor that is.
    pub model: String,
    /// How that is known: checked, inferred, assumed.
    pub basis: String,
    /// Latency limit in nanoseconds; none where there is none.
    pub latency_limit_ns: Option<u64>,
    /// Names of the idle states that may be chosen.
    pub states: Vec<String>,
}

/// Idle time of one CPU.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuReplay {
    /// Number of the CPU.
    pub cpu: u32,
    /// Share of its decisions that were identical, 0 to 1; none where none could be compared.
    pub identical_ratio: Option<f64>,
    /// Idle time of this CPU as it was recorded.
    pub recorded: Side,
    /// Idle time of this CPU as predicted under what is asked.
    pub predicted: Side,
}

/// What idle time came to.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Side {
    /// By idle state, shallow first.
    pub states: Vec<StateTold>,
    /// What wake-ups paid for leaving the state that they found: half of the exit latency that is claimed.
    pub wake_cost: Distribution,
    /// Energy of the CPUs while idle, in microjoules, by a model that was never calibrated here: half to twice.
    pub modelled_energy_uj: f64,
}

/// One idle state.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateTold {
    /// Name of the idle state.
    pub state: String,
    /// How many stays.
    pub n: u64,
    /// Time in it, in nanoseconds.
    pub time_ns: u64,
    /// Share of idle time, 0 to 1.
    pub time_ratio: f64,
    /// Stays shorter than its residency.
    pub n_above: u64,
    /// Stays long enough for a deeper one.
    pub n_below: u64,
    /// Wake-ups out of it: ended by something other than the tick or the limit of polling.
    pub n_wakes: u64,
}

fn ratio(a: Agreement) -> Option<f64> {
    (a.n_compared > 0).then(|| a.n_same as f64 / a.n_compared as f64)
}

fn side(names: &[String], tally: &Tally) -> Side {
    // Not the whole numbers' sum, which stops at 584 years: shares are of what is shown.
    let whole = tally.states.iter().map(|s| s.time_ns as f64).sum::<f64>().max(1.0);
    let of = |(at, name): (usize, &String)| {
        let s = tally.states.get(at).copied().unwrap_or_default();
        StateTold {
            state: name.clone(),
            n: s.n,
            time_ns: s.time_ns,
            time_ratio: s.time_ns as f64 / whole,
            n_above: s.n_above,
            n_below: s.n_below,
            n_wakes: s.n_wakes,
        }
    };
    Side {
        states: names.iter().enumerate().map(of).collect(),
        wake_cost: tally.wake_cost.distribution(),
        modelled_energy_uj: tally.energy_uj,
    }
}

fn policy(p: &Policy) -> PolicyTold {
    let (model, basis) = p.kind.form_in(p.release);
    let usable = p.names.iter().enumerate().filter(|(at, _)| !p.disabled.has(*at)).map(|(_, name)| name.clone());
    PolicyTold {
        governor: p.kind.name().into(),
        kernel: p.release.to_string(),
        model: model.into(),
        basis: match if p.assumed.is_some() { Basis::Assumed } else { basis } {
            Basis::Checked => "checked",
            Basis::Inferred => "inferred",
            Basis::Assumed => "assumed",
        }
        .into(),
        latency_limit_ns: u64::try_from(p.limit_ns).ok().filter(|ns| *ns < 2_000_000_000_000),
        states: usable.collect(),
    }
}

/// How the decisions were told, in the first sentence.
fn inputs(is_exact: bool) -> &'static str {
    if is_exact { " from exact inputs" } else { "" }
}

/// The first sentence.
fn trust(a: Agreement, is_exact: bool) -> (String, Option<bool>) {
    let Some(share) = ratio(a).filter(|_| a.n_compared >= LEAST_COMPARED) else {
        let why = format!(
            "Cannot tell how far this may be trusted: only {} decisions could be compared ({} stays without inputs).",
            a.n_compared, a.n_without_inputs
        );
        return (why, None);
    };
    let percent = share * 100.0;
    if share < TRUSTED_RATIO {
        let words = format!(
            "Not to be trusted: the model decided as the recorded kernel did in {percent:.2} % of {} decisions only{}.",
            a.n_compared,
            inputs(is_exact)
        );
        return (words, Some(false));
    }
    (
        format!(
            "The model decided as the recorded kernel did in {percent:.2} % of {} decisions{}.",
            a.n_compared,
            inputs(is_exact)
        ),
        Some(true),
    )
}

pub(super) fn told(policies: &[(Policy, Policy)], lanes: &BTreeMap<u32, Lane>) -> Replayed {
    let (mut rebuilt, mut exact) = (Agreement::default(), Agreement::default());
    // Of one CPU, or of all: the governor's own arguments where there are enough of them.
    let better = |rebuilt: Agreement, exact: Agreement| {
        if exact.n_compared >= LEAST_COMPARED { exact } else { rebuilt }
    };
    let (mut was, mut predicted, mut again) = (Tally::default(), Tally::default(), Tally::default());
    let mut n_left_out = 0;
    let mut cpus = Vec::new();
    // Names of the longest table stand for all: states of different tables are summed by their index.
    let longest = |pick: fn(&(Policy, Policy)) -> &Policy| {
        policies.iter().map(pick).max_by_key(|p| p.names.len()).map(|p| p.names.clone()).unwrap_or_default()
    };
    let (names_was, names_asked) = (longest(|p| &p.0), longest(|p| &p.1));
    for (cpu, lane) in lanes {
        rebuilt.add(lane.same.agreement);
        exact.add(lane.exact.agreement);
        was.add(&lane.was);
        predicted.add(&lane.predict.tally);
        again.add(&lane.again.tally);
        n_left_out += lane.predict.n_left_out;
        cpus.push(CpuReplay {
            cpu: *cpu,
            identical_ratio: ratio(better(lane.same.agreement, lane.exact.agreement)),
            recorded: side(&names_was, &lane.was),
            predicted: side(&names_asked, &lane.predict.tally),
        });
    }
    let is_exact = exact.n_compared >= LEAST_COMPARED;
    let agreement = better(rebuilt, exact);
    let (sentence, is_trusted) = trust(agreement, is_exact);
    let told_policies: Vec<[PolicyTold; 2]> = policies.iter().map(|(a, b)| [policy(a), policy(b)]).collect();
    let mut remarks = vec![
        "Leaving a state is taken to cost half of the exit latency that its driver claims.".to_string(),
        "Energy is a model's, never calibrated on this machine: half to twice, of CPUs in idle only.".to_string(),
        "Events come when they came; what a slower wake-up would have made later is not made later.".to_string(),
    ];
    if policies.iter().any(|(a, b)| a.kind == Kind::Teo || b.kind == Kind::Teo) {
        remarks.push(
            "The recording does not hold the CPU's utilisation, which teo of 6.3 to 6.10 looks at: taken as none."
                .into(),
        );
    }
    for [_, asked] in told_policies.iter().filter(|p| p[1].basis == "assumed").take(1) {
        remarks.push(format!("That kernel {} has the {} is assumed.", asked.kernel, asked.model));
    }
    let uncertain: BTreeSet<&String> =
        policies.iter().flat_map(|(a, b)| [a, b]).filter_map(|p| p.assumed.as_ref()).collect();
    remarks.extend(uncertain.into_iter().map(|why| format!("{why}.")));
    if policies.len() > 1 {
        remarks.push("CPUs have different idle tables; states are summed by their index.".into());
    }
    if n_left_out > 0 {
        remarks.push(format!("{n_left_out} idle periods could not be followed: an input was not recorded, or too much spinning would have been needed."));
    }
    Replayed {
        trust: sentence,
        is_trusted,
        inputs: if is_exact { "exact" } else { "rebuilt" }.into(),
        rebuilt: is_exact.then(|| RebuiltShare {
            identical_ratio: ratio(rebuilt),
            n_compared: rebuilt.n_compared,
            n_identical: rebuilt.n_same,
            n_without_inputs: rebuilt.n_without_inputs,
        }),
        identical_ratio: ratio(agreement),
        n_compared: agreement.n_compared,
        n_identical: agreement.n_same,
        n_warm_up: agreement.n_warm_up,
        n_without_inputs: agreement.n_without_inputs,
        policies: told_policies,
        recorded: side(&names_was, &was),
        predicted: side(&names_asked, &predicted),
        recorded_again: side(&names_was, &again),
        n_left_out,
        cpus,
        remarks,
    }
}

//! A service objective as a latency limit: the largest one whose predicted percentile keeps it.
//!
//! For every limit that means something on the table the recording is replayed, which says how often a wake-up finds which state.
//! A hop finds a sleeper with some probability, and then pays for a state in those proportions; what a hop costs besides is added as it is.
//! `shape.rs` is how hops follow each other, `hops.rs` the distribution over all of them, `objective.rs` the words. The
//! percentile is given twice: with what leaving a state usually costs, by which the answer is found, and with the worst case of each.

mod fourier;
mod hops;
mod objective;
mod shape;

pub use hops::{Added, Atom};
pub use objective::Objective;
pub use shape::{Shape, Stage};

use super::sweep::least_followed;
use super::words::by_claims;
use super::{Followed, Replayed, Side};
use wakewatt_core::units::{LatencyLimit, exact_ns, show_ns};

/// What is asked besides the objective.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// The objective.
    pub objective: Objective,
    /// Share of hops that find a sleeping CPU, 0 to 1; none for the share of time that CPUs were idle.
    pub sleeper_ratio: Option<f64>,
    /// What a hop costs besides leaving an idle state, in nanoseconds.
    pub hop_cost_ns: u64,
}

/// An objective, and the largest latency limit that keeps it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Slo {
    /// How far the rest may be trusted, in a sentence.
    pub trust: String,
    /// May it be trusted? None where too few decisions could be compared.
    pub is_trusted: Option<bool>,
    /// Share of identical decisions, 0 to 1; none where none could be compared.
    pub identical_ratio: Option<f64>,
    /// How much of the recording the predictions rest on, where that is least.
    pub followed: Followed,
    /// Which inputs that was told from: `exact` or `rebuilt`.
    pub inputs: String,
    /// Which limit keeps the objective, in a sentence.
    pub answer: String,
    /// The objective as it was understood.
    pub objective: String,
    /// Share of requests that must keep it, 0 to 1.
    pub quantile: f64,
    /// The bound, in nanoseconds.
    pub bound_ns: u64,
    /// Share of hops that find a sleeping CPU, 0 to 1.
    pub sleeper_ratio: f64,
    /// Where that share is from.
    pub sleeper_basis: String,
    /// What a hop costs besides leaving an idle state, in nanoseconds.
    pub hop_cost_ns: u64,
    /// The largest limit that keeps it; none where no limit does, or too little was followed for a verdict.
    pub limit: Option<LatencyLimit>,
    /// The command that would plan it; none where there is nothing to set.
    pub command: Option<String>,
    /// One per limit, strictest first.
    pub limits: Vec<SloLimit>,
    /// What the figures rest on.
    pub remarks: Vec<String>,
}

/// What a limit comes to.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SloLimit {
    /// The limit; `none` stands for the largest exit latency of the table and above.
    pub limit: LatencyLimit,
    /// Predicted percentile of the request, in nanoseconds.
    pub percentile_ns: u64,
    /// The same if every exit took its worst case, in nanoseconds.
    pub worst_percentile_ns: u64,
    /// Is the objective kept? False also where too little was followed for a verdict.
    pub is_kept: bool,
    /// Is it kept with the worst case, too?
    pub is_kept_at_worst: bool,
    /// Energy of the CPUs while idle, in microjoules, by a model that was never calibrated here: half to twice.
    pub modelled_energy_uj: f64,
}

/// Delays of a hop under what was predicted; `pick` says what leaving a state costs.
fn hop(replayed: &Replayed, sleeper_ratio: f64, pick: impl Fn(&super::StateTold) -> u64) -> Vec<Atom> {
    let sides = || replayed.cpus.iter().map(|cpu| &cpu.predicted);
    let n_wakes: u64 = sides().flat_map(|side: &Side| &side.states).map(|s| s.n_wakes).sum();
    let mut atoms = vec![Atom { ns: 0, probability: 1.0 - sleeper_ratio }];
    for state in sides().flat_map(|side| &side.states).filter(|s| s.n_wakes > 0) {
        let probability = sleeper_ratio * state.n_wakes as f64 / n_wakes as f64;
        let ns = pick(state);
        match atoms.iter_mut().find(|a| a.ns == ns) {
            Some(atom) => atom.probability += probability,
            None => atoms.push(Atom { ns, probability }),
        }
    }
    atoms
}

/// From replays under these limits, strictest first, and what is asked; none without a limit.
pub fn slo(replays: &[(u64, Replayed)], asked: &Asked) -> Option<Slo> {
    let (largest_ns, last) = replays.last()?;
    let least = least_followed(replays)?;
    let is_enough = least.followed.is_enough();
    let objective = &asked.objective;
    let (sleeper_ratio, sleeper_basis) = match (asked.sleeper_ratio, last.idle_ratio) {
        (Some(ratio), _) => (ratio.clamp(0.0, 1.0), "as given".to_string()),
        (None, Some(ratio)) => (ratio, "the share of time that CPUs were idle in the recording".to_string()),
        (None, None) => (1.0, "every hop: the recording does not say how long it lasted".to_string()),
    };
    let besides_ns = asked.hop_cost_ns.saturating_mul(u64::from(objective.shape.in_series()));
    let mut worst_step_ns = 0;
    let mut percentile = |atoms: &[Atom]| {
        let added = Added::of(&objective.shape, atoms);
        worst_step_ns = worst_step_ns.max(if added.is_exact { 0 } else { added.step_ns });
        added.quantile_ns(objective.quantile).saturating_add(besides_ns)
    };
    let mut row = |(limit_ns, replayed): &(u64, Replayed)| {
        let usual = percentile(&hop(replayed, sleeper_ratio, |s| s.exit_ns));
        let worst = percentile(&hop(replayed, sleeper_ratio, |s| s.worst_exit_ns));
        SloLimit {
            limit: limit_of(*limit_ns, *largest_ns),
            percentile_ns: usual,
            worst_percentile_ns: worst,
            is_kept: is_enough && objective.is_kept(usual),
            is_kept_at_worst: is_enough && objective.is_kept(worst),
            modelled_energy_uj: replayed.predicted.modelled_energy_uj,
        }
    };
    let limits: Vec<SloLimit> = replays.iter().map(&mut row).collect();
    let mut remarks = last.remarks.clone();
    remarks.push(format!(
        "{} of hops find a sleeping CPU ({sleeper_basis}); a hop costs {} besides; hops are taken to be independent, and to find what the recorded wake-ups find.",
        percent(sleeper_ratio),
        exact_ns(asked.hop_cost_ns),
    ));
    if worst_step_ns > 0 {
        remarks.push(format!("Percentiles are computed in steps of {}.", show_ns(worst_step_ns)));
    }
    let best = limits.iter().rev().find(|l| l.is_kept);
    if let Some(at) = limits.iter().position(|l| !l.is_kept).filter(|at| limits[*at..].iter().any(|l| l.is_kept)) {
        remarks.push(format!(
            "A stricter limit than the answer, {}, is not predicted to keep it: the governor then chooses otherwise.",
            limits[at].limit
        ));
    }
    Some(Slo {
        trust: least.trust.clone(),
        is_trusted: least.is_trusted,
        identical_ratio: least.identical_ratio,
        followed: least.followed,
        inputs: least.inputs.clone(),
        answer: match is_enough {
            true => format!("{}{}.", answer(objective, &limits, best), by_claims(&claimed_states(replays))),
            false => {
                format!("No latency limit is named for {objective}: too little of the recording could be followed.")
            }
        },
        objective: objective.to_string(),
        quantile: objective.quantile,
        bound_ns: objective.bound_ns,
        sleeper_ratio,
        sleeper_basis,
        hop_cost_ns: asked.hop_cost_ns,
        limit: best.map(|l| l.limit),
        command: best
            .filter(|l| l.limit != LatencyLimit::None)
            .map(|l| format!("wakewatt tune plan --max-latency {}", l.limit)),
        limits,
        remarks,
    })
}

fn limit_of(limit_ns: u64, largest_ns: u64) -> LatencyLimit {
    match limit_ns {
        0 if largest_ns == 0 => LatencyLimit::None,
        0 => LatencyLimit::Poll,
        ns if ns >= largest_ns => LatencyLimit::None,
        ns => LatencyLimit::AtMostNs(ns),
    }
}

fn percent(ratio: f64) -> String {
    format!("{:.1} %", ratio * 100.0)
}

/// States that wake-ups leave under any of the limits, by exit latencies that nobody measured.
fn claimed_states(replays: &[(u64, Replayed)]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in replays.iter().flat_map(|(_, r)| r.predicted.claimed_with(&r.predicted)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The sentence, without its end.
fn answer(objective: &Objective, limits: &[SloLimit], best: Option<&SloLimit>) -> String {
    let name = objective.percentile();
    let Some(best) = best else {
        let least = limits.iter().map(|l| l.percentile_ns).min().unwrap_or(0);
        return format!(
            "No latency limit keeps {objective}: even the strictest is predicted to have a {name} of {}",
            show_ns(least)
        );
    };
    let worst = match best.is_kept_at_worst {
        true => String::new(),
        false => format!("; if every exit took its worst case it would be {}", show_ns(best.worst_percentile_ns)),
    };
    if limits.iter().all(|l| l.is_kept) {
        return format!(
            "Every latency limit keeps {objective}, and so does none: {name} is predicted to be {} without any limit{worst}",
            show_ns(best.percentile_ns)
        );
    }
    let next = limits.iter().rev().take_while(|l| !l.is_kept).last();
    let next = next.map_or(String::new(), |l| {
        let at = if l.limit == LatencyLimit::None { "without a limit".into() } else { format!("at {}", l.limit) };
        format!(", and {} {at}", show_ns(l.percentile_ns))
    });
    match best.limit {
        LatencyLimit::None => format!(
            "{objective} is kept without a limit: {name} is predicted to be {}{worst}",
            show_ns(best.percentile_ns)
        ),
        limit => format!(
            "The largest latency limit that keeps {objective} is {limit}: {name} is predicted to be {}{next}{worst}",
            show_ns(best.percentile_ns)
        ),
    }
}

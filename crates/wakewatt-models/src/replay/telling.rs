//! From the sums of all CPUs to the documents that are published: names, shares, the first sentence, and what the figures rest on.

use super::lane::{Lane, Three};
use super::policy::Policy;
use super::same::Agreement;
use super::tally::Tally;
use super::upgrade::{self, CpuUpgrade, Upgrade};
use super::words::by_claims;
use crate::idle::Kind;
use crate::kernel::Basis;
use std::collections::{BTreeMap, BTreeSet};
use wakewatt_core::samples::Label;
use wakewatt_core::samples::replayed::{
    CpuReplay, ExitBasis, Followed, PolicyTold, RebuiltShare, Recording, Replayed, Side, StateTold,
};

/// Below this share of identical decisions a result is not to be trusted.
const TRUSTED_RATIO: f64 = 0.95;
/// Share of stays whose choices must have been recorded before these speak for all.
const EXACT_RATIO: f64 = 0.9;
/// So many decisions must have been compared before there is a share to speak of.
const LEAST_COMPARED: u64 = 100;
/// As the kernel has it: 2000 seconds are no limit.
const NO_LIMIT_NS: u64 = 2_000_000_000_000;

fn ratio(a: Agreement) -> Option<f64> {
    (a.n_compared > 0).then(|| a.n_same as f64 / a.n_compared as f64)
}

fn side(policy: &Policy, tally: &Tally) -> Side {
    // Not the whole numbers' sum, which stops at 584 years: shares are of what is shown.
    let whole = tally.states.iter().map(|s| s.time_ns as f64).sum::<f64>().max(1.0);
    let of = |(at, name): (usize, &String)| {
        let s = tally.states.get(at).copied().unwrap_or_default();
        let exit = policy.exits.get(at).copied().unwrap_or_default();
        StateTold {
            state: name.clone(),
            n: s.n,
            time_ns: s.time_ns,
            time_ratio: s.time_ns as f64 / whole,
            n_above: s.n_above,
            n_below: s.n_below,
            n_wakes: s.n_wakes,
            exit_ns: exit.usual_ns,
            worst_exit_ns: exit.worst_ns,
            exit_basis: exit.basis,
        }
    };
    Side {
        states: policy.names.iter().enumerate().map(of).collect(),
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
        latency_limit_ns: u64::try_from(p.limit_ns).ok().filter(|ns| *ns < NO_LIMIT_NS),
        states: usable.collect(),
    }
}

/// How the decisions were told, in the first sentence.
fn inputs(is_exact: bool) -> &'static str {
    if is_exact { " from exact inputs" } else { "" }
}

/// The same, in documents.
fn inputs_word(is_exact: bool) -> String {
    if is_exact { "exact" } else { "rebuilt" }.into()
}

/// Of one CPU, or of all: the governor's own arguments where there are enough of them.
fn better(rebuilt: Agreement, exact: Agreement) -> Agreement {
    if is_exact(rebuilt, exact) { exact } else { rebuilt }
}

/// Exact inputs of a few stays say nothing of the others, which are predicted from rebuilt ones.
fn is_exact(rebuilt: Agreement, exact: Agreement) -> bool {
    let n_stays = rebuilt.n_warm_up.saturating_add(rebuilt.n_compared).saturating_add(rebuilt.n_without_inputs);
    let n_choices = exact.n_warm_up.saturating_add(exact.n_compared);
    exact.n_compared >= LEAST_COMPARED && n_choices as f64 >= EXACT_RATIO * n_stays as f64
}

/// The first sentence.
fn trust(followed: Followed, a: Agreement, is_exact: bool, claimed: &[&str]) -> (String, Option<bool>) {
    if !followed.is_enough() {
        let words = format!(
            "No verdict: {:.1} % of {} recorded idle intervals could be followed, and at least {:.0} % are needed.",
            followed.ratio() * 100.0,
            followed.n_recorded,
            Followed::LEAST_RATIO * 100.0
        );
        return (words, Some(false));
    }
    let Some(share) = ratio(a).filter(|_| a.n_compared >= LEAST_COMPARED) else {
        let why = format!(
            "Cannot tell how far this may be trusted: only {} decisions could be compared ({} stays without inputs){}.",
            a.n_compared,
            a.n_without_inputs,
            by_claims(claimed)
        );
        return (why, None);
    };
    let percent = share * 100.0;
    if share < TRUSTED_RATIO {
        let words = format!(
            "Not to be trusted: the model decided as the recorded kernel did in {percent:.2} % of {} decisions only{}{}.",
            a.n_compared,
            inputs(is_exact),
            by_claims(claimed)
        );
        return (words, Some(false));
    }
    (
        format!(
            "The model decided as the recorded kernel did in {percent:.2} % of {} decisions{}{}.",
            a.n_compared,
            inputs(is_exact),
            by_claims(claimed)
        ),
        Some(true),
    )
}

/// The policy of the longest table stands for all: states of different tables are summed by their index.
fn longest(policies: &[Three], pick: fn(&Three) -> &Policy) -> Option<&Policy> {
    policies.iter().map(pick).max_by_key(|p| p.names.len())
}

/// Sums over all CPUs.
#[derive(Default)]
struct Sums {
    rebuilt: Agreement,
    exact: Agreement,
    was: Tally,
    predicted: Tally,
    again: Tally,
    n_left_out: u64,
    followed: Followed,
}

/// `n_outside`: recorded stays that no lane was given.
fn sums(lanes: &BTreeMap<u32, Lane>, n_outside: u64) -> Sums {
    let mut all = Sums::default();
    all.followed.n_recorded = n_outside;
    for lane in lanes.values() {
        all.rebuilt.add(lane.same.agreement);
        all.exact.add(lane.exact.agreement);
        all.was.add(&lane.was);
        all.predicted.add(&lane.predict.tally);
        all.again.add(&lane.again.tally);
        all.n_left_out += lane.predict.n_left_out;
        // Of an upgrade both sides are predicted.
        all.followed.n_followed += lane.predict.n_followed.min(lane.again.n_followed);
        all.followed.n_recorded += lane.was.states.iter().map(|s| s.n).sum::<u64>();
    }
    all
}

/// Where the cost of leaving each state is from.
fn exits_told(policies: &[&Policy]) -> Vec<String> {
    let names = |basis: ExitBasis| {
        let of = |p: &&Policy| {
            let pairs = p.names.clone().into_iter().zip(p.exits);
            pairs.filter(move |(_, exit)| exit.basis == basis).map(|(name, _)| name).collect::<Vec<_>>()
        };
        let mut all: Vec<String> = Vec::new();
        policies.iter().flat_map(of).for_each(|name| {
            if !all.contains(&name) {
                all.push(name);
            }
        });
        all
    };
    let (measured, claimed) = (names(ExitBasis::Measured), names(ExitBasis::Claimed));
    let mut said = Vec::new();
    if !measured.is_empty() {
        said.push(format!("What leaving {} costs was measured (measure idle).", measured.join(", ")));
    }
    if !claimed.is_empty() {
        said.push(format!(
            "Leaving {} is taken to cost half of the exit latency that the driver claims{}.",
            claimed.join(", "),
            if measured.is_empty() {
                "; measure it with: wakewatt measure idle --save FILE, and give --measured FILE"
            } else {
                ""
            }
        ));
    }
    let not_used: BTreeSet<&String> = policies.iter().flat_map(|p| &p.not_used).collect();
    said.extend(not_used.into_iter().cloned());
    said
}

/// What the figures rest on, whoever decides.
fn remarks(pairs: &[(&Policy, &Policy)], n_left_out: u64) -> Vec<String> {
    let all: Vec<&Policy> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    let mut remarks = exits_told(&all);
    remarks.push("Energy is a model's, never calibrated on this machine: half to twice, of CPUs in idle only.".into());
    remarks.push("Events come when they came; what a slower wake-up would have made later is not made later.".into());
    if all.iter().any(|p| p.kind == Kind::Teo) {
        remarks.push(
            "The recording does not hold the CPU's utilisation, which teo of 6.3 to 6.10 looks at: taken as none."
                .into(),
        );
    }
    let mut models: BTreeSet<String> = BTreeSet::new();
    for told in all.iter().map(|p| policy(p)).filter(|told| told.basis == "assumed") {
        models.insert(format!("That kernel {} has the {} is assumed.", told.kernel, told.model));
    }
    remarks.extend(models);
    let uncertain: BTreeSet<&String> = all.iter().filter_map(|p| p.assumed.as_ref()).collect();
    remarks.extend(uncertain.into_iter().map(|why| format!("{why}.")));
    if pairs.len() > 1 {
        remarks.push("CPUs have different idle tables; states are summed by their index.".into());
    }
    for name in out_of_order(&all) {
        remarks.push(format!("The exit latency of {name} is below that of a shallower state: taken as it is claimed."));
    }
    if n_left_out > 0 {
        remarks.push(format!("{n_left_out} idle periods could not be followed: an input was not recorded, or too much spinning would have been needed."));
    }
    remarks
}

/// States that claim to be left sooner than one before them.
fn out_of_order(all: &[&Policy]) -> BTreeSet<String> {
    let of = |p: &&Policy| {
        let mut most = i64::MIN;
        let mut found = Vec::new();
        for (state, name) in p.table.states().iter().zip(&p.names) {
            if state.exit_latency_ns < most {
                found.push(name.clone());
            }
            most = most.max(state.exit_latency_ns);
        }
        found
    };
    all.iter().flat_map(of).collect()
}

/// Recorded beside predicted.
pub(super) fn replayed(
    policies: &[Three],
    lanes: &BTreeMap<u32, Lane>,
    (window_ns, n_cpus): (Option<u64>, u64),
    n_outside: u64,
) -> Replayed {
    let all = sums(lanes, n_outside);
    let (agreement, is_exact) = (better(all.rebuilt, all.exact), is_exact(all.rebuilt, all.exact));
    let cpu = |(cpu, lane): (&u32, &Lane)| CpuReplay {
        cpu: *cpu,
        identical_ratio: ratio(better(lane.same.agreement, lane.exact.agreement)),
        table: lane.policies.table,
        recorded: side(&lane.policies.recorded, &lane.was),
        predicted: side(&lane.policies.asked, &lane.predict.tally),
    };
    let in_total = |pick: fn(&Three) -> &Policy, tally: &Tally| {
        longest(policies, pick).map_or_else(Side::default, |policy| side(policy, tally))
    };
    let pairs: Vec<(&Policy, &Policy)> = policies.iter().map(|p| (&p.recorded, &p.asked)).collect();
    let recorded = in_total(|p| &p.recorded, &all.was);
    let predicted = in_total(|p| &p.asked, &all.predicted);
    let (sentence, is_trusted) = trust(all.followed, agreement, is_exact, &recorded.claimed_with(&predicted));
    let cpu_time_ns = window_ns.map(|ns| ns.saturating_mul(n_cpus.max(lanes.len() as u64))).filter(|ns| *ns > 0);
    Replayed {
        trust: sentence,
        is_trusted,
        followed: all.followed,
        inputs: inputs_word(is_exact),
        rebuilt: is_exact.then(|| RebuiltShare {
            identical_ratio: ratio(all.rebuilt),
            n_compared: all.rebuilt.n_compared,
            n_identical: all.rebuilt.n_same,
            n_without_inputs: all.rebuilt.n_without_inputs,
        }),
        identical_ratio: ratio(agreement),
        n_compared: agreement.n_compared,
        n_identical: agreement.n_same,
        n_warm_up: agreement.n_warm_up,
        n_without_inputs: agreement.n_without_inputs,
        recording: Recording::default(),
        setting: String::new(),
        label: Some(Label::Modelled),
        policies: policies.iter().map(|p| [policy(&p.recorded), policy(&p.asked)]).collect(),
        recorded,
        predicted,
        recorded_again: in_total(|p| &p.base, &all.again),
        window_ns,
        idle_ratio: cpu_time_ns.map(|ns| (all.was.time_ns() as f64 / ns as f64).min(1.0)),
        n_left_out: all.n_left_out,
        cpus: lanes.iter().map(cpu).collect(),
        remarks: remarks(&pairs, all.n_left_out),
    }
}

/// The old kernel's governor beside the new one's.
pub(super) fn upgrade(policies: &[Three], lanes: &BTreeMap<u32, Lane>, n_outside: u64) -> Upgrade {
    let all = sums(lanes, n_outside);
    let (agreement, is_exact) = (better(all.rebuilt, all.exact), is_exact(all.rebuilt, all.exact));
    let names = longest(policies, |p| &p.base).map(|p| p.names.clone()).unwrap_or_default();
    let (moves, n_decisions, n_different) = upgrade::moves(lanes.values().filter_map(|l| l.moves.as_ref()), &names);
    let in_total = |pick: fn(&Three) -> &Policy, tally: &Tally| {
        longest(policies, pick).map_or_else(Side::default, |policy| side(policy, tally))
    };
    let cpu = |(cpu, lane): (&u32, &Lane)| CpuUpgrade {
        cpu: *cpu,
        old: side(&lane.policies.base, &lane.again.tally),
        new: side(&lane.policies.asked, &lane.predict.tally),
    };
    let pairs: Vec<(&Policy, &Policy)> = policies.iter().map(|p| (&p.base, &p.asked)).collect();
    let (old, new) = (in_total(|p| &p.base, &all.again), in_total(|p| &p.asked, &all.predicted));
    let (sentence, is_trusted) = trust(all.followed, agreement, is_exact, &old.claimed_with(&new));
    let mut told = Upgrade {
        trust: sentence,
        is_trusted,
        followed: all.followed,
        identical_ratio: ratio(agreement),
        inputs: inputs_word(is_exact),
        judgement: String::new(),
        policies: policies.iter().map(|p| [policy(&p.base), policy(&p.asked)]).collect(),
        n_decisions,
        n_different,
        different_ratio: (n_decisions > 0).then(|| n_different as f64 / n_decisions as f64),
        moves,
        old,
        new,
        recorded: in_total(|p| &p.recorded, &all.was),
        cpus: lanes.iter().map(cpu).collect(),
        remarks: remarks(&pairs, all.n_left_out),
    };
    told.judgement = upgrade::judgement(&told);
    told
}

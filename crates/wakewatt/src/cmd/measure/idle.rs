//! `wakewatt measure idle`: what each idle state claims to cost, and what it costs here ([`wakewatt_lab::idle_cost`]).

use super::Measured;
use crate::cli::IdleCostArgs;
use crate::exit::{Code, Failure};
use anyhow::Result;
use std::fmt::Write as _;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::Scheduling;
use wakewatt_core::samples::state_cost::{Extra, StateCost, StateCosts, StateWake};
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_core::units::{show_ns, three_digits};
use wakewatt_lab::context::Lab;
use wakewatt_lab::idle_cost::{IdleCostPlan, measure};
use wakewatt_lab::pick;
use wakewatt_lab::state_cost::ROUNDS;
use wakewatt_lab::survey::allowed_cpus;

/// Kinds when none are named: one the hardware may foresee, one it cannot, and one as a request wakes a server.
const KINDS: [WakeKind; 3] = [WakeKind::Timer, WakeKind::Ipi, WakeKind::Futex];

/// Runs it.
pub(super) fn run(args: &IdleCostArgs, lab: Lab<'_>) -> Result<Measured> {
    let allowed = allowed_cpus()?;
    let cpu = match args.cpu.or_else(|| pick::sleeper(&allowed)) {
        Some(cpu) if allowed.contains(cpu) => cpu,
        Some(cpu) => {
            return Err(Failure::error(
                Code::CouldNotMeasure,
                format!(
                    "CPU {cpu} is not available to this process (it may use {allowed}); choose one of those with --cpu"
                ),
            ));
        }
        None => return Err(Failure::error(Code::CouldNotMeasure, "this process may use no CPU")),
    };
    let facts = Snapshot::read(lab.src, |topic| ["idle", "topology", "qos"].contains(&topic));
    let kinds: Vec<WakeKind> = match args.kind.is_empty() {
        true => KINDS.to_vec(),
        false => KINDS.into_iter().filter(|k| args.kind.iter().any(|w| w == k.word())).collect(),
    };
    let (gap_ns, duration_ns, states) = (args.gap, args.duration, args.state.clone());
    let seed = args.seed.unwrap_or_else(pick::seed_of_now);
    let plan = IdleCostPlan { cpu, allowed, states, kinds, gap_ns, duration_ns, seed };
    let mut measured = Measured::default();
    let costs = measure(&plan, &facts, lab, &mut measured.not_done)?;
    measured.idle_states.push(costs);
    Ok(measured)
}

/// For people.
pub(super) fn text(out: &mut String, costs: &StateCosts) {
    let from = costs.from_cpu.map_or("only its own timer".to_string(), |c| format!("woken from CPU {c}"));
    let _ = writeln!(
        out,
        "Leaving idle states of CPU {} ({from}), one allowed at a time, {} of {ROUNDS} rounds in random order, a wake-up each {}\n",
        costs.cpu,
        costs.n_rounds,
        show_ns(costs.gap_ns)
    );
    let width = costs.states.iter().map(|s| s.name.chars().count()).max().unwrap_or(0).max(5);
    let _ = writeln!(
        out,
        "{:<width$} {:>8} {:>8}  {:<6} {:>8} {:<18} {:>8} {:<18} {:>6}  extra over {} (median)",
        "state",
        "claimed",
        "entered",
        "kind",
        "p50",
        "[95 %]",
        "p99",
        "[95 %]",
        "n",
        costs.floor.as_deref().unwrap_or("the floor")
    );
    for state in &costs.states {
        let entered = state.entered_ratio().map_or("-".into(), |r| format!("{} %", three_digits(r * 100.0)));
        let claimed = state.claimed_exit_ns.map_or("-".into(), show_ns);
        let head = format!("{:<width$} {claimed:>8} {entered:>8}", state.name);
        for (at, wake) in state.wakes.iter().enumerate() {
            let head = if at == 0 { head.clone() } else { " ".repeat(head.chars().count()) };
            let q = |q: f64| wake.latency.quantile(q);
            let value =
                |q: Option<wakewatt_core::distribution::Quantile>| q.map_or("-".into(), |q| show_ns(q.value_ns));
            let range = |q: Option<wakewatt_core::distribution::Quantile>| {
                q.map_or(String::new(), |q| format!("[{}, {}]", show_ns(q.low_ns), show_ns(q.high_ns)))
            };
            let (p50, p99) = (q(0.5), q(0.99));
            let row = format!(
                "{head}  {:<6} {:>8} {:<18} {:>8} {:<18} {:>6}  {}",
                wake.kind.word(),
                value(p50),
                range(p50),
                value(p99),
                range(p99),
                wake.latency.n,
                wake.extra.as_ref().map_or_else(|| no_extra(state, wake), extra)
            );
            let _ = writeln!(out, "{}", row.trim_end());
        }
        if let Some(why) = &state.not_entered {
            let lead = if state.wakes.is_empty() { format!("{head}  ") } else { " ".repeat(width + 1) };
            let _ = writeln!(out, "{lead}NOT this state: {why}");
        }
    }
    let _ = writeln!(
        out,
        "\n\"claimed\" is the driver's exit latency; a wake-up contains more, so compare it with the extra. The extra is paired by\n\
         round; its range is that of the rounds, which with {ROUNDS} rounds covers the median with 97 %."
    );
    let _ = match &costs.scheduling {
        Some(Scheduling::Other(why)) => writeln!(out, "SCHED_OTHER ({why}): run-queue delay is included."),
        _ => Ok(()),
    };
    let _ = match costs.not_restored.is_empty() {
        true => writeln!(out, "Settings on CPUs {} were changed meanwhile and put back.", costs.set_cpus),
        false => writeln!(out, "NOT PUT BACK:\n  {}", costs.not_restored.join("\n  ")),
    };
    claims(out, costs);
}

fn extra(extra: &Extra) -> String {
    format!("{} [{}, {}]", signed(extra.median_ns), signed(extra.low_ns), signed(extra.high_ns))
}

/// Where the row as a whole is this state's, and this kind's wake-ups came too often out of another.
fn no_extra(state: &StateCost, wake: &StateWake) -> String {
    match wake.entered_ratio() {
        Some(ratio) if state.is_entered() && !wake.is_pure() => {
            format!("none: only {} % were out of this state", three_digits(ratio * 100.0))
        }
        _ => String::new(),
    }
}

fn signed(ns: f64) -> String {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // rounded, not negative, and far below 2^64
    let size = ns.abs().round() as u64;
    format!("{}{}", if ns < 0.0 { "-" } else { "+" }, show_ns(size))
}

/// One line for each claim that is far off.
fn claims(out: &mut String, costs: &StateCosts) {
    for state in &costs.states {
        if let Some(line) = far_off(state) {
            let _ = writeln!(out, "{line}");
        }
    }
}

fn far_off(state: &StateCost) -> Option<String> {
    let off = state.claim_off()?;
    let times = three_digits(off.ratio);
    let above = if off.above_floor_ns == off.claimed_ns { "" } else { " above the floor's claim" };
    Some(format!(
        "{}: claims {}{above}, costs {} by {} ({times} times the claim)",
        state.name,
        show_ns(off.above_floor_ns),
        extra(&off.extra),
        off.kind.word()
    ))
}

//! `wakewatt measure idle`: what each idle state claims to cost, and what it costs here.
//!
//! One state at a time is allowed on the measured core, through tune's transaction: journaled, guarded, put back. That
//! needs root, and without it nothing else could tell the states apart, so there is no lesser measurement to fall back to.

use super::Measured;
use crate::cli::IdleCostArgs;
use crate::exit::{Code, Failure};
use crate::interrupt::Interrupt;
use crate::pick;
use crate::progress::Progress;
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::Path;
use std::time::SystemTime;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::idle::TableRow;
use wakewatt_core::samples::Scheduling;
use wakewatt_core::samples::not_done::NotDone;
use wakewatt_core::samples::state_cost::{Extra, StateCost, StateCosts, StateWake};
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_core::source::Source;
use wakewatt_core::units::{Cpu, show_ns, three_digits};
use wakewatt_host::affinity::allowed_cpus;
use wakewatt_host::sink::LiveSink;
use wakewatt_host::store::Disk;
use wakewatt_lab::state_arms::{StateArms, StateArmsError, table_of};
use wakewatt_lab::state_cost::{ROUNDS, StateCostSpec, state_costs};
use wakewatt_tune::guard::GuardCommand;
use wakewatt_tune::journal::{STATE_DIR, boot_id};
use wakewatt_tune::left;

/// Kinds when none are named: one the hardware may foresee, one it cannot, and one as a request wakes a server.
const KINDS: [WakeKind; 3] = [WakeKind::Timer, WakeKind::Ipi, WakeKind::Futex];
/// A pause this many times the longest target residency lets every state pay.
const GAP_TO_RESIDENCY: u64 = 3;
const MIN_GAP_NS: u64 = 1_000_000;
const MAX_GAP_NS: u64 = 50_000_000;
/// So many wake-ups make a 99th percentile with ten samples beyond it.
const N_FOR_P99: u64 = 1200;
const MIN_DURATION_NS: u64 = 3_000_000_000;
const MAX_DURATION_NS: u64 = 12_000_000_000;

/// Runs it.
pub(super) fn run(args: &IdleCostArgs, src: &dyn Source, interrupt: &Interrupt) -> Result<Measured> {
    let allowed = allowed_cpus().context("cannot ask which CPUs this process may use")?;
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
    let facts = Snapshot::read(src, |topic| ["idle", "topology", "qos"].contains(&topic));
    let mut measured = Measured::default();
    let kinds: Vec<WakeKind> = match args.kind.is_empty() {
        true => KINDS.to_vec(),
        false => KINDS.into_iter().filter(|k| args.kind.iter().any(|w| w == k.word())).collect(),
    };
    let costs = of_cpu(cpu, &allowed, &kinds, args, &facts, src, interrupt, &mut measured.not_done)?;
    measured.idle_states.push(costs);
    Ok(measured)
}

/// The interrupt alone, some 8 s in all whatever the number of states: for `doctor`.
pub fn short(
    cpu: Cpu,
    allowed: &CpuSet,
    facts: &Snapshot,
    src: &dyn Source,
    interrupt: &Interrupt,
    not_done: &mut Vec<NotDone>,
) -> Result<StateCosts> {
    let n_states = table_of(facts, cpu).len().max(1) as u64;
    let args = IdleCostArgs {
        cpu: Some(cpu),
        state: Vec::new(),
        kind: Vec::new(),
        gap: Some(2_000_000),
        duration: Some(6_000_000_000 / n_states),
        seed: None,
        json: false,
    };
    of_cpu(cpu, allowed, &[WakeKind::Ipi], &args, facts, src, interrupt, not_done)
}

#[allow(clippy::too_many_arguments)]
fn of_cpu(
    cpu: Cpu,
    allowed: &CpuSet,
    kinds: &[WakeKind],
    args: &IdleCostArgs,
    facts: &Snapshot,
    src: &dyn Source,
    interrupt: &Interrupt,
    not_done: &mut Vec<NotDone>,
) -> Result<StateCosts> {
    let could_not = |why: String| Failure::error(Code::CouldNotMeasure, why);
    let states = wanted(&table_of(facts, cpu), &args.state, cpu, not_done).map_err(could_not)?;
    let sink = LiveSink::this_machine();
    if let Some(journal) = left::in_the_way(&sink, &Disk, Path::new(STATE_DIR), &boot_id(), false) {
        return Err(could_not(left::in_words(&journal)));
    }
    let mut core = facts.topology.siblings_of(cpu).unwrap_or_default();
    core.insert(cpu);
    // A sibling cannot wake the core it is part of: while it runs, the core does not sleep.
    let from_cpu = pick::partner(&facts.topology, allowed, cpu).filter(|from| !core.contains(*from));
    let longest_ns = states.iter().filter_map(|s| s.target_residency_ns).max().unwrap_or(0);
    let gap_ns = args.gap.unwrap_or((GAP_TO_RESIDENCY * longest_ns).clamp(MIN_GAP_NS, MAX_GAP_NS));
    let duration_ns = args.duration.unwrap_or((N_FOR_P99 * gap_ns).clamp(MIN_DURATION_NS, MAX_DURATION_NS));
    let from_time = || SystemTime::UNIX_EPOCH.elapsed().map_or(1, |d| u64::from(d.subsec_nanos()) ^ d.as_secs());
    let spec = StateCostSpec {
        cpu,
        from_cpu,
        set_cpus: core.clone(),
        kinds: kinds.to_vec(),
        gap_ns,
        duration_ns,
        seed: args.seed.unwrap_or_else(from_time),
    };
    let guard = GuardCommand::this_program().context("cannot find this program to guard itself")?;
    let arms = StateArms::prepare(facts, cpu, &core, states, &sink, Path::new(STATE_DIR), Some(&guard));
    let arms = arms.map_err(|e| match e {
        StateArmsError::Busy(why) => Failure::error(Code::Busy, why),
        StateArmsError::Refused(why) => {
            could_not(format!("measuring one idle state at a time changes settings, which was refused: {why}"))
        }
    })?;
    let progress = Progress::start("measure idle");
    Ok(state_costs(&spec, arms, facts, src, interrupt.flag(), not_done, &|share, words| progress.set(share, words)))
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

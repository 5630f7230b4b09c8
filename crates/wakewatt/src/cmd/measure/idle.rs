//! `wakewatt measure idle`: what each idle state claims to cost, and what it costs here ([`wakewatt_lab::idle_cost`]).

use super::Measured;
use crate::cli::IdleCostArgs;
use crate::exit::{Code, Failure};
use crate::meters::meters;
use anyhow::Result;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_lab::context::Lab;
use wakewatt_lab::idle_cost::{IdleCostPlan, measure};
use wakewatt_lab::pick;
use wakewatt_lab::survey::allowed_cpus;
use wakewatt_words::{say, spoken, word};

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
                spoken(|| {
                    say!(
                        "CPU {cpu} is not available to this process (it may use {allowed}); choose one of those with --cpu"
                    )
                }),
            ));
        }
        None => return Err(Failure::error(Code::CouldNotMeasure, spoken(|| word!("this process may use no CPU")))),
    };
    let facts = Snapshot::read(lab.src, |topic| ["idle", "topology", "qos"].contains(&topic));
    let kinds: Vec<WakeKind> = match args.kind.is_empty() {
        true => KINDS.to_vec(),
        false => KINDS.into_iter().filter(|k| args.kind.iter().any(|w| w == k.word())).collect(),
    };
    let (gap_ns, duration_ns, states) = (args.gap, args.duration, args.state.clone());
    let seed = args.seed.unwrap_or_else(pick::seed_of_now);
    let meters = if args.no_watts { None } else { Some(meters(&args.meters)?) };
    // Who names kinds wants those.
    let has_first_work = args.kind.is_empty();
    let plan = IdleCostPlan { cpu, allowed, states, kinds, has_first_work, gap_ns, duration_ns, seed, meters };
    let mut measured = Measured::default();
    let costs = measure(&plan, &facts, lab, &mut measured.not_done)?;
    measured.idle_states.push(costs);
    Ok(measured)
}

//! `wakewatt measure wakeup`: arguments to a plan.

use super::Measured;
use crate::cli::{WakePolicy, WakeupArgs};
use anyhow::Result;
use wakewatt_core::samples::waker::Pauses;
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_lab::context::Lab;
use wakewatt_lab::pick;
use wakewatt_lab::survey::{Found, Policy, WakeupPlan, wakeups};

const KINDS: [WakeKind; 5] = [WakeKind::Timer, WakeKind::Futex, WakeKind::Eventfd, WakeKind::Ipi, WakeKind::Pipe];

/// Runs it.
pub(super) fn run(args: &WakeupArgs, lab: Lab<'_>) -> Result<Measured> {
    let plan = WakeupPlan {
        cpus: args.cpu.clone(),
        kinds: KINDS.into_iter().filter(|kind| args.kind.iter().any(|word| word == kind.word())).collect(),
        from_cpu: args.from,
        gap_ns: args.gap,
        pauses: match args.fixed_gap {
            true => Pauses::Fixed,
            false => Pauses::Exponential { seed: args.seed.unwrap_or_else(pick::seed_of_now) },
        },
        policies: match args.policy {
            WakePolicy::Fifo => vec![Policy::Fifo],
            WakePolicy::Other => vec![Policy::Ordinary],
            WakePolicy::Both => vec![Policy::Fifo, Policy::Ordinary],
        },
        duration_ns: args.duration,
    };
    let Found { samples: wakeups, not_done } = wakeups(lab, &plan)?;
    Ok(Measured { wakeups, not_done, ..Measured::default() })
}

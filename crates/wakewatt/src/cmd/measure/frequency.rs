//! `wakewatt measure frequency`: how long a CPU takes from idle to full speed.

use super::Measured;
use crate::cli::FrequencyArgs;
use anyhow::Result;
use wakewatt_lab::context::Lab;
use wakewatt_lab::survey::{Found, SpeedPlan, speeds};

/// Runs it.
pub(super) fn run(args: &FrequencyArgs, lab: Lab<'_>) -> Result<Measured> {
    let plan = SpeedPlan { cpus: args.cpu.clone(), work_ns: args.work, has_vector: !args.no_vector };
    let Found { samples: speed, not_done } = speeds(lab, &plan)?;
    Ok(Measured { speed, not_done, ..Measured::default() })
}

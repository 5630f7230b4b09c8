//! `wakewatt measure power`: every meter of this machine, what each says, and the energy of a command.
//!
//! All kinds of meter are listed whether they work or not; those that work are read in the same window. One is quoted,
//! and named: what the user named, else the first that works. Without any, a model is, under its own name.

use crate::cli::PowerArgs;
use crate::meters::wanted;
use crate::output;
use anyhow::Result;
use wakewatt_lab::context::Lab;
use wakewatt_lab::survey::{self, PowerPlan, PowerSample};

/// Runs it.
pub(super) fn run(args: &PowerArgs, lab: Lab<'_>) -> Result<PowerSample> {
    Ok(survey::power(lab, &plan(args)?)?)
}

/// `--calibrate`: the model on standard output, to be kept and given back with `--model`.
pub(super) fn calibrated(args: &PowerArgs, lab: Lab<'_>) -> Result<()> {
    output::print(&survey::calibrate(lab, &plan(args)?)?.to_text()?)
}

fn plan(args: &PowerArgs) -> Result<PowerPlan> {
    let model = args.model.as_deref().map(survey::read_model).transpose()?;
    let (wanted, preferred) = wanted(&args.meters)?;
    Ok(PowerPlan {
        wanted,
        only: args.meters.meter.clone(),
        preferred,
        for_ns: args.for_ns,
        interval_ns: args.interval,
        command: args.command.clone(),
        model,
    })
}

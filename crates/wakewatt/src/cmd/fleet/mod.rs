//! `wakewatt fleet`: many nodes that do the same work.

mod compare;
mod csv;
mod files;
mod reach;
mod rollout;
mod store;
mod text;
mod traced;

pub use rollout::DryRun;

use crate::cli::fleet::{FleetArgs, FleetCommand};
use crate::exit::Code;
use crate::output::Colour;
use anyhow::Result;

/// Runs it.
pub fn run(args: &FleetArgs, colour: Colour) -> Result<Code> {
    match &args.command {
        FleetCommand::Compare(args) => compare::run(args, colour),
        FleetCommand::Rollout(args) => rollout::run(args, colour),
    }
}

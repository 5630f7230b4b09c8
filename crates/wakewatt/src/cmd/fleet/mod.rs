//! `wakewatt fleet`: many nodes that do the same work.

mod collect;
mod compare;
mod csv;
mod files;
mod reach;
mod rollout;
mod store;
mod tables;
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
        FleetCommand::Collect(args) => collect::run(args),
        FleetCommand::Rollout(args) => rollout::run(args, colour),
        FleetCommand::Tables(args) => tables::run(args),
    }
}

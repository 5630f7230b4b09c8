//! `experiment replicate RUN…`: runs of one plan joined, for people or as a document.

use crate::cli::experiment::ReplicateArgs;
use crate::exit::Code;
use crate::output::{self, Colour};
use crate::report::replication;
use crate::sessions::{self, Given};
use crate::view::Style;
use anyhow::Result;

/// Joins and shows them.
pub(super) fn run(args: &ReplicateArgs, colour: Colour) -> Result<Code> {
    let given: Vec<Given> = args.runs.iter().map(|run| Given::parse(run)).collect();
    let found = sessions::joined(&given)?;
    match args.json {
        true => output::print(&output::json("replicate", &found)?)?,
        false => output::print(&replication::text(&found, Style { is_on: colour.is_on() }, output::width()))?,
    }
    Ok(Code::Fine)
}

//! `wakewatt inspect`: all facts, or the topics named. Reads, writes nothing, wakes nobody it need not.

use crate::cli::InspectArgs;
use crate::exit::Code;
use crate::output::{self, Colour};
use crate::view::{self, Style};
use anyhow::Result;
use wakewatt_core::facts::{Snapshot, TOPICS};

pub fn run(args: &InspectArgs, colour: Colour) -> Result<Code> {
    let source = super::open(&args.from)?;
    let is_wanted = |id: &str| args.topics.is_empty() || args.topics.iter().any(|t| t == id);
    let snapshot = Snapshot::read(&*source, is_wanted);
    if args.json {
        output::print(&json(&snapshot)?)?;
    } else {
        output::print(&view::facts(&snapshot, Style { is_on: colour.is_on() }, args.gaps))?;
    }
    Ok(Code::Fine)
}

/// The document: only the topics that were read.
pub fn json(snapshot: &Snapshot) -> Result<String> {
    if snapshot.topics.len() == TOPICS.len() {
        return output::json("inspect", snapshot);
    }
    let mut value = serde_json::to_value(snapshot)?;
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| snapshot.topics.iter().any(|t| t == key) || !TOPICS.iter().any(|t| t.id == key));
    }
    output::json("inspect", &value)
}

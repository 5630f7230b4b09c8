//! `wakewatt inspect`: all facts, or the topics named. Reads, writes nothing, wakes nobody it need not.
//!
//! Behind the idle states stands what they and the package's states come to together (core's `package_states`). That needs
//! other topics, which are read along and not shown; on a live machine only those that wake nothing, so that the
//! firmware's limit is there only where registers were asked for as well.

use crate::cli::InspectArgs;
use crate::exit::Code;
use crate::output::{self, Colour};
use crate::view::{self, Style};
use anyhow::Result;
use wakewatt_core::facts::{Snapshot, TOPICS, Topic};
use wakewatt_core::package_states;
use wakewatt_core::sheet::Sheet;
use wakewatt_words::{Language, within, word};

/// Read along for core and package states: what wakes nothing, and what a recording may be asked besides.
const ALONG: &[&str] = &["topology", "qos", "boot"];
const ALONG_RECORDED: &[&str] = &["msr", "network", "storage"];

pub fn run(args: &InspectArgs, colour: Colour) -> Result<Code> {
    let source = super::open(&args.from)?;
    let is_wanted = |id: &str| args.topics.is_empty() || args.topics.iter().any(|t| t == id);
    let is_along =
        |id: &str| is_wanted("idle") && (ALONG.contains(&id) || (ALONG_RECORDED.contains(&id) && !source.is_live()));
    let language = if args.json { Language::English } else { wakewatt_words::wanted() };
    let mut snapshot = Snapshot::read(&*source, |id| is_wanted(id) || (is_along(id) && !args.json));
    let more = within(language, || if is_wanted("idle") && !args.json { together(&snapshot) } else { Vec::new() });
    snapshot.topics.retain(|id| is_wanted(id));
    if args.json {
        output::print(&json(&snapshot)?)?;
    } else {
        let style = Style { is_on: colour.is_on() };
        output::print(&within(language, || view::facts(&snapshot, &more, style, args.gaps)))?;
    }
    Ok(Code::Fine)
}

/// Core and package states, behind the idle states.
fn together(snapshot: &Snapshot) -> Vec<(Topic, Sheet)> {
    let sheet = package_states::read(snapshot).sheet();
    vec![(Topic { id: "idle", title: word!("Core and package states together"), help: "" }, sheet)]
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

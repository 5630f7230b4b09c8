//! `experiment replicate RUN…`: runs of one plan joined, for people, as a document, as a page.

use crate::cli::experiment::ReplicateArgs;
use crate::exit::Code;
use crate::output::{self, Colour, Outlet};
use crate::report::replication;
use crate::sessions::{self, Given};
use crate::view::Style;
use anyhow::Result;
use std::time::SystemTime;

/// Joins and shows them.
pub(super) fn run(args: &ReplicateArgs, colour: Colour) -> Result<Code> {
    let page = args.output.as_deref().map(|file| Outlet::open(file, "-o")).transpose()?;
    let given: Vec<Given> = args.runs.iter().map(|run| Given::parse(run)).collect();
    let found = sessions::joined(&given)?;
    let shown = match args.json {
        true => output::json("replicate", &found).and_then(|text| output::print(&text)),
        false => output::print(&replication::text(&found, Style { is_on: colour.is_on() }, output::width())),
    };
    let own = output::settled(shown, Code::Fine);
    let Some(page) = page else { return Ok(own) };
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let written = replication::html(&found, &now).and_then(|html| page.write(&html));
    if written.is_ok() {
        output::remark(&format!("Page: {}", page.path().display()));
    }
    Ok(output::settled(written, own))
}

//! `fleet compare`: arguments to a table of the fleet, and what came of it to text, page, JSON or CSV.

use super::files::{Files, machines};
use super::{csv, store, text, traced};
use crate::cli::fleet::CompareArgs;
use crate::exit::{Code, Failure};
use crate::output::{self, Colour, Outlet};
use crate::report::fleet::FleetReport;
use crate::view::Style;
use anyhow::Result;
use std::time::SystemTime;
use wakewatt_core::visible;
use wakewatt_fleet::compare::{Asked, compare, explain};
use wakewatt_fleet::document::{Fleet, Word};
use wakewatt_fleet::folder;
use wakewatt_fleet::series::{Wanted, gather, window::windows};

pub(super) fn run(args: &CompareArgs, colour: Colour) -> Result<Code> {
    let page = args.output.as_deref().map(|file| Outlet::open(file, "-o")).transpose()?;
    let fleet = match (&args.prometheus, &args.files) {
        (Some(url), _) => of_store(args, url)?,
        (None, Some(_)) => of_files(args)?,
        (None, None) => return Ok(Code::Usage),
    };
    // Files first: a terminal that is gone must not cost them.
    if let Some(page) = &page {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        page.write(&FleetReport::of(&fleet).to_html(&now)?)?;
        output::remark(&format!("Report: {}", page.path().display()));
    }
    output::print(&if args.json {
        output::json("fleet-compare", &fleet)?
    } else if args.csv {
        csv::fleet(&fleet)
    } else {
        text::fleet(&fleet, args.all, Style { is_on: colour.is_on() }, output::width())
    })?;
    // An answer without a single verdict or rank is none.
    let is_known = fleet.nodes.iter().any(|n| n.word != Word::CannotTell || !n.differs.is_empty());
    let is_told = is_known || fleet.firmware.is_some();
    Ok(if is_told { Code::Fine } else { Code::CouldNotMeasure })
}

fn of_store(args: &CompareArgs, url: &str) -> Result<Fleet> {
    let length_s = args.last / u64::from(args.windows) / 1_000_000_000;
    if length_s < 10 {
        let why = "windows of less than 10 s hold no rate: give a longer --last, or fewer --windows";
        return Err(Failure::error(Code::Usage, why));
    }
    let door = store::open(&args.store, url)?;
    let until_ms = args.until.unwrap_or_else(now_ms);
    let wanted = Wanted {
        label: args.node_label.clone(),
        matchers: args.select.clone(),
        windows: windows(until_ms, length_s, args.windows as usize),
        work: args.work.clone(),
        latency: args.latency.clone(),
        cpu: args.cpu.clone(),
        power: args.power.clone(),
        peers_by: args.peers_by.clone(),
    };
    let found = gather(&door, &wanted)
        .map_err(|why| Failure::error(Code::CouldNotMeasure, visible::line(&why.to_string()).into_owned()))?;
    let asked = Asked {
        source: url.into(),
        work: args.work.clone(),
        changed_at_ms: args.changed_at,
        remarks: found.remarks,
        agent_would_add: found.agent_would_add,
    };
    let files = args.facts.as_deref().map(Files::of).transpose()?;
    let mut table = found.table;
    files.iter().for_each(|files| files.tell_firmware(&mut table));
    let mut fleet = compare(&table, asked);
    if let Some(files) = files {
        explain(&mut fleet, &files);
        traced::explain(&mut fleet, &files);
    }
    Ok(fleet)
}

fn of_files(args: &CompareArgs) -> Result<Fleet> {
    let Some(path) = &args.files else { return Err(Failure::error(Code::Usage, "no folder")) };
    let files = Files::of(path)?;
    let table = folder::table(&machines(&files)?, &args.peers_by);
    let work = "operations of the loads that the runs measured".to_string();
    let has_work = table.has(wakewatt_fleet::measure::Quantity::Work);
    let source = path.display().to_string();
    let mut fleet = compare(&table, Asked { source, work: has_work.then_some(work), ..Asked::default() });
    explain(&mut fleet, &files);
    traced::explain(&mut fleet, &files);
    Ok(fleet)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

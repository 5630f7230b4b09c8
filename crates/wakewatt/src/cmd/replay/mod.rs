//! `wakewatt replay`: recorded idle time as it would have been. Arguments to a replay of the models crate, and what it came to.

mod text;

use crate::cli::replay::ReplayArgs;
use crate::exit::{Code, Failure};
use crate::output;
use crate::recording;
use crate::report::trace::clean;
use anyhow::Result;
use std::path::Path;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::wtrace::{Header, Item, TableState};
use wakewatt_host::recorded;
use wakewatt_models::replay::{Change, Replay, Replayed, sweep};

/// Runs it.
pub fn run(args: &ReplayArgs) -> Result<Code> {
    let bytes = recording::load(&args.file)?;
    let mut changes = args.set.clone();
    if let Some(host) = &args.table {
        changes.push(Change::Table(table_of(host)?));
    }
    if !args.sweep {
        let (_, replayed) = replay(args, &bytes, &changes)?;
        output::print(&if args.json {
            output::json("replay", &replayed)?
        } else {
            text::replayed(&replayed, args.by_cpu, output::width())
        })?;
        return Ok(Code::Fine);
    }
    let header = recording::open(&args.file, &bytes)?.header.clone();
    let of = |limit_ns: u64| {
        let asked = [&changes[..], &[sweep::asking(limit_ns)]].concat();
        Ok((limit_ns, replay(args, &bytes, &asked)?.1))
    };
    let limits = sweep::limits_ns(&header, &[&args.recorded[..], &changes[..]].concat());
    let swept = sweep::sweep(limits.into_iter().map(of).collect::<Result<Vec<_>>>()?);
    output::print(&if args.json {
        output::json("replay-sweep", &swept)?
    } else {
        text::swept(&swept, output::width())
    })?;
    Ok(Code::Fine)
}

/// One pass over the recording.
fn replay(args: &ReplayArgs, bytes: &[u8], changes: &[Change]) -> Result<(Header, Replayed)> {
    let mut reader = recording::open(&args.file, bytes)?;
    let header = reader.header.clone();
    let refused = |why: String| Failure::error(Code::BadFile, format!("{}: {}", args.file.display(), clean(&why)));
    let mut replay = Replay::new(&header, changes, &args.recorded).map_err(|e| refused(e.to_string()))?;
    for item in reader.by_ref() {
        match item {
            Item::Pairs(pairs) => replay.pairs(&pairs),
            Item::Choices(choices) => replay.choices(&choices),
            Item::Mark(mark) => replay.mark(&mark),
        }
    }
    let mut replayed = replay.finish();
    let ending = recording::ending(&reader);
    if ending != "complete" {
        replayed.remarks.push(format!("The recording is {ending}."));
    }
    Ok((header, replayed))
}

/// The idle states of a recorded host's first CPU.
fn table_of(host: &Path) -> Result<Vec<TableState>> {
    let facts = Snapshot::read(&recorded::open(host)?, |topic| topic == "idle");
    let (_, rows) = facts.idle.tables().into_iter().next().ok_or_else(|| {
        Failure::error(Code::BadFile, format!("{}: it has no idle states (see inspect idle --host)", host.display()))
    })?;
    let state = |row: wakewatt_core::facts::idle::TableRow| TableState {
        index: row.index,
        is_polling: row.is_polling(),
        name: row.name,
        exit_latency_ns: row.exit_latency_ns,
        target_residency_ns: row.target_residency_ns,
        is_enabled: row.is_enabled,
    };
    Ok(rows.into_iter().map(state).collect())
}

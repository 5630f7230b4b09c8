//! `wakewatt replay`: recorded idle time as it would have been. Arguments to replays of the models crate, and what they came to.

#[cfg(feature = "parquet")]
mod parquet;
mod passes;
mod text;
mod written;

use crate::cli::replay::ReplayArgs;
use crate::exit::{Code, Failure};
use crate::features::Feature;
use crate::output;
use crate::saved;
use anyhow::Result;
use passes::Passes;
use std::path::Path;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::record::wtrace::TableState;
use wakewatt_core::samples::replayed::Replayed;
use wakewatt_host::recorded;
use wakewatt_models::replay::slo::{Asked, slo};
use wakewatt_models::replay::{Change, Exits, Upgrade, sweep};
use written::Written;

/// Runs it.
pub fn run(args: &ReplayArgs) -> Result<Code> {
    args.parquet.iter().try_for_each(|_| Feature::Parquet.need("replay --parquet"))?;
    let written = Written::open(args)?;
    let mut changes = args.set.clone();
    if let Some(host) = &args.table {
        changes.push(Change::Table(table_of(host)?));
    }
    let mut corrections = args.recorded.clone();
    if let Some(run) = &args.measured {
        corrections.push(Change::Measured(exits_of(run)?));
    }
    let passes = Passes { file: &args.file, changes, corrections };
    let mut told = Told::default();
    // The page shows every limit, whatever was asked.
    let limits = match args.sweep || args.slo.is_some() || args.output.is_some() {
        true => passes.under_every_limit()?,
        false => Vec::new(),
    };
    if args.sweep || args.output.is_some() {
        told.sweep = Some(sweep::sweep(&limits));
    }
    if let Some(objective) = &args.slo {
        let asked = Asked { objective: objective.clone(), sleeper_ratio: args.sleepers, hop_cost_ns: args.hop_cost };
        let none = || Failure::error(Code::BadFile, format!("{}: no idle state to ask for", args.file.display()));
        told.slo = Some(slo(&limits, &asked).ok_or_else(none)?);
    }
    match &args.upgrade {
        Some(new) => {
            let (upgrade, replayed) = passes.upgrade((args.from.clone(), new.clone()))?;
            (told.upgrade, told.replays) = (Some(upgrade), vec![replayed]);
        }
        None if args.sweep || args.slo.is_some() => {
            told.asked = Some(passes.one(&[])?);
            told.replays = limits.into_iter().map(|(_, replayed)| replayed).collect();
        }
        None => told.replays = vec![passes.one(&[])?],
    }
    // Files first: a terminal that is gone must not cost them.
    let kept = written.write(&told);
    let shown = show(args, &told);
    kept?;
    shown?;
    Ok(if told.has_verdict() { Code::Fine } else { Code::NoSample })
}

/// What came of it.
#[derive(Debug, Default)]
struct Told {
    /// What files hold: one, or one for each limit.
    replays: Vec<Replayed>,
    /// What was asked, where `replays` are of every limit.
    asked: Option<Replayed>,
    sweep: Option<sweep::Sweep>,
    slo: Option<wakewatt_models::replay::slo::Slo>,
    upgrade: Option<Upgrade>,
}

impl Told {
    /// Was enough of the recording followed under everything that was asked?
    fn has_verdict(&self) -> bool {
        self.replays.iter().chain(&self.asked).all(|r| r.followed.is_enough())
            && self.sweep.as_ref().is_none_or(|sweep| sweep.followed.is_enough())
    }

    /// Recorded beside what was asked.
    fn asked(&self) -> Option<&Replayed> {
        self.asked.as_ref().or(self.replays.last())
    }
}

fn show(args: &ReplayArgs, told: &Told) -> Result<()> {
    let width = output::width();
    let text = match (told, args.json) {
        (Told { slo: Some(slo), .. }, true) => output::json("replay-slo", slo)?,
        (Told { slo: Some(slo), .. }, false) => text::slo(slo, width),
        (Told { upgrade: Some(upgrade), .. }, true) => output::json("replay-upgrade", upgrade)?,
        (Told { upgrade: Some(upgrade), .. }, false) => text::upgrade(upgrade, args.by_cpu, width),
        (Told { sweep: Some(swept), .. }, true) if args.sweep => output::json("replay-sweep", swept)?,
        (Told { sweep: Some(swept), .. }, false) if args.sweep => text::swept(swept, width),
        (told, is_json) => match told.asked() {
            Some(replayed) if is_json => output::json("replay", replayed)?,
            Some(replayed) => text::replayed(replayed, args.by_cpu, width),
            None => String::new(),
        },
    };
    output::print(&text)
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

/// What a run measured of leaving idle states.
fn exits_of(run: &Path) -> Result<Exits> {
    let (_, evidence) = saved::open(run)?;
    let exits = Exits::of(&evidence.samples.idle_states);
    if exits.is_empty() {
        let why = "holds no idle state whose exit was measured; make one with: wakewatt measure idle --save FILE";
        return Err(Failure::error(Code::BadFile, format!("{}: {why}", run.display())));
    }
    Ok(exits)
}

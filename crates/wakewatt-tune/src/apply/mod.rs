//! Applying: all requested settings, or none.
//!
//! Order of events: resolve; read every file that will or may change; journal (durable); guard process; then stage by
//! stage write, read back, judge. Stages that bring files (a driver, a governor, a CPU) are followed by a fresh look at
//! the host, and what has newly appeared is journaled before it is written. A refused write is tried once more after the
//! others of its stage, because some pairs must be written in one order; if it is refused again everything goes back,
//! unless asked to keep going. A watch, if there is one, looks on while the journal is still open, so that even kill -9
//! takes everything back. At the end everything is read once more: what a later setting has moved is written
//! again, and what moved without having been asked for is kept in the journal, so that undo restores it too.

use crate::boot::Argument;
use crate::guard::{Guard, GuardCommand};
use crate::journal::{Command, Draft, Entry, Journal, JournalError, Owner, Phase};
use crate::knob::Host;
use crate::request::Request;
use crate::resolve::{Change, Resolved, Step, resolve};
use crate::undo::{Patience, UndoReport, Undone, undo_entries};
use entries::{add_entries, file_entries};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use wakewatt_core::source::Source;
use wakewatt_host::exec::Runner;
use wakewatt_host::sink::Sink;
use wakewatt_host::store::Store;
use work::Work;

mod entries;
mod work;

pub mod session;

/// What a transaction works with.
#[derive(Clone, Copy)]
pub struct Hands<'a> {
    /// Reads facts.
    pub source: &'a dyn Source,
    /// Writes settings.
    pub sink: &'a dyn Sink,
    /// Keeps the journal.
    pub store: &'a dyn Store,
    /// Runs commands.
    pub runner: &'a dyn Runner,
}

/// A file that acts at the next boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub path: String,
    /// What it is to hold; none: it goes.
    pub to: Option<String>,
}

/// How a transaction waits for its confirmation.
#[derive(Clone, Copy)]
pub struct Confirm<'a> {
    /// How long, counted from when everything is applied and watched.
    pub within_ns: u64,
    /// The boot clock.
    pub boottime_ns: &'a dyn Fn() -> u64,
    /// Starts the process that undoes this journal when nobody confirms it. Called before the first write.
    pub start: &'a dyn Fn(&Path) -> Result<(), String>,
}

/// What to do.
#[derive(Clone, Default)]
pub struct Order<'a> {
    /// What for, in words.
    pub purpose: String,
    /// The settings.
    pub requests: Vec<Request>,
    /// Files, after the settings.
    pub files: Vec<FileChange>,
    /// Commands (run, inverse), after the files.
    pub commands: Vec<(Vec<String>, Vec<String>)>,
    /// What those are for: kernel parameters, to be checked after the next boot.
    pub arguments: Vec<Argument>,
    /// Leave out what is refused instead of taking everything back.
    pub is_keeping_going: bool,
    /// Undone by itself unless confirmed in time.
    pub confirm: Option<Confirm<'a>>,
    /// Watches what was applied, while a crash would still undo it; an error takes everything back.
    pub watch: Option<&'a dyn Fn() -> Result<(), String>>,
    /// Undoes if this process dies in the middle.
    pub guard: Option<&'a GuardCommand>,
    /// The root of paths; empty for `/`.
    pub root: &'a str,
}

/// What became of one setting at one place.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SettingOutcome {
    /// The setting's name: `freq.governor`.
    pub name: String,
    /// Which one of them: a CPU, a policy, a device.
    pub place: String,
    /// The file that was written.
    pub path: String,
    /// What it held before; none where it could not be read.
    pub before: Option<String>,
    /// The text that was written.
    pub requested: String,
    /// Both as people say it.
    pub before_shown: String,
    /// The same for the new one.
    pub requested_shown: String,
    /// What the kernel says now.
    pub read_back: Option<String>,
    /// What is in force, where that is known to differ.
    pub effective: Option<String>,
    /// How it went.
    pub result: SettingResult,
    /// It may be left out where it cannot be set.
    pub is_optional: bool,
}

/// How one write went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SettingResult {
    /// Written, and read back as written.
    Set,
    /// It was so already; nothing was written.
    WasSo,
    /// The kernel made something else of it that is legal.
    Clamped(String),
    /// Refused, or not kept.
    Refused(String),
}

/// The end of an application.
#[derive(Debug)]
pub struct Outcome {
    /// The journal's name; none when there was nothing to change or everything was taken back.
    pub id: Option<String>,
    /// Every setting.
    pub settings: Vec<SettingOutcome>,
    /// What could not be done and was left out: optional, or when keeping going.
    pub left_out: Vec<String>,
    /// How many of these were not optional.
    pub n_refused: usize,
    /// Everything was taken back, because of this.
    pub failed: Option<(String, UndoReport)>,
}

/// An application that did not begin.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Not possible on this host; nothing was changed.
    #[error("nothing is changed: {}", .0.join("; "))]
    Refused(Vec<String>),
    /// No journal, no change.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No guard, no change.
    #[error("nothing is changed: {0}")]
    Guard(String),
}

/// Applies an order.
pub fn apply(hands: Hands<'_>, owner: &Owner, state_dir: &Path, order: &Order<'_>) -> Result<Outcome, ApplyError> {
    let host = Host::read(hands.source);
    let resolved = resolve(&host, &order.requests);
    let mut left_out = resolved.refused.clone();
    left_out.extend(resolved.steps.iter().flat_map(|s| s.left_out.iter().map(|why| format!("{}: {why}", s.request))));
    if !resolved.refused.is_empty() && !order.is_keeping_going {
        return Err(ApplyError::Refused(resolved.refused));
    }
    if is_nothing_to_do(&resolved, order, hands.sink) {
        let settings = resolved.steps.iter().flat_map(|s| s.changes.iter().map(|c| outcome(s, c))).collect();
        return Ok(Outcome { id: None, settings, left_out, n_refused: resolved.refused.len(), failed: None });
    }
    // A program that is not there would be found out about with everything else written.
    find_programs(hands.runner, order.commands.iter().flat_map(|(run, undo)| [run, undo]))?;
    let n_unresolved = resolved.refused.len();
    let mut entries = file_entries(hands.sink, order).map_err(|e| ApplyError::Refused(vec![e.to_string()]))?;
    add_entries(&mut entries, &host, hands.sink, &resolved.steps)
        .map_err(|e| ApplyError::Refused(vec![e.to_string()]))?;
    let draft = Draft {
        purpose: &order.purpose,
        root: order.root,
        entries,
        commands: order
            .commands
            .iter()
            .map(|(run, undo)| Command { run: run.clone(), undo: undo.clone(), is_started: false })
            .collect(),
        requests: order.requests.clone(),
        arguments: order.arguments.clone(),
    };
    let mut journal = Journal::create(hands.store, state_dir, owner, "tune", draft)?;
    let guard = order.guard.map(|command| Guard::start(command, journal.file())).transpose();
    let watched = order.confirm.map_or(Ok(()), |confirm| (confirm.start)(journal.file()));
    let guard = match (guard, watched) {
        (Ok(guard), Ok(())) => guard,
        (guard, watched) => {
            let mut why = watched.err().or(guard.as_ref().err().map(ToString::to_string)).unwrap_or_default();
            let left = UndoReport::default().finish(&journal, hands.store).journal_left();
            why.extend(left.map(|left| format!("; {left}")));
            // Nothing was written, so there is nothing that a guard killed now could have half put back.
            let _ = guard.ok().flatten().map(Guard::dismiss);
            return Err(ApplyError::Guard(why));
        }
    };
    let mut work =
        Work { hands, order, journal: &mut journal, settings: Vec::new(), left_out, patience: Patience::default() };
    let done = work.carry_out(resolved.steps);
    let Work { settings, left_out, .. } = work;
    let mut failed = done.err().map(|why| {
        let report = undo_all(hands, &mut journal, &owner.boot_id, false);
        (why, report.finish(&journal, hands.store))
    });
    let is_orderly = guard.is_none_or(Guard::dismiss);
    if let (false, Some((_, report))) = (is_orderly, &mut failed) {
        report.look_again(undo_all(hands, &mut journal, &owner.boot_id, false));
    }
    let id = failed.is_none().then(|| journal.id());
    let is_refused = |s: &&SettingOutcome| matches!(s.result, SettingResult::Refused(_)) && !s.is_optional;
    let n_refused = n_unresolved + settings.iter().filter(is_refused).count();
    Ok(Outcome { id, settings, left_out, n_refused, failed })
}

/// Every program that these commands need.
fn find_programs<'c>(runner: &dyn Runner, commands: impl Iterator<Item = &'c Vec<String>>) -> Result<(), ApplyError> {
    let missing: BTreeSet<String> =
        commands.filter_map(|argv| argv.first()).filter_map(|program| runner.find(program).err()).collect();
    if missing.is_empty() { Ok(()) } else { Err(ApplyError::Refused(missing.into_iter().collect())) }
}

/// Undoes everything of a journal: files and commands first, then settings; those only if the machine has not booted
/// since, which reset them. The journal's file is the caller's to remove.
pub fn undo_all(hands: Hands<'_>, journal: &mut Journal, boot_id: &str, is_forced: bool) -> UndoReport {
    let is_same_boot = journal.is_of_boot(boot_id);
    let is_open = journal.phase == Phase::Open;
    let (durable, fleeting): (Vec<&Entry>, Vec<&Entry>) = journal.entries.iter().partition(|e| e.is_durable());
    let mut report = undo_entries(hands.sink, &durable, is_forced, is_open);
    for command in journal.commands.iter().rev().filter(|c| c.is_started && !c.undo.is_empty()) {
        let result = hands.runner.run(&command.undo).map_or_else(Undone::Failed, |()| Undone::Ran);
        report.entries.push((command.undo.join(" "), result));
    }
    if is_same_boot {
        report.entries.extend(undo_entries(hands.sink, &fleeting, is_forced, is_open).entries);
    }
    report
}

fn is_nothing_to_do(resolved: &Resolved, order: &Order<'_>, sink: &dyn Sink) -> bool {
    let is_file_so = |file: &FileChange| match sink.read(&file.path) {
        Ok(now) => file.to.as_ref() == Some(&now),
        Err(e) => e.is_absent && file.to.is_none(),
    };
    order.files.iter().all(is_file_so)
        && (order.commands.is_empty() || !order.files.is_empty())
        && resolved.steps.iter().all(|s| s.later.is_none() && s.changes.iter().all(Change::is_so))
}

fn outcome(step: &Step, change: &Change) -> SettingOutcome {
    SettingOutcome {
        name: step.request.name.clone(),
        place: change.place.clone(),
        path: change.path.clone(),
        before: change.before.clone(),
        requested: change.to.clone(),
        before_shown: change.before_shown.clone(),
        requested_shown: change.to_shown.clone(),
        read_back: change.before.clone(),
        effective: None,
        result: SettingResult::WasSo,
        is_optional: step.request.is_optional,
    }
}

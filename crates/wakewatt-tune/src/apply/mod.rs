//! Applying: all requested settings, or none.
//!
//! Order of events: resolve; read every file that will or may change; journal (durable); guard process; then stage by
//! stage write, read back, judge. Stages that bring files (a driver, a governor, a CPU) are followed by a fresh look at
//! the host, and what has newly appeared is journaled before it is written. A refused write is tried once more after the
//! others of its stage, because some pairs must be written in one order; if it is refused again everything goes back,
//! unless asked to keep going. A watch, if there is one, looks on while the journal is still open, so that even kill -9
//! takes everything back. At the end everything is read once more: what a later setting has moved is written
//! again, and what moved without having been asked for is kept in the journal, so that undo restores it too.

mod entries;
mod order;
mod outcome;
mod work;

pub(crate) use entries::{add_entries, read_before};
pub use order::{Confirm, FileChange, Order};
pub use outcome::{ApplyError, Outcome, SettingOutcome, SettingResult};
pub(crate) use work::{Work, judge, start};

use crate::guard::Guard;
use crate::hands::Hands;
use crate::journal::{Command, Draft, Journal, Owner};
use crate::knob::Host;
use crate::put_back::undo_all;
use crate::resolve::{Change, Resolved, resolve};
use crate::undo::{Patience, UndoReport};
use entries::file_entries;
use outcome::outcome;
use std::collections::BTreeSet;
use std::path::Path;
use wakewatt_host::exec::Runner;
use wakewatt_host::sink::Sink;

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
pub(crate) fn find_programs<'c>(
    runner: &dyn Runner,
    commands: impl Iterator<Item = &'c Vec<String>>,
) -> Result<(), ApplyError> {
    let missing: BTreeSet<String> =
        commands.filter_map(|argv| argv.first()).filter_map(|program| runner.find(program).err()).collect();
    if missing.is_empty() { Ok(()) } else { Err(ApplyError::Refused(missing.into_iter().collect())) }
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

//! Undo: every entry of a journal back to what it was, unless somebody else has changed it since.
//!
//! Compare-and-set: before anything is written, every entry is read, and one whose value is neither ours nor the old
//! one is left alone (unless forced), but for the boot files of `boot/take_out.rs`, which lose our words only. Then values go back stage by stage (`Stage::undo_rank`), within a stage in
//! reverse order. One setting may move another (a governor its preference, turbo the limits), so the round is repeated
//! until all hold or nothing more changes. A file that vanished is judged by [`crate::gone`]: with its device the setting
//! has gone too, and is done with; what is only out of reach (a CPU that went offline) stays in the journal and is said
//! apart from what failed. Running it twice does no harm: what is as before already is not written.

use crate::boot::take_out::take_out;
use crate::gone::{self, Missing};
use crate::journal::{Entry, Journal, JournalError, Phase};
use crate::knob::Kept;
use crate::knobs;
use std::collections::BTreeMap;
use wakewatt_core::arrange::Arrange as _;
use wakewatt_host::sink::Sink;
use wakewatt_host::store::Store;

/// Rounds before giving up; each but the first only writes what an earlier one disturbed.
const MAX_ROUNDS: usize = 4;

/// How long values that the kernel takes over late are waited for, all of one transaction together.
#[derive(Debug)]
pub(crate) struct Patience {
    n_left: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Patience { n_left: 100 }
    }
}

impl Patience {
    /// Waits a moment; false when that has been done for a second.
    pub(crate) fn wait(&mut self) -> bool {
        if self.n_left == 0 {
            return false;
        }
        self.n_left -= 1;
        std::thread::sleep(std::time::Duration::from_millis(10));
        true
    }
}

/// What became of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// Written back and read back.
    Restored,
    /// A command that takes something back was run.
    Ran,
    /// It held the old value already.
    WasSo,
    /// It has gone with its device: there is nothing left to put back.
    Gone(String),
    /// It is out of reach now and may come back as it went: put back when it does.
    Away(String),
    /// Somebody else wrote this value since; left alone.
    Foreign(String),
    /// Could not be written or read.
    Failed(String),
}

impl std::fmt::Display for Undone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Undone::Restored => f.write_str("put back"),
            Undone::Ran => f.write_str("run"),
            Undone::WasSo => f.write_str("was as before already"),
            Undone::Gone(why) => write!(f, "nothing left to put back: {why}"),
            Undone::Away(why) => write!(f, "out of reach: {why}"),
            Undone::Foreign(value) => write!(f, "left alone: somebody else has set it to {value:?} since"),
            Undone::Failed(why) => write!(f, "could not be put back: {why}"),
        }
    }
}

/// The result for all entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndoReport {
    /// Path and result, in the order they were undone.
    pub entries: Vec<(String, Undone)>,
    /// Everything is put back, and only the journal that named it could not be removed.
    pub kept_journal: Option<JournalError>,
}

impl UndoReport {
    /// Everything as before, or gone?
    pub fn is_complete(&self) -> bool {
        self.entries.iter().all(|(_, u)| u.is_done())
    }
    /// Is nothing left that could be done now? What is out of reach waits, and is in nobody's way.
    pub fn is_settled(&self) -> bool {
        self.entries.iter().all(|(_, u)| u.is_done() || matches!(u, Undone::Away(_)))
    }
    /// What is left, one line each.
    pub fn left(&self) -> Vec<String> {
        let line = |(path, undone): &(String, Undone)| match undone {
            Undone::Restored | Undone::Ran | Undone::WasSo | Undone::Gone(_) => None,
            Undone::Away(why) => Some(format!("{path}: {why}; then undo it: wakewatt recover")),
            Undone::Foreign(value) => {
                Some(format!("{path}: somebody else has set it to {value:?} since; left alone (--force overrides)"))
            }
            Undone::Failed(why) => Some(format!("{path}: {why}")),
        };
        self.entries.iter().filter_map(line).collect()
    }
    /// The journal that is left though everything is put back, in a sentence.
    pub fn journal_left(&self) -> Option<String> {
        let error = self.kept_journal.as_ref()?;
        Some(format!(
            "all settings are put back, but their journal could not be removed: {error}; once its folder can be written \
             to again (findmnt -T shows where it lies, mount -o remount,rw), wakewatt recover removes it"
        ))
    }
    /// Removes the journal where nothing is left of it.
    #[must_use]
    pub fn finish(mut self, journal: &Journal, store: &dyn Store) -> UndoReport {
        if self.is_complete() {
            self.kept_journal = journal.finish(store).err();
        }
        self
    }
    /// After a guard that had to be killed, and may have been at work: what a second undo finds wrong counts.
    pub(crate) fn look_again(&mut self, second: UndoReport) {
        if !second.is_complete() {
            self.entries = second.entries;
        }
    }
    /// Both: all that is not as if nothing had been.
    pub fn remains(&self) -> Vec<String> {
        let mut lines = self.left();
        lines.extend(self.journal_left());
        lines
    }
}

impl Undone {
    fn is_done(&self) -> bool {
        matches!(self, Undone::Restored | Undone::Ran | Undone::WasSo | Undone::Gone(_))
    }
}

/// Undoes a journal through a sink: settings only, its commands are [`crate::apply`]'s. The journal's file is the
/// caller's to remove.
pub fn undo(sink: &dyn Sink, journal: &Journal, is_forced: bool) -> UndoReport {
    let entries: Vec<&Entry> = journal.entries.iter().collect();
    undo_entries(sink, &entries, is_forced, journal.phase == Phase::Open)
}

/// The same for some of the entries. A transaction that never came to its end (`is_open`) had no time to note what the
/// kernel made of its values, so there a legal clamp of one of them counts as ours.
pub fn undo_entries(sink: &dyn Sink, entries: &[&Entry], is_forced: bool, is_open: bool) -> UndoReport {
    let aimed: Vec<Entry> = entries.iter().map(|entry| aimed(sink, entry, is_forced)).collect();
    let mut order: Vec<(usize, &Entry)> = aimed.iter().enumerate().collect();
    order.arrange_by_key(|(at, e)| (e.stage.undo_rank(), std::cmp::Reverse(*at)));
    let mut results: BTreeMap<usize, Undone> = BTreeMap::new();
    for (at, entry) in &order {
        match now(sink, entry) {
            Ok(now) if entry.is_before(&now) || is_untouched(entry) => {
                results.insert(*at, Undone::WasSo);
            }
            Ok(now) if !is_forced && !is_ours(entry, &now, is_open) => {
                results.insert(*at, Undone::Foreign(now.unwrap_or_else(|| "(removed)".into())));
            }
            _ => {}
        }
    }
    let mut patience = Patience::default();
    for round in 0..MAX_ROUNDS {
        let mut is_quiet = true;
        for (at, entry) in &order {
            let last = results.get(at);
            if matches!(last, Some(Undone::Foreign(_))) || is_untouched(entry) {
                continue;
            }
            // A file that looks right may not be durable yet, if the process that put it back was cut short: once more.
            // The old value of a slow one may be read while ours is still on its way.
            let is_late = entry.stage.is_slow() && !entry.is_collateral;
            let is_doubtful =
                (entry.is_durable() || is_late) && (round == 0 || matches!(last, Some(Undone::Failed(_))));
            let result = match now(sink, entry) {
                Ok(now) if entry.is_before(&now) && !is_doubtful => match last {
                    // Right again after an earlier failure: a later setting allowed it.
                    Some(Undone::Failed(_)) => Undone::Restored,
                    Some(last) => last.clone(),
                    None => Undone::WasSo,
                },
                Ok(now) if entry.is_before(&now) && entry.is_durable() => match sink.make_durable(&entry.path) {
                    Ok(()) => last.filter(|l| !matches!(l, Undone::Failed(_))).cloned().unwrap_or(Undone::Restored),
                    Err(error) => Undone::Failed(error.what),
                },
                Ok(now) => {
                    is_quiet &= entry.is_before(&now);
                    match put_back(sink, entry, &mut patience) {
                        Undone::Restored if entry.is_before(&now) => Undone::WasSo,
                        other => other,
                    }
                }
                Err(why) => Undone::Failed(why),
            };
            is_quiet &= !matches!(result, Undone::Failed(_));
            results.insert(*at, result);
        }
        if is_quiet {
            break;
        }
    }
    // At the end only: what is put back may bring a file (a CPU that goes online again, a driver, a governor).
    for (at, entry) in &order {
        let is_absent = || !entry.is_durable() && sink.read(&entry.path).is_err_and(|error| error.is_absent);
        if matches!(results.get(at), Some(Undone::Failed(_))) && is_absent() {
            match gone::judge(sink, &entry.path) {
                Missing::Gone(why) => drop(results.insert(*at, Undone::Gone(why))),
                Missing::Away(why) => drop(results.insert(*at, Undone::Away(why))),
                Missing::Unknown => {}
            }
        }
    }
    let result = |(at, entry): &(usize, &Entry)| (entry.path.clone(), results.remove(at).unwrap_or(Undone::WasSo));
    UndoReport { entries: order.iter().map(result).collect(), kept_journal: None }
}

/// The entry with what its file shall hold: a boot file that somebody has edited since keeps that, without our words.
fn aimed(sink: &dyn Sink, entry: &Entry, is_forced: bool) -> Entry {
    let mut entry = entry.clone();
    let Some(path) = entry.path.strip_prefix("file:").filter(|_| !is_forced) else { return entry };
    let Ok(Some(now)) = now(sink, &entry) else { return entry };
    let found = Some(now.clone());
    if entry.is_before(&found) || is_untouched(&entry) || entry.ours.contains(&found) {
        return entry;
    }
    let ours = entry.ours.iter().flatten().next_back();
    if let Some(without) = take_out(path, entry.before.as_deref(), ours.map(String::as_str), &now) {
        entry.before = without;
        entry.ours.push(found);
    }
    entry
}

/// It was so before, so whatever is there now is not our doing.
pub(crate) fn is_untouched(entry: &Entry) -> bool {
    !entry.ours.is_empty() && entry.ours.iter().all(|o| *o == entry.before)
}

/// May this value be our doing?
fn is_ours(entry: &Entry, now: &Option<String>, is_open: bool) -> bool {
    // A side effect that no orderly end recorded may hold anything: the kernel moved it.
    let is_moved = entry.is_collateral && entry.ours.is_empty();
    let is_doing_of = |ours: &String| {
        let known = now.as_ref().zip(knobs::find(&entry.name));
        // A clamp was noted when the transaction came to its end; after that it is somebody else's.
        known.is_some_and(|(now, knob)| {
            knob.is_ours(ours, now) && (is_open || !matches!(knob.kept(ours, now), Kept::Legally(_)))
        })
    };
    is_moved
        || (entry.is_movable && is_open)
        || entry.ours.contains(now)
        || entry.ours.iter().flatten().any(is_doing_of)
}

/// The value now; none where the file is not there and was not there before either.
pub(crate) fn now(sink: &dyn Sink, entry: &Entry) -> Result<Option<String>, String> {
    match sink.read(&entry.path) {
        Ok(value) => Ok(Some(value)),
        Err(error)
            if error.is_absent && (entry.before.is_none() || entry.has_come || sink.is_removable(&entry.path)) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.what),
    }
}

fn put_back(sink: &dyn Sink, entry: &Entry, patience: &mut Patience) -> Undone {
    let written = match &entry.before {
        Some(before) => sink.write(&entry.path, before),
        None if sink.is_removable(&entry.path) => sink.remove(&entry.path),
        // It came with another setting (a governor's tunables) and goes with it.
        None => return Undone::WasSo,
    };
    if let Err(error) = written {
        return if error.is_absent && entry.has_come { Undone::Restored } else { Undone::Failed(error.what) };
    }
    let mut found = now(sink, entry);
    while entry.stage.is_slow() && found.as_ref().is_ok_and(|now| !entry.is_before(now)) && patience.wait() {
        found = now(sink, entry);
    }
    match found {
        Ok(now) if entry.is_before(&now) => Undone::Restored,
        Ok(now) => Undone::Failed(format!(
            "wrote {:?}, reads back {:?}",
            entry.before.as_deref().unwrap_or("(nothing)"),
            now.as_deref().unwrap_or("(nothing)")
        )),
        Err(why) => Undone::Failed(why),
    }
}

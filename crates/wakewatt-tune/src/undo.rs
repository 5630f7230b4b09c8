//! Undo: every entry of a journal back to what it was, in reverse order, unless somebody else has changed it since.
//!
//! Compare-and-set: the current value must be one that we wrote (or already the old one). A file that vanished (its
//! CPU went offline) is reported; the kernel keeps the request with the CPU, so it is left in the journal.

use crate::journal::Journal;
use wakewatt_host::sink::Sink;

/// What became of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// Written back and read back.
    Restored,
    /// It held the old value already.
    WasSo,
    /// Somebody else wrote this value since; left alone.
    Foreign(String),
    /// Could not be written or read.
    Failed(String),
}

impl std::fmt::Display for Undone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Undone::Restored => f.write_str("put back"),
            Undone::WasSo => f.write_str("was as before already"),
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
}

impl UndoReport {
    /// Everything as before?
    pub fn is_complete(&self) -> bool {
        self.entries.iter().all(|(_, u)| matches!(u, Undone::Restored | Undone::WasSo))
    }
    /// What is left, one line each.
    pub fn left(&self) -> Vec<String> {
        let line = |(path, undone): &(String, Undone)| match undone {
            Undone::Restored | Undone::WasSo => None,
            Undone::Foreign(value) => Some(format!(
                "{path}: somebody else has set it to {value:?} since; left alone (wakewatt recover --force overrides)"
            )),
            Undone::Failed(why) => Some(format!("{path}: {why}")),
        };
        self.entries.iter().filter_map(line).collect()
    }
}

/// Undoes a journal through a sink. The journal's file is the caller's to remove.
pub fn undo(sink: &dyn Sink, journal: &Journal, is_forced: bool) -> UndoReport {
    let entries = journal.entries.iter().rev().map(|entry| {
        let result = match sink.read(&entry.path) {
            Err(error) => Undone::Failed(error.what),
            Ok(now) if now == entry.before => Undone::WasSo,
            Ok(now) if !is_forced && !entry.ours.contains(&now) => Undone::Foreign(now),
            Ok(_) => match sink.write(&entry.path, &entry.before).and_then(|()| sink.read(&entry.path)) {
                Ok(now) if now == entry.before => Undone::Restored,
                Ok(now) => Undone::Failed(format!("wrote {:?}, reads back {now:?}", entry.before)),
                Err(error) => Undone::Failed(error.what),
            },
        };
        (entry.path.clone(), result)
    });
    UndoReport { entries: entries.collect() }
}

//! A transaction: journal, guard, write, read back; and undo, whatever happens.
//!
//! Values are declared when it begins, because the journal must name everything it may write. An experiment that goes
//! back and forth between arms stays in one transaction; undo returns to what was found at the start.

use crate::guard::{Guard, GuardCommand};
use crate::journal::{Draft, Entry, Journal, JournalError, Owner, boot_id};
use crate::left;
use crate::lock::{Lock, LockError};
use crate::undo::{UndoReport, undo};
use std::path::Path;
use wakewatt_host::sink::{Sink, SinkError};
use wakewatt_host::store::Disk;

/// One setting and the values it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The file.
    pub path: String,
    /// Every value that will be written to it.
    pub values: Vec<String>,
}

/// A change that did not happen.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// No journal, no change.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No guard, no change.
    #[error("nothing is changed: {0}")]
    Guard(String),
    /// Somebody else is changing settings, which would be taken for what was there before.
    #[error("nothing is changed: {0}")]
    Lock(#[from] LockError),
    /// Somebody was killed before everything was put back, which would be taken for what was there before.
    #[error("nothing is changed: {0}")]
    LeftBehind(String),
    /// The kernel refused.
    #[error(transparent)]
    Sink(#[from] SinkError),
    /// The kernel took it and kept something else.
    #[error("{path}: wrote {requested:?}, reads back {read_back:?}")]
    NotKept {
        /// The file.
        path: String,
        /// What we wrote.
        requested: String,
        /// What it says.
        read_back: String,
    },
    /// Not declared at the start.
    #[error("{path}: {value:?} was not declared when the transaction began")]
    Undeclared {
        /// The file.
        path: String,
        /// The value.
        value: String,
    },
}

/// Settings under our care until undone; dropping undoes.
pub struct Transaction<'a> {
    sink: &'a dyn Sink,
    journal: Journal,
    guard: Option<Guard>,
    is_undone: bool,
    /// Last, so that it is given back when all else is done.
    _lock: Lock,
}

impl<'a> Transaction<'a> {
    /// Reads what is there, journals it, starts the guard. Nothing has been changed yet.
    pub fn begin(
        sink: &'a dyn Sink,
        root: &Path,
        state_dir: &Path,
        purpose: &str,
        settings: &[Setting],
        guard: Option<&GuardCommand>,
    ) -> Result<Transaction<'a>, TuneError> {
        let lock = Lock::take(state_dir)?;
        if let Some(left) = left::in_the_way(sink, &Disk, state_dir, &boot_id(), true) {
            return Err(TuneError::LeftBehind(left::in_words(&left)));
        }
        let mut entries = Vec::with_capacity(settings.len());
        for setting in settings {
            let ours = setting.values.iter().cloned().map(Some).collect();
            entries.push(Entry::new(&setting.path, Some(sink.read(&setting.path)?), ours));
        }
        let root = root.to_string_lossy();
        let owner = Owner::this_process();
        let draft = Draft { purpose, root: &root, entries, ..Draft::default() };
        let journal = Journal::create(&Disk, state_dir, &owner, &format!("run-{}", owner.pid), draft)?;
        let guard = match guard.map(|command| Guard::start(command, journal.file())) {
            Some(Err(error)) => {
                let left = UndoReport::default().finish(&journal, &Disk).journal_left();
                return Err(TuneError::Guard(left.map_or(error.to_string(), |left| format!("{error}; {left}"))));
            }
            Some(Ok(guard)) => Some(guard),
            None => None,
        };
        Ok(Transaction { sink, journal, guard, is_undone: false, _lock: lock })
    }

    /// Writes one declared value and reads it back.
    pub fn set(&self, path: &str, value: &str) -> Result<(), TuneError> {
        let is_declared = self.journal.entries.iter().any(|e| {
            e.path == path && (e.before.as_deref() == Some(value) || e.ours.iter().flatten().any(|v| v == value))
        });
        if !is_declared {
            return Err(TuneError::Undeclared { path: path.into(), value: value.into() });
        }
        self.sink.write(path, value)?;
        let read_back = self.sink.read(path)?;
        if read_back == value {
            Ok(())
        } else {
            Err(TuneError::NotKept { path: path.into(), requested: value.into(), read_back })
        }
    }

    /// What a file held before.
    pub fn before(&self, path: &str) -> Option<&str> {
        self.journal.entries.iter().find(|e| e.path == path)?.before.as_deref()
    }

    /// Puts everything back and closes the journal, unless something is left.
    pub fn undo(mut self) -> UndoReport {
        self.undo_now()
    }

    fn undo_now(&mut self) -> UndoReport {
        self.is_undone = true;
        let mut report = undo(self.sink, &self.journal, false).finish(&self.journal, &Disk);
        if !self.guard.take().is_none_or(Guard::dismiss) {
            report.look_again(undo(self.sink, &self.journal, false));
        }
        report
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if !self.is_undone {
            self.undo_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::undo::Undone;
    use std::cell::Cell;
    use std::collections::BTreeMap;
    use wakewatt_host::sink::LiveSink;

    /// A machine in a folder, with three settings.
    fn machine() -> (tempfile::TempDir, Vec<Setting>) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("sys")).unwrap();
        for (name, value) in [("a", "0"), ("b", "n/a"), ("c", "7")] {
            std::fs::write(dir.path().join("sys").join(name), format!("{value}\n")).unwrap();
        }
        let settings = ["a", "b", "c"]
            .map(|n| Setting { path: format!("/sys/{n}"), values: vec!["1".into(), "2".into()] })
            .to_vec();
        (dir, settings)
    }

    fn state(dir: &Path) -> BTreeMap<String, String> {
        let read =
            |n: &&str| (n.to_string(), std::fs::read_to_string(dir.join("sys").join(n)).unwrap().trim().to_string());
        ["a", "b", "c"].iter().map(read).collect()
    }

    /// Fails the Nth write, once or for ever.
    struct FaultySink<'a> {
        inner: &'a LiveSink,
        at: usize,
        is_forever: bool,
        count: Cell<usize>,
    }

    impl Sink for FaultySink<'_> {
        fn write(&self, path: &str, value: &str) -> Result<(), SinkError> {
            let now = self.count.replace(self.count.get() + 1);
            if now == self.at || (self.is_forever && now > self.at) {
                return Err(SinkError { path: path.into(), what: "injected".into(), is_absent: false });
            }
            self.inner.write(path, value)
        }
        fn read(&self, path: &str) -> Result<String, SinkError> {
            self.inner.read(path)
        }
    }

    #[test]
    fn a_failure_at_any_write_leaves_before_or_a_journal_that_names_the_rest() {
        for is_forever in [false, true] {
            for at in 0..8 {
                let (dir, settings) = machine();
                let before = state(dir.path());
                let state_dir = dir.path().join("journal");
                let live = LiveSink::at(dir.path());
                let sink = FaultySink { inner: &live, at, is_forever, count: Cell::new(0) };
                let transaction = Transaction::begin(&sink, dir.path(), &state_dir, "test", &settings, None).unwrap();
                let _ = settings.iter().try_for_each(|s| transaction.set(&s.path, "1"));
                let report = transaction.undo();
                let (open, bad) = Journal::open_ones(&state_dir);
                assert!(bad.is_empty());
                if report.is_complete() {
                    assert_eq!((state(dir.path()), open.len()), (before, 0), "fault at {at}");
                    continue;
                }
                assert_eq!(open.len(), 1, "what is left must be on disk");
                for (path, undone) in &report.entries {
                    let name = path.trim_start_matches("/sys/");
                    let is_left = matches!(undone, Undone::Failed(_));
                    assert_eq!(state(dir.path())[name] != before[name], is_left, "{path} after fault at {at}");
                }
                // The fault goes away (a later run): recovery from the journal alone restores everything.
                assert!(crate::undo::undo(&live, &open[0], false).is_complete());
                assert_eq!(state(dir.path()), before);
            }
        }
    }

    #[test]
    fn a_foreign_change_is_left_alone_unless_forced() {
        let (dir, settings) = machine();
        let live = LiveSink::at(dir.path());
        let transaction =
            Transaction::begin(&live, dir.path(), &dir.path().join("j"), "test", &settings, None).unwrap();
        transaction.set("/sys/a", "1").unwrap();
        transaction.set("/sys/b", "2").unwrap();
        live.write("/sys/a", "99").unwrap();
        let report = transaction.undo();
        assert_eq!(report.left().len(), 1);
        assert!(report.left()[0].contains("somebody else"));
        assert_eq!((state(dir.path())["a"].as_str(), state(dir.path())["b"].as_str()), ("99", "n/a"));
        let (open, _) = Journal::open_ones(&dir.path().join("j"));
        assert!(crate::undo::undo(&live, &open[0], true).is_complete());
        assert_eq!(state(dir.path())["a"], "0");
    }

    #[test]
    fn no_journal_no_change() {
        let (dir, settings) = machine();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let live = LiveSink::at(dir.path());
        let refused = Transaction::begin(&live, dir.path(), &dir.path().join("file/below"), "test", &settings, None);
        assert!(refused.err().unwrap().to_string().contains("nothing is changed"));
    }

    #[test]
    fn dropping_undoes_and_undeclared_values_are_refused() {
        let (dir, settings) = machine();
        let before = state(dir.path());
        let live = LiveSink::at(dir.path());
        {
            let transaction =
                Transaction::begin(&live, dir.path(), &dir.path().join("j"), "test", &settings, None).unwrap();
            transaction.set("/sys/c", "2").unwrap();
            assert!(matches!(transaction.set("/sys/c", "3"), Err(TuneError::Undeclared { .. })));
        }
        assert_eq!(state(dir.path()), before);
    }
    #[test]
    fn a_guard_that_is_stopped_or_deaf_keeps_nothing_changed_and_nobody_waiting() {
        for script in ["echo on; kill -STOP $$; exec sleep 600", "exec <&-; echo on; exec sleep 600"] {
            let (dir, settings) = machine();
            let before = state(dir.path());
            let live = LiveSink::at(dir.path());
            let guard = GuardCommand {
                program: "sh".into(),
                args: vec!["-c".into(), script.into(), "guard".into()],
                patience: std::time::Duration::from_secs(60),
            };
            let folder = dir.path().join("j");
            let begun = Transaction::begin(&live, dir.path(), &folder, "test", &settings, Some(&guard));
            let mut transaction = begun.unwrap();
            transaction.guard.as_mut().unwrap().patience = std::time::Duration::from_millis(300);
            transaction.set("/sys/a", "1").unwrap();
            let report = transaction.undo();
            assert!(report.is_complete() && report.kept_journal.is_none(), "{report:?}");
            assert_eq!((state(dir.path()), Journal::open_ones(&folder).0.len()), (before, 0), "{script}");
            // Another test may be starting a program at this moment, whose copy of the file closes only when it runs.
            let is_free = (0..6000).any(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                Lock::take(&folder).is_ok()
            });
            assert!(is_free);
        }
    }
}

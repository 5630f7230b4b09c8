//! The journal: what a transaction is about to write, on disk before it writes.
//!
//! One JSON file per transaction in the state folder. It is written beside, fsynced, renamed, and the folder fsynced,
//! so after a crash there is either no journal (nothing was written yet) or a whole one. It is removed when the undo
//! is complete. `boot_id` tells whether the machine has booted since: sysfs then starts afresh and there is nothing to
//! undo.

use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where journals live on a real machine.
pub const STATE_DIR: &str = "/var/lib/wakewatt/open";
/// The version of the journal's form.
const FORMAT: u32 = 1;

/// One setting the transaction may write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The file.
    pub path: String,
    /// What it held before, as read.
    pub before: String,
    /// Every value this transaction may write there: on undo, anything else was written by somebody else.
    pub ours: Vec<String>,
}

/// A transaction on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    format: u32,
    /// The boot it belongs to.
    pub boot_id: String,
    /// The process that made it.
    pub pid: u32,
    /// When that process started, in ticks since boot: a pid may be used again.
    pub pid_start_ticks: Option<u64>,
    /// What for, in words.
    pub purpose: String,
    /// The root the paths are under: `/` but for tests.
    pub root: PathBuf,
    /// In the order they will be written.
    pub entries: Vec<Entry>,
    #[serde(skip)]
    file: PathBuf,
}

/// A journal that could not be written or read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {what}")]
pub struct JournalError {
    path: String,
    what: String,
}

fn fail(path: &Path, what: impl ToString) -> JournalError {
    JournalError { path: path.display().to_string(), what: what.to_string() }
}

/// The id of the running boot; empty where the kernel does not tell.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|s| s.trim().to_string()).unwrap_or_default()
}

/// Start of a process in ticks since boot: field 22 of /proc/PID/stat, counted behind the name, which may hold blanks.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

impl Journal {
    /// Writes a new journal, durably. Nothing may be changed if this fails (full disk, read-only root).
    pub fn create(state_dir: &Path, root: &Path, purpose: &str, entries: Vec<Entry>) -> Result<Journal, JournalError> {
        fs::create_dir_all(state_dir)
            .map_err(|e| fail(state_dir, format!("cannot keep a journal, so nothing is changed: {e}")))?;
        let pid = std::process::id();
        let mut number = 0;
        let file = loop {
            let file = state_dir.join(format!("{pid}-{number}.json"));
            if !file.exists() {
                break file;
            }
            number += 1;
        };
        let journal = Journal {
            format: FORMAT,
            boot_id: boot_id(),
            pid,
            pid_start_ticks: start_ticks(pid),
            purpose: purpose.into(),
            root: root.into(),
            entries,
            file,
        };
        journal
            .store(state_dir)
            .map_err(|e| fail(&journal.file, format!("cannot keep a journal, so nothing is changed: {e}")))?;
        Ok(journal)
    }

    fn store(&self, state_dir: &Path) -> std::io::Result<()> {
        let beside = self.file.with_extension("tmp");
        let written = (|| {
            let mut out = File::create(&beside)?;
            out.write_all(&serde_json::to_vec_pretty(self)?)?;
            out.sync_all()?;
            fs::rename(&beside, &self.file)?;
            File::open(state_dir)?.sync_all()
        })();
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
        written
    }

    /// Reads one back.
    pub fn load(file: &Path) -> Result<Journal, JournalError> {
        let bytes = fs::read(file).map_err(|e| fail(file, e))?;
        let mut journal: Journal =
            serde_json::from_slice(&bytes).map_err(|e| fail(file, format!("not a journal: {e}")))?;
        if journal.format != FORMAT {
            return Err(fail(
                file,
                format!(
                    "journal format {}, this wakewatt knows {FORMAT}: undo it with the version that made it",
                    journal.format
                ),
            ));
        }
        journal.file = file.to_path_buf();
        Ok(journal)
    }

    /// All journals in a state folder that are not finished, with those that cannot be read.
    pub fn open_ones(state_dir: &Path) -> (Vec<Journal>, Vec<JournalError>) {
        let mut files: Vec<PathBuf> = match fs::read_dir(state_dir) {
            Ok(entries) => entries.flatten().map(|e| e.path()).collect(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return (Vec::new(), vec![fail(state_dir, e)]),
        };
        files.retain(|f| f.extension().is_some_and(|e| e == "json"));
        files.sort();
        let (good, bad): (Vec<_>, Vec<_>) = files.iter().map(|f| Journal::load(f)).partition(Result::is_ok);
        (good.into_iter().flatten().collect(), bad.into_iter().filter_map(Result::err).collect())
    }

    /// Its file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Is the process that made it still running? Its own guard, not we, will undo it then.
    pub fn is_owner_alive(&self) -> bool {
        let now = start_ticks(self.pid);
        now.is_some() && (self.pid_start_ticks.is_none() || now == self.pid_start_ticks)
    }

    /// Did the machine boot since?
    pub fn is_of_this_boot(&self) -> bool {
        self.boot_id.is_empty() || self.boot_id == boot_id()
    }

    /// Done: the file goes.
    pub fn finish(&self) -> Result<(), JournalError> {
        match fs::remove_file(&self.file) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(fail(&self.file, e)),
            _ => Ok(()),
        }
    }
}

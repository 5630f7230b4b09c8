//! The journal: what a transaction is about to write, on disk before it writes.
//!
//! One JSON file per transaction in the state folder, always replaced whole (written beside, fsynced, renamed, folder
//! fsynced), so after a crash there is the old journal or the new one, never half of one. It is removed when the undo is
//! complete. `boot_id` tells whether the machine has booted since: settings in sysfs then start afresh and only files
//! are left to undo.
//!
//! The folder is closed to others and so are the files: they hold what files had in them before, of whatever mode those are.
//!
//! The process that made it is known by number, start and PID namespace: the same number may be another process later, and
//! another process at once in a container that shares the folder. From another namespace nobody can tell whether it
//! runs ([`OwnerNow::Unseen`]); who holds the lock knows that it is not at work.
//!
//! An experiment's journal and one of `tune apply` differ in their [`Phase`] only: the first is undone when its process
//! ends, the second stays until `tune undo`.

use crate::boot::Argument;
use crate::knob::Stage;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use wakewatt_core::arrange::Arrange as _;
use wakewatt_host::store::{self, Disk, Store, StoreError};

/// Where journals live on a real machine.
pub const STATE_DIR: &str = "/var/lib/wakewatt/open";
/// The version of the journal's form.
const FORMAT: u32 = 2;

/// One setting the transaction may write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The file, or a path with a scheme (see `wakewatt_host::sink`).
    pub path: String,
    /// What it held before, as read; none: it was not there.
    pub before: Option<String>,
    /// Every value this transaction may write there: on undo, anything else was written by somebody else.
    pub ours: Vec<Option<String>>,
    /// The setting's full name (`freq.governor`); empty for an experiment's.
    #[serde(default)]
    pub name: String,
    /// When it was written, which decides when it is undone.
    #[serde(default = "latency_stage")]
    pub stage: Stage,
    /// Nobody asked for it: the kernel may move it when another setting is written.
    #[serde(default)]
    pub is_collateral: bool,
    /// Its file came with an earlier setting of the transaction (a governor's tunables, the files of a CPU that was
    /// offline) and goes with it: on undo it may be gone.
    #[serde(default)]
    pub has_come: bool,
    /// It was asked for, and another setting of the same transaction may move it as well (a governor the energy
    /// preference): while the transaction is open any value may be its doing.
    #[serde(default)]
    pub is_movable: bool,
}

fn latency_stage() -> Stage {
    Stage::Latency
}

impl Entry {
    /// An entry for values that are simply there before and after.
    pub fn new(path: impl Into<String>, before: Option<String>, ours: Vec<Option<String>>) -> Entry {
        let (name, stage) = (String::new(), Stage::Latency);
        let path = path.into();
        Entry { path, before, ours, name, stage, is_collateral: false, has_come: false, is_movable: false }
    }
    /// Is this the value from before the transaction? That of a file which came with it is to be gone, too.
    pub fn is_before(&self, now: &Option<String>) -> bool {
        *now == self.before || (self.has_come && now.is_none())
    }
    /// Does it outlive a reboot?
    pub fn is_durable(&self) -> bool {
        self.path.starts_with("file:")
    }
}

/// A command that was run, and the one that takes it back. Both must do no harm when run again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Program and arguments.
    pub run: Vec<String>,
    /// Program and arguments of the inverse.
    pub undo: Vec<String>,
    /// May it have been started? Set on disk before it is.
    pub is_started: bool,
}

/// How far a transaction is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Being written, or an experiment's: whoever finds it without its process undoes it.
    Open,
    /// Complete; undone by itself at this time on the boot clock (CLOCK_BOOTTIME, which no clock jump moves) of the
    /// boot it belongs to, unless confirmed.
    Unconfirmed { until_boottime_ns: u64 },
    /// Complete; stays until undone.
    Applied,
}

/// Which process, in which boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The running boot; empty where the kernel does not tell.
    pub boot_id: String,
    pub pid: u32,
    /// When it started, in ticks since boot: a pid may be used again.
    pub pid_start_ticks: Option<u64>,
    /// The PID namespace that the number belongs to.
    pub pid_namespace: Option<u64>,
}

/// What can be said of the process that made a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerNow {
    /// It runs.
    Alive,
    /// It has ended.
    Gone,
    /// Its number belongs to another PID namespace.
    Unseen,
}

impl OwnerNow {
    /// The same for one who may hold the lock: whoever changes settings holds it, so nobody unseen is at it.
    #[must_use]
    pub fn seen_with(self, has_lock: bool) -> OwnerNow {
        if self == OwnerNow::Unseen && has_lock { OwnerNow::Gone } else { self }
    }
}

impl Owner {
    /// This process.
    pub fn this_process() -> Owner {
        let pid = std::process::id();
        Owner { boot_id: boot_id(), pid, pid_start_ticks: start_ticks(pid), pid_namespace: pid_namespace() }
    }
}

/// What a new journal says.
#[derive(Clone, Debug, Default)]
pub struct Draft<'a> {
    /// What for, in words.
    pub purpose: &'a str,
    /// The root the paths are under; empty means `/`.
    pub root: &'a str,
    /// What may be written.
    pub entries: Vec<Entry>,
    /// What may be run.
    pub commands: Vec<Command>,
    /// What was asked for.
    pub requests: Vec<crate::request::Request>,
    /// Kernel parameters for the next boots.
    pub arguments: Vec<Argument>,
}

/// A transaction on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    format: u32,
    /// The boot it belongs to.
    pub boot_id: String,
    /// The process that made it.
    pub pid: u32,
    /// When that process started, in ticks since boot.
    pub pid_start_ticks: Option<u64>,
    /// The PID namespace that its number belongs to; journals of earlier versions do not say.
    #[serde(default)]
    pub pid_namespace: Option<u64>,
    /// What for, in words.
    pub purpose: String,
    /// The root the paths are under: `/` but for tests.
    pub root: PathBuf,
    /// How far it is.
    #[serde(default = "open")]
    pub phase: Phase,
    /// In the order they will be written.
    pub entries: Vec<Entry>,
    /// In the order they will be run, after the entries.
    #[serde(default)]
    pub commands: Vec<Command>,
    /// What was asked for, as the user would type it: `status` and `verify` resolve it again.
    #[serde(default)]
    pub requests: Vec<crate::request::Request>,
    /// Kernel parameters that the next boots are to have.
    #[serde(default)]
    pub arguments: Vec<Argument>,
    #[serde(skip)]
    file: PathBuf,
}

fn open() -> Phase {
    Phase::Open
}

/// A journal that could not be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct JournalError {
    path: String,
    what: String,
    /// It is in its place, or gone from it; only whether that survives a power loss is not known.
    pub is_in_place: bool,
}

impl JournalError {
    /// The file, or the folder, that it is about.
    pub fn file(&self) -> &Path {
        Path::new(&self.path)
    }
}

fn fail(path: &Path, what: impl ToString) -> JournalError {
    JournalError { path: path.display().to_string(), what: what.to_string(), is_in_place: false }
}

fn not_stored(path: &Path, error: StoreError) -> JournalError {
    JournalError { is_in_place: error.is_in_place, ..fail(path, error.what) }
}

/// The PID namespace this process is in; none where the kernel does not tell.
fn pid_namespace() -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self/ns/pid").ok().map(|namespace| namespace.ino())
}

/// The id of the running boot; empty where the kernel does not tell.
pub fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|s| s.trim().to_string()).unwrap_or_default()
}

/// Start of a process in ticks since boot: field 22 of /proc/PID/stat, counted behind the name, which may hold blanks.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // One that has ended and that nobody has fetched yet is as good as gone.
    let is_gone = matches!(fields.first(), Some(&("Z" | "X")));
    if is_gone { None } else { fields.get(19)?.parse().ok() }
}

impl Journal {
    /// Writes a new journal, durably. Nothing may be changed if this fails (full disk, read-only root). `name` is what
    /// comes before the number in its file name.
    pub fn create(
        store: &dyn Store,
        state_dir: &Path,
        owner: &Owner,
        name: &str,
        draft: Draft<'_>,
    ) -> Result<Journal, JournalError> {
        let no_change = |e: &dyn std::fmt::Display| format!("cannot keep a journal, so nothing is changed: {e}");
        let made = store.make_folder(state_dir).and_then(|()| store.close_folder(state_dir));
        made.map_err(|e| fail(state_dir, no_change(&e.what)))?;
        let taken = store.names(state_dir).map_err(|e| fail(state_dir, no_change(&e.what)))?;
        let number =
            |file: &String| file.strip_prefix(name)?.strip_prefix('-')?.strip_suffix(".json")?.parse::<u32>().ok();
        let next = taken.iter().filter_map(number).max().map_or(1, |n| n.saturating_add(1));
        let journal = Journal {
            format: FORMAT,
            boot_id: owner.boot_id.clone(),
            pid: owner.pid,
            pid_start_ticks: owner.pid_start_ticks,
            pid_namespace: owner.pid_namespace,
            purpose: draft.purpose.into(),
            root: if draft.root.is_empty() { "/".into() } else { draft.root.into() },
            phase: Phase::Open,
            entries: draft.entries,
            commands: draft.commands,
            requests: draft.requests,
            arguments: draft.arguments,
            file: state_dir.join(format!("{name}-{next}.json")),
        };
        let Err(error) = journal.save(store) else { return Ok(journal) };
        if !error.is_in_place {
            return Err(fail(&journal.file, no_change(&error.what)));
        }
        // It lies there already. No setting has been written, but that is not "nothing is changed" until it is gone.
        let end = match journal.finish(store) {
            Ok(()) => "it was removed again",
            Err(_) => "it cannot be removed either; wakewatt recover does that",
        };
        let why = format!("this journal may not survive a power loss, so no setting is changed; {end}: {}", error.what);
        Err(JournalError { is_in_place: true, ..fail(&journal.file, why) })
    }

    /// Writes it as it is now, durably.
    pub fn save(&self, store: &dyn Store) -> Result<(), JournalError> {
        let bytes = serde_json::to_vec_pretty(self).map_err(|e| fail(&self.file, e))?;
        store::replace(store, &self.file, &bytes, 0o600).map_err(|e| not_stored(&self.file, e))
    }

    /// Reads one back.
    pub fn load(store: &dyn Store, file: &Path) -> Result<Journal, JournalError> {
        Journal::look(store, file)?.ok_or_else(|| fail(file, "no such journal"))
    }

    /// Reads one back, if it is there.
    pub fn look(store: &dyn Store, file: &Path) -> Result<Option<Journal>, JournalError> {
        let Some(bytes) = store.load(file).map_err(|e| fail(file, e.what))? else { return Ok(None) };
        // The version first, so that another version's journal is named as such and not as broken.
        let not_one = |e| {
            fail(
                file,
                format!(
                    "not a journal: {e}; look at it before removing it: it names settings that may still be changed"
                ),
            )
        };
        let any: serde_json::Value = serde_json::from_slice(&bytes).map_err(not_one)?;
        match any.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(other) => {
                let what = format!(
                    "journal format {other}, this wakewatt knows {FORMAT}: undo it with the version that made it"
                );
                return Err(fail(file, what));
            }
            None => return Err(fail(file, "not a journal: it names no format")),
        }
        let mut journal: Journal = serde_json::from_value(any).map_err(not_one)?;
        journal.file = file.to_path_buf();
        Ok(Some(journal))
    }

    /// All journals in a state folder, oldest first, with those that cannot be read.
    pub fn all(store: &dyn Store, state_dir: &Path) -> (Vec<Journal>, Vec<JournalError>) {
        let mut names = match store.names(state_dir) {
            Ok(names) => names,
            Err(e) => return (Vec::new(), vec![fail(state_dir, e.what)]),
        };
        names.retain(|n| n.ends_with(".json") && !n.starts_with('.'));
        // By number, not by letter: tune-10 comes after tune-9.
        let number = |n: &String| n.trim_end_matches(".json").rsplit('-').next().and_then(|t| t.parse::<u32>().ok());
        names.arrange_by_key(|n| (number(n), n.clone()));
        let (good, bad): (Vec<_>, Vec<_>) =
            names.iter().map(|n| Journal::load(store, &state_dir.join(n))).partition(Result::is_ok);
        (good.into_iter().flatten().collect(), bad.into_iter().filter_map(Result::err).collect())
    }

    /// The journals of this machine that are not finished.
    pub fn open_ones(state_dir: &Path) -> (Vec<Journal>, Vec<JournalError>) {
        let (mut all, bad) = Journal::all(&Disk, state_dir);
        all.retain(|j| j.phase == Phase::Open);
        (all, bad)
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What the user calls it: `tune-3`.
    pub fn id(&self) -> String {
        self.file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Is the process that made it still running? Its own guard, not we, will undo it then.
    pub fn owner_now(&self) -> OwnerNow {
        if !self.is_of_this_boot() {
            return OwnerNow::Gone;
        }
        if self.pid_namespace.zip(pid_namespace()).is_some_and(|(its, ours)| its != ours) {
            return OwnerNow::Unseen;
        }
        let now = start_ticks(self.pid);
        let is_alive = now.is_some() && (self.pid_start_ticks.is_none() || now == self.pid_start_ticks);
        if is_alive { OwnerNow::Alive } else { OwnerNow::Gone }
    }

    /// Is it another state of the same journal?
    pub fn is_of_same_run(&self, other: &Journal) -> bool {
        let run = |j: &Journal| (j.boot_id.clone(), j.pid_namespace, j.pid, j.pid_start_ticks);
        run(self) == run(other)
    }

    /// Did the machine boot since?
    pub fn is_of_this_boot(&self) -> bool {
        self.is_of_boot(&boot_id())
    }

    /// Does it belong to that boot?
    pub fn is_of_boot(&self, boot_id: &str) -> bool {
        self.boot_id.is_empty() || self.boot_id == boot_id
    }

    /// Done: the file goes. That a power loss might bring it back does no harm: what it names is put back already.
    pub fn finish(&self, store: &dyn Store) -> Result<(), JournalError> {
        match store::remove(store, &self.file) {
            Err(error) if !error.is_in_place => Err(not_stored(&self.file, error)),
            _ => Ok(()),
        }
    }
}

//! The life of the processes that put settings back when nobody else does: the guard, and the watch for a confirmation.
//!
//! Both are the hidden `wakewatt guard`. They start before the first write, say `on`, and then only wait. What they were
//! started with is kept in memory, because the disk may fail them at the moment they are needed: a journal that cannot
//! be read any more, or whose whole folder is gone, is undone as it was read last; a lock file that cannot be opened is
//! done without once the owner is gone. Only a journal that was removed from its folder says that all has ended well.

use crate::here;
use crate::journal::{Journal, OwnerNow, Phase, boot_id};
use crate::lock::{Lock, LockError};
use crate::recovery::{self, Due};
use crate::undo::{UndoReport, Undone};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;
use wakewatt_host::clock::{boottime_ns, sleep_until_boottime};
use wakewatt_host::store::{Disk, Store, folder_of};

/// How often is looked for what nobody tells.
const LOOK: Duration = Duration::from_secs(1);

/// The guard's own life, called by the hidden command. Returns the report if it had to act; an error where it did not
/// begin to watch.
pub fn guard(journal_file: &Path) -> std::io::Result<Option<UndoReport>> {
    let first = Journal::load(&Disk, journal_file).map_err(std::io::Error::other)?;
    begin()?;
    let mut word = String::new();
    let _ = std::io::stdin().read_to_string(&mut word);
    if word.trim() == "done" {
        return Ok(None);
    }
    // Whoever has the lock may be undoing this very journal; and nobody may begin while we put things back.
    let _lock = loop {
        match Lock::wait_to_restore(folder_of(journal_file)) {
            Ok(lock) => break Some(lock),
            // Without a lock only the owner could be in the way, who ends us when it cannot tell us to go.
            Err(LockError::Busy(_)) => std::thread::sleep(LOOK),
            Err(_) if first.owner_now() == OwnerNow::Alive => std::thread::sleep(LOOK),
            Err(_) => break None,
        }
    };
    // Read again: it has grown while we watched. Complete by now, or gone, means there is nothing to take back.
    match now(&first) {
        Some(journal) if journal.phase == Phase::Open => Ok(Some(close(journal))),
        _ => Ok(None),
    }
}

/// The other watch: undoes a transaction that nobody confirms. Started before the first write; sleeps while there is time.
/// Returns the report if it acts.
pub fn await_confirmation(journal_file: &Path) -> std::io::Result<Option<UndoReport>> {
    let mut last = Journal::load(&Disk, journal_file).map_err(std::io::Error::other)?;
    begin()?;
    loop {
        let Some(journal) = now(&last) else { return Ok(None) };
        last = journal;
        match last.phase {
            Phase::Applied => return Ok(None),
            Phase::Open if last.owner_now() == OwnerNow::Alive => std::thread::sleep(LOOK),
            Phase::Unconfirmed { until_boottime_ns } if until_boottime_ns > boottime_ns() => {
                sleep_until_boottime(until_boottime_ns);
            }
            Phase::Open | Phase::Unconfirmed { .. } => {
                let lock = Lock::wait_to_restore(folder_of(journal_file));
                let Some(journal) = now(&last) else { return Ok(None) };
                last = journal;
                let owner = last.owner_now().seen_with(lock.is_ok());
                if let Due::Now(_) = recovery::due(&last, &boot_id(), boottime_ns(), owner) {
                    return Ok(Some(close(last)));
                }
                // The lock is given back before the next look: its owner may only now be coming to its end.
                drop(lock);
                std::thread::sleep(LOOK);
            }
        }
    }
}

/// A session of its own: neither Ctrl-C nor a terminal that hangs up takes it along.
fn begin() -> std::io::Result<()> {
    let _ = rustix::process::setsid();
    std::io::stdout().write_all(b"on\n")?;
    std::io::stdout().flush()
}

/// The journal as it is now; none when it has ended, or another one has its name. Where the disk does not tell, as it was.
fn now(last: &Journal) -> Option<Journal> {
    match Journal::look(&Disk, last.file()) {
        Ok(Some(journal)) => journal.is_of_same_run(last).then_some(journal),
        // Who ends a journal removes its file. Who removes the folder knew nothing of it, and the settings still stand.
        Ok(None) => (!Disk.has_folder(folder_of(last.file()))).then(|| last.clone()),
        Err(_) => Some(last.clone()),
    }
}

fn close(mut journal: Journal) -> UndoReport {
    here::put_back(&mut journal, false).unwrap_or_else(|error| {
        let failed = (journal.id(), Undone::Failed(error.to_string()));
        UndoReport { entries: vec![failed], kept_journal: None }
    })
}

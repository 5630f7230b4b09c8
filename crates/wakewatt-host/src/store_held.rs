//! A folder of our own that one process holds: its files replaced whole, its logs appended line by line, both durably.
//!
//! The hold is flock(2) on a file in it, which the kernel drops with the process, so a killed one leaves nothing to clean up.
//! Who holds it is written into that file, for the one who comes second. What lies in such a folder is acted by (a plan that
//! runs commands), so nobody else may write to the folder or exchange one above it ([`crate::trust`]), and every file is
//! opened through it.

use crate::input;
use crate::store::{Disk, Store, StoreError, replace};
use crate::trust::{Caller, Distrust, Fault, TrustedFolder};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Longest line that says who holds it.
const MOST_HOLDER: u64 = 500;

/// A folder, held until dropped.
#[derive(Debug)]
pub struct HeldFolder {
    folder: PathBuf,
    trusted: TrustedFolder,
    _lock: File,
}

/// Why it is not held.
#[derive(Debug, thiserror::Error)]
pub enum HeldError {
    /// Somebody has it.
    #[error("{folder}: held by {holder}")]
    Busy {
        /// Where.
        folder: String,
        /// As they wrote it.
        holder: String,
    },
    /// Others could write into it.
    #[error("{0}; what lies there would be acted by. Name a folder of your own")]
    Foreign(Distrust),
    /// The operating system's words.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl HeldError {
    fn of(why: Distrust) -> HeldError {
        match why.fault {
            Fault::Unopened(errno) => StoreError::new(why.path, format!("cannot be opened: {errno}")).into(),
            _ => HeldError::Foreign(why),
        }
    }
}

impl HeldFolder {
    /// Makes the folder where it is not there, and holds it. `holder` is told to whoever comes meanwhile.
    pub fn take(folder: &Path, holder: &str) -> Result<HeldFolder, HeldError> {
        Disk.make_folder(folder)?;
        let fail = |what: &str, e: Errno| StoreError::new(folder.join("lock"), format!("cannot {what}: {e}"));
        let trusted = Caller::this_process().or_behind_sudo().open_folder(folder).map_err(HeldError::of)?;
        let mut lock = trusted.open("lock", OFlags::RDWR | OFlags::CREATE).map_err(HeldError::of)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                // Best effort: who it is only helps.
                let _ = (&lock).take(MOST_HOLDER).read_to_string(&mut holder);
                let holder = if holder.trim().is_empty() { "another process".into() } else { holder.trim().into() };
                return Err(HeldError::Busy { folder: folder.display().to_string(), holder });
            }
            Err(e) => return Err(fail("lock", e).into()),
        }
        let said =
            rustix::fs::ftruncate(&lock, 0).map_err(std::io::Error::from).and_then(|()| writeln!(lock, "{holder}"));
        said.map_err(|e| StoreError::new(folder.join("lock"), format!("cannot write: {e}")))?;
        Ok(HeldFolder { folder: folder.into(), trusted, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// A file of it, or none.
    pub fn load(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.folder.join(name);
        match self.trusted.open(name, OFlags::RDONLY) {
            Err(Distrust { fault: Fault::Unopened(Errno::NOENT), .. }) => Ok(None),
            Err(why) => Err(StoreError::new(path, why.fault.to_string())),
            Ok(file) => match input::look_and_read(file, &path, input::KEPT) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(why) => Err(StoreError::new(path, why.to_string())),
            },
        }
    }

    /// Replaces a file whole, durably.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), StoreError> {
        replace(&Disk, &self.folder.join(name), bytes, 0o644)
    }

    /// Renames a file, durably.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), StoreError> {
        Disk.rename(&self.folder.join(from), &self.folder.join(to))?;
        Disk.sync_folder(&self.folder)
    }

    /// Appends a line, durably. A line that a crash has cut short is ended first, so that it stays one of its own.
    pub fn append(&self, name: &str, line: &str) -> Result<(), StoreError> {
        let path = self.folder.join(name);
        let fail = |what: &str, e: std::io::Error| StoreError::new(&path, format!("cannot {what}: {e}"));
        let opened = self.trusted.open(name, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE);
        let mut file = opened.map_err(|why| StoreError::new(&path, why.fault.to_string()))?;
        let stat = rustix::fs::fstat(&file).map_err(|e| fail("look at it", e.into()))?;
        let mut last = [b'\n'];
        if let Some(end) = u64::try_from(stat.st_size).ok().and_then(|n| n.checked_sub(1)) {
            rustix::io::pread(&file, &mut last, end).map_err(|e| fail("read", e.into()))?;
        }
        let text = if last == [b'\n'] { format!("{line}\n") } else { format!("\n{line}\n") };
        file.write_all(text.as_bytes()).map_err(|e| fail("append", e))?;
        file.sync_all().map_err(|e| fail("fsync", e))?;
        if stat.st_size == 0 { Disk.sync_folder(&self.folder) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_second_is_told_who_holds_it_and_foreign_folders_are_not_held() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/book");
        let held = HeldFolder::take(&folder, "ann on h1, process 7").unwrap();
        let busy = HeldFolder::take(&folder, "bob").unwrap_err();
        assert!(matches!(&busy, HeldError::Busy { holder, .. } if holder == "ann on h1, process 7"), "{busy}");
        drop(held);
        // Another test may be starting a program at this moment, whose copy of the file closes only when it runs.
        let is_free = (0..6000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            HeldFolder::take(&folder, "bob").is_ok()
        });
        assert!(is_free);
        std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
        assert!(matches!(HeldFolder::take(&folder, "bob"), Err(HeldError::Foreign(_))));
    }

    #[test]
    fn lines_are_appended_and_one_that_was_cut_short_stays_one() {
        let dir = tempfile::tempdir().unwrap();
        let held = HeldFolder::take(dir.path(), "ann").unwrap();
        held.append("log", "one").unwrap();
        std::fs::write(dir.path().join("log"), "one\ntw").unwrap();
        held.append("log", "three").unwrap();
        assert_eq!(held.load("log").unwrap().unwrap(), b"one\ntw\nthree\n");
        held.replace("state", b"x").unwrap();
        held.rename("state", "old").unwrap();
        assert_eq!((held.load("state").unwrap(), held.load("old").unwrap()), (None, Some(b"x".to_vec())));
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        assert!(held.append("link", "x").is_err(), "a link is not followed");
    }
}

//! One wakewatt at a time changes settings: an advisory lock on a file beside the journals.
//!
//! The kernel drops it with the process, so a killed one leaves nothing to clean up. The file is opened for reading only,
//! which flock(2) takes and a disk that has become read-only allows: who puts settings back must not fail because nothing
//! can be written. Where it cannot be opened at all (a folder or a link in its place, a file that was never made) nobody
//! can change settings either; whether to restore without it is the caller's decision ([`LockError::Unusable`]).

use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;

/// The lock, held until dropped.
#[derive(Debug)]
pub struct Lock {
    _fd: OwnedFd,
}

/// It could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody has it.
    #[error("{0}: another wakewatt is changing settings on this machine; wait for it to end")]
    Busy(String),
    /// No place to keep it.
    #[error("{path}: {what}; changing settings needs root and a writable state folder, so nothing is changed")]
    Other {
        path: String,
        /// The operating system's words.
        what: String,
    },
    /// The same for somebody who puts settings back.
    #[error("{path}: the lock cannot be taken: {what}")]
    Unusable {
        path: String,
        /// The operating system's words.
        what: String,
    },
}

/// How often a lock file is opened again that was replaced between opening and locking.
const TRIES: usize = 10;

impl Lock {
    /// Takes the lock of a state folder, or says that somebody has it. For changing settings.
    pub fn take(state_dir: &Path) -> Result<Lock, LockError> {
        Lock::to_change(state_dir, FlockOperation::NonBlockingLockExclusive)
    }

    /// Takes it when whoever has it is done, for changing settings.
    pub fn wait(state_dir: &Path) -> Result<Lock, LockError> {
        Lock::to_change(state_dir, FlockOperation::LockExclusive)
    }

    /// Takes it for putting settings back: needs nothing but a lock file that can be read.
    pub fn take_to_restore(state_dir: &Path) -> Result<Lock, LockError> {
        Lock::with(state_dir, FlockOperation::NonBlockingLockExclusive)
    }

    /// The same, when whoever has it is done: for those who must not give up, such as a guard.
    pub fn wait_to_restore(state_dir: &Path) -> Result<Lock, LockError> {
        Lock::with(state_dir, FlockOperation::LockExclusive)
    }

    fn to_change(state_dir: &Path, operation: FlockOperation) -> Result<Lock, LockError> {
        let other = |path: String, what: String| LockError::Other { path, what };
        if let Some(folder) = state_dir.parent() {
            std::fs::create_dir_all(folder).map_err(|e| other(folder.display().to_string(), e.to_string()))?;
        }
        Lock::with(state_dir, operation).map_err(|error| match error {
            LockError::Unusable { path, what } => other(path, what),
            error => error,
        })
    }

    fn with(state_dir: &Path, operation: FlockOperation) -> Result<Lock, LockError> {
        let file = state_dir.with_file_name("lock");
        let path = file.display().to_string();
        let unusable = |what: String| LockError::Unusable { path: path.clone(), what };
        // CREATE on a file that is there writes nothing. NONBLOCK: a pipe in its place must not hold us up.
        let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        for _ in 0..TRIES {
            let fd = rustix::fs::open(&file, flags, Mode::from_raw_mode(0o600)).map_err(|e| unusable(in_words(e)))?;
            let found = rustix::fs::fstat(&fd).map_err(|e| unusable(in_words(e)))?;
            if !FileType::from_raw_mode(found.st_mode).is_file() {
                return Err(unusable("is no regular file; remove it".into()));
            }
            loop {
                match rustix::fs::flock(&fd, operation) {
                    Ok(()) => break,
                    Err(Errno::INTR) => {}
                    Err(Errno::WOULDBLOCK) => return Err(LockError::Busy(path)),
                    Err(e) => return Err(unusable(in_words(e))),
                }
            }
            // Somebody may have removed it meanwhile; the next one would lock another file.
            let is_same = |now: rustix::fs::Stat| (now.st_dev, now.st_ino) == (found.st_dev, found.st_ino);
            if rustix::fs::stat(&file).is_ok_and(is_same) {
                return Ok(Lock { _fd: fd });
            }
        }
        Err(unusable("is being replaced again and again".into()))
    }
}

fn in_words(error: Errno) -> String {
    std::io::Error::from_raw_os_error(error.raw_os_error()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_to_wait() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("wakewatt/open");
        let first = Lock::take(&state).unwrap();
        assert!(matches!(Lock::take(&state), Err(LockError::Busy(_))));
        assert!(matches!(Lock::take_to_restore(&state), Err(LockError::Busy(_))));
        drop(first);
        // Another test may be starting a program at this moment, whose copy of the file closes only when it runs.
        let is_free = (0..6000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            Lock::take(&state).is_ok()
        });
        assert!(is_free);
        assert!(matches!(Lock::take(Path::new("/proc/none/open")), Err(LockError::Other { .. })));
    }

    #[test]
    fn what_is_no_lock_file_is_named_and_nobody_waits_for_it() {
        let dir = tempfile::tempdir().unwrap();
        let (state, file) = (dir.path().join("open"), dir.path().join("lock"));
        let why = || match Lock::wait_to_restore(&state) {
            Err(LockError::Unusable { path, what }) => format!("{path}: {what}"),
            other => panic!("{other:?}"),
        };
        std::fs::create_dir(&file).unwrap();
        assert!(why().contains("lock: "), "{}", why());
        std::fs::remove_dir(&file).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &file).unwrap();
        assert!(why().contains("lock: "), "{}", why());
        assert!(!dir.path().join("elsewhere").exists(), "a link is not followed");
        std::fs::remove_file(&file).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &file, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(why().contains("no regular file"), "{}", why());
        // A lost folder: restoring makes none, changing does.
        let lost = dir.path().join("lost/open");
        assert!(matches!(Lock::wait_to_restore(&lost), Err(LockError::Unusable { .. })));
        assert!(!dir.path().join("lost").exists());
    }
}

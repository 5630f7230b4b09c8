//! One wakewatt at a time changes settings: an advisory lock on a file beside the journals.
//!
//! The kernel drops it with the process, so a killed one leaves nothing to clean up.

use rustix::fs::{FlockOperation, Mode, OFlags};
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
        /// The file.
        path: String,
        /// The operating system's words.
        what: String,
    },
}

impl Lock {
    /// Takes the lock of a state folder, or says that somebody has it.
    pub fn take(state_dir: &Path) -> Result<Lock, LockError> {
        Lock::with(state_dir, FlockOperation::NonBlockingLockExclusive)
    }

    /// Takes it when whoever has it is done: for those who must not give up, such as a guard.
    pub fn wait(state_dir: &Path) -> Result<Lock, LockError> {
        Lock::with(state_dir, FlockOperation::LockExclusive)
    }

    fn with(state_dir: &Path, operation: FlockOperation) -> Result<Lock, LockError> {
        let file = state_dir.with_file_name("lock");
        let path = file.display().to_string();
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|e| LockError::Other { path: folder.display().to_string(), what: e.to_string() })?;
        }
        let fd = rustix::fs::open(&file, OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC, Mode::from_raw_mode(0o600))
            .map_err(|e| LockError::Other { path: path.clone(), what: e.to_string() })?;
        loop {
            return match rustix::fs::flock(&fd, operation) {
                Ok(()) => Ok(Lock { _fd: fd }),
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => Err(LockError::Busy(path)),
                Err(e) => Err(LockError::Other { path, what: e.to_string() }),
            };
        }
    }
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
        drop(first);
        // Another test may be starting a program at this moment, whose copy of the file closes only when it runs.
        let is_free = (0..6000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            Lock::take(&state).is_ok()
        });
        assert!(is_free);
        assert!(matches!(Lock::take(Path::new("/proc/none/open")), Err(LockError::Other { .. })));
    }
}

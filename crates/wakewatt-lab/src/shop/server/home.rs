//! The private folder in which SQLite's files are made, and those that killed shops have left.
//!
//! SQLite opens its files by name, so they cannot be nameless from the start; a shop killed while it is built leaves them
//! behind, and nobody is there to remove them. So its folder is locked (flock) for as long as it has a name. The kernel drops
//! the lock with the process, however it ends: a folder that can be locked has no owner any more. A process id would say
//! less: it is used again, and means something else in another container on the same folder.

use rustix::fs::{CWD, FlockOperation, Mode, OFlags};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const PREFIX: &str = "wakewatt-shop-";
/// Another shop that starts may take our new folder for a left one before we have locked it.
const ATTEMPTS: u32 = 16;

/// A folder of ours, locked.
#[derive(Debug)]
pub(super) struct Home {
    path: PathBuf,
    _lock: OwnedFd,
}

/// Removes what killed shops have left in `folder`, and makes a new one in it.
pub(super) fn make(folder: &Path) -> io::Result<Home> {
    sweep(folder);
    let mut left = ATTEMPTS;
    loop {
        let unique = wakewatt_host::clock::monotonic_ns();
        let path = folder.join(format!("{PREFIX}{}-{unique}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        match lock(&path) {
            Some(lock) if is_still(&path, &lock) => return Ok(Home { path, _lock: lock }),
            _ if left == 0 => return Err(io::Error::other("folders made here vanish before they can be used")),
            _ => left -= 1,
        }
    }
}

impl Home {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The names go; files that are open stay until they are closed.
    pub(super) fn remove(self) -> io::Result<()> {
        std::fs::remove_dir_all(&self.path)
    }
}

/// What cannot be looked at or removed is somebody else's, or comes next time.
fn sweep(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(PREFIX)) {
        let path = entry.path();
        // The lock is kept until all is gone: a third shop must not be at it too.
        if let Some(_lock) = lock(&path).filter(|lock| is_ours(lock) && is_still(&path, lock)) {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

fn lock(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()?;
    rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).ok().map(|()| fd)
}

fn is_ours(fd: &OwnedFd) -> bool {
    rustix::fs::fstat(fd).is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw())
}

/// Does the name still lead to what was locked?
fn is_still(path: &Path, fd: &OwnedFd) -> bool {
    let named = rustix::fs::statat(CWD, path, rustix::fs::AtFlags::SYMLINK_NOFOLLOW);
    let locked = rustix::fs::fstat(fd);
    named.is_ok_and(|named| locked.is_ok_and(|l| (named.st_dev, named.st_ino) == (l.st_dev, l.st_ino)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_shop_left_goes_and_what_is_in_use_stays() {
        let dir = tempfile::tempdir().unwrap();
        let names = || {
            let mut names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let left = dir.path().join(format!("{PREFIX}{}-1", std::process::id()));
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("shop.db"), "x").unwrap();
        std::fs::create_dir(dir.path().join("others")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("others"), dir.path().join(format!("{PREFIX}link"))).unwrap();
        let first = make(dir.path()).unwrap();
        assert!(!left.exists(), "nobody holds it, though a process of that number lives");
        let second = make(dir.path()).unwrap();
        assert!(first.path().exists() && second.path().exists(), "{:?}", names());
        assert!(dir.path().join("others").exists(), "links are not followed");
        // As when its process is killed: the lock goes, the folder stays.
        let Home { path, _lock } = first;
        drop(_lock);
        // Another test may be starting a program at this moment, whose copy of the lock closes only when it runs.
        let mut third = make(dir.path()).unwrap();
        for _ in (0..6000).take_while(|_| path.exists()) {
            std::thread::sleep(std::time::Duration::from_millis(10));
            third.remove().unwrap();
            third = make(dir.path()).unwrap();
        }
        assert!(!path.exists() && second.path().exists());
        second.remove().unwrap();
        third.remove().unwrap();
        assert_eq!(names().len(), 2);
    }
}

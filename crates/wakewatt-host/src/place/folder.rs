//! A folder, reached step by step and kept open: what is renamed on the way afterwards no longer matters.

use super::trust::Who;
use super::{PlaceError, shown, temporary_name};
use crate::disk_room::free_share;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat, flock, fstat, mkdirat, openat, readlinkat, statat,
    unlinkat,
};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// As many as the kernel follows.
pub(super) const MAX_LINKS: usize = 40;
const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    pub(super) fd: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) who: Who,
}

/// What becomes of a part of the way that is not there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Fails,
    IsMade,
    /// The last folder that is there stands for it.
    Ends,
}

impl Folder {
    /// One that is there.
    pub fn open(path: &Path) -> Result<Folder, PlaceError> {
        Folder::open_as(path, path, Who::caller())
    }

    /// The same; what is missing is made.
    pub fn make(path: &Path) -> Result<Folder, PlaceError> {
        walk(None, path, path, Missing::IsMade, Who::caller())
    }

    /// Could it be made, or be written to if it is there? Nothing is made.
    pub fn check(path: &Path) -> Result<(), PlaceError> {
        walk(None, path, path, Missing::Ends, Who::caller())?.probe(path)
    }

    /// For somebody; `asked` is for errors.
    pub(super) fn open_as(path: &Path, asked: &Path, who: Who) -> Result<Folder, PlaceError> {
        walk(None, path, asked, Missing::Fails, who)
    }

    /// One that is named from here, as the text of a link does. `asked` is for errors.
    pub(super) fn open_from(&self, path: &Path, asked: &Path) -> Result<Folder, PlaceError> {
        walk(Some(&self.fd), path, asked, Missing::Fails, self.who)
    }

    /// Where it is, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Share of its file system that is free (`disk_room`).
    pub fn free_share(&self) -> io::Result<f64> {
        free_share(&self.fd)
    }

    /// Takes it for this process alone, among those that ask: flock(2) on a file in it, which the kernel drops however the process ends. None where another
    /// one has it.
    pub fn hold(&self, name: &str) -> Result<Option<File>, PlaceError> {
        let path = self.path.join(name);
        let fail = |e: Errno| PlaceError::system(&path, "lock it", e);
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR).map_err(fail)?;
        match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(File::from(fd))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(e) => Err(fail(e)),
        }
    }

    /// Removes a file of ours from it; one that is gone already is no error.
    pub fn remove(&self, name: &str) -> Result<(), PlaceError> {
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(PlaceError::system(&self.path.join(name), "remove it", e)),
        }
    }

    /// Does its name still lead to it? Somebody may have removed it, or put another one in its place.
    pub fn is_in_place(&self) -> bool {
        is_same(fstat(&self.fd), rustix::fs::stat(&self.path))
    }

    /// Does this name in it still lead to an open file?
    pub fn holds(&self, name: &str, file: &File) -> bool {
        is_same(fstat(file), statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW))
    }

    /// The same folder, open once more.
    pub(super) fn again(&self) -> Result<Folder, PlaceError> {
        let fd = self.fd.try_clone().map_err(|e| PlaceError::system(&self.path, "open it", e))?;
        Ok(Folder { fd, path: self.path.clone(), who: self.who })
    }

    /// Can files be made here? One is, without a name where the file system can do that.
    pub(super) fn probe(&self, asked: &Path) -> Result<(), PlaceError> {
        let fail = |e: Errno| PlaceError::system(asked, "write there", e);
        let mode = Mode::RUSR | Mode::WUSR;
        match openat(&self.fd, ".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
            Ok(_) => return Ok(()),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
            Err(e) => return Err(fail(e)),
        }
        let name = temporary_name().map_err(|e| PlaceError::system(asked, "get a random name", e))?;
        openat(&self.fd, &name, OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | STEP.difference(OFlags::PATH), mode)
            .map_err(fail)?;
        unlinkat(&self.fd, &name, AtFlags::empty()).map_err(fail)
    }
}

fn is_same(one: rustix::io::Result<Stat>, other: rustix::io::Result<Stat>) -> bool {
    one.is_ok_and(|one| other.is_ok_and(|other| (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)))
}

fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> + '_ {
    path.components().filter(|c| *c != Component::CurDir).map(|c| c.as_os_str().to_os_string())
}

fn walk(from: Option<&OwnedFd>, path: &Path, asked: &Path, missing: Missing, who: Who) -> Result<Folder, PlaceError> {
    let fail = |e: Errno| PlaceError::system(asked, "open its folder", e);
    let start = STEP | OFlags::DIRECTORY;
    let mut at = match from {
        Some(fd) => openat(fd, ".", start, Mode::empty()),
        None => openat(CWD, ".", start, Mode::empty()),
    }
    .map_err(fail)?;
    let mut rest: VecDeque<OsString> = names(path).collect();
    let mut n_links = 0;
    while let Some(name) = rest.pop_front() {
        // "/" begins again at the root, also in the middle: a link's text stands there.
        let next = match openat(&at, &name, STEP, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::NOENT) if missing == Missing::IsMade => {
                match mkdirat(&at, &name, Mode::from_raw_mode(0o777)) {
                    // Durable, as far as the folder lets itself be opened: what is kept in it must not vanish with it.
                    Ok(()) => {
                        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                        let _ = openat(&at, ".", flags, Mode::empty()).and_then(rustix::fs::fsync);
                    }
                    Err(Errno::EXIST) => {}
                    Err(e) => return Err(PlaceError::system(asked, "make the folder", e)),
                }
                openat(&at, &name, STEP, Mode::empty()).map_err(fail)?
            }
            Err(Errno::NOENT) if missing == Missing::Ends => break,
            Err(e) => return Err(fail(e)),
        };
        let stat = fstat(&next).map_err(fail)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => at = next,
            FileType::Symlink => {
                n_links += 1;
                if n_links > MAX_LINKS {
                    return Err(fail(Errno::LOOP));
                }
                if !who.follows(&stat, &fstat(&at).map_err(fail)?) {
                    return Err(PlaceError::ForeignLink { path: shown(asked), link: shown(Path::new(&name)) });
                }
                let text = readlinkat(&next, "", Vec::new()).map_err(fail)?;
                names(Path::new(OsStr::from_bytes(text.as_bytes()))).rev().for_each(|n| rest.push_front(n));
            }
            _ => return Err(fail(Errno::NOTDIR)),
        }
    }
    Ok(Folder { fd: at, path: path.into(), who })
}

//! A file being written under a name that nobody can foresee; it takes the name it is for when it is whole.

use super::{Folder, PlaceError, temporary_name};
use rustix::fd::AsFd;
use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, fchmod, fchown, fstat, fsync, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;

/// Mode of a new file, before the umask.
const NEW: u32 = 0o666;
const PRIVATE: u32 = 0o600;

/// It is removed unless it is committed.
#[derive(Debug)]
pub struct Draft<'a> {
    folder: &'a Folder,
    name: &'a OsStr,
    path: &'a Path,
    beside: String,
    file: File,
    is_done: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn begin(folder: &'a Folder, name: &'a OsStr, path: &'a Path) -> Result<Draft<'a>, PlaceError> {
        let fail = |e: Errno| PlaceError::system(path, "create a file there", e);
        let beside = temporary_name().map_err(|e| PlaceError::system(path, "get a random name", e))?;
        let old = statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW)
            .ok()
            .filter(|s| FileType::from_raw_mode(s.st_mode) == FileType::RegularFile);
        let is_own = old.as_ref().is_some_and(|s| s.st_uid == folder.who.uid);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(if is_own { PRIVATE } else { NEW });
        let fd = openat(&folder.fd, &beside, flags, mode).map_err(fail)?;
        let draft = Draft { folder, name, path, beside, file: File::from(fd), is_done: false };
        if let Some(old) = old {
            draft.take_mode(&old, is_own).map_err(fail)?;
        }
        Ok(draft)
    }

    /// The mode of the file to be replaced, without set-uid bits; of another owner's, no more than the umask lets through.
    fn take_mode(&self, old: &Stat, is_own: bool) -> rustix::io::Result<()> {
        let now = fstat(&self.file)?;
        let mut mode = old.st_mode & 0o777;
        if !is_own {
            mode &= now.st_mode;
        }
        // The group's rights are its own, or nobody's.
        if now.st_gid != old.st_gid && fchown(&self.file, None, Some(Gid::from_raw(old.st_gid))).is_err() {
            mode &= !0o070;
        }
        fchmod(&self.file, Mode::from_raw_mode(mode))
    }

    /// To be filled.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Makes it durable and lets it replace what is there.
    pub fn commit(mut self) -> Result<(), PlaceError> {
        self.sync()?;
        renameat(&self.folder.fd, &self.beside, &self.folder.fd, self.name).map_err(|e| self.refused(e))?;
        self.is_done = true;
        self.sync_folder()
    }

    /// The same where nothing may be replaced.
    pub fn commit_new(mut self) -> Result<(), PlaceError> {
        self.sync()?;
        let folder = &self.folder.fd;
        let renamed = match renameat_with(folder, &self.beside, folder, self.name, RenameFlags::NOREPLACE) {
            // A file system that cannot promise it: the name was free a moment ago.
            Err(Errno::INVAL | Errno::NOSYS) => renameat(folder, &self.beside, folder, self.name),
            other => other,
        };
        renamed.map_err(|e| self.refused(e))?;
        self.is_done = true;
        self.sync_folder()
    }

    /// Takes the name while it is empty.
    pub(super) fn commit_early(mut self) -> Result<File, PlaceError> {
        renameat(&self.folder.fd, &self.beside, &self.folder.fd, self.name).map_err(|e| self.refused(e))?;
        self.is_done = true;
        self.file.try_clone().map_err(|e| PlaceError::system(self.path, "open it", e))
    }

    fn sync(&self) -> Result<(), PlaceError> {
        self.file.sync_all().map_err(|e| PlaceError::system(self.path, "write it to the disk", e))
    }

    fn refused(&self, e: Errno) -> PlaceError {
        match e {
            Errno::EXIST => PlaceError::Exists { path: super::shown(self.path) },
            Errno::ISDIR => PlaceError::IsFolder { path: super::shown(self.path) },
            e => PlaceError::system(self.path, "rename into place", e),
        }
    }

    /// A folder that may not be read cannot be synced, and needs no complaint.
    fn sync_folder(&self) -> Result<(), PlaceError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(open) = openat(self.folder.fd.as_fd(), ".", flags, Mode::empty()) else { return Ok(()) };
        match fsync(open) {
            Err(Errno::INVAL) | Ok(()) => Ok(()),
            Err(e) => Err(PlaceError::system(self.path, "make the folder durable (the file is in place)", e)),
        }
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = unlinkat(&self.folder.fd, &self.beside, AtFlags::empty());
        }
    }
}

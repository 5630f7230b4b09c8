//! One file's place: looked at before anything is measured, written to afterwards.

use super::folder::MAX_LINKS;
use super::trust::Who;
use super::{Draft, Folder, PlaceError, shown};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat, accessat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A place that was found fit to be written to.
#[derive(Debug)]
pub struct FilePlace {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A file, there already or not.
    Name(Folder, OsString),
    /// A device of characters or a pipe.
    Stream(Folder, OsString),
    /// A descriptor that we were started with: /dev/stdout, /dev/fd/63 of a shell's `>(…)`.
    Open(OwnedFd),
}

impl Folder {
    /// A file in it.
    pub fn place(&self, name: &str) -> Result<FilePlace, PlaceError> {
        FilePlace::in_folder(self.again()?, OsStr::new(name), &self.path().join(name))
    }
}

impl FilePlace {
    /// Looks at it; nothing is made yet.
    pub fn of(path: &Path) -> Result<FilePlace, PlaceError> {
        FilePlace::of_as(path, Who::caller())
    }

    pub(super) fn of_as(path: &Path, who: Who) -> Result<FilePlace, PlaceError> {
        if let Some(open) = descriptor(path, path)? {
            return Ok(FilePlace { path: path.into(), target: Target::Open(open) });
        }
        let (parent, name) = split(path, path)?;
        FilePlace::in_folder(Folder::open_as(parent, path, who)?, name, path)
    }

    pub(super) fn in_folder(folder: Folder, name: &OsStr, path: &Path) -> Result<FilePlace, PlaceError> {
        let (mut folder, mut name, mut n_links) = (folder, name.to_os_string(), 0);
        let fail = |e: Errno| PlaceError::system(path, "look at it", e);
        loop {
            let stat = match statat(&folder.fd, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => break,
                Err(e) => return Err(fail(e)),
            };
            let is_ours = folder.who.has(&stat);
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile if n_links > 0 && !is_ours => {
                    return Err(PlaceError::ForeignTarget { path: shown(path) });
                }
                FileType::RegularFile => {
                    may_rename_over(&folder, &stat, path)?;
                    break;
                }
                FileType::Symlink => {
                    n_links += 1;
                    if n_links > MAX_LINKS {
                        return Err(fail(Errno::LOOP));
                    }
                    if !folder.who.follows(&stat, &fstat(&folder.fd).map_err(fail)?) {
                        return Err(PlaceError::ForeignLink { path: shown(path), link: shown(Path::new(&name)) });
                    }
                    let text = readlinkat(&folder.fd, &name, Vec::new()).map_err(fail)?;
                    let text = Path::new(OsStr::from_bytes(text.as_bytes())).to_path_buf();
                    if let Some(open) = descriptor(&text, path)? {
                        return Ok(FilePlace { path: path.into(), target: Target::Open(open) });
                    }
                    let (parent, last) = split(&text, path)?;
                    (folder, name) = (folder.open_from(parent, path)?, last.to_os_string());
                }
                FileType::Directory => return Err(PlaceError::IsFolder { path: shown(path) }),
                // Anybody can make a pipe and wait at its other end; devices only root can.
                FileType::Fifo if !is_ours => return Err(PlaceError::ForeignTarget { path: shown(path) }),
                FileType::Fifo | FileType::CharacterDevice => {
                    accessat(&folder.fd, &name, Access::WRITE_OK, AtFlags::EACCESS)
                        .map_err(|e| PlaceError::system(path, "write to it", e))?;
                    return Ok(FilePlace { path: path.into(), target: Target::Stream(folder, name) });
                }
                _ => return Err(PlaceError::NotAFile { path: shown(path) }),
            }
        }
        folder.probe(path)?;
        Ok(FilePlace { path: path.into(), target: Target::Name(folder, name) })
    }

    /// As it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes it whole or not at all; into a device or pipe as it comes.
    pub fn write(&self, bytes: &[u8]) -> Result<(), PlaceError> {
        let fail = |e| PlaceError::system(&self.path, "write", e);
        match self.draft()? {
            Some(mut draft) => {
                draft.file().write_all(bytes).map_err(fail)?;
                draft.commit()
            }
            None => self.stream(OFlags::empty())?.write_all(bytes).map_err(fail),
        }
    }

    /// A file to be filled that replaces what is there once it is whole; none for a device or pipe.
    pub fn draft(&self) -> Result<Option<Draft<'_>>, PlaceError> {
        match &self.target {
            Target::Name(folder, name) => Draft::begin(folder, name, &self.path).map(Some),
            _ => Ok(None),
        }
    }

    /// An empty file under this name now, to be written as things come; what was there is replaced, not cut.
    pub fn fresh(&self) -> Result<File, PlaceError> {
        match self.draft()? {
            Some(draft) => draft.commit_early(),
            None => self.stream(OFlags::empty()),
        }
    }

    /// A new file; one that is there is refused. A device or pipe is there.
    pub fn create_new(&self) -> Result<File, PlaceError> {
        let Target::Name(folder, name) = &self.target else {
            return Err(PlaceError::Exists { path: shown(&self.path) });
        };
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(&folder.fd, name, flags, Mode::from_raw_mode(0o666)) {
            Ok(fd) => Ok(File::from(fd)),
            Err(Errno::EXIST) => Err(PlaceError::Exists { path: shown(&self.path) }),
            Err(e) => Err(PlaceError::system(&self.path, "create it", e)),
        }
    }

    /// The file that is there, to be written into: the caller's own and with one name, or somebody could have put it there
    /// to have it spoiled. A pipe that nobody reads is refused, not waited for.
    pub fn existing(&self) -> Result<File, PlaceError> {
        let Target::Name(folder, name) = &self.target else { return self.stream(OFlags::NONBLOCK) };
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fail = |e: Errno| PlaceError::system(&self.path, "open it", e);
        let fd = openat(&folder.fd, name, flags, Mode::empty()).map_err(fail)?;
        let stat = fstat(&fd).map_err(fail)?;
        let is_plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_plain || stat.st_uid != folder.who.uid || stat.st_nlink != 1 {
            return Err(PlaceError::ForeignFile { path: shown(&self.path) });
        }
        Ok(File::from(fd))
    }

    /// Is a file there?
    pub fn exists(&self) -> bool {
        match &self.target {
            Target::Name(folder, name) => statat(&folder.fd, name, AtFlags::SYMLINK_NOFOLLOW).is_ok(),
            _ => true,
        }
    }

    fn stream(&self, more: OFlags) -> Result<File, PlaceError> {
        let fail = |e| PlaceError::system(&self.path, "open it", e);
        let (folder, name) = match &self.target {
            Target::Open(fd) => return fd.try_clone().map(File::from).map_err(fail),
            Target::Stream(folder, name) | Target::Name(folder, name) => (folder, name),
        };
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY | more;
        let fd = openat(&folder.fd, name, flags, Mode::empty()).map_err(|e| fail(e.into()))?;
        let stat = fstat(&fd).map_err(|e| fail(e.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::CharacterDevice => Ok(File::from(fd)),
            FileType::Fifo if folder.who.has(&stat) => Ok(File::from(fd)),
            // Exchanged since it was looked at.
            _ => Err(PlaceError::ForeignTarget { path: shown(&self.path) }),
        }
    }
}

/// In a sticky folder others' files stay; better said now than after five minutes of measuring.
fn may_rename_over(folder: &Folder, file: &Stat, path: &Path) -> Result<(), PlaceError> {
    let own = folder.who.uid;
    let stat = fstat(&folder.fd).map_err(|e| PlaceError::system(path, "look at its folder", e))?;
    let is_kept = stat.st_mode & 0o1000 != 0 && own != 0 && own != file.st_uid && own != stat.st_uid;
    if is_kept { Err(PlaceError::system(path, "replace it", Errno::PERM)) } else { Ok(()) }
}

fn split<'a>(path: &'a Path, asked: &Path) -> Result<(&'a Path, &'a OsStr), PlaceError> {
    let is_folder = path.as_os_str().as_bytes().ends_with(b"/") || path.as_os_str().as_bytes().ends_with(b"/.");
    match path.file_name() {
        Some(name) if !is_folder => Ok((path.parent().unwrap_or(Path::new("")), name)),
        _ => Err(PlaceError::IsFolder { path: shown(asked) }),
    }
}

/// A copy of one of our own descriptors, if that is what the path says. Opening it by name would begin a file anew that
/// the shell has opened for us at some other position.
fn descriptor(path: &Path, asked: &Path) -> Result<Option<OwnedFd>, PlaceError> {
    let text = path.to_string_lossy();
    let number = match &*text {
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        _ => ["/dev/fd/", "/proc/self/fd/"].iter().find_map(|folder| text.strip_prefix(folder)?.parse::<u16>().ok()),
    };
    let Some(number) = number else { return Ok(None) };
    // SAFETY: the number is only handed to fcntl, which answers EBADF where nothing is open; the borrow ends with the call.
    let borrowed = unsafe { BorrowedFd::borrow_raw(i32::from(number)) };
    let copy = rustix::io::fcntl_dupfd_cloexec(borrowed, 3);
    copy.map(Some).map_err(|e| PlaceError::system(asked, "write to this descriptor", e))
}

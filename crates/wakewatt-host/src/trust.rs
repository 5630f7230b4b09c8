//! Whose file is it? What root runs, writes or believes must not be in somebody else's hands.
//!
//! A plan, a profile and a kept run say which commands run and which settings are turned. So they are looked at through the
//! descriptor that is then read, never by name twice: a file that may be changed or exchanged meanwhile proves nothing.
//! Trusted are root, the caller, and, for files a person names, whoever called sudo: that person may do all this anyway.
//! Writable by the caller's own group is let pass, because many systems give each user a group and a umask of 002.

use rustix::fs::{CWD, FileType, Mode, OFlags, RawMode};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Not to be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} {fault}")]
pub struct Distrust {
    /// The file or folder.
    pub path: PathBuf,
    pub fault: Fault,
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It may say anything.
    #[error("belongs to user {0}")]
    Owner(u32),
    /// Anybody may change it.
    #[error("may be written by everybody")]
    Everybody,
    /// A group may change it.
    #[error("may be written by group {0}")]
    Group(u32),
    /// It points elsewhere.
    #[error("is a symbolic link")]
    Link,
    /// A FIFO, a device, a folder.
    #[error("is no regular file")]
    NoFile,
    /// The operating system's word.
    #[error("cannot be opened: {0}")]
    Unopened(rustix::io::Errno),
}

/// Who is believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    users: Vec<u32>,
    group: u32,
}

impl Caller {
    /// This process, and root.
    pub fn this_process() -> Caller {
        let users = vec![0, rustix::process::geteuid().as_raw()];
        Caller { users, group: rustix::process::getegid().as_raw() }
    }

    /// And the person behind sudo.
    pub fn or_behind_sudo(mut self) -> Caller {
        if rustix::process::geteuid().is_root() {
            let id = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
            self.users.extend(id("SUDO_UID"));
        }
        self
    }

    fn fault(&self, uid: u32, gid: u32, mode: RawMode) -> Option<Fault> {
        if !self.users.contains(&uid) {
            return Some(Fault::Owner(uid));
        }
        match (mode & 0o020 != 0, mode & 0o002 != 0) {
            (_, true) => Some(Fault::Everybody),
            // The group of whoever owns it and is believed, where each user has one.
            (true, _) if gid != self.group && gid != uid => Some(Fault::Group(gid)),
            _ => None,
        }
    }

    fn look(&self, fd: impl AsFd, wanted: FileType) -> Result<(), Fault> {
        let stat = rustix::fs::fstat(fd).map_err(Fault::Unopened)?;
        if FileType::from_raw_mode(stat.st_mode) != wanted {
            return Err(Fault::NoFile);
        }
        self.fault(stat.st_uid, stat.st_gid, stat.st_mode).map_or(Ok(()), Err)
    }

    /// Opens a file for reading that a person has named; links on the way are that person's business.
    pub fn open(&self, path: &Path) -> Result<File, Distrust> {
        let distrust = |fault| Distrust { path: path.into(), fault };
        // Before opening: a tape rewinds and a watchdog starts when it is opened.
        let found = rustix::fs::stat(path).map_err(|e| distrust(Fault::Unopened(e)))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(distrust(Fault::NoFile));
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| distrust(Fault::Unopened(e)))?;
        self.look(&fd, FileType::RegularFile).map_err(distrust)?;
        Ok(fd.into())
    }

    /// Opens a folder, no link, for the files in it.
    pub fn open_folder(&self, path: &Path) -> Result<TrustedFolder, Distrust> {
        let distrust = |fault| Distrust { path: path.into(), fault };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(|e| distrust(unopened(e, path)))?;
        self.look(&fd, FileType::Directory).map_err(distrust)?;
        Ok(TrustedFolder { fd, path: path.into(), caller: self.clone() })
    }
}

/// O_NOFOLLOW on a link says ELOOP for a file, and ENOTDIR for a folder.
fn unopened(errno: rustix::io::Errno, path: &Path) -> Fault {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_symlink() => Fault::Link,
        _ => Fault::Unopened(errno),
    }
}

/// A folder whose owner and mode were looked at; its files are opened through it, whatever its name points to by now.
#[derive(Debug)]
pub struct TrustedFolder {
    fd: OwnedFd,
    path: PathBuf,
    caller: Caller,
}

impl AsFd for TrustedFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl TrustedFolder {
    /// Opens a file in it, no link, that is as trusted; `more` is WRONLY, APPEND and the like.
    pub fn open(&self, name: &str, more: OFlags) -> Result<File, Distrust> {
        let path = self.path.join(name);
        let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | more;
        let opened = rustix::fs::openat(&self.fd, name, flags, Mode::empty());
        let fd = opened.map_err(|e| Distrust { path: path.clone(), fault: unopened(e, &path) })?;
        self.caller.look(&fd, FileType::RegularFile).map_err(|fault| Distrust { path, fault })?;
        Ok(fd.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn only_a_trusted_owner_and_nobody_elses_pen() {
        let caller = Caller { users: vec![0, 1000], group: 100 };
        for (uid, gid, mode, fault) in [
            (1000, 100, 0o644, None),
            (0, 0, 0o600, None),
            (1000, 100, 0o664, None),
            (1000, 1000, 0o664, None),
            (1000, 27, 0o664, Some(Fault::Group(27))),
            (1001, 100, 0o600, Some(Fault::Owner(1001))),
            (0, 0, 0o646, Some(Fault::Everybody)),
        ] {
            assert_eq!(caller.fault(uid, gid, mode), fault, "{uid} {gid} {mode:o}");
        }
    }

    #[test]
    fn links_pipes_and_open_files_are_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let caller = Caller::this_process();
        std::fs::write(at("good"), "x").unwrap();
        std::fs::write(at("open"), "x").unwrap();
        std::fs::set_permissions(at("open"), PermissionsExt::from_mode(0o666)).unwrap();
        symlink("good", at("link")).unwrap();
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let folder = caller.open_folder(dir.path()).unwrap();
        let fault = |name: &str| folder.open(name, OFlags::RDONLY).map(drop).map_err(|d| d.fault);
        assert_eq!(fault("good"), Ok(()));
        assert_eq!(fault("open"), Err(Fault::Everybody));
        assert_eq!(fault("link"), Err(Fault::Link));
        assert_eq!(fault("pipe"), Err(Fault::NoFile));
        assert!(matches!(fault("none"), Err(Fault::Unopened(_))));
        assert!(caller.open(&at("link")).is_ok(), "a person may name a link");
        assert_eq!(caller.open(&at("pipe")).map(drop).map_err(|d| d.fault), Err(Fault::NoFile));
        // Opening a socket fails with another fault, so this one was not opened.
        let _listening = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert_eq!(caller.open(&at("socket")).map(drop).map_err(|d| d.fault), Err(Fault::NoFile));
        symlink(dir.path(), at("way")).unwrap();
        assert_eq!(caller.open_folder(&at("way")).map(drop).map_err(|d| d.fault), Err(Fault::Link));
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
        assert_eq!(caller.open_folder(dir.path()).map(drop).map_err(|d| d.fault), Err(Fault::Everybody));
    }
}

//! Whose file is it? What root runs, writes or believes must not be in somebody else's hands.
//!
//! A plan, a profile, a journal and a kept run say which commands run and which settings are changed. So they are looked at
//! through the descriptor that is then read, never by name twice: a file that may be changed or exchanged meanwhile proves
//! nothing. The way there counts as well: whoever owns a folder above, or may write to it, can put another one in its place.
//! So every folder from the root on is opened and looked at, one after the other, and what follows is opened from it.
//!
//! Trusted are root, the caller, and, for files a person names, whoever called sudo: that person may do all this anyway.
//! Writable by the caller's own group is let pass, because many systems give each user a group and a umask of 002. A sticky
//! folder such as /tmp may lie on the way: there nobody exchanges what belongs to somebody else.

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RawMode, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Not to be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} {fault}")]
pub struct Distrust {
    /// The file or folder.
    pub path: PathBuf,
    pub fault: Fault,
}

impl Distrust {
    /// What to type once the file was looked at.
    pub fn remedy(&self) -> String {
        let path = self.path.display();
        match self.fault {
            Fault::Owner(_) => format!("chown {} {path}", rustix::process::geteuid().as_raw()),
            Fault::Everybody | Fault::Group(_) => format!("chmod go-w {path}"),
            Fault::Link => format!("name the file that {path} leads to"),
            Fault::SecondName => format!("take a copy of {path}"),
            Fault::NoFile | Fault::Unopened(_) => format!("look at it: ls -l {path}"),
        }
    }
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
    /// Whoever has the other name may change it.
    #[error("has a second name (a hard link)")]
    SecondName,
    /// A FIFO, a device, a folder.
    #[error("is no regular file")]
    NoFile,
    /// The operating system's word.
    #[error("cannot be opened: {0}")]
    Unopened(Errno),
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

    pub(crate) fn is_trusted(&self, uid: u32) -> bool {
        self.users.contains(&uid)
    }

    fn fault(&self, uid: u32, gid: u32, mode: RawMode) -> Option<Fault> {
        if !self.is_trusted(uid) {
            return Some(Fault::Owner(uid));
        }
        match (mode & 0o020 != 0, mode & 0o002 != 0) {
            (_, true) => Some(Fault::Everybody),
            // The group of whoever owns it and is believed, where each user has one.
            (true, _) if gid != self.group && gid != uid => Some(Fault::Group(gid)),
            _ => None,
        }
    }

    fn fault_of(&self, stat: &Stat) -> Option<Fault> {
        self.fault(stat.st_uid, stat.st_gid, stat.st_mode)
    }

    fn look(&self, fd: impl AsFd, wanted: FileType) -> Result<Stat, Fault> {
        let stat = fstat(fd).map_err(Fault::Unopened)?;
        if FileType::from_raw_mode(stat.st_mode) != wanted {
            return Err(Fault::NoFile);
        }
        self.fault_of(&stat).map_or(Ok(stat), Err)
    }

    /// Opens a file for reading that a person has named; links are followed where somebody trusted has laid them.
    pub fn open(&self, path: &Path) -> Result<File, Distrust> {
        let Place { folder, name, path, .. } = self.walk(path, Last::IsFollowed)?;
        let distrust = |fault| Distrust { path: path.clone(), fault };
        // Before opening: a tape rewinds and a watchdog starts when it is opened.
        let found = statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| distrust(Fault::Unopened(e)))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(distrust(Fault::NoFile));
        }
        let fd = openat(&folder, &name, READ | OFlags::NOFOLLOW, Mode::empty());
        let fd = fd.map_err(|e| distrust(Fault::Unopened(e)))?;
        self.look(&fd, FileType::RegularFile).map_err(distrust)?;
        Ok(fd.into())
    }

    /// Opens a file of wakewatt's own for reading: no link, and without a second name.
    pub fn open_kept(&self, path: &Path) -> Result<File, Distrust> {
        let Place { folder, name, path, .. } = self.walk(path, Last::Stays)?;
        self.open_at(&folder, &name, path, READ)
    }

    fn open_at(&self, folder: impl AsFd + Copy, name: &OsStr, path: PathBuf, how: OFlags) -> Result<File, Distrust> {
        let distrust = |fault| Distrust { path: path.clone(), fault };
        let fd = openat(folder, name, how | OFlags::NOFOLLOW, Mode::from_raw_mode(0o644));
        let fd = fd.map_err(|e| distrust(unopened(folder, name, e)))?;
        let stat = self.look(&fd, FileType::RegularFile).map_err(distrust)?;
        if stat.st_nlink > 1 { Err(distrust(Fault::SecondName)) } else { Ok(fd.into()) }
    }

    /// Opens a folder, no link, for the files in it. What systemd makes for a service (StateDirectory= with DynamicUser=) is a
    /// link of root's, and followed.
    pub fn open_folder(&self, path: &Path) -> Result<TrustedFolder, Distrust> {
        let is_handed_over = is_among(path, std::env::var_os("STATE_DIRECTORY").as_deref());
        let last = if is_handed_over { Last::IsFollowed } else { Last::Stays };
        let Place { folder, name, path: whole, .. } = self.walk(path, last)?;
        let distrust = |fault| Distrust { path: whole.clone(), fault };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&folder, &name, flags, Mode::empty()).map_err(|e| distrust(unopened(&folder, &name, e)))?;
        self.look(&fd, FileType::Directory).map_err(distrust)?;
        Ok(TrustedFolder { fd, path: path.into(), caller: self.clone() })
    }

    /// For reading what somebody else's program wrote: can anybody but its owner, root and the caller write to this folder, to
    /// the way there or to these files in it? The first such place.
    pub fn others_write(mut self, folder: &Path, files: &[&str]) -> Option<Distrust> {
        // What cannot be opened is no finding: reading reports it better.
        let is_finding = |why: &Distrust| !matches!(why.fault, Fault::Unopened(_));
        self.users.push(std::fs::metadata(folder).ok()?.uid());
        let place = match self.walk(folder, Last::IsFollowed) {
            Ok(place) => place,
            Err(why) => return Some(why).filter(is_finding),
        };
        let distrust = |path: PathBuf| move |fault| Distrust { path, fault };
        let of_folder = self.fault_of(&fstat(&place.folder).ok()?).map(distrust(folder.into()));
        let of_file = |name: &&str| {
            let stat = statat(&place.folder, *name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            self.fault_of(&stat).map(distrust(folder.join(name)))
        };
        of_folder.or_else(|| files.iter().find_map(of_file))
    }

    /// The folder that holds what a path names, reached from the root with every folder on the way looked at.
    pub(crate) fn walk(&self, path: &Path, last: Last) -> Result<Place, Distrust> {
        let unopened = |path: &Path, e| Distrust { path: path.into(), fault: Fault::Unopened(e) };
        let whole =
            std::path::absolute(path).map_err(|e| unopened(path, Errno::from_io_error(&e).unwrap_or(Errno::NOENT)))?;
        let mut rest: VecDeque<OsString> = whole.components().map(|c| c.as_os_str().into()).collect();
        let (mut at, mut n_links) = (openat(CWD, "/", STEP, Mode::empty()).map_err(|e| unopened(&whole, e))?, 0);
        let (mut here, mut is_of_kubernetes) = (PathBuf::from("/"), false);
        loop {
            let Some(name) = rest.pop_front() else {
                return Ok(Place { folder: at, name: ".".into(), path: here, is_of_kubernetes });
            };
            let there = here.join(&name);
            let is_last = rest.is_empty();
            if is_last && last == Last::Stays {
                return Ok(Place { folder: at, name, path: there, is_of_kubernetes });
            }
            let next = openat(&at, &name, STEP, Mode::empty()).map_err(|e| unopened(&there, e))?;
            let stat = fstat(&next).map_err(|e| unopened(&there, e))?;
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Symlink => {
                    n_links += 1;
                    if n_links > MAX_LINKS {
                        return Err(unopened(&there, Errno::LOOP));
                    }
                    // Others' links lie in a sticky folder only: every other one on the way is closed to them.
                    if !self.is_trusted(stat.st_uid) {
                        return Err(Distrust { path: there, fault: Fault::Owner(stat.st_uid) });
                    }
                    is_of_kubernetes |= stat.st_uid == 0 && name == KUBERNETES_LINK;
                    let text = readlinkat(&next, "", Vec::new()).map_err(|e| unopened(&there, e))?;
                    let text = Path::new(OsStr::from_bytes(text.as_bytes()));
                    text.components().rev().for_each(|c| rest.push_front(c.as_os_str().into()));
                    if text.has_root() {
                        here = "/".into();
                    }
                }
                FileType::Directory => {
                    let is_sticky = stat.st_mode & 0o1000 != 0;
                    match self.fault_of(&stat) {
                        Some(Fault::Everybody | Fault::Group(_)) if is_sticky => {}
                        Some(fault) => return Err(Distrust { path: there, fault }),
                        None => {}
                    }
                    (at, here) = (next, there);
                }
                _ if is_last => return Ok(Place { folder: at, name, path: there, is_of_kubernetes }),
                _ => return Err(unopened(&there, Errno::NOTDIR)),
            }
        }
    }
}

/// As many links as the kernel follows.
const MAX_LINKS: usize = 40;
/// Through it the kubelet exchanges all files of a volume at once.
const KUBERNETES_LINK: &str = "..data";
/// A step of the way needs no permission to read.
const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Opening waits for nobody and makes nothing the terminal.
const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// What becomes of a link that is the last part of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    IsFollowed,
    Stays,
}

/// A name in a folder that is open.
pub(crate) struct Place {
    pub(crate) folder: OwnedFd,
    pub(crate) name: OsString,
    /// For people.
    pub(crate) path: PathBuf,
    /// Root's link `..data` led here: a Secret, a ConfigMap or a projected volume.
    pub(crate) is_of_kubernetes: bool,
}

/// Is it one of the folders that a service manager has made (systemd.exec(5): separated by colons)?
fn is_among(path: &Path, folders: Option<&OsStr>) -> bool {
    folders.is_some_and(|folders| {
        folders.as_bytes().split(|b| *b == b':').any(|f| Path::new(OsStr::from_bytes(f)) == path)
    })
}

/// O_NOFOLLOW on a link says ELOOP for a file, and ENOTDIR for a folder.
fn unopened(folder: impl AsFd, name: &OsStr, errno: Errno) -> Fault {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => Fault::Link,
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
    /// Opens a file in it, no link and without a second name, that is as trusted; `more` is WRONLY, APPEND, CREATE and the like.
    pub fn open(&self, name: &str, more: OFlags) -> Result<File, Distrust> {
        self.caller.open_at(&self.fd, OsStr::new(name), self.path.join(name), READ | more)
    }

    /// The names in it, sorted.
    pub fn names(&self) -> std::io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
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
        std::fs::write(at("twice"), "x").unwrap();
        std::fs::hard_link(at("twice"), at("second")).unwrap();
        rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let folder = caller.open_folder(dir.path()).unwrap();
        let fault = |name: &str| folder.open(name, OFlags::RDONLY).map(drop).map_err(|d| d.fault);
        assert_eq!(fault("good"), Ok(()));
        assert_eq!(fault("open"), Err(Fault::Everybody));
        assert_eq!(fault("link"), Err(Fault::Link));
        assert_eq!(fault("pipe"), Err(Fault::NoFile));
        assert_eq!(fault("twice"), Err(Fault::SecondName));
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

    /// A stranger who owns a folder on the way, or may write to it, can exchange everything below.
    #[test]
    fn the_way_to_a_file_is_looked_at_too() {
        let dir = tempfile::tempdir().unwrap();
        let above = dir.path().join("above");
        let (folder, file) = (above.join("open"), above.join("open/plan"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&file, "x").unwrap();
        let caller = Caller::this_process();
        let faults = || {
            let of = |d: Distrust| (d.path, d.fault);
            let both = [caller.open_folder(&folder).map(drop), caller.open(&file).map(drop)];
            both.map(|found| found.map_err(of))
        };
        assert_eq!(faults(), [Ok(()), Ok(())]);
        std::fs::set_permissions(&above, PermissionsExt::from_mode(0o777)).unwrap();
        assert_eq!(faults(), [(); 2].map(|()| Err((above.clone(), Fault::Everybody))));
        // Nobody exchanges what is not theirs in a sticky folder.
        std::fs::set_permissions(&above, PermissionsExt::from_mode(0o1777)).unwrap();
        assert_eq!(faults(), [Ok(()), Ok(())]);
        if rustix::process::geteuid().is_root() && std::os::unix::fs::chown(&above, Some(1000), Some(1000)).is_ok() {
            assert_eq!(faults(), [(); 2].map(|()| Err((above.clone(), Fault::Owner(1000)))));
            let link = dir.path().join("way");
            symlink(&folder, &link).unwrap();
            std::os::unix::fs::lchown(&link, Some(1000), Some(1000)).unwrap();
            let through = caller.open(&link.join("plan")).map(drop).map_err(|d| (d.path, d.fault));
            assert_eq!(through, Err((link, Fault::Owner(1000))));
        }
    }

    #[test]
    fn a_reader_is_told_who_else_writes() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, file) = (dir.path().join("h"), dir.path().join("h/x"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&file, "x").unwrap();
        let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        let found = |path: &Path| Caller::this_process().others_write(path, &["x"]).map(|why| (why.path, why.fault));
        assert_eq!((found(&folder), found(&dir.path().join("none"))), (None, None));
        let link = dir.path().join("link");
        symlink(&folder, &link).unwrap();
        assert_eq!(found(&link), None, "a person may name a link");
        mode(&file, 0o666);
        assert_eq!(found(&folder), Some((file.clone(), Fault::Everybody)));
        mode(&folder, 0o1777);
        assert_eq!(found(&folder), Some((folder.clone(), Fault::Everybody)), "others may add files");
        mode(&folder, 0o755);
        mode(&file, 0o644);
        mode(dir.path(), 0o777);
        assert_eq!(found(&folder), Some((dir.path().into(), Fault::Everybody)));
        mode(dir.path(), 0o755);
        let is_given = |path: &Path| std::os::unix::fs::chown(path, Some(1000), None).is_ok();
        if rustix::process::geteuid().is_root() && is_given(&file) {
            assert_eq!(found(&folder), Some((file.clone(), Fault::Owner(1000))));
            assert!(is_given(&folder));
            assert_eq!(found(&folder), None, "an agent of another user wrote all of it");
        }
    }

    #[test]
    fn folders_of_the_service_manager_are_named_one_by_one() {
        let folders = Some(OsStr::new("/var/lib/wakewatt/history:/var/lib/other"));
        assert!(is_among(Path::new("/var/lib/wakewatt/history"), folders));
        assert!(!is_among(Path::new("/var/lib/wakewatt"), folders) && !is_among(Path::new("/var/lib/other"), None));
    }

    #[test]
    fn names_come_from_the_folder_that_was_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("open")).unwrap();
        std::fs::create_dir(at("evil")).unwrap();
        std::fs::write(at("open/good"), "x").unwrap();
        std::fs::write(at("evil/bad"), "x").unwrap();
        let folder = Caller::this_process().open_folder(&at("open")).unwrap();
        std::fs::rename(at("open"), at("gone")).unwrap();
        std::fs::rename(at("evil"), at("open")).unwrap();
        assert_eq!(folder.names().unwrap(), ["good"]);
        assert!(folder.open("good", OFlags::RDONLY).is_ok());
    }
}

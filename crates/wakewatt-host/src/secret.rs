//! Loads secrets (passwords, tokens, private keys) and keeps them out of logs and `Debug` output.
//!
//! One rule for all of them, the one PostgreSQL has for private keys: a regular file, owned by the caller (or the user
//! behind sudo) with mode 600 or less, or owned by root with mode 640 or less. Symbolic links are followed if root or
//! the caller owns them, because Kubernetes and certbot use them; every directory on the path is checked. Kubernetes
//! writes Secrets with mode 644 by default, behind root's link `..data`, in a directory that only the pod sees: others
//! may read there, not write. The file descriptor that was checked is the one that is read.
//!
//! A password is the first line of its file, without the line end (LF or CR LF; spaces count). It is not wiped from
//! memory afterwards: a process that can read our memory can read the file.

use crate::input::{self, InputError, Kind};
use crate::trust::{Caller, Distrust, Fault, Last, Place};
use rustix::fs::{FileType, Mode, OFlags, Stat};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// No password is longer; a file that is longer is something else.
const MAX_BYTES: u64 = 4096;

/// A password. It has no `Display`, and its `Debug` says nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// Why a file gave none. None of these holds a byte of the file.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// It cannot be opened or read.
    #[error("{0}: cannot be read: {1}")]
    Unreadable(PathBuf, std::io::Error),
    /// A folder, a device, a pipe.
    #[error("{0}: no plain file")]
    NotPlain(PathBuf),
    /// Somebody else could have read it, or written it.
    #[error("{path}: mode {mode:03o} lets others read or write it; chmod {most:03o} {path}")]
    IsOpen {
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// Those it may have.
        most: u32,
    },
    /// Neither the caller's nor root's.
    #[error("{0}: belongs to user {1}, who is neither you nor root; chown {2} {0}")]
    IsForeign(PathBuf, u32, u32),
    /// Somebody else can put another file in its place.
    #[error("{0}: {1}, and could put another file there; move it to a folder of yours or root's")]
    Way(PathBuf, Distrust),
    /// Empty first line, a NUL, no UTF-8, or far too long.
    #[error("{0}: {1}")]
    NoPassword(PathBuf, &'static str),
    /// Too long, or with holes.
    #[error(transparent)]
    Input(#[from] InputError),
}

/// The bytes of a file with a secret that is no password: a private key.
pub fn bytes(path: &Path, kind: Kind) -> Result<Vec<u8>, SecretError> {
    let named = || path.to_path_buf();
    input::look_and_read(open(path)?, path, kind).map_err(|why| match why {
        InputError::Refused { error, .. } => SecretError::Unreadable(named(), error),
        other => SecretError::Input(other),
    })
}

/// Opens a file with a secret, by the rule at the head of this file.
fn open(path: &Path) -> Result<File, SecretError> {
    let named = || path.to_path_buf();
    let caller = Caller::this_process().or_behind_sudo();
    let place = caller.walk(path, Last::IsFollowed).map_err(|why| match why.fault {
        Fault::Unopened(errno) => SecretError::Unreadable(why.path, errno.into()),
        _ => SecretError::Way(path.into(), why),
    })?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let unreadable = |e: rustix::io::Errno| SecretError::Unreadable(named(), e.into());
    let fd = rustix::fs::openat(&place.folder, &place.name, flags, Mode::empty()).map_err(unreadable)?;
    let stat = rustix::fs::fstat(&fd).map_err(unreadable)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(SecretError::NotPlain(named()));
    }
    let own = rustix::process::geteuid().as_raw();
    if !caller.is_trusted(stat.st_uid) {
        return Err(SecretError::IsForeign(named(), stat.st_uid, own));
    }
    let (allowed, most) = (allowed(&stat, &place), if stat.st_uid == own { 0o600 } else { 0o640 });
    if stat.st_mode & 0o777 & !allowed != 0 {
        return Err(SecretError::IsOpen { path: named(), mode: stat.st_mode & 0o777, most });
    }
    Ok(fd.into())
}

/// Permissions that a file may have. The owner's are the owner's business.
fn allowed(stat: &Stat, place: &Place) -> u32 {
    let others = match (stat.st_uid, place.is_of_kubernetes) {
        (0, true) => 0o044,
        (0, false) => 0o040,
        _ => 0,
    };
    0o700 | others
}

impl Secret {
    /// The first line of a file that only its owner may read.
    pub fn from_file(path: &Path) -> Result<Secret, SecretError> {
        let named = || path.to_path_buf();
        let file = open(path)?;
        let mut bytes = Vec::new();
        let read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|e| SecretError::Unreadable(named(), e))?;
        if bytes.len() as u64 > MAX_BYTES {
            return Err(SecretError::NoPassword(named(), "longer than 4096 bytes; is this a password file?"));
        }
        let text = String::from_utf8(bytes).map_err(|_| SecretError::NoPassword(named(), "not UTF-8"))?;
        Secret::first_line(&text).map_err(|why| SecretError::NoPassword(named(), why))
    }

    /// The first line of a text.
    pub fn first_line(text: &str) -> Result<Secret, &'static str> {
        let line = text.lines().next().unwrap_or_default();
        if line.is_empty() {
            return Err("its first line, which is the password, is empty");
        }
        if line.contains('\0') { Err("holds a NUL byte") } else { Ok(Secret(line.to_string())) }
    }

    /// For whoever sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn file(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    /// As the kubelet and systemd lay secrets out. Only root's files may be readable by a group or, behind `..data`, by others.
    #[test]
    fn a_mounted_secret_is_read_through_its_links_and_no_other_with_such_a_mode() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path();
        std::fs::create_dir(folder.join("..2026")).unwrap();
        symlink("..2026", folder.join("..data")).unwrap();
        symlink("..data/token", folder.join("token")).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        let mut found = Vec::new();
        for mode in [0o600, 0o440, 0o640, 0o644, 0o660, 0o646] {
            file(&folder.join("..2026"), "token", b"x", mode);
            let by = |path: PathBuf| Secret::from_file(&path).is_ok();
            found.push((mode, by(folder.join("token")), by(folder.join("..2026/token"))));
        }
        let read = |mounted: bool, plain: bool| (mounted && is_root, plain && is_root);
        let expected = [
            (0o440, read(true, true)),
            (0o640, read(true, true)),
            (0o644, read(true, false)),
            (0o660, (false, false)),
            (0o646, (false, false)),
        ];
        assert_eq!(found[0], (0o600, true, true));
        assert_eq!(found[1..], expected.map(|(mode, (mounted, plain))| (mode, mounted, plain)));
        // The kubelet mounts a volume as a sticky directory (1777): others can create files, not rename or delete ours.
        file(&folder.join("..2026"), "token", b"x", 0o600);
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o1777)).unwrap();
        assert!(Secret::from_file(&folder.join("token")).is_ok());
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(Secret::from_file(&folder.join("token")), Err(SecretError::Way(..))));
    }

    #[test]
    fn a_file_of_another_user_is_refused_with_what_to_type() {
        let dir = tempfile::tempdir().unwrap();
        let path = file(dir.path(), "key", b"x", 0o600);
        if !rustix::process::geteuid().is_root() || std::os::unix::fs::chown(&path, Some(1000), None).is_err() {
            return wakewatt_testing::skipped(
                "secret_of_another_user",
                wakewatt_testing::Lacks::Root,
                "gives a file away",
            );
        }
        let why = Secret::from_file(&path).unwrap_err().to_string();
        assert!(why.contains("belongs to user 1000") && why.ends_with(&format!("chown 0 {}", path.display())), "{why}");
        assert!(bytes(&path, input::KEY).is_err());
    }

    #[test]
    fn the_first_line_without_its_end() {
        let folder = tempfile::tempdir().unwrap();
        for (bytes, password) in
            [(&b"open sesame"[..], "open sesame"), (b"a b \n", "a b "), (b"x\r\n", "x"), (b"one\ntwo\n", "one")]
        {
            let found = Secret::from_file(&file(folder.path(), "pw", bytes, 0o600)).unwrap();
            assert_eq!(found.expose(), password);
            assert_eq!(format!("{found:?}"), "Secret(…)");
        }
        assert!(Secret::from_file(&file(folder.path(), "ro", b"x", 0o400)).is_ok());
    }

    #[test]
    fn a_file_that_others_may_read_or_that_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o660, 0o604, 0o620, 0o644] {
            let why = Secret::from_file(&file(folder.path(), "open", b"hunter2\n", mode)).unwrap_err();
            assert!(matches!(why, SecretError::IsOpen { mode: m, .. } if m == mode), "{mode:o}: {why}");
            assert!(!format!("{why} {why:?}").contains("hunter2") && why.to_string().contains("chmod 600"));
        }
        let link = folder.path().join("link");
        symlink("open", &link).unwrap();
        assert!(matches!(Secret::from_file(&link), Err(SecretError::IsOpen { .. })), "the mode is the file's");
        assert!(matches!(Secret::from_file(folder.path()), Err(SecretError::NotPlain(_))));
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(matches!(Secret::from_file(&fifo), Err(SecretError::NotPlain(_))), "and does not wait for a writer");
        for bytes in [&b""[..], b"\nsecond", b"\xff\xfe", b"a\0b", &[b'x'; 5000]] {
            let why = Secret::from_file(&file(folder.path(), "none", bytes, 0o600)).unwrap_err();
            assert!(matches!(why, SecretError::NoPassword(..)), "{why}");
        }
        assert!(matches!(Secret::from_file(&folder.path().join("no")), Err(SecretError::Unreadable(..))));
    }
}

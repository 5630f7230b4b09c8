//! A password: where it may come from, and that nobody sees it.
//!
//! From a file it is the first line, without its end (LF or CR LF; spaces count). The file is opened once and judged by what
//! was opened: a plain file, not a link, of ours or root's, that nobody but its owner may read or write. It is not wiped
//! from memory afterwards: who can read our memory can read the file.

use crate::trust::{Caller, Distrust, Fault, Last};
use rustix::fs::{FileType, Mode, OFlags};
use std::ffi::OsStr;
use std::fmt;
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
    #[error("{0}: {1}")]
    Unreadable(PathBuf, std::io::Error),
    /// A link may lead anywhere by the time it is followed.
    #[error("{0}: a symbolic link; name the file it leads to")]
    IsLink(PathBuf),
    /// A folder, a device, a pipe.
    #[error("{0}: no plain file")]
    NotPlain(PathBuf),
    /// Somebody else could have read it, or written it.
    #[error("{path}: mode {mode:03o} lets others read or write it; chmod 600 {path}")]
    IsOpen {
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Neither the caller's nor root's.
    #[error("{0}: belongs to user {1}, who is neither you nor root")]
    IsForeign(PathBuf, u32),
    /// Somebody else can put another file in its place.
    #[error("{0}: {1}, and could put another file there; move it to a folder of yours or root's")]
    Way(PathBuf, Distrust),
    /// Empty first line, a NUL, no UTF-8, or far too long.
    #[error("{0}: {1}")]
    NoPassword(PathBuf, &'static str),
}

impl Secret {
    /// The first line of a file that only its owner may read.
    pub fn from_file(path: &Path) -> Result<Secret, SecretError> {
        let named = || path.to_path_buf();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let place = Caller::this_process().or_behind_sudo().walk(path, Last::Stays).map_err(|why| match why.fault {
            Fault::Unopened(errno) => SecretError::Unreadable(why.path, errno.into()),
            _ => SecretError::Way(path.into(), why),
        })?;
        let fd = rustix::fs::openat(&place.folder, &place.name, flags, Mode::empty()).map_err(|e| match e {
            rustix::io::Errno::LOOP => SecretError::IsLink(named()),
            e => SecretError::Unreadable(named(), e.into()),
        })?;
        let stat = rustix::fs::fstat(&fd).map_err(|e| SecretError::Unreadable(named(), e.into()))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(SecretError::NotPlain(named()));
        }
        if stat.st_uid != 0 && stat.st_uid != rustix::process::geteuid().as_raw() {
            return Err(SecretError::IsForeign(named(), stat.st_uid));
        }
        let credentials = std::env::var_os("CREDENTIALS_DIRECTORY");
        if stat.st_mode & closed_bits(path, stat.st_uid, credentials.as_deref()) != 0 {
            return Err(SecretError::IsOpen { path: named(), mode: stat.st_mode & 0o777 });
        }
        let mut bytes = Vec::new();
        let read = std::fs::File::from(fd).take(MAX_BYTES + 1).read_to_end(&mut bytes);
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

/// Permissions that nobody may have. What a service manager hands over (systemd's LoadCredential=) belongs to root, lies in a folder that only
/// the service enters, and is let to the service's own user by an entry that shows as the group's.
fn closed_bits(path: &Path, owner: u32, credentials: Option<&OsStr>) -> u32 {
    let is_handed_over = owner == 0 && credentials.is_some_and(|folder| path.parent() == Some(Path::new(folder)));
    if is_handed_over { 0o037 } else { 0o077 }
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

    #[test]
    fn a_credential_of_the_service_manager_may_show_a_group() {
        let folder = Some(OsStr::new("/run/credentials/wakewatt-agent.service"));
        let token = Path::new("/run/credentials/wakewatt-agent.service/token");
        assert_eq!(closed_bits(token, 0, folder), 0o037);
        assert_eq!(closed_bits(token, 1000, folder), 0o077, "not root's");
        assert_eq!(closed_bits(token, 0, None), 0o077);
        assert_eq!(closed_bits(Path::new("/run/credentials/wakewatt-agent.service-2/token"), 0, folder), 0o077);
        assert_eq!(closed_bits(Path::new("/run/credentials/wakewatt-agent.service/../token"), 0, folder), 0o077);
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
    fn a_file_that_others_may_read_a_link_or_no_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o640, 0o604, 0o620, 0o644] {
            let why = Secret::from_file(&file(folder.path(), "open", b"hunter2\n", mode)).unwrap_err();
            assert!(matches!(why, SecretError::IsOpen { mode: m, .. } if m == mode), "{mode:o}: {why}");
            assert!(!format!("{why} {why:?}").contains("hunter2") && why.to_string().contains("chmod 600"));
        }
        let good = file(folder.path(), "good", b"x", 0o600);
        let link = folder.path().join("link");
        symlink(&good, &link).unwrap();
        assert!(matches!(Secret::from_file(&link), Err(SecretError::IsLink(_))));
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

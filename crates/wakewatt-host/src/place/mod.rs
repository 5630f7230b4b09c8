//! Where a file of ours may be written, on a machine whose folders belong to somebody else.
//!
//! Root runs `wakewatt report` in a user's folder, and that user has laid a link to /etc/shadow where the page will go, or
//! where its temporary file would. So every file that a person names, or that has a default name, is written through here:
//! the way to it is walked folder by folder with each link looked at, its folder is kept open, and what is written gets a
//! name that nobody can foresee (O_EXCL, O_NOFOLLOW, mode 0600) before it replaces the old name within that folder.
//!
//! The rules. A link is followed when it belongs to the caller or to root and lies in a folder that nobody else writes to,
//! and what it leads to must be the caller's or root's, too. A file keeps its mode, never its set-uid bits; one of another
//! owner is replaced by a file of the caller's, no looser than either. Hard links keep the old content. A device or pipe
//! that was named is written to as it is. Left out: ACLs and attributes of the file that was there, which the new one
//! does not inherit; what systemd and the journal need is in `store`.

mod draft;
mod folder;
mod target;
mod trust;
#[cfg(test)]
mod tests;

pub use draft::Draft;
pub use folder::Folder;
pub use target::FilePlace;

use rustix::io::Errno;
use std::io;
use std::path::Path;
use wakewatt_core::visible;

/// Why nothing is written there.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Not followed.
    #[error("{path}: {link} is a link that another user may have laid; name the place it leads to")]
    ForeignLink {
        /// What was asked for.
        path: String,
        /// The link on the way.
        link: String,
    },
    /// Behind a link, or a pipe.
    #[error("{path}: belongs to another user; name another file")]
    ForeignTarget {
        /// What was asked for.
        path: String,
    },
    /// Would have been written into as it is.
    #[error("{path}: belongs to another user, or has a second name, and is not written into; name another file")]
    ForeignFile {
        /// What was asked for.
        path: String,
    },
    /// No file.
    #[error("{path}: it is a folder; name a file in it")]
    IsFolder {
        /// What was asked for.
        path: String,
    },
    /// Neither a file nor a device of characters nor a pipe.
    #[error("{path}: is a disk or a socket; name a file")]
    NotAFile {
        /// What was asked for.
        path: String,
    },
    /// Not replaced unless told to.
    #[error("{path}: exists already and is not overwritten; name another file")]
    Exists {
        /// What was asked for.
        path: String,
    },
    /// The system refused.
    #[error("{path}: cannot {doing}: {why}; name another place")]
    System {
        /// What was asked for.
        path: String,
        /// What was tried.
        doing: &'static str,
        /// Its answer.
        why: io::Error,
    },
}

impl PlaceError {
    fn system(path: &Path, doing: &'static str, why: impl Into<io::Error>) -> PlaceError {
        PlaceError::System { path: shown(path), doing, why: why.into() }
    }

    /// Of which sort, in the words of the standard library.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            PlaceError::ForeignLink { .. } | PlaceError::ForeignTarget { .. } | PlaceError::ForeignFile { .. } => {
                io::ErrorKind::PermissionDenied
            }
            PlaceError::IsFolder { .. } => io::ErrorKind::IsADirectory,
            PlaceError::NotAFile { .. } => io::ErrorKind::InvalidInput,
            PlaceError::Exists { .. } => io::ErrorKind::AlreadyExists,
            PlaceError::System { why, .. } => why.kind(),
        }
    }
}

impl From<PlaceError> for io::Error {
    fn from(error: PlaceError) -> io::Error {
        match error {
            PlaceError::System { why, .. } => why,
            other => io::Error::new(other.kind(), other),
        }
    }
}

/// Writes a file whole or not at all.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), PlaceError> {
    FilePlace::of(path)?.write(bytes)
}

fn shown(path: &Path) -> String {
    visible::line(&path.to_string_lossy()).into_owned()
}

/// A name that nobody can foresee. The dot in front keeps programs that read `*.html` or `*.csv` away from it.
pub(crate) fn temporary_name() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    loop {
        // SAFETY: the pointer and the length are those of `bytes`, which outlives the call.
        let n = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        match usize::try_from(n) {
            Ok(n) if n == bytes.len() => break,
            Ok(_) => {}
            Err(_) => match io::Error::last_os_error() {
                e if e.raw_os_error() == Some(Errno::INTR.raw_os_error()) => {}
                e => return Err(e),
            },
        }
    }
    Ok(format!(".wakewatt-{:032x}.tmp", u128::from_ne_bytes(bytes)))
}

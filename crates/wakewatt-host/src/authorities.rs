//! Which CAs are trusted: those in a file the user names, else the distribution's.
//!
//! A named file must belong to root or the caller and must not be writable by others: a CA added to it could impersonate
//! any server.
//!
//! One reader for everybody who speaks TLS (meters, the shop's database). The file is read as all are that the user names
//! ([`crate::input`]); what its PEM means is the caller's parser's business.

use crate::input::{self, InputError, Kind};
use crate::trust::{Caller, Distrust, Fault};
use std::path::{Path, PathBuf};

/// Debian and SUSE, Fedora, old SUSE.
const STORES: &[&str] =
    &["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"];

/// Why a file of certificates is not used.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// It cannot be read, or is something else.
    #[error(transparent)]
    File(#[from] InputError),
    /// Somebody else writes it.
    #[error("{0}: its writer would decide which certificates are accepted; {remedy}", remedy = .0.remedy())]
    Distrusted(Distrust),
}

/// The file and its bytes; none where no file is named and the distribution has none.
pub fn read(ca: Option<&Path>) -> Result<Option<(PathBuf, Vec<u8>)>, AuthorityError> {
    if let Some(path) = ca {
        return Ok(Some((path.into(), trusted(path, input::AUTHORITIES)?)));
    }
    let Some(path) = STORES.iter().map(PathBuf::from).find(|p| p.exists()) else { return Ok(None) };
    let bytes = input::read(&path, input::AUTHORITIES)?;
    Ok(Some((path, bytes)))
}

/// The bytes of a file of certificates that anybody may read, and nobody else may write.
pub fn trusted(path: &Path, kind: Kind) -> Result<Vec<u8>, AuthorityError> {
    let file = Caller::this_process().or_behind_sudo().open(path).map_err(|why| match why.fault {
        Fault::Unopened(errno) => InputError::Refused { path: why.path, kind, error: errno.into() }.into(),
        // As what it is: a folder, a pipe.
        Fault::NoFile => input::read(path, kind).err().map_or(AuthorityError::Distrusted(why), AuthorityError::File),
        _ => AuthorityError::Distrusted(why),
    })?;
    Ok(input::look_and_read(file, path, kind)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_file_that_others_may_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ca.pem");
        let mode = |mode| std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        std::fs::write(&path, "x").unwrap();
        assert_eq!(read(Some(&path)).unwrap().unwrap().1, b"x");
        mode(0o646);
        let why = read(Some(&path)).unwrap_err().to_string();
        assert!(why.contains("may be written by everybody") && why.contains("chmod go-w"), "{why}");
        let why = read(Some(dir.path())).unwrap_err().to_string();
        assert!(why.contains("not a file but a folder"), "{why}");
    }
}

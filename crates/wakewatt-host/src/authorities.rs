//! Whose certificates are believed: those in a file the user names, else the distribution's.
//!
//! One reader for everybody who speaks TLS (meters, the shop's database). The file is read as all are that the user names
//! ([`crate::input`]); what its PEM means is the caller's parser's business.

use crate::input::{self, InputError};
use std::path::{Path, PathBuf};

/// Debian and SUSE, Fedora, old SUSE.
const STORES: &[&str] =
    &["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem"];

/// The file and its bytes; none where no file is named and the distribution has none.
pub fn read(ca: Option<&Path>) -> Result<Option<(PathBuf, Vec<u8>)>, InputError> {
    let mut stores = STORES.iter().map(PathBuf::from);
    let Some(path) = ca.map(Path::to_path_buf).or_else(|| stores.find(|p| p.exists())) else { return Ok(None) };
    let bytes = input::read(&path, input::AUTHORITIES)?;
    Ok(Some((path, bytes)))
}

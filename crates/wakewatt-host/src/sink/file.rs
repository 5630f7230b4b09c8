//! `file:PATH`: a whole regular file, replaced so that a crash leaves the old bytes or the new; it may also go.
//!
//! For the files that act at the next boot. What is not UTF-8 is refused: it could not be put back exactly from a
//! journal, and none of these files has a reason to be anything else.

use super::{SinkError, refuse};
use crate::store::{self, Disk, Store};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

fn in_words(path: &str, error: &store::StoreError) -> SinkError {
    refuse(path, error.what.clone())
}

pub(super) fn read(file: &Path, path: &str) -> Result<String, SinkError> {
    match Disk.load(file).map_err(|e| in_words(path, &e))? {
        None => Err(SinkError { is_absent: true, ..refuse(path, "no such file") }),
        Some(bytes) => String::from_utf8(bytes).map_err(|_| refuse(path, "holds bytes that are no text; not touched")),
    }
}

pub(super) fn write(file: &Path, path: &str, text: &str) -> Result<(), SinkError> {
    // A link (Flatcar's /usr/share/oem, an admin's own) stays a link: what it points at is replaced.
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let mode = std::fs::metadata(&file).map_or(0o644, |m| m.permissions().mode() & 0o7777);
    if let Some(folder) = file.parent() {
        Disk.make_folder(folder).map_err(|e| in_words(path, &e))?;
    }
    store::replace(&Disk, &file, text.as_bytes(), mode).map_err(|e| in_words(path, &e))
}

pub(super) fn remove(file: &Path, path: &str) -> Result<(), SinkError> {
    store::remove(&Disk, file).map_err(|e| in_words(path, &e))?;
    // A folder of our own goes with its last file; one that is not empty stays by itself.
    if let Some(folder) = file.parent().filter(|f| f.ends_with("wakewatt")) {
        let _ = std::fs::remove_dir(folder);
    }
    Ok(())
}

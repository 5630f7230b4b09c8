//! `file:PATH`: a whole regular file, replaced so that a crash leaves the old bytes or the new; it may also go.
//!
//! For the files that act at the next boot. What is not UTF-8 is refused: it could not be put back exactly from a
//! journal, and none of these files has a reason to be anything else.

use super::{SinkError, refuse};
use crate::store::{self, Disk, Store, StoreError};
use std::fs::{File, Metadata, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;

fn in_words(path: &str, error: &StoreError) -> SinkError {
    refuse(path, error.what.clone())
}

pub(super) fn read(file: &Path, path: &str) -> Result<String, SinkError> {
    match store::read(file).map_err(|e| in_words(path, &e))? {
        None => Err(SinkError { is_absent: true, ..refuse(path, "no such file") }),
        Some(bytes) => String::from_utf8(bytes).map_err(|_| refuse(path, "holds bytes that are no text; not touched")),
    }
}

pub(super) fn write(file: &Path, path: &str, text: &str) -> Result<(), SinkError> {
    // A link (Flatcar's /usr/share/oem, an admin's own) stays a link: what it points at is replaced.
    let file = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let old = std::fs::metadata(&file).ok();
    if let Some(folder) = file.parent() {
        Disk.make_folder(folder).map_err(|e| in_words(path, &e))?;
    }
    let write = |beside: &Path| {
        let mode = old.as_ref().map_or(0o644, |m| m.permissions().mode() & 0o7777);
        Disk.write(beside, text.as_bytes(), mode)?;
        old.as_ref().map_or(Ok(()), |old| keep_owner(beside, old, mode))
    };
    store::replace_by(&Disk, &file, write).map_err(|e| in_words(path, &e))
}

/// The new file belongs to whom the old one belonged to.
fn keep_owner(beside: &Path, old: &Metadata, mode: u32) -> Result<(), StoreError> {
    let change = || {
        let file = File::open(beside)?;
        let now = file.metadata()?;
        if (now.uid(), now.gid()) == (old.uid(), old.gid()) {
            return Ok(());
        }
        match fchown(&file, Some(old.uid()), Some(old.gid())) {
            // Only root may give a file away; everybody else's new file is their own.
            Err(e) if e.kind() == ErrorKind::PermissionDenied && !rustix::process::geteuid().is_root() => Ok(()),
            // A change of owner clears some bits of the mode.
            other => other.and_then(|()| file.set_permissions(Permissions::from_mode(mode))),
        }
    };
    let fail = |e: std::io::Error| StoreError::new(beside, format!("cannot keep owner and group: {e}"));
    change().map_err(fail)
}

/// What was written or removed here before survives a power loss from now on; of an absent file, its absence.
pub(super) fn make_durable(file: &Path, path: &str) -> Result<(), SinkError> {
    let target = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    store::tidy(&Disk, &target).map_err(|e| in_words(path, &e))?;
    if target.exists() {
        Disk.sync(&target).map_err(|e| in_words(path, &e))?;
    }
    // A folder of our own goes with its last file: then it is the one above that must forget it.
    let folder = target.ancestors().skip(1).find(|folder| folder.is_dir());
    folder.map_or(Ok(()), |folder| Disk.sync_folder(folder)).map_err(|e| in_words(path, &e))
}

pub(super) fn remove(file: &Path, path: &str) -> Result<(), SinkError> {
    store::remove(&Disk, file).map_err(|e| in_words(path, &e))?;
    // A folder of our own goes with its last file; one that is not empty stays by itself.
    if let Some(folder) = file.parent().filter(|f| f.ends_with("wakewatt")) {
        let _ = std::fs::remove_dir(folder);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewritten_file_keeps_mode_owner_and_group() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("grub");
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o664)).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        // Some containers let even root give nothing away.
        let has_given = is_root && std::os::unix::fs::chown(&file, Some(1234), Some(2345)).is_ok();
        write(&file, "file:x", "new").unwrap();
        let now = std::fs::metadata(&file).unwrap();
        assert_eq!((read(&file, "file:x").unwrap().as_str(), now.mode() & 0o7777), ("new", 0o664));
        if has_given {
            assert_eq!((now.uid(), now.gid()), (1234, 2345));
        }
    }

    #[test]
    fn making_durable_changes_nothing_but_what_a_cut_short_write_left() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, file) = (dir.path().join("wakewatt"), dir.path().join("wakewatt/x.cfg"));
        let names =
            |folder: &Path| std::fs::read_dir(folder).unwrap().flatten().map(|e| e.file_name()).collect::<Vec<_>>();
        make_durable(&file, "file:x").unwrap();
        assert!(!folder.exists(), "absence is made durable without making anything");
        write(&file, "file:x", "text").unwrap();
        // Where the power failed in the middle of a replacement.
        std::fs::write(store::beside(&file), "te").unwrap();
        make_durable(&file, "file:x").unwrap();
        assert_eq!((names(&folder), read(&file, "file:x").unwrap().as_str()), (vec!["x.cfg".into()], "text"));
        remove(&file, "file:x").unwrap();
        make_durable(&file, "file:x").unwrap();
        assert!(!folder.exists() && dir.path().exists(), "our own folder goes with its last file, no other");
        std::fs::write(&folder, "a file in the way").unwrap();
        assert!(make_durable(&file, "file:x").is_err(), "what cannot be made durable is said");
    }
}

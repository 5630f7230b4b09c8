//! Durable files: what the journal is kept in. Every step that can fail, or be cut short by a crash, is its own call.
//!
//! The steps are those that POSIX makes a crash-safe replacement of: write beside, fsync the file, rename, fsync the
//! folder ([`replace`]). They are apart so that a test can fail, or lose power after, each of them.

use crate::input::{self, InputError};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct StoreError {
    /// The file or folder.
    pub path: PathBuf,
    /// What was tried, and the operating system's words.
    pub what: String,
}

/// Where durable files are kept.
pub trait Store {
    /// The bytes, or none where there is no such file.
    fn load(&self, path: &Path) -> Result<Option<Vec<u8>>, StoreError>;
    /// The names in a folder, sorted; empty where there is no such folder.
    fn names(&self, folder: &Path) -> Result<Vec<String>, StoreError>;
    /// Makes a folder and those above it, durably.
    fn make_folder(&self, folder: &Path) -> Result<(), StoreError>;
    /// Writes a file anew, with this mode whatever the umask; it is not durable yet.
    fn write(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), StoreError>;
    /// Makes a file's bytes durable.
    fn sync(&self, path: &Path) -> Result<(), StoreError>;
    /// Renames within one folder, replacing.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), StoreError>;
    /// Makes a folder's names durable.
    fn sync_folder(&self, folder: &Path) -> Result<(), StoreError>;
    /// Removes a file; one that is not there is no error.
    fn remove(&self, path: &Path) -> Result<(), StoreError>;
}

/// Replaces a file whole: afterwards, and after a crash at any step, it holds the old bytes or the new.
pub fn replace(store: &dyn Store, path: &Path, bytes: &[u8], mode: u32) -> Result<(), StoreError> {
    replace_by(store, path, |beside| store.write(beside, bytes, mode))
}

/// The same with a way of writing of one's own: it gets the name to write under.
pub(crate) fn replace_by(
    store: &dyn Store,
    path: &Path,
    write: impl FnOnce(&Path) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let beside = beside(path);
    let written = write(&beside)
        .and_then(|()| store.sync(&beside))
        .and_then(|()| store.rename(&beside, path))
        .and_then(|()| store.sync_folder(folder));
    if written.is_err() {
        let _ = store.remove(&beside);
    }
    written
}

/// Removes what a cut-short [`replace`] may have left beside a file.
pub fn tidy(store: &dyn Store, path: &Path) -> Result<(), StoreError> {
    store.remove(&beside(path))
}

/// Removes a file for good, and what may have been left beside it.
pub fn remove(store: &dyn Store, path: &Path) -> Result<(), StoreError> {
    tidy(store, path)?;
    store.remove(path)?;
    store.sync_folder(path.parent().unwrap_or(Path::new("/")))
}

/// The name it is written under first. The dot in front keeps programs that read `*.cfg` or `*.conf` away from it.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.wakewatt-new"))
}

/// The real disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

fn fail(path: &Path, doing: &str, error: &std::io::Error) -> StoreError {
    StoreError { path: path.into(), what: format!("cannot {doing}: {error}") }
}

impl Store for Disk {
    fn load(&self, path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
        match input::read(path, input::KEPT) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(InputError::Refused { error, .. }) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(InputError::Refused { error, .. }) => Err(fail(path, "read", &error)),
            Err(e) => Err(StoreError { path: path.into(), what: format!("cannot be read: {e}") }),
        }
    }
    fn names(&self, folder: &Path) -> Result<Vec<String>, StoreError> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(fail(folder, "list", &e)),
        };
        let mut names: Vec<String> = entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        Ok(names)
    }
    fn make_folder(&self, folder: &Path) -> Result<(), StoreError> {
        if folder.is_dir() {
            return Ok(());
        }
        let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
        if let Some(above) = above {
            self.make_folder(above)?;
        }
        match fs::create_dir(folder) {
            // Somebody else made it meanwhile.
            Err(e) if e.kind() != ErrorKind::AlreadyExists || !folder.is_dir() => {
                return Err(fail(folder, "make the folder", &e));
            }
            _ => {}
        }
        // Else a power loss may take the folder, and everything durable in it.
        self.sync_folder(above.unwrap_or(Path::new(".")))
    }
    fn write(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), StoreError> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(mode)
            .open(path)
            .map_err(|e| fail(path, "create", &e))?;
        // The mode given to open is cut by the umask, and one that a killed process left has its own.
        file.set_permissions(Permissions::from_mode(mode)).map_err(|e| fail(path, "set the mode of", &e))?;
        file.write_all(bytes).map_err(|e| fail(path, "write", &e))
    }
    fn sync(&self, path: &Path) -> Result<(), StoreError> {
        File::open(path).and_then(|f| f.sync_all()).map_err(|e| fail(path, "fsync", &e))
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<(), StoreError> {
        fs::rename(from, to).map_err(|e| fail(to, "rename into place", &e))
    }
    fn sync_folder(&self, folder: &Path) -> Result<(), StoreError> {
        File::open(folder).and_then(|f| f.sync_all()).map_err(|e| fail(folder, "fsync", &e))
    }
    fn remove(&self, path: &Path) -> Result<(), StoreError> {
        match fs::remove_file(path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(fail(path, "remove", &e)),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_stays_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("zz.cfg");
        replace(&Disk, &file, b"one", 0o644).unwrap();
        replace(&Disk, &file, b"two", 0o644).unwrap();
        assert_eq!(Disk.load(&file).unwrap().unwrap(), b"two");
        assert_eq!(Disk.names(dir.path()).unwrap(), ["zz.cfg"]);
        let refused = replace(&Disk, Path::new("/proc/none/x"), b"", 0o600).unwrap_err();
        assert!(refused.to_string().contains("cannot create"));
        remove(&Disk, &file).unwrap();
        assert_eq!(Disk.load(&file).unwrap(), None);
    }

    #[test]
    fn the_mode_is_the_one_asked_for_and_folders_are_made_level_by_level() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b/c");
        Disk.make_folder(&folder).unwrap();
        Disk.make_folder(&folder).unwrap();
        let file = folder.join("x");
        // 0666 is what no usual umask lets through.
        for mode in [0o600, 0o666, 0o640] {
            replace(&Disk, &file, b"x", mode).unwrap();
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, mode);
        }
        let refused = Disk.make_folder(&file.join("below")).unwrap_err();
        assert!(refused.what.contains("cannot make the folder"), "{refused}");
    }
}

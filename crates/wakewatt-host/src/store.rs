//! Durable files: what the journal is kept in. Every step that can fail, or be cut short by a crash, is its own call.
//!
//! The steps are those that POSIX makes a crash-safe replacement of: write beside, fsync the file, rename, fsync the
//! folder ([`replace`]). They are apart so that a test can fail, or lose power after, each of them. An error says how far
//! it came ([`StoreError::is_in_place`]): after the rename the new bytes are there, even if they may not survive a power
//! loss, and nobody may claim that nothing is changed.

use crate::input::{self, InputError};
use crate::trust::{Caller, Distrust, Fault};
use rustix::io::Errno;
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
    /// It is in its place already (or gone from it); only whether that survives a power loss is not known.
    pub is_in_place: bool,
}

impl StoreError {
    /// Nothing has happened to what the path names.
    pub fn new(path: impl Into<PathBuf>, what: impl Into<String>) -> StoreError {
        StoreError { path: path.into(), what: what.into(), is_in_place: false }
    }
    fn in_place(self) -> StoreError {
        StoreError { is_in_place: true, ..self }
    }
}

/// Where durable files are kept.
pub trait Store {
    /// The bytes, or none where there is no such file.
    fn load(&self, path: &Path) -> Result<Option<Vec<u8>>, StoreError>;
    /// The names in a folder, sorted; empty where there is no such folder.
    fn names(&self, folder: &Path) -> Result<Vec<String>, StoreError>;
    /// Makes a folder and those above it, durably.
    fn make_folder(&self, folder: &Path) -> Result<(), StoreError>;
    /// Nobody but its owner may look into this folder from now on.
    fn close_folder(&self, folder: &Path) -> Result<(), StoreError>;
    /// Is there such a folder?
    fn has_folder(&self, folder: &Path) -> bool;
    /// Makes a file with this mode whatever the umask; it is not durable yet. What has the name, if anything, loses it and
    /// is not written to: a link is not followed.
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
    let folder = folder_of(path);
    let beside = beside(path);
    let written = write(&beside).and_then(|()| store.sync(&beside)).and_then(|()| store.rename(&beside, path));
    if written.is_err() {
        let _ = store.remove(&beside);
        return written;
    }
    store.sync_folder(folder).map_err(StoreError::in_place)
}

/// Removes what a cut-short [`replace`] may have left beside a file.
pub fn tidy(store: &dyn Store, path: &Path) -> Result<(), StoreError> {
    store.remove(&beside(path))
}

/// Removes a file for good, and what may have been left beside it.
pub fn remove(store: &dyn Store, path: &Path) -> Result<(), StoreError> {
    tidy(store, path)?;
    store.remove(path)?;
    let folder = folder_of(path);
    match store.sync_folder(folder) {
        // A folder that somebody has removed took the file along.
        Err(_) if !store.has_folder(folder) => Ok(()),
        other => other.map_err(StoreError::in_place),
    }
}

/// The names that cut-short replacements have left in a folder of our own.
pub fn half_written(store: &dyn Store, folder: &Path) -> Result<Vec<String>, StoreError> {
    let mut names = store.names(folder)?;
    names.retain(|name| name.starts_with('.') && name.ends_with(BESIDE));
    Ok(names)
}

/// What cut-short replacements have left in a folder of our own is removed; the names of what went. The caller sees to it
/// that nobody is writing there.
pub fn sweep(store: &dyn Store, folder: &Path) -> Result<Vec<String>, StoreError> {
    let names = half_written(store, folder)?;
    names.iter().try_for_each(|name| store.remove(&folder.join(name)))?;
    Ok(names)
}

/// The folder a path lies in. `x` and `./x` lie in the working folder, which Rust calls "": no system call takes that.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    }
}

/// How a name ends that a file is written under first.
const BESIDE: &str = ".wakewatt-new";

/// The name it is written under first. The dot in front keeps programs that read `*.cfg` or `*.conf` away from it.
pub(crate) fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{BESIDE}"))
}

/// The real disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

fn fail(path: &Path, doing: &str, error: &std::io::Error) -> StoreError {
    StoreError::new(path, format!("cannot {doing}: {error}"))
}

/// What was opened; none where it is not there.
fn believed<T>(opened: Result<T, Distrust>, doing: &str) -> Result<Option<T>, StoreError> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(Distrust { fault: Fault::Unopened(Errno::NOENT), .. }) => Ok(None),
        Err(Distrust { path, fault: Fault::Unopened(why) }) => Err(fail(&path, doing, &why.into())),
        Err(Distrust { path, fault }) => Err(StoreError::new(
            path,
            format!("{fault}: what is kept there is not believed; look at it, then give it back to its owner"),
        )),
    }
}

fn kept(read: Result<Vec<u8>, InputError>, path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match read {
        Ok(bytes) => Ok(Some(bytes)),
        Err(InputError::Refused { error, .. }) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(InputError::Refused { error, .. }) => Err(fail(path, "read", &error)),
        Err(e) => Err(StoreError::new(path, format!("cannot be read: {e}"))),
    }
}

/// The bytes of a file that nothing is decided by, whoever may write it; none where there is no such file.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    kept(input::read(path, input::KEPT), path)
}

impl Store for Disk {
    fn load(&self, path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
        // Never by name twice: what was looked at is what is read.
        let Some(file) = believed(Caller::this_process().open_kept(path), "read")? else { return Ok(None) };
        kept(input::look_and_read(file, path, input::KEPT), path)
    }
    fn names(&self, folder: &Path) -> Result<Vec<String>, StoreError> {
        // What lies here says which settings root turns back, so nobody else may have put it here.
        match believed(Caller::this_process().open_folder(folder), "list")? {
            None => Ok(Vec::new()),
            Some(trusted) => trusted.names().map_err(|e| fail(folder, "list", &e)),
        }
    }
    fn make_folder(&self, folder: &Path) -> Result<(), StoreError> {
        if folder.is_dir() {
            return Ok(());
        }
        let above = folder_of(folder);
        self.make_folder(above)?;
        match fs::create_dir(folder) {
            // Somebody else made it meanwhile.
            Err(e) if e.kind() != ErrorKind::AlreadyExists || !folder.is_dir() => {
                return Err(fail(folder, "make the folder", &e));
            }
            _ => {}
        }
        // Else a power loss may take the folder, and everything durable in it.
        self.sync_folder(above)
    }
    fn close_folder(&self, folder: &Path) -> Result<(), StoreError> {
        let change = || {
            let mode = fs::metadata(folder)?.permissions().mode() & 0o7777;
            let closed = mode & !0o077;
            if mode == closed { Ok(()) } else { fs::set_permissions(folder, Permissions::from_mode(closed)) }
        };
        change().map_err(|e| fail(folder, "close to others", &e))
    }
    fn has_folder(&self, folder: &Path) -> bool {
        folder.is_dir()
    }
    fn write(&self, path: &Path, bytes: &[u8], mode: u32) -> Result<(), StoreError> {
        // Only ever a new file: O_EXCL follows no link and opens no file that somebody has put there.
        let create = || OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
        let mut file = match create() {
            // Left by a process that was killed half-way, or put there: the name goes, what it leads to stays.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                fs::remove_file(path).map_err(|e| fail(path, "remove what has this name", &e))?;
                create()
            }
            other => other,
        }
        .map_err(|e| fail(path, "create", &e))?;
        // The mode given to open is cut by the umask.
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
    fn a_folder_that_others_write_to_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tune-1.json"), "{}").unwrap();
        assert_eq!(Disk.names(dir.path()).unwrap(), ["tune-1.json"]);
        assert_eq!(Disk.names(&dir.path().join("none")).unwrap(), [""; 0]);
        fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
        let why = Disk.names(dir.path()).unwrap_err();
        assert!(why.what.contains("may be written by everybody"), "{}", why.what);
        fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert!(Disk.names(&link).unwrap_err().what.contains("symbolic link"));
    }

    /// Somebody exchanges two names a thousand times while they are read: what is not ours is never what comes back.
    #[test]
    fn what_is_exchanged_while_it_is_read_is_never_believed() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use std::os::unix::fs::chown;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (folder, text) in [("open", "good"), ("evil", "evil")] {
            fs::create_dir(at(folder)).unwrap();
            fs::write(at(folder).join("tune-1.json"), text).unwrap();
            fs::write(at(folder).join(text), "").unwrap();
        }
        let is_given = rustix::process::geteuid().is_root()
            && chown(at("evil"), Some(1000), Some(1000)).is_ok()
            && chown(at("evil/tune-1.json"), Some(1000), Some(1000)).is_ok();
        if !is_given {
            fs::set_permissions(at("evil"), Permissions::from_mode(0o777)).unwrap();
            fs::set_permissions(at("evil/tune-1.json"), Permissions::from_mode(0o666)).unwrap();
        }
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = renameat_with(CWD, at("open"), CWD, at("evil"), RenameFlags::EXCHANGE);
                    std::thread::yield_now();
                }
            });
            for _ in 0..1000 {
                // A refusal is as good; the file is looked at, so the folder it came from is of no matter.
                if let Ok(bytes) = Disk.load(&at("open/tune-1.json")) {
                    assert_eq!(bytes.as_deref(), Some(&b"good"[..]));
                }
                if let Ok(names) = Disk.names(&at("open")) {
                    assert_eq!(names, ["good", "tune-1.json"]);
                }
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }

    #[test]
    fn a_path_without_a_folder_lies_in_the_working_folder() {
        for (path, folder) in [("x", "."), ("./x", "."), ("../x", ".."), ("a/x", "a"), ("/x", "/"), ("/", "/")] {
            assert_eq!(folder_of(Path::new(path)), Path::new(folder), "{path}");
        }
    }

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
    fn what_was_left_beside_a_file_is_neither_followed_nor_kept() {
        let dir = tempfile::tempdir().unwrap();
        let (file, victim) = (dir.path().join("tune-1.json"), dir.path().join("victim"));
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, beside(&file)).unwrap();
        replace(&Disk, &file, b"new", 0o600).unwrap();
        assert_eq!((fs::read(&file).unwrap(), fs::read(&victim).unwrap()), (b"new".to_vec(), b"precious".to_vec()));
        assert!(!file.symlink_metadata().unwrap().is_symlink());
        // A second name of a file is a name only, too.
        fs::hard_link(&victim, beside(&file)).unwrap();
        replace(&Disk, &file, b"newer", 0o600).unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"precious");
        // What a killed process left is named when it goes; a folder in the way is named when it does not.
        fs::write(beside(&file), "half").unwrap();
        assert_eq!(sweep(&Disk, dir.path()).unwrap(), [".tune-1.json.wakewatt-new"]);
        fs::create_dir(beside(&file)).unwrap();
        let refused = replace(&Disk, &file, b"x", 0o600).unwrap_err();
        assert!(
            refused.to_string().contains(".tune-1.json.wakewatt-new: cannot remove what has this name"),
            "{refused}"
        );
        assert_eq!(fs::read(&file).unwrap(), b"newer");
    }

    #[test]
    fn a_file_whose_folder_is_gone_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        remove(&Disk, &dir.path().join("gone/tune-1.json")).unwrap();
        let folder = dir.path().join("open");
        Disk.make_folder(&folder).unwrap();
        Disk.close_folder(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
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

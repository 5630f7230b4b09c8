//! A folder that belongs to somebody else, and everything that can lie in it. As root it is really given to another user;
//! otherwise the caller is taken for somebody else, to whom everything here is foreign.

use super::trust::Who;
use super::*;
use std::fs;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::PathBuf;

const NOBODY: u32 = 65534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Gives these to another user, and says who we are to them.
fn give_away(paths: &[&Path]) -> Who {
    let me = Who::caller();
    if is_root() {
        paths.iter().for_each(|p| lchown(p, Some(NOBODY), Some(NOBODY)).unwrap());
        me
    } else {
        Who { uid: me.uid + 1000, gid: me.gid + 1000 }
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A file that only its owner may read, beside a folder where things are laid.
fn secret_and_folder() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (secret, folder) = (dir.path().join("secret"), dir.path().join("theirs"));
    fs::write(&secret, "secret").unwrap();
    set_mode(&secret, 0o600);
    fs::create_dir(&folder).unwrap();
    (dir, secret, folder)
}

fn write_as(path: &Path, who: Who) -> Result<(), PlaceError> {
    FilePlace::of_as(path, who)?.write(b"report")
}

#[test]
fn a_link_in_somebody_elses_folder_is_refused_and_what_it_leads_to_stays() {
    let (_dir, secret, folder) = secret_and_folder();
    let (page, way, old_temporary) =
        (folder.join("report.html"), folder.join("way"), folder.join(format!("other.html.{}.tmp", std::process::id())));
    symlink(&secret, &page).unwrap();
    symlink(secret.parent().unwrap(), &way).unwrap();
    symlink(&secret, &old_temporary).unwrap();
    let who = give_away(&[&folder, &page, &way, &old_temporary]);
    for laid in [&page, &way.join("secret"), &way.join("new")] {
        let refused = write_as(laid, who).unwrap_err();
        assert!(matches!(refused, PlaceError::ForeignLink { .. }), "{refused}");
    }
    if is_root() {
        // Even a link of root's: its owner could have moved it here.
        lchown(&page, Some(0), Some(0)).unwrap();
        assert!(matches!(write_as(&page, who).unwrap_err(), PlaceError::ForeignLink { .. }));
        // The name that temporary files had once is nothing special.
        write_as(&folder.join("other.html"), who).unwrap();
        assert_eq!(fs::read_to_string(folder.join("other.html")).unwrap(), "report");
    }
    assert_eq!((fs::read_to_string(&secret).unwrap().as_str(), mode(&secret)), ("secret", 0o600));
    assert!(names(&folder).iter().all(|n| !n.starts_with(".wakewatt")), "{:?}", names(&folder));
}

#[test]
fn a_link_in_a_sticky_folder_is_refused_and_ones_own_elsewhere_is_followed() {
    let (_dir, secret, folder) = secret_and_folder();
    let link = folder.join("link");
    symlink(&secret, &link).unwrap();
    set_mode(&folder, 0o1777);
    assert!(matches!(write(&link, b"x").unwrap_err(), PlaceError::ForeignLink { .. }));
    set_mode(&folder, 0o755);
    write(&link, b"mine").unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "a link stays a link");
    assert_eq!((fs::read_to_string(&secret).unwrap().as_str(), mode(&secret)), ("mine", 0o600));
    if is_root() {
        lchown(&secret, Some(NOBODY), None).unwrap();
        assert!(matches!(write(&link, b"x").unwrap_err(), PlaceError::ForeignTarget { .. }));
    }
    fs::remove_file(&secret).unwrap();
    write(&link, b"new").unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "new");
    symlink("round", folder.join("round")).unwrap();
    assert!(matches!(write(&folder.join("round"), b"x").unwrap_err(), PlaceError::System { .. }));
}

#[test]
fn a_file_keeps_its_mode_but_no_set_uid_bit_and_a_new_one_gets_the_umasks() {
    let dir = tempfile::tempdir().unwrap();
    let (file, usual) = (dir.path().join("file"), dir.path().join("usual"));
    fs::write(&usual, "").unwrap();
    write(&file, b"1").unwrap();
    assert_eq!(mode(&file), mode(&usual));
    for (before, after) in [(0o600, 0o600), (0o640, 0o640), (0o666, 0o666), (0o4755, 0o755), (0o2755, 0o755)] {
        set_mode(&file, before);
        write(&file, b"2").unwrap();
        assert_eq!(mode(&file), after, "{before:o}");
    }
    if is_root() {
        // Another's file becomes ours, and no looser than our umask.
        lchown(&file, Some(NOBODY), Some(NOBODY)).unwrap();
        set_mode(&file, 0o666);
        write(&file, b"3").unwrap();
        assert_eq!((fs::metadata(&file).unwrap().uid(), mode(&file)), (0, mode(&usual)));
    }
    assert_eq!(names(dir.path()), ["file", "usual"]);
}

#[test]
fn a_hard_link_keeps_the_old_content_and_is_never_written_into() {
    let (_dir, secret, folder) = secret_and_folder();
    let page = folder.join("page");
    fs::hard_link(&secret, &page).unwrap();
    assert!(matches!(FilePlace::of(&page).unwrap().existing().unwrap_err(), PlaceError::ForeignFile { .. }));
    write(&page, b"report").unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!((fs::read_to_string(&page).unwrap().as_str(), mode(&page)), ("report", 0o600));
    let who = give_away(&[&page]);
    assert!(matches!(FilePlace::of_as(&page, who).unwrap().existing().unwrap_err(), PlaceError::ForeignFile { .. }));
}

#[test]
fn a_temporary_file_is_private_unforeseeable_and_gone_when_it_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    write(&file, b"old").unwrap();
    let place = FilePlace::of(&file).unwrap();
    let first = {
        let mut draft = place.draft().unwrap().unwrap();
        draft.file().write_all(b"half").unwrap();
        let found = names(dir.path());
        assert!(found[0].starts_with(".wakewatt-") && found[0].len() == 46, "{found:?}");
        found[0].clone()
    };
    assert_eq!(names(dir.path()), ["file"]);
    let draft = place.draft().unwrap().unwrap();
    assert_ne!(names(dir.path())[0], first);
    assert!(matches!(draft.commit_new().unwrap_err(), PlaceError::Exists { .. }), "the name is taken");
    assert!(matches!(place.create_new().unwrap_err(), PlaceError::Exists { .. }));
    assert_eq!((fs::read_to_string(&file).unwrap().as_str(), names(dir.path()).len()), ("old", 1));
}

#[test]
fn the_folder_that_was_looked_at_is_the_one_that_is_written_to() {
    let (_dir, secret, folder) = secret_and_folder();
    let place = FilePlace::of(&folder.join("page")).unwrap();
    let moved = folder.with_file_name("moved");
    fs::rename(&folder, &moved).unwrap();
    symlink(secret.parent().unwrap(), &folder).unwrap();
    place.write(b"report").unwrap();
    assert_eq!(fs::read_to_string(moved.join("page")).unwrap(), "report");
    // A link laid meanwhile is replaced, not followed.
    let place = FilePlace::of(&moved.join("late")).unwrap();
    symlink(&secret, moved.join("late")).unwrap();
    place.write(b"report").unwrap();
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
}

#[test]
fn devices_pipes_and_descriptors_are_written_to_and_stay() {
    let dir = tempfile::tempdir().unwrap();
    write(Path::new("/dev/null"), b"x").unwrap();
    let full = write(Path::new("/dev/full"), b"x").unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::StorageFull, "{full}");
    let pipe = dir.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let place = FilePlace::of(&pipe).unwrap();
    assert!(place.existing().is_err(), "nobody reads");
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    place.write(b"through").unwrap();
    assert_eq!(reader.join().unwrap(), b"through");
    let who = give_away(&[&pipe]);
    assert!(matches!(FilePlace::of_as(&pipe, who).unwrap_err(), PlaceError::ForeignTarget { .. }));
    // As the shell leaves it after `>> file`.
    let mut open = fs::File::create(dir.path().join("log")).unwrap();
    open.write_all(b"head ").unwrap();
    write(Path::new(&format!("/dev/fd/{}", open.as_raw_fd())), b"tail").unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("log")).unwrap(), "head tail");
    assert!(write(Path::new("/dev/fd/65000"), b"x").is_err());
}

#[test]
fn what_cannot_be_written_is_said_before() {
    let dir = tempfile::tempdir().unwrap();
    for folder in [dir.path().to_path_buf(), dir.path().join("."), PathBuf::from("/"), PathBuf::from("..")] {
        assert!(matches!(FilePlace::of(&folder).unwrap_err(), PlaceError::IsFolder { .. }), "{}", folder.display());
    }
    assert!(matches!(FilePlace::of(&dir.path().join("new/")).unwrap_err(), PlaceError::IsFolder { .. }));
    let _listener = std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    assert!(matches!(FilePlace::of(&dir.path().join("socket")).unwrap_err(), PlaceError::NotAFile { .. }));
    // Nobody can make files there, root included.
    for file in ["/proc/wakewatt.html", "/proc/none/wakewatt.html", "/dev/null/x"] {
        let refused = FilePlace::of(Path::new(file)).unwrap_err().to_string();
        assert!(refused.starts_with(file) && refused.contains("name another place"), "{refused}");
    }
    assert!(Folder::check(Path::new("/proc/none/deeper")).is_err());
    Folder::check(&dir.path().join("a/b")).unwrap();
    assert!(!dir.path().join("a").exists());
    Folder::make(&dir.path().join("a/b")).unwrap().place("x").unwrap().write(b"x").unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("a/b/x")).unwrap(), "x");
    let evil = FilePlace::of(Path::new("/proc/a\u{1b}[2J\u{202e}b")).unwrap_err().to_string();
    assert!(evil.contains("\\x1b[2J\\u{202e}b") && !evil.contains('\u{1b}'), "{evil}");
}

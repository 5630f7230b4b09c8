//! Where a program lies that is to be started: one answer for the whole tool, and never "in the working folder".
//!
//! execvp(3) searches the folders of PATH. An element that is empty or relative means the folder in which one happens to
//! stand, and root may stand in one that somebody else has filled. So only absolute elements count, and without a PATH
//! (a bare unit, `env -i`) those of the system. A name with a slash in it is a path that a person has written, and stands.
//! A program gets a PATH cleaned the same way, because it starts others. Asking before anything is changed turns a
//! misspelled name into a refusal.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Searched where PATH says nothing, in this order.
const SYSTEM: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A program that cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// No folder has it.
    #[error("{name}: not found in {searched}; install it, or give its whole path")]
    NotFound {
        /// As asked for.
        name: String,
        /// The folders.
        searched: String,
    },
    /// A path that is no program.
    #[error("{path}: {why}")]
    Unfit {
        path: String,
        /// What is wrong.
        why: String,
    },
}

/// The absolute path of a program.
pub fn find(name: impl AsRef<OsStr>) -> Result<PathBuf, ProgramError> {
    find_on(name.as_ref(), &path())
}

/// The same where boot loaders' tools lie too.
pub fn find_system(name: impl AsRef<OsStr>) -> Result<PathBuf, ProgramError> {
    find_on(name.as_ref(), &system_path())
}

/// A command for it, found as above; it keeps the name it was called by.
pub fn command(name: impl AsRef<OsStr>) -> Result<Command, ProgramError> {
    let path = path();
    Ok(prepared(find_on(name.as_ref(), &path)?, name.as_ref(), &path))
}

/// The same where boot loaders' tools lie too: sudo and systemd units often come without the sbin folders.
pub fn system_command(name: impl AsRef<OsStr>) -> Result<Command, ProgramError> {
    let path = system_path();
    Ok(prepared(find_on(name.as_ref(), &path)?, name.as_ref(), &path))
}

fn prepared(found: PathBuf, name: &OsStr, path: &OsStr) -> Command {
    let mut command = Command::new(found);
    command.arg0(name).env("PATH", path);
    command
}

/// PATH without what depends on the working folder.
pub fn path() -> OsString {
    cleaned(env::var_os("PATH"))
}

/// The same, and the folders of system programs.
pub fn system_path() -> OsString {
    with_system(path())
}

fn cleaned(path: Option<OsString>) -> OsString {
    let path = path.unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    match env::join_paths(&folders) {
        Ok(joined) if !folders.is_empty() => joined,
        _ => SYSTEM.into(),
    }
}

fn with_system(mut path: OsString) -> OsString {
    for folder in SYSTEM.split(':') {
        if !env::split_paths(&path).any(|p| p == Path::new(folder)) {
            path.push(":");
            path.push(folder);
        }
    }
    path
}

fn find_on(name: &OsStr, path: &OsStr) -> Result<PathBuf, ProgramError> {
    if name.as_bytes().contains(&b'/') {
        let here = |e: std::io::Error| ProgramError::Unfit { path: shown(name), why: e.to_string() };
        let absolute = std::path::absolute(Path::new(name)).map_err(here)?;
        return match unfit(&absolute) {
            None => Ok(absolute),
            Some(why) => Err(ProgramError::Unfit { path: shown(name), why }),
        };
    }
    let found = env::split_paths(path).map(|folder| folder.join(name)).find(|file| unfit(file).is_none());
    let missing = || ProgramError::NotFound { name: shown(name), searched: shown(path) };
    found.filter(|_| !name.is_empty()).ok_or_else(missing)
}

/// Why a file cannot be started.
fn unfit(file: &Path) -> Option<String> {
    match std::fs::metadata(file) {
        Err(e) => Some(format!("cannot be started: {e}")),
        Ok(meta) if !meta.is_file() => Some("is no file that could be started".into()),
        Ok(_) => match rustix::fs::access(file, rustix::fs::Access::EXEC_OK) {
            Ok(()) => None,
            Err(_) => Some("may not be executed".into()),
        },
    }
}

fn shown(text: &OsStr) -> String {
    text.to_string_lossy().escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn neither_an_empty_nor_a_relative_element_is_searched() {
        for (given, left) in [
            (Some(""), SYSTEM),
            (None, SYSTEM),
            (Some(":/usr/bin"), "/usr/bin"),
            (Some("/usr/bin:"), "/usr/bin"),
            (Some("/usr/bin::/bin"), "/usr/bin:/bin"),
            (Some(".:bin:../x:/usr/bin:~/bin"), "/usr/bin"),
            (Some(".:"), SYSTEM),
        ] {
            assert_eq!(cleaned(given.map(OsString::from)), OsString::from(left), "{given:?}");
        }
        assert_eq!(
            with_system("/x:/usr/bin".into()),
            "/x:/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/sbin:/bin"
        );
    }

    #[test]
    fn a_program_is_found_or_it_is_said_what_is_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, mode| {
            let file = dir.path().join(name);
            std::fs::write(&file, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
            file
        };
        let (good, plain) = (file("good", 0o755), file("plain", 0o644));
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        let path = dir.path().as_os_str();
        assert_eq!(find_on("good".as_ref(), path), Ok(good.clone()));
        assert_eq!(find_on(good.as_os_str(), "/none".as_ref()), Ok(good));
        for name in ["plain", "folder", "none", ""] {
            let error = find_on(name.as_ref(), path).unwrap_err();
            assert!(matches!(error, ProgramError::NotFound { .. }), "{name}: {error}");
        }
        assert!(matches!(find_on(plain.as_os_str(), path), Err(ProgramError::Unfit { .. })));
        assert!(find_on("/no/such/program".as_ref(), path).unwrap_err().to_string().contains("/no/such/program"));
        assert_eq!(
            find_on("./Cargo.toml".as_ref(), path).unwrap_err().to_string(),
            "./Cargo.toml: may not be executed"
        );
    }
}

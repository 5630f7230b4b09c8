//! The files of a package before any format: path, mode, bytes; sorted, with one time for all, so that two builds are alike.
//!
//! Every format is made from such a tree laid into a folder: `dpkg-deb`, `rpmbuild` and `tar` then see the same names, modes and
//! times on every machine, whatever umask, clock and order of directory entries it has. The time is SOURCE_DATE_EPOCH, else that
//! of the commit (reproducible-builds.org/docs/source-date-epoch).

use anyhow::{Context, Result};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, utimensat};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A file as it is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub mode: u32,
    pub bytes: Vec<u8>,
}

/// Files by their path, without a leading slash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tree {
    pub files: BTreeMap<String, File>,
}

impl Tree {
    /// A file that everybody may read.
    pub(super) fn add(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.files.insert(path.into(), File { mode: 0o644, bytes: bytes.into() });
    }

    /// A file that everybody may run.
    pub(super) fn add_program(&mut self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.files.insert(path.into(), File { mode: 0o755, bytes: bytes.into() });
    }

    /// Into a folder, which must not hold anything yet.
    pub(super) fn lay(&self, folder: &Path, epoch_s: i64) -> Result<()> {
        for (path, file) in &self.files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().context("a file without a folder")?)?;
            std::fs::write(&path, &file.bytes).with_context(|| format!("{}: not writable", path.display()))?;
            std::fs::set_permissions(&path, PermissionsExt::from_mode(file.mode))?;
        }
        stamp(folder, epoch_s)
    }
}

/// One time for all below, and folders that everybody may enter; innermost first, because writing changes the folder above.
fn stamp(path: &Path, epoch_s: i64) -> Result<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            stamp(&entry?.path(), epoch_s)?;
        }
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755))?;
    }
    let time = Timespec { tv_sec: epoch_s, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).with_context(|| format!("{}: no time set", path.display()))
}

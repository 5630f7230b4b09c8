//! From the numbers of cgroups that the probe counted by to their paths.
//!
//! A cgroup's number is the inode number of its folder in the version 2 hierarchy, and is never used again. Folders are looked for only where a
//! number is not known yet: a pod that came and went between two looks stays a number. What is gone is remembered as long as
//! it is asked for, so that a look that lasts for months grows no larger than what the probe itself keeps.

use super::scope;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};
use wakewatt_probes::namespace;

/// No machine has more; a walk ends there.
const MOST_FOLDERS: usize = 200_000;
/// Deeper is nothing that a runtime makes.
const MOST_LEVELS: usize = 32;

/// The cgroups of this machine as far as they were seen.
#[derive(Debug, Default)]
pub(super) struct Folders {
    root: PathBuf,
    paths: BTreeMap<u64, String>,
    /// Looked for in vain: gone before anybody looked.
    gone: BTreeSet<u64>,
}

impl Folders {
    /// Refuses with the reason where paths mean something else here.
    pub(super) fn start() -> Result<Folders, String> {
        let root = scope::cgroup_root()
            .ok_or_else(|| format!("no cgroup version 2 hierarchy is mounted under {}", scope::CGROUPS))?;
        if !namespace::has_kernel_cgroup_paths() {
            return Err(
                "/proc/self/ns/cgroup: inside a cgroup namespace other containers have no paths; run with the host's"
                    .into(),
            );
        }
        Ok(Folders::below(root))
    }

    /// All below a folder.
    pub(super) fn below(root: PathBuf) -> Folders {
        let mut folders = Folders { root, ..Folders::default() };
        folders.walk();
        folders
    }

    /// Are there numbers that nobody has looked for?
    pub(super) fn is_new(&self, id: u64) -> bool {
        !self.paths.contains_key(&id) && !self.gone.contains(&id)
    }

    /// Looks for folders of numbers that came up.
    pub(super) fn learn(&mut self, ids: impl Iterator<Item = u64>) {
        let new: Vec<u64> = ids.filter(|id| self.is_new(*id)).collect();
        if !new.is_empty() {
            self.walk();
            self.gone.extend(new.into_iter().filter(|id| !self.paths.contains_key(id)));
        }
    }

    /// Looks again, for these; what is neither asked for nor there is forgotten.
    pub(super) fn again(&mut self, asked: &BTreeSet<u64>) {
        let before = std::mem::take(&mut self.paths);
        self.walk();
        for id in asked {
            if let (false, Some(path)) = (self.paths.contains_key(id), before.get(id)) {
                self.paths.insert(*id, path.clone());
            }
        }
        self.gone = asked.iter().copied().filter(|id| !self.paths.contains_key(id)).collect();
    }

    /// Its path below the root.
    pub(super) fn path(&self, id: u64) -> Option<&str> {
        self.paths.get(&id).map(String::as_str)
    }

    /// Every path that was seen.
    pub(super) fn paths(&self) -> impl Iterator<Item = (u64, &str)> {
        self.paths.iter().map(|(id, path)| (*id, path.as_str()))
    }

    /// Is it there now?
    pub(super) fn is_there(&self, id: u64) -> bool {
        self.path(id).is_some_and(|path| is_there(&self.root, path, id))
    }

    fn walk(&mut self) {
        if let Ok(ino) = std::fs::metadata(&self.root).map(|m| m.ino()) {
            self.paths.insert(ino, "/".into());
        }
        let mut left = vec![(self.root.clone(), 0)];
        let mut n_seen = 0;
        while let Some((folder, level)) = left.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                if !entry.file_type().is_ok_and(|t| t.is_dir()) {
                    continue;
                }
                n_seen += 1;
                if n_seen > MOST_FOLDERS {
                    return;
                }
                self.paths.insert(entry.ino(), below(&self.root, &entry.path()));
                if level < MOST_LEVELS {
                    left.push((entry.path(), level + 1));
                }
            }
        }
    }
}

fn below(root: &Path, folder: &Path) -> String {
    format!("/{}", folder.strip_prefix(root).unwrap_or(folder).display())
}

fn is_there(root: &Path, path: &str, id: u64) -> bool {
    std::fs::metadata(root.join(path.trim_start_matches('/'))).is_ok_and(|m| m.ino() == id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folders stand in for cgroups: what counts is their inode number.
    #[test]
    fn months_of_cgroups_that_come_and_go_leave_nothing_behind() {
        let root = tempfile::tempdir().unwrap();
        let mut folders = Folders::below(root.path().into());
        let mut most = 0;
        for day in 0..300u64 {
            let folder = root.path().join(format!("pod{day}"));
            std::fs::create_dir(&folder).unwrap();
            let ino = std::fs::metadata(&folder).unwrap().ino();
            // One that is there, one that nobody ever saw.
            let asked = BTreeSet::from([ino, u64::MAX - day]);
            folders.again(&asked);
            assert_eq!(folders.path(ino), Some(format!("/pod{day}").as_str()));
            assert!(folders.is_there(ino) && !folders.is_new(u64::MAX - day));
            std::fs::remove_dir(&folder).unwrap();
            assert!(!folders.is_there(ino));
            folders.again(&asked);
            assert!(folders.path(ino).is_some(), "whoever counts is known although it is gone");
            most = most.max(folders.paths.len() + folders.gone.len());
        }
        assert!(most <= 4, "{most}");
    }
}

//! Who could have laid a link: the question that every step of the way asks.
//!
//! Like the kernel's `fs.protected_symlinks`, and stricter: that looks at sticky folders only, and a user's own folder is
//! not sticky. A folder that its group may write to is closed where the group is the caller's own, because many
//! distributions give every user a group and umask 002.

use rustix::fs::Stat;

/// Whose rights count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Who {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

impl Who {
    pub(super) fn caller() -> Who {
        Who { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
    }

    /// Does it belong to the caller, or to root, who may do everything anyway?
    pub(super) fn has(self, stat: &Stat) -> bool {
        stat.st_uid == self.uid || stat.st_uid == 0
    }

    /// Can nobody else make, rename or exchange names in this folder? A sticky folder lets others make them.
    fn closes(self, folder: &Stat) -> bool {
        let is_group_out = folder.st_mode & 0o020 == 0 || folder.st_gid == self.gid || folder.st_gid == 0;
        self.has(folder) && folder.st_mode & 0o002 == 0 && is_group_out
    }

    /// May a link in this folder be followed?
    pub(super) fn follows(self, link: &Stat, folder: &Stat) -> bool {
        self.has(link) && self.closes(folder)
    }
}

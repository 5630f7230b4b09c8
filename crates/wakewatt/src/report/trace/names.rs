//! Names of others on a page: made harmless, and so many of them.

/// Rows of processes, payers and chains before the rest is one line.
pub(super) const N_PROCESSES: usize = 15;

/// Foreign words on one line without control characters: a process, a cgroup or a file may call itself anything.
pub fn clean(text: &str) -> String {
    wakewatt_core::visible::line(text).into_owned()
}

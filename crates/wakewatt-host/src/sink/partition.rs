//! CPUs taken away from everybody: a cgroup that nobody is in, with its own partition of the scheduler.
//!
//! `partition:/sys/fs/cgroup/NAME` holds the CPUs as one value, `8-15`, or nothing. Behind it are four writes in order
//! (Documentation/admin-guide/cgroup-v2.rst, Cpuset): the controller switched on in the parent, the folder made,
//! `cpuset.cpus` set, `cpuset.cpus.partition` set to `isolated` (kernel 6.1 and later). Then no other group may use these
//! CPUs and the scheduler balances no load onto them; what is bound to a CPU by the kernel stays. Removing the folder
//! gives them back, in one step, which is why the undo needs no order. The controller stays switched on: that alone
//! restricts nothing. As one value the journal, the guard and the undo need to know none of this.

use super::{SinkError, attribute, fail, refuse};
use rustix::io::Errno;
use std::path::Path;

/// The CPUs of the partition; empty where there is none.
pub(super) fn read(folder: &Path, path: &str) -> Result<String, SinkError> {
    if !folder.exists() {
        return Ok(String::new());
    }
    let state = attribute::read(&folder.join("cpuset.cpus.partition"), path)?;
    if state.contains("invalid") {
        return Err(refuse(path, format!("the kernel calls the partition {state}")));
    }
    attribute::read(&folder.join("cpuset.cpus"), path)
}

/// Makes it, changes it, or removes it (empty).
pub(super) fn write(folder: &Path, path: &str, cpus: &str) -> Result<(), SinkError> {
    let Some(parent) = folder.parent() else { return Err(refuse(path, "not a group below the root")) };
    if cpus.is_empty() {
        return match rustix::fs::rmdir(folder) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::BUSY) => Err(refuse(path, "somebody put a process or a group into it; move it out first")),
            Err(other) => Err(fail(path, other)),
        };
    }
    let before = match rustix::fs::mkdir(folder, rustix::fs::Mode::from_raw_mode(0o755)) {
        Ok(()) => None,
        Err(Errno::EXIST) => Some(attribute::read(&folder.join("cpuset.cpus"), path)?),
        Err(other) => return Err(fail(path, other)),
    };
    let written = fill(parent, folder, path, cpus);
    if written.is_err() {
        // Nothing half-made stays: what was there before, or no group.
        let _ = match before {
            Some(before) if !before.is_empty() => fill(parent, folder, path, &before),
            _ => rustix::fs::rmdir(folder).map_err(|e| fail(path, e)),
        };
    }
    written
}

fn fill(parent: &Path, folder: &Path, path: &str, cpus: &str) -> Result<(), SinkError> {
    let control = parent.join("cgroup.subtree_control");
    if !attribute::read(&control, path)?.split_whitespace().any(|word| word == "cpuset") {
        attribute::write(&control, path, "+cpuset")?;
    }
    attribute::write(&folder.join("cpuset.cpus"), path, cpus)?;
    attribute::write(&folder.join("cpuset.cpus.partition"), path, "isolated")
        .map_err(|e| SinkError { what: format!("{} (isolated partitions need kernel 6.1)", e.what), ..e })?;
    let state = attribute::read(&folder.join("cpuset.cpus.partition"), path)?;
    if state == "isolated" { Ok(()) } else { Err(refuse(path, format!("the kernel calls the partition {state}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_made_filled_and_read_as_one_value() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("parked");
        assert_eq!(read(&group, "p").unwrap(), "");
        write(&group, "p", "").unwrap();
        // Without the parent's files nothing is left behind.
        assert!(write(&group, "p", "8-15").is_err() && !group.exists());
        std::fs::write(dir.path().join("cgroup.subtree_control"), "cpu io\n").unwrap();
        std::fs::create_dir(&group).unwrap();
        ["cpuset.cpus", "cpuset.cpus.partition"].iter().for_each(|f| std::fs::write(group.join(f), "").unwrap());
        write(&group, "p", "8-15").unwrap();
        assert_eq!(read(&group, "p").unwrap(), "8-15");
        assert_eq!(std::fs::read_to_string(dir.path().join("cgroup.subtree_control")).unwrap(), "+cpuset");
        std::fs::write(group.join("cpuset.cpus.partition"), "isolated invalid (Cpu list not exclusive)\n").unwrap();
        assert!(read(&group, "p").unwrap_err().what.contains("not exclusive"));
    }
}

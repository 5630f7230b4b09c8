//! CPUs taken away from everybody: a cgroup that nobody is in, with its own partition of the scheduler.
//!
//! `partition:/sys/fs/cgroup/NAME` holds the CPUs as one value, `8-15`, or nothing. Behind it are four writes in order
//! (Documentation/admin-guide/cgroup-v2.rst, Cpuset): the controller switched on in the parent, the folder made,
//! `cpuset.cpus` set, `cpuset.cpus.partition` set to `isolated` (kernel 6.1 and later). Then no other group may use these
//! CPUs and the scheduler balances no load onto them; what is bound to a CPU by the kernel stays. Removing the folder
//! gives them back, in one step, which is why the undo needs no order. The controller stays switched on: that alone
//! restricts nothing. As one value the journal, the guard and the undo need to know none of this.
//!
//! A group that isolates nothing has values of its own, so that it is neither taken for one that does nor for none:
//! `8-15 invalid` (the kernel does not grant it), `8-15 member` (somebody switched it off, or its maker was cut short),
//! `empty` (no CPUs). They can be written too, to put back what was found. Nothing at all removes any of them.

use super::{SinkError, attribute, fail, refuse};
use rustix::io::Errno;
use std::path::Path;

/// The value of a group that is there, from its `cpuset.cpus` and `cpuset.cpus.partition`.
pub fn value(cpus: Option<&str>, state: Option<&str>) -> String {
    match (cpus.map(str::trim).unwrap_or_default(), state.map(str::trim).unwrap_or(MEMBER)) {
        ("", _) => EMPTY.into(),
        (cpus, "isolated") => cpus.into(),
        (cpus, state) if state.contains(INVALID) => format!("{cpus} {INVALID}"),
        (cpus, state) => format!("{cpus} {state}"),
    }
}

const EMPTY: &str = "empty";
const MEMBER: &str = "member";
const INVALID: &str = "invalid";

/// The CPUs of the partition; empty where there is no group.
pub(super) fn read(folder: &Path, path: &str) -> Result<String, SinkError> {
    if !folder.exists() {
        return Ok(String::new());
    }
    // The files are missing while the controller is off: a group that was made and not filled.
    let text = |file: &str| match attribute::read(&folder.join(file), path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.is_absent => Ok(None),
        Err(e) => Err(e),
    };
    Ok(value(text("cpuset.cpus")?.as_deref(), text("cpuset.cpus.partition")?.as_deref()))
}

/// Makes it, changes it, or removes it (empty).
pub(super) fn write(folder: &Path, path: &str, wanted: &str) -> Result<(), SinkError> {
    let Some(parent) = folder.parent() else { return Err(refuse(path, "not a group below the root")) };
    if wanted.is_empty() {
        return remove(folder, path);
    }
    let before = match rustix::fs::mkdir(folder, rustix::fs::Mode::from_raw_mode(0o755)) {
        Ok(()) => String::new(),
        Err(Errno::EXIST) => read(folder, path)?,
        Err(other) => return Err(fail(path, other)),
    };
    let written = fill(parent, folder, path, wanted);
    if written.is_err() {
        // Nothing half-made stays: what was there before, or no group.
        let _ = match before.as_str() {
            "" | EMPTY => remove(folder, path),
            before => fill(parent, folder, path, before),
        };
    }
    written
}

fn remove(folder: &Path, path: &str) -> Result<(), SinkError> {
    match rustix::fs::rmdir(folder) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::BUSY) => Err(refuse(path, "somebody put a process or a group into it; move it out first")),
        Err(other) => Err(fail(path, other)),
    }
}

fn fill(parent: &Path, folder: &Path, path: &str, wanted: &str) -> Result<(), SinkError> {
    if wanted == EMPTY {
        // A fresh group has no CPUs; those of an old one cannot be taken out while it is a partition.
        remove(folder, path)?;
        return rustix::fs::mkdir(folder, rustix::fs::Mode::from_raw_mode(0o755)).map_err(|e| fail(path, e));
    }
    let (cpus, kind) = wanted.split_once(' ').unwrap_or((wanted, "isolated"));
    let control = parent.join("cgroup.subtree_control");
    if !attribute::read(&control, path)?.split_whitespace().any(|word| word == "cpuset") {
        attribute::write(&control, path, "+cpuset")?;
    }
    let partition = folder.join("cpuset.cpus.partition");
    attribute::write(&folder.join("cpuset.cpus"), path, cpus)?;
    let state = if kind == INVALID { "isolated" } else { kind };
    attribute::write(&partition, path, state)
        .map_err(|e| SinkError { what: format!("{} (isolated partitions need kernel 6.1)", e.what), ..e })?;
    let now = attribute::read(&partition, path)?;
    // An invalid one that is put back may have become valid meanwhile; the reader compares.
    if now == state || kind == INVALID {
        return Ok(());
    }
    Err(refuse(path, format!("the kernel calls the partition {now}")))
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
        assert_eq!(read(&group, "p").unwrap(), "8-15 invalid");
        std::fs::write(group.join("cpuset.cpus.partition"), "member\n").unwrap();
        assert_eq!(read(&group, "p").unwrap(), "8-15 member");
        // What was found can be put back.
        write(&group, "p", "4-7").unwrap();
        assert_eq!(read(&group, "p").unwrap(), "4-7");
        write(&group, "p", "8-15 member").unwrap();
        assert_eq!(read(&group, "p").unwrap(), "8-15 member");
    }

    #[test]
    fn a_group_that_was_made_and_not_filled_is_not_called_none() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("parked");
        std::fs::create_dir(&group).unwrap();
        assert_eq!(read(&group, "p").unwrap(), "empty");
        write(&group, "p", "empty").unwrap();
        assert_eq!(read(&group, "p").unwrap(), "empty");
        write(&group, "p", "").unwrap();
        assert!(!group.exists());
        assert_eq!(read(&group, "p").unwrap(), "");
        // A group whose file is there, but without CPUs.
        assert_eq!([value(Some("\n"), Some("member\n")), value(None, None)], ["empty", "empty"]);
        assert_eq!(value(Some("8-15"), None), "8-15 member");
        assert_eq!(value(Some("8-15"), Some("root invalid (x)")), "8-15 invalid");
        // Removing is tried whatever the state, and refused by the system alone.
        std::fs::create_dir_all(group.join("child")).unwrap();
        assert!(write(&group, "p", "").is_err() && group.exists());
    }
}

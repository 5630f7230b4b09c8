//! The other direction: writing to the machine. Only wakewatt-tune may hold a [`Sink`].
//!
//! Most settings are attributes: one `write(2)` of the whole value, as sysfs demands, and reading back the same way, so
//! that what was *requested* and what the kernel *kept* can be compared. What is no file has a scheme in front of its
//! path, and one module here; to add a scheme, write the module and its line in [`LiveSink::write`] and `read` (and
//! `remove`, where it can be absent by our doing).

use rustix::io::Errno;
use std::path::PathBuf;

mod attribute;
mod choice;
mod ethtool;
mod file;
pub mod hold;
mod msr;
pub mod partition;

/// A write or read-back that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct SinkError {
    pub path: String,
    /// The operating system's words.
    pub what: String,
    /// Is it missing altogether (a CPU that went offline)?
    pub is_absent: bool,
}

/// Where settings are written.
pub trait Sink {
    /// Writes the value, whole.
    fn write(&self, path: &str, value: &str) -> Result<(), SinkError>;
    /// Reads it back, without the newline.
    fn read(&self, path: &str) -> Result<String, SinkError>;
    /// Makes it absent.
    fn remove(&self, path: &str) -> Result<(), SinkError> {
        Err(refuse(path, "cannot be removed"))
    }
    /// Makes what it holds now, absence included, survive a power loss. Only files can: a kernel attribute never does.
    fn make_durable(&self, _path: &str) -> Result<(), SinkError> {
        Ok(())
    }
    /// Can it be absent by our doing? A kernel attribute cannot.
    fn is_removable(&self, path: &str) -> bool {
        path.starts_with("file:")
    }
}

/// The real files, under a root (`/` but for tests).
#[derive(Clone, Debug)]
pub struct LiveSink {
    root: PathBuf,
}

impl LiveSink {
    /// The machine this runs on.
    pub fn this_machine() -> Self {
        LiveSink { root: "/".into() }
    }
    /// A tree, for tests.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        LiveSink { root: root.into() }
    }
    fn at_root(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

/// The error of a refused system call, in the operating system's words.
fn fail(path: &str, error: Errno) -> SinkError {
    let what = std::io::Error::from_raw_os_error(error.raw_os_error()).to_string();
    SinkError { path: path.into(), what, is_absent: matches!(error, Errno::NOENT | Errno::NODEV | Errno::NXIO) }
}

/// The same of a file that was to be read. cpufreq answers EBUSY for a policy whose CPUs are all offline.
fn unread(path: &str, error: Errno) -> SinkError {
    let is_of_cpu = path.trim_start_matches("choice:").starts_with("/sys/devices/system/cpu/");
    let SinkError { path, what, is_absent } = fail(path, error);
    SinkError { path, what, is_absent: is_absent || (is_of_cpu && error == Errno::BUSY) }
}

/// An error of our own.
fn refuse(path: &str, what: impl Into<String>) -> SinkError {
    SinkError { path: path.into(), what: what.into(), is_absent: false }
}

impl Sink for LiveSink {
    fn write(&self, path: &str, value: &str) -> Result<(), SinkError> {
        match path.split_once(':') {
            Some(("msr", _)) => msr::write(&self.root, path, value),
            Some(("ethtool", _)) => ethtool::write(&self.root, path, value),
            Some(("file", rest)) => file::write(&self.at_root(rest), path, value),
            Some(("hold", _)) => hold::write(path, value),
            Some(("choice", file)) => attribute::write(&self.at_root(file), path, value),
            Some(("partition", folder)) => partition::write(&self.at_root(folder), path, value),
            _ => attribute::write(&self.at_root(path), path, value),
        }
    }

    fn read(&self, path: &str) -> Result<String, SinkError> {
        match path.split_once(':') {
            Some(("msr", _)) => msr::read(&self.root, path),
            Some(("ethtool", _)) => ethtool::read(&self.root, path),
            Some(("file", rest)) => file::read(&self.at_root(rest), path),
            Some(("hold", _)) => hold::read(path),
            Some(("choice", file)) => choice::read(&self.at_root(file), path),
            Some(("partition", folder)) => partition::read(&self.at_root(folder), path),
            _ => attribute::read(&self.at_root(path), path),
        }
    }

    fn remove(&self, path: &str) -> Result<(), SinkError> {
        match path.split_once(':') {
            Some(("file", rest)) => file::remove(&self.at_root(rest), path),
            _ => Err(refuse(path, "cannot be removed")),
        }
    }

    fn make_durable(&self, path: &str) -> Result<(), SinkError> {
        match path.split_once(':') {
            Some(("file", rest)) => file::make_durable(&self.at_root(rest), path),
            _ => Ok(()),
        }
    }
}

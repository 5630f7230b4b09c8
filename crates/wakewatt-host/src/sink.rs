//! The other direction: writing to the machine. Only wakewatt-tune may hold a [`Sink`].
//!
//! A write is one `write(2)` of the whole value, as sysfs demands; reading back goes the same way, so that what was
//! *requested* and what the kernel *kept* can be compared.

use rustix::fs::{Mode, OFlags};
use std::path::PathBuf;

/// A write or read-back that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {what}")]
pub struct SinkError {
    /// The file.
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

fn fail(path: &str, error: rustix::io::Errno) -> SinkError {
    let what = std::io::Error::from_raw_os_error(error.raw_os_error()).to_string();
    SinkError {
        path: path.into(),
        what,
        is_absent: matches!(error, rustix::io::Errno::NOENT | rustix::io::Errno::NODEV),
    }
}

impl Sink for LiveSink {
    fn write(&self, path: &str, value: &str) -> Result<(), SinkError> {
        // TRUNC is for the regular files of tests; sysfs ignores it.
        let fd = rustix::fs::open(self.at_root(path), OFlags::WRONLY | OFlags::CLOEXEC | OFlags::TRUNC, Mode::empty())
            .map_err(|e| fail(path, e))?;
        match rustix::io::write(&fd, value.as_bytes()).map_err(|e| fail(path, e))? {
            n if n == value.len() => Ok(()),
            n => Err(SinkError {
                path: path.into(),
                what: format!("only {n} of {} bytes were taken", value.len()),
                is_absent: false,
            }),
        }
    }

    fn read(&self, path: &str) -> Result<String, SinkError> {
        let fd = rustix::fs::open(self.at_root(path), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|e| fail(path, e))?;
        let mut bytes = [0u8; 4096];
        let n = rustix::io::read(&fd, &mut bytes).map_err(|e| fail(path, e))?;
        Ok(String::from_utf8_lossy(&bytes[..n]).trim_end_matches('\n').to_string())
    }
}

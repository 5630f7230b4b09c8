//! A file of sysfs or procfs: the value in one write, because the kernel parses each write(2) on its own.

use super::{SinkError, fail, refuse, unread};
use rustix::fs::{Mode, OFlags};
use std::path::Path;

/// Writes the whole value.
pub(super) fn write(file: &Path, path: &str, value: &str) -> Result<(), SinkError> {
    // TRUNC is for the regular files of tests; sysfs ignores it.
    let fd = rustix::fs::open(file, OFlags::WRONLY | OFlags::CLOEXEC | OFlags::TRUNC, Mode::empty())
        .map_err(|e| fail(path, e))?;
    match rustix::io::write(&fd, value.as_bytes()).map_err(|e| fail(path, e))? {
        n if n == value.len() => Ok(()),
        n => Err(refuse(path, format!("only {n} of {} bytes were taken", value.len()))),
    }
}

/// Reads it, without the newline.
pub(super) fn read(file: &Path, path: &str) -> Result<String, SinkError> {
    let fd = rustix::fs::open(file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(|e| unread(path, e))?;
    let mut bytes = [0u8; 4096];
    let n = rustix::io::read(&fd, &mut bytes).map_err(|e| unread(path, e))?;
    Ok(String::from_utf8_lossy(&bytes[..n]).trim_end_matches('\n').to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn what_an_offline_cpu_answers_is_absent() {
        let policy = "/sys/devices/system/cpu/cpufreq/policy1/scaling_governor";
        for (path, errno, is_absent) in [
            (policy, Errno::BUSY, true),
            (policy, Errno::NXIO, true),
            (policy, Errno::NODEV, true),
            (policy, Errno::NOENT, true),
            (policy, Errno::IO, false),
            ("/sys/block/sda/queue/scheduler", Errno::BUSY, false),
        ] {
            assert_eq!(unread(path, errno).is_absent, is_absent, "{path} {errno}");
        }
        assert!(!fail(policy, Errno::BUSY).is_absent, "a write is refused with EBUSY for other reasons");
    }
}

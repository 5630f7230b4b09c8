//! The global latency limit: `/dev/cpu_dma_latency`, in force while its file descriptor is open.
//!
//! Four raw bytes (s32 microseconds) are written, never text: the kernel parses text as hexadecimal and takes any
//! 4-byte text for binary (docs/knobs/idle.md). There is nothing to undo and nothing to journal: however this process ends, the
//! kernel drops the request. An advisory lock on the device keeps two wakewatts from experimenting at once.

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use wakewatt_core::facts::pm_qos::GLOBAL;
use wakewatt_core::units::LatencyLimit;
use wakewatt_words::say;

/// A held limit; dropping it releases it.
#[derive(Debug)]
pub struct GlobalLimit {
    fd: OwnedFd,
    requested: LatencyLimit,
}

/// The limit could not be held.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// No such device: a container, or a kernel without PM QoS.
    #[error("{GLOBAL}: no such device (a container without /dev, or a kernel without PM QoS)")]
    Absent,
    /// Root only, by default.
    #[error("{GLOBAL}: permission denied; run as root, or give this user write access to the device")]
    Denied,
    /// Another wakewatt holds it.
    #[error("{GLOBAL}: another wakewatt is experimenting on this machine; wait for it to end")]
    Busy,
    /// Something else.
    #[error("{GLOBAL}: {0}")]
    Other(String),
}

fn error(errno: Errno) -> HoldError {
    match errno {
        Errno::NOENT | Errno::NODEV | Errno::NXIO => HoldError::Absent,
        Errno::ACCESS | Errno::PERM => HoldError::Denied,
        Errno::WOULDBLOCK => HoldError::Busy,
        other => HoldError::Other(std::io::Error::from_raw_os_error(other.raw_os_error()).to_string()),
    }
}

impl GlobalLimit {
    /// Holds the limit until dropped.
    pub fn hold(limit: LatencyLimit) -> Result<GlobalLimit, HoldError> {
        Self::hold_at(Path::new(GLOBAL), limit)
    }

    /// The same on another file, for tests.
    pub fn hold_at(path: &Path, limit: LatencyLimit) -> Result<GlobalLimit, HoldError> {
        let fd = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(error)?;
        let bytes = limit.as_global_us().to_ne_bytes();
        match rustix::io::write(&fd, &bytes).map_err(error)? {
            4 => Ok(GlobalLimit { fd, requested: limit }),
            n => Err(HoldError::Other(say!("only {n} of 4 bytes were taken"))),
        }
    }

    /// The limit in force now: the minimum of all requests, which another holder may have set lower than ours.
    pub fn effective(&self) -> Result<LatencyLimit, HoldError> {
        let mut bytes = [0u8; 4];
        rustix::io::pread(&self.fd, &mut bytes, 0).map_err(error)?;
        Ok(match i32::from_ne_bytes(bytes) {
            0 => LatencyLimit::Poll,
            us if us >= 2_000_000_000 => LatencyLimit::None,
            us => LatencyLimit::AtMostNs(u64::from(us.unsigned_abs()) * 1000),
        })
    }

    /// What we asked for.
    pub fn requested(&self) -> LatencyLimit {
        self.requested
    }
}

/// Keeps other wakewatts from experimenting; holds no limit.
#[derive(Debug)]
pub struct Lock {
    _fd: OwnedFd,
}

impl Lock {
    /// Takes it, or says who is in the way.
    pub fn take() -> Result<Lock, HoldError> {
        let fd = rustix::fs::open(GLOBAL, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(error)?;
        rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).map_err(error)?;
        Ok(Lock { _fd: fd })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_raw_bytes_are_written() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cpu_dma_latency");
        for (limit, us) in
            [(LatencyLimit::Poll, 0i32), (LatencyLimit::AtMostNs(16_000), 16), (LatencyLimit::AtMostNs(1_999), 1)]
        {
            std::fs::write(&file, "").unwrap();
            let held = GlobalLimit::hold_at(&file, limit).unwrap();
            assert_eq!(std::fs::read(&file).unwrap(), us.to_ne_bytes());
            assert_eq!(held.effective().unwrap().as_global_us(), us);
        }
    }

    #[test]
    fn a_missing_device_says_what_to_think() {
        let error = GlobalLimit::hold_at(Path::new("/nonexistent/x"), LatencyLimit::Poll).unwrap_err();
        assert!(matches!(error, HoldError::Absent));
    }
}

//! Opening what is to be read: a regular file or a block device, O_RDONLY, and nothing else.
//!
//! The path is first opened with O_PATH, which touches no device and does not block on a pipe; what lies there is looked
//! at, and only a file or a block device is opened for real, through /proc/self/fd, so that nothing can take its place
//! in between. Opening another kind may do things: a tape rewinds, a watchdog starts to run.

use super::filesystem;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, SeekFrom, fstat, open, seek};
use rustix::io::Errno;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Why something cannot be read for measuring.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// It could not be opened.
    #[error("{path}: {source}; name a file or block device that this user may read")]
    Open {
        path: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Neither a regular file nor a block device.
    #[error("{path} is {what}: only a regular file or a block device can be measured{hint}")]
    Kind {
        path: String,
        /// "a directory".
        what: &'static str,
        /// What to try.
        hint: &'static str,
    },
    /// The file system keeps its files in memory.
    #[error(
        "{path} lies on {filesystem}, which is memory, so there is no disk to measure; name a file or folder on a disk, or say --buffered to measure the memory"
    )]
    Memory { path: String, filesystem: &'static str },
    /// No O_DIRECT here.
    #[error(
        "{path} lies on {filesystem}, which cannot bypass the page cache (O_DIRECT: {source}); name a file elsewhere, or say --buffered to go through the cache"
    )]
    NotDirect {
        path: String,
        filesystem: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Smaller than needed.
    #[error(
        "{path} holds {size_bytes} bytes and at least {needed_bytes} are needed; name a larger one or a smaller --block"
    )]
    TooSmall {
        path: String,
        size_bytes: u64,
        /// Asked for.
        needed_bytes: u64,
    },
}

/// Something open for reading.
#[derive(Debug)]
pub struct Target {
    file: OwnedFd,
    pub size_bytes: u64,
    /// O_DIRECT is in force.
    pub is_direct: bool,
    /// It is a block device.
    pub is_device: bool,
    /// Where its content lies: major and minor number of the block device.
    pub device: (u32, u32),
    /// The file system, if known; none for a device.
    pub filesystem: Option<&'static str>,
    /// Parts that were never written, which the file system answers without asking the disk.
    pub has_holes: bool,
}

impl Target {
    /// Opens a path of the user's. `is_direct` false goes through the page cache.
    pub fn open(path: &Path, is_direct: bool) -> Result<Target, TargetError> {
        let shown = path.display().to_string();
        let looked_at = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
            .map_err(|e| TargetError::Open { path: shown.clone(), source: e.into() })?;
        Target::of(looked_at.as_fd(), &shown, is_direct)
    }

    /// Opens again, for reading, what a descriptor refers to.
    pub(super) fn of(what: BorrowedFd<'_>, shown: &str, is_direct: bool) -> Result<Target, TargetError> {
        let fail = |e: Errno| TargetError::Open { path: shown.into(), source: e.into() };
        let stat = fstat(what).map_err(fail)?;
        let kind = |what, hint| Err(TargetError::Kind { path: shown.into(), what, hint });
        let is_device = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => false,
            FileType::BlockDevice => true,
            FileType::Directory => return kind("a directory", "; to have a file made in it, say --in"),
            FileType::Fifo => return kind("a pipe", ""),
            FileType::CharacterDevice => return kind("a character device", ""),
            FileType::Socket => return kind("a socket", ""),
            _ => return kind("of an unknown kind", ""),
        };
        let filesystem = if is_device { None } else { filesystem::name(what) };
        if let Some(name) = filesystem.filter(|name| is_direct && filesystem::is_memory(name)) {
            return Err(TargetError::Memory { path: shown.into(), filesystem: name });
        }
        let mut flags = OFlags::RDONLY | OFlags::CLOEXEC;
        flags.set(OFlags::DIRECT, is_direct);
        let again = format!("/proc/self/fd/{}", what.as_raw_fd());
        let file = open(again, flags, Mode::empty()).map_err(|e| match e {
            Errno::INVAL if is_direct => TargetError::NotDirect {
                path: shown.into(),
                filesystem: filesystem.unwrap_or("a file system").into(),
                source: e.into(),
            },
            other => fail(other),
        })?;
        let size_bytes = seek(&file, SeekFrom::End(0)).map_err(fail)?;
        let has_holes = !is_device && seek(&file, SeekFrom::Hole(0)).is_ok_and(|at| at < size_bytes);
        let number = if is_device { stat.st_rdev } else { stat.st_dev };
        let device = (rustix::fs::major(number), rustix::fs::minor(number));
        Ok(Target { file, size_bytes, is_direct, is_device, device, filesystem, has_holes })
    }

    /// The descriptor, which is open for reading only.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// One read with `pread`: how many bytes came.
    pub fn read_at(&self, into: &mut [u8], at_bytes: u64) -> rustix::io::Result<usize> {
        rustix::io::pread(&self.file, into, at_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_and_devices_and_only_for_reading() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |path: &Path| Target::open(path, false).unwrap_err().to_string();
        assert!(refused(folder.path()).contains("is a directory"));
        assert!(refused(folder.path()).contains("--in"));
        assert!(refused(&folder.path().join("absent")).contains("No such file"));
        assert!(refused(Path::new("/dev/null")).contains("a character device"));
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(refused(&pipe).contains("is a pipe"), "and it did not block");

        let file = folder.path().join("file");
        std::fs::write(&file, vec![7u8; 8192]).unwrap();
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o444)).unwrap();
        let target = Target::open(&file, false).unwrap();
        assert_eq!((target.size_bytes, target.is_device, target.has_holes), (8192, false, false));
        let flags = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", target.fd().as_raw_fd())).unwrap();
        let flags = flags.lines().find_map(|l| l.strip_prefix("flags:")).unwrap().trim().to_string();
        assert_eq!(u32::from_str_radix(&flags, 8).unwrap() & 3, 0, "O_RDONLY, not {flags}");
        assert_eq!(rustix::io::write(target.fd(), b"x"), Err(Errno::BADF));
        let mut bytes = [0; 4];
        assert_eq!(target.read_at(&mut bytes, 8190), Ok(2));
    }

    #[test]
    fn memory_is_no_disk_unless_asked() {
        let Ok(file) = tempfile::NamedTempFile::new_in("/dev/shm") else { return };
        if filesystem::name(file.as_file()) != Some("tmpfs") {
            return;
        }
        assert!(Target::open(file.path(), true).unwrap_err().to_string().contains("memory"));
        assert!(Target::open(file.path(), false).is_ok());
    }
}

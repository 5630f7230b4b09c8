//! The live machine, or a tree unpacked somewhere, as a [`Source`].
//!
//! Reading is one open, one read, one close per sysfs file: a sysfs attribute comes whole in its first read, so the
//! read that would only return "end of file" is saved; /proc files are read to the end. Nothing here writes, loads a
//! module or opens a file for writing. In a tree (`--sysroot`) every path is resolved inside that root (`inside.rs`), so
//! absolute and circular links neither escape nor hang, also where openat2 is forbidden; FIFOs do not block.

use crate::{ethtool, inside};
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use wakewatt_core::record::msr_text;
use wakewatt_core::source::{ErrorKind, Read, ReadError, Source, Tree};
use wakewatt_core::units::Cpu;

/// No kernel text file is larger; /proc/cpuinfo of 8192 CPUs is about 12 MB.
const MAX_BYTES: usize = 16 << 20;
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// A machine reached through the file system.
#[derive(Debug)]
pub struct Live {
    root: Option<Root>,
}

#[derive(Debug)]
struct Root {
    fd: OwnedFd,
    path: PathBuf,
    /// May the kernel be asked to stay inside? Tests say no.
    has_openat2: bool,
    /// Registers from an `msr.txt` beside the tree.
    registers: Tree,
}

/// Why a sysroot could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {reason}; --sysroot wants a folder that holds sys/ and proc/")]
pub struct SysrootError {
    path: PathBuf,
    reason: String,
}

impl Live {
    /// The machine this runs on.
    pub fn this_machine() -> Live {
        Live { root: None }
    }

    /// A tree unpacked at `path`, with an optional `msr.txt` at its root.
    pub fn sysroot(path: &Path) -> Result<Live, SysrootError> {
        Live::sysroot_by(path, true)
    }

    /// Any folder, as a root that nothing leaves: what is in it is the caller's business.
    pub fn folder(path: &Path) -> std::io::Result<Live> {
        Ok(Live::rooted(path, true)?)
    }

    fn rooted(path: &Path, has_openat2: bool) -> Result<Live, Errno> {
        let fd = rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY, Mode::empty())?;
        let registers = Tree { is_recording: true, ..Tree::default() };
        Ok(Live { root: Some(Root { fd, path: path.to_path_buf(), has_openat2, registers }) })
    }

    fn sysroot_by(path: &Path, has_openat2: bool) -> Result<Live, SysrootError> {
        let fail = |reason: String| SysrootError { path: path.to_path_buf(), reason };
        let mut live = Live::rooted(path, has_openat2).map_err(|e| fail(e.to_string()))?;
        if live.list("/sys").is_err() && live.list("/proc").is_err() {
            return Err(fail("holds neither sys/ nor proc/".into()));
        }
        if let (Ok(bytes), Some(root)) = (live.read("/msr.txt"), &mut live.root) {
            msr_text::read_into(&mut root.registers, &String::from_utf8_lossy(&bytes));
        }
        Ok(live)
    }

    /// A file for reading, as [`Source::read`] opens it.
    pub(crate) fn open_file(&self, path: &str) -> Read<OwnedFd> {
        self.open(path, FLAGS)
    }

    fn open(&self, path: &str, flags: OFlags) -> Read<OwnedFd> {
        let opened = match &self.root {
            None => rustix::fs::open(path, flags, Mode::empty()),
            Some(root) => inside::open(&root.fd, path, flags, root.has_openat2),
        };
        opened.map_err(|errno| self.explain(errno))
    }

    /// A tree is a recording, and often a partial one: what it does not hold may well exist on its machine.
    fn explain(&self, errno: Errno) -> ReadError {
        match error(errno) {
            ReadError { kind: ErrorKind::Absent, .. } if self.root.is_some() => {
                ReadError::new(ErrorKind::NotRecorded, "not in this tree")
            }
            other => other,
        }
    }
}

pub(crate) fn error(errno: Errno) -> ReadError {
    let kind = match errno {
        Errno::NOENT | Errno::NOTDIR | Errno::NODEV | Errno::NXIO | Errno::OPNOTSUPP | Errno::SRCH => ErrorKind::Absent,
        Errno::ACCESS | Errno::PERM => ErrorKind::Denied,
        _ => ErrorKind::Failed,
    };
    let text = match errno {
        Errno::NOENT => "no such file".to_string(),
        Errno::ACCESS | Errno::PERM => "permission denied".to_string(),
        Errno::LOOP => "symbolic links run in a circle".to_string(),
        other => std::io::Error::from_raw_os_error(other.raw_os_error()).to_string(),
    };
    ReadError::new(kind, text)
}

impl Source for Live {
    fn read(&self, path: &str) -> Read<Vec<u8>> {
        if let Some(question) = path.strip_prefix("ethtool:") {
            return if self.root.is_none() { ethtool::answer(question) } else { Err(self.explain(Errno::NOENT)) };
        }
        let fd = self.open(path, FLAGS)?;
        let is_whole_in_one_read =
            path.starts_with("/sys/") && !path.starts_with("/sys/firmware/") && !path.starts_with("/sys/fs/");
        let mut first = [0u8; 4096];
        let n = rustix::io::read(&fd, &mut first).map_err(error)?;
        let mut bytes = first[..n].to_vec();
        if n == 0 || path.starts_with("/dev/") || (n < first.len() && (is_whole_in_one_read || self.root.is_some())) {
            return Ok(bytes);
        }
        // Most files of /proc are over after that, which another read has to say: room for more is made where there is more.
        let mut large = Vec::new();
        loop {
            if bytes.len() >= first.len() && large.is_empty() {
                large = vec![0u8; 65_536];
            }
            let room = if large.is_empty() { &mut first[..] } else { &mut large[..] };
            match rustix::io::read(&fd, &mut *room) {
                Ok(0) => return Ok(bytes),
                Ok(n) if bytes.len() + n > MAX_BYTES => {
                    return Err(ReadError::new(
                        ErrorKind::Failed,
                        format!("larger than {} MiB, which no kernel file is", MAX_BYTES >> 20),
                    ));
                }
                Ok(n) => bytes.extend_from_slice(&room[..n]),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(error(errno)),
            }
        }
    }

    fn list(&self, path: &str) -> Read<Vec<String>> {
        let fd = self.open(path, FLAGS | OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in Dir::new(fd).map_err(error)? {
            let entry = entry.map_err(error)?;
            if let Ok(name) = entry.file_name().to_str() {
                if name != "." && name != ".." {
                    names.push(name.to_string());
                }
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn link(&self, path: &str) -> Read<String> {
        let target = match &self.root {
            None => rustix::fs::readlinkat(rustix::fs::CWD, path, Vec::new()).map_err(error)?,
            Some(_) => {
                // An O_PATH descriptor of the link itself, so that its folders are resolved inside the root.
                let fd = self.open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)?;
                let kind = rustix::fs::statat(&fd, "", AtFlags::EMPTY_PATH).map_err(error)?;
                if rustix::fs::FileType::from_raw_mode(kind.st_mode) != rustix::fs::FileType::Symlink {
                    return Err(ReadError::new(ErrorKind::Failed, "not a symbolic link"));
                }
                rustix::fs::readlinkat(&fd, "", Vec::new()).map_err(error)?
            }
        };
        target.into_string().map_err(|_| ReadError::new(ErrorKind::Failed, "the link's target is not text"))
    }

    fn msr(&self, cpu: Cpu, address: u32) -> Read<u64> {
        if let Some(root) = &self.root {
            return root.registers.msr(cpu, address);
        }
        let fd = self.open(&format!("/dev/cpu/{cpu}/msr"), FLAGS)?;
        let mut bytes = [0u8; 8];
        match rustix::io::pread(&fd, &mut bytes, u64::from(address)) {
            Ok(8) => Ok(u64::from_le_bytes(bytes)),
            Ok(n) => Err(ReadError::new(ErrorKind::Failed, format!("{n} bytes instead of 8"))),
            Err(Errno::IO) => Err(ReadError::new(ErrorKind::Absent, "this CPU has no such register")),
            Err(errno) => Err(error(errno)),
        }
    }

    fn is_live(&self) -> bool {
        self.root.is_none()
    }

    fn missing(&self) -> ReadError {
        self.explain(Errno::NOENT)
    }

    fn origin(&self) -> String {
        match &self.root {
            None => "this machine".into(),
            Some(root) => format!("tree {}", root.path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_tree_neither_escapes_nor_hangs() {
        let dir = tempfile::tempdir().unwrap();
        let at = |p: &str| dir.path().join(p);
        fs::create_dir_all(at("sys/a")).unwrap();
        fs::write(at("sys/a/value"), "7\n").unwrap();
        fs::write(at("sys/a/empty"), "").unwrap();
        fs::write(at("sys/a/huge"), vec![b'x'; MAX_BYTES + 1]).unwrap();
        symlink("loop2", at("sys/loop1")).unwrap();
        symlink("loop1", at("sys/loop2")).unwrap();
        symlink("/sys/a/value", at("sys/absolute")).unwrap();
        symlink("/etc/passwd", at("sys/escape")).unwrap();
        symlink("../../../../../../etc/passwd", at("sys/climb")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("sys/fifo"), rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        fs::write(at("msr.txt"), "1b0:0|6\n").unwrap();
        for has_openat2 in [true, false] {
            stays_inside(&Live::sysroot_by(dir.path(), has_openat2).unwrap());
        }
    }

    fn stays_inside(tree: &Live) {
        assert_eq!(tree.read("/sys/a/value").unwrap(), b"7\n");
        assert_eq!(tree.read("/sys/absolute").unwrap(), b"7\n");
        assert_eq!(tree.read("/sys/a/empty").unwrap(), b"");
        assert_eq!(tree.read("/sys/fifo").unwrap(), b"", "a FIFO without writer must not block");
        for path in ["/sys/escape", "/sys/climb"] {
            assert_eq!(tree.read(path).unwrap_err().kind, ErrorKind::NotRecorded, "{path} must stay inside the root");
        }
        assert!(tree.read("/sys/loop1").unwrap_err().detail.contains("circle"));
        assert!(tree.read("/sys/a/huge").unwrap_err().detail.contains("larger"));
        assert_eq!(tree.read("/sys/a").unwrap_err().kind, ErrorKind::Failed);
        assert_eq!(tree.link("/sys/absolute").unwrap(), "/sys/a/value");
        assert_eq!(tree.msr(0, 0x1b0).unwrap(), 6);
        assert_eq!(tree.msr(1, 0x1b0).unwrap_err().kind, ErrorKind::NotRecorded);
        assert_eq!(tree.list("/sys/a").unwrap(), ["empty", "huge", "value"]);
    }

    #[test]
    fn a_folder_without_sys_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Live::sysroot(dir.path()).unwrap_err().to_string().contains("neither sys/ nor proc/"));
        assert!(Live::sysroot(&dir.path().join("none")).is_err());
    }

    #[test]
    fn the_live_machine_reads() {
        let live = Live::this_machine();
        assert!(!live.read("/proc/cpuinfo").unwrap().is_empty());
        assert_eq!(live.read("/sys/none").unwrap_err().kind, ErrorKind::Absent);
        assert!(live.list("/proc").unwrap().iter().any(|n| n == "self"));
    }
}

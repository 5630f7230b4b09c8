//! Files that are read again and again, kept open: one `pread` from the start instead of open, read and close.
//!
//! On the development machine 0.4 us against 2.5 us. 512 CPUs with five idle states have about 14,000 such files, so the
//! soft limit on open files is raised to the hard one, and files beyond it are opened each time. A file of a CPU that
//! went away answers ENODEV: it is closed and looked for again at every reading, so the CPU may come back. In a tree the
//! file may have been replaced by another of the same name: an unlinked one is opened anew. Files below /dev are never
//! kept, because holding one open says something there (a latency limit, for one).
//!
//! Going to another CPU ([`Reader::visit`]): with several files that ask the same CPU it is cheaper to run there than to
//! interrupt it once per file.

use crate::affinity::{Pinned, current_cpu};
use crate::live::Live;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::OwnedFd;
use wakewatt_core::source::{ErrorKind, Read, ReadError, Source};
use wakewatt_core::units::Cpu;
use wakewatt_core::watch::counters::Reader;
use wakewatt_core::watch::layout::Slot;

/// Left for everything else: terminal, pipes, a recording.
const SPARE: u64 = 64;

/// Kept files.
#[derive(Debug)]
pub struct KeptFiles {
    live: Live,
    is_tree: bool,
    fds: Vec<Option<OwnedFd>>,
    n_open: u64,
    /// At most this many are kept.
    limit: u64,
    /// This many would be.
    wanted: u64,
    buffer: Vec<u8>,
    pinned: Option<Pinned>,
}

impl KeptFiles {
    /// For a machine or tree, with room for `n_files`.
    pub fn new(live: Live, n_files: usize) -> KeptFiles {
        let wanted = n_files as u64 + SPARE;
        let limit = raise_limit(wanted).saturating_sub(SPARE);
        let is_tree = !live.is_live();
        KeptFiles {
            live,
            is_tree,
            fds: Vec::new(),
            n_open: 0,
            limit,
            wanted: n_files as u64,
            buffer: vec![0; 8192],
            pinned: None,
        }
    }

    /// How many files are kept open, and how many may be.
    pub fn kept(&self) -> (u64, u64) {
        (self.n_open, self.limit)
    }

    fn open(&mut self, slot: Slot, path: &str) -> Read<()> {
        let fd = self.live.open_file(path)?;
        if self.fds.len() <= slot {
            self.fds.resize_with(slot + 1, || None);
        }
        if self.fds[slot].replace(fd).is_none() {
            self.n_open += 1;
        }
        Ok(())
    }

    fn close(&mut self, slot: Slot) {
        if self.fds.get_mut(slot).and_then(Option::take).is_some() {
            self.n_open -= 1;
        }
    }

    /// Reads the kept file to its end; says how many bytes.
    fn pread(&mut self, slot: Slot, path: &str) -> Result<usize, Errno> {
        let Some(Some(fd)) = self.fds.get(slot) else { return Err(Errno::BADF) };
        if self.is_tree && rustix::fs::fstat(fd)?.st_nlink == 0 {
            return Err(Errno::STALE);
        }
        let mut n = 0;
        loop {
            match rustix::io::pread(fd, &mut self.buffer[n..], n as u64) {
                // A sysfs attribute comes whole in its first read; only a full buffer may hide more.
                Ok(got) => {
                    n += got;
                    if got == 0 || (n < self.buffer.len() && (n < SEQ_FILE_BYTES || path == IN_ONE_PIECE)) {
                        return Ok(n);
                    }
                    if n == self.buffer.len() {
                        if n >= 16 << 20 {
                            return Err(Errno::FBIG);
                        }
                        self.buffer.resize(n * 2, 0);
                    }
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
}

/// A seq_file may answer in pieces of a page; anything of that size is read until nothing comes.
const SEQ_FILE_BYTES: usize = 1024;
/// But for this one, which the kernel makes as one piece (single_open), anew for every pread: asking what follows would make it add up all
/// CPUs and interrupts a second time.
const IN_ONE_PIECE: &str = "/proc/stat";

impl Reader for KeptFiles {
    fn read(&mut self, slot: Slot, path: &str) -> Read<&[u8]> {
        let may_keep = !path.starts_with("/dev/") && self.n_open < self.limit;
        let is_kept = self.fds.get(slot).is_some_and(Option::is_some);
        if !is_kept {
            if !may_keep {
                self.buffer = self.live.read(path)?;
                let n = self.buffer.len();
                self.buffer.resize(n.max(8192), 0);
                return Ok(&self.buffer[..n]);
            }
            self.open(slot, path)?;
        }
        match self.pread(slot, path) {
            Ok(n) => Ok(&self.buffer[..n]),
            // Gone or replaced: once more from the name.
            Err(Errno::NODEV | Errno::NXIO | Errno::STALE | Errno::NOENT) if is_kept => {
                self.close(slot);
                self.open(slot, path)?;
                let n = self.pread(slot, path).map_err(|e| self.fail(slot, e))?;
                Ok(&self.buffer[..n])
            }
            Err(errno) => Err(self.fail(slot, errno)),
        }
    }

    fn msr(&mut self, cpu: Cpu, address: u32) -> Read<u64> {
        self.live.msr(cpu, address)
    }

    fn visit(&mut self, cpu: Option<Cpu>, files: &[(Slot, &str)]) -> u64 {
        self.pinned = None;
        let Some(cpu) = cpu.filter(|_| !self.is_tree) else { return 0 };
        // Opening asks no CPU; what may not be opened will not be read.
        let is_open = |kept: &mut Self, slot: Slot, path: &str| {
            kept.fds.get(slot).is_some_and(Option::is_some) || kept.open(slot, path).is_ok()
        };
        let n_files = files.iter().filter(|(slot, path)| is_open(self, *slot, path)).count();
        if n_files == 0 {
            return 0;
        }
        if current_cpu() == cpu {
            // Stay here for the batch, so that it costs nothing.
            self.pinned = Pinned::to(cpu).ok();
            return if self.pinned.is_some() { 0 } else { n_files as u64 };
        }
        if n_files > 1 {
            self.pinned = Pinned::to(cpu).ok();
        }
        if self.pinned.is_some() { 1 } else { n_files as u64 }
    }

    fn note(&self) -> Option<String> {
        let left_out = self.wanted.checked_sub(self.limit).filter(|n| *n > 0)?;
        let enough = self.wanted + SPARE;
        Some(format!(
            "{left_out} of {} files are opened anew each time; ulimit -Hn {enough} would keep them",
            self.wanted
        ))
    }
}

impl KeptFiles {
    fn fail(&mut self, slot: Slot, errno: Errno) -> ReadError {
        self.close(slot);
        let error = crate::live::error(errno);
        if errno == Errno::STALE { ReadError::new(ErrorKind::Absent, "no such file") } else { error }
    }
}

/// Raises the soft limit on open files towards `wanted`; says what it is then.
pub fn raise_limit(wanted: u64) -> u64 {
    let now = getrlimit(Resource::Nofile);
    let soft = now.current.unwrap_or(u64::MAX);
    if soft >= wanted {
        return soft;
    }
    let target = now.maximum.map_or(wanted, |hard| wanted.min(hard));
    match setrlimit(Resource::Nofile, Rlimit { current: Some(target), maximum: now.maximum }) {
        Ok(()) => target,
        Err(_) => soft,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn rewritten_replaced_and_vanished_files_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sys")).unwrap();
        let file = dir.path().join("sys/a");
        fs::write(&file, "1\n").unwrap();
        let mut kept = KeptFiles::new(Live::sysroot(dir.path()).unwrap(), 10);
        let read = |kept: &mut KeptFiles| kept.read(3, "/sys/a").map(<[u8]>::to_vec);
        assert_eq!(read(&mut kept).unwrap(), b"1\n");
        fs::write(&file, "22\n").unwrap();
        assert_eq!((read(&mut kept).unwrap().as_slice(), kept.kept().0), (b"22\n".as_slice(), 1));
        fs::write(dir.path().join("sys/b"), "new\n").unwrap();
        fs::rename(dir.path().join("sys/b"), &file).unwrap();
        assert_eq!(read(&mut kept).unwrap(), b"new\n");
        fs::remove_file(&file).unwrap();
        assert!(read(&mut kept).is_err());
        assert_eq!(kept.kept().0, 0);
        fs::write(&file, "back\n").unwrap();
        assert_eq!(read(&mut kept).unwrap(), b"back\n");
        let long = "x".repeat(100_000);
        fs::write(&file, &long).unwrap();
        assert_eq!(read(&mut kept).unwrap(), long.as_bytes());
    }

    #[test]
    fn beyond_the_limit_files_are_opened_each_time() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("sys")).unwrap();
        fs::write(dir.path().join("sys/a"), "1\n").unwrap();
        fs::write(dir.path().join("sys/b"), "2\n").unwrap();
        let mut kept = KeptFiles::new(Live::sysroot(dir.path()).unwrap(), 10);
        kept.limit = 1;
        assert_eq!(kept.read(0, "/sys/a").unwrap(), b"1\n");
        assert_eq!(kept.read(1, "/sys/b").unwrap(), b"2\n");
        assert_eq!(kept.kept(), (1, 1));
        assert!(kept.note().unwrap().starts_with("9 of 10 files"));
    }

    #[test]
    fn the_live_machine_is_read_again_and_again() {
        let mut kept = KeptFiles::new(Live::this_machine(), 10);
        let first = kept.read(0, "/proc/stat").unwrap().to_vec();
        assert!(first.starts_with(b"cpu ") && String::from_utf8_lossy(&first).contains("\nctxt "));
        assert!(kept.read(0, "/proc/stat").unwrap().starts_with(b"cpu "));
        assert_eq!(kept.kept().0, 1);
    }
}

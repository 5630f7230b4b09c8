//! A file to read, made for the purpose: random content, on the disk, and without a name.
//!
//! It never has a name (O_TMPFILE), or loses it at once where the file system cannot do that, so it vanishes with the
//! process however that ends, SIGKILL included. Space is reserved first, so a full disk is found before time is spent.
//! Content is random because a disk or a host below may answer for zeros without reading, or compress them.

use super::filesystem;
use super::target::{Target, TargetError};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Advice, AtFlags, CWD, FallocateFlags, Mode, OFlags, fadvise, fallocate, fsync, openat, unlinkat};
use rustix::io::Errno;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::stats::random::Random;
use wakewatt_core::units::show_bytes;

/// What must stay free.
const RESERVE_BYTES: u64 = 64 << 20;
/// Written at a time; a stop is obeyed in between.
const CHUNK_BYTES: usize = 1 << 20;

/// Why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum MadeError {
    /// Not in this folder.
    #[error("a file to read cannot be made in {folder}: {source}; name another folder with --in")]
    Make {
        folder: String,
        /// The system's answer.
        source: std::io::Error,
    },
    /// Full.
    #[error(
        "{folder} has {} free, too little for a file of {}; give a smaller --size, or another folder with --in",
        show_bytes(*free_bytes),
        show_bytes(*size_bytes)
    )]
    NoSpace {
        folder: String,
        /// Left.
        free_bytes: u64,
        /// Wanted.
        size_bytes: u64,
    },
    /// Made, but not fit to be read.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Told to stop.
    #[error("interrupted while the file to read was being written; it is gone again")]
    Stopped,
}

/// Makes it and opens it for reading. `progress` is told the share done.
pub fn make(
    folder: &Path,
    size_bytes: u64,
    is_direct: bool,
    seed: u64,
    stop: &AtomicBool,
    progress: &dyn Fn(f64),
) -> Result<Target, MadeError> {
    let shown = folder.display().to_string();
    let fail = |e: Errno| MadeError::Make { folder: shown.clone(), source: e.into() };
    let file = nameless(folder).map_err(fail)?;
    // Refused before anything is written: on tmpfs the file would fill the memory.
    let mut target = Target::of(file.as_fd(), &shown, is_direct)?;
    let free_bytes = filesystem::free_bytes(&file).unwrap_or(u64::MAX);
    let no_space = |free_bytes| MadeError::NoSpace { folder: shown.clone(), free_bytes, size_bytes };
    if free_bytes < size_bytes.saturating_add(RESERVE_BYTES) {
        return Err(no_space(free_bytes));
    }
    let or_full = |e: Errno| match e {
        Errno::NOSPC | Errno::DQUOT => no_space(filesystem::free_bytes(&file).unwrap_or(0)),
        other => fail(other),
    };
    match fallocate(&file, FallocateFlags::empty(), 0, size_bytes) {
        // Cannot reserve: writing will tell.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
        Err(e) => return Err(or_full(e)),
    }
    fill(&file, size_bytes, seed, stop, progress, &or_full)?;
    fsync(&file).map_err(or_full)?;
    // What was just written is still in memory; buffered reads would find it there.
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    target.size_bytes = size_bytes;
    Ok(target)
}

fn nameless(folder: &Path) -> rustix::io::Result<OwnedFd> {
    let mode = Mode::RUSR | Mode::WUSR;
    match openat(CWD, folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
        other => return other,
    }
    let folder = openat(CWD, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let name = crate::place::temporary_name().map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR | OFlags::CLOEXEC;
    let file = openat(&folder, &name, flags, mode)?;
    unlinkat(&folder, &name, AtFlags::empty())?;
    Ok(file)
}

fn fill(
    file: &OwnedFd,
    size_bytes: u64,
    seed: u64,
    stop: &AtomicBool,
    progress: &dyn Fn(f64),
    or_full: &dyn Fn(Errno) -> MadeError,
) -> Result<(), MadeError> {
    let mut random = Random::new(seed);
    let mut chunk = vec![0u8; CHUNK_BYTES];
    let mut at_bytes = 0;
    while at_bytes < size_bytes {
        if stop.load(Ordering::Relaxed) {
            return Err(MadeError::Stopped);
        }
        for word in chunk.chunks_exact_mut(8) {
            word.copy_from_slice(&random.bits().to_ne_bytes());
        }
        let left = usize::try_from(size_bytes - at_bytes).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        match rustix::io::pwrite(file, &chunk[..left], at_bytes) {
            Ok(0) => return Err(or_full(Errno::NOSPC)),
            Ok(n) => at_bytes += n as u64,
            Err(Errno::INTR) => {}
            Err(e) => return Err(or_full(e)),
        }
        progress(at_bytes as f64 / size_bytes.max(1) as f64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_random_bytes_has_no_name_and_is_open_for_reading_only() {
        let folder = tempfile::tempdir().unwrap();
        let target = make(folder.path(), 3 << 20, false, 7, &AtomicBool::new(false), &|_| ()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!((target.size_bytes, target.has_holes), (3 << 20, false));
        let mut bytes = [0u8; 4096];
        assert_eq!(target.read_at(&mut bytes, 2 << 20), Ok(4096));
        let n_zero = bytes.iter().fold(0u32, |n, b| n + u32::from(*b == 0));
        assert!(n_zero < 64, "{n_zero} zeros");
        assert_eq!(rustix::io::write(target.fd(), b"x"), Err(Errno::BADF));
    }

    #[test]
    fn refusals_leave_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let go = AtomicBool::new(false);
        let too_big = make(folder.path(), 1 << 60, false, 7, &go, &|_| ()).unwrap_err().to_string();
        assert!(too_big.contains("too little for a file of") && too_big.contains("--size"), "{too_big}");
        let stopped = make(folder.path(), 1 << 20, false, 7, &AtomicBool::new(true), &|_| ()).unwrap_err();
        assert!(matches!(stopped, MadeError::Stopped));
        let absent = make(&folder.path().join("absent"), 1 << 20, false, 7, &go, &|_| ()).unwrap_err();
        assert!(absent.to_string().contains("--in"), "{absent}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

//! The file side of a recording: appended to block by block, never longer than allowed, never torn if it can be helped.
//!
//! A write that fails (disk full, quota, an error of the device) is cut back to the last whole block, so what was recorded
//! before stays a complete file. Nothing is overwritten unless asked for. The core crate knows what the bytes mean.

use crate::place::FilePlace;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use wakewatt_core::record::wtrace::is_known;

/// Read before the rest.
const FIRST: u64 = 64;

/// What a recording needs of the place it is written to; a file, or a test's faulty one.
pub trait Medium {
    /// Appends all of it, or fails having appended a part.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Cuts to this length and goes on from there.
    fn cut(&mut self, length: u64) -> io::Result<()>;
    /// To the disk.
    fn sync(&mut self) -> io::Result<()>;
}

impl Medium for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(|_| ())
    }
    fn sync(&mut self) -> io::Result<()> {
        match self.sync_data() {
            // A pipe has no disk under it.
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => Ok(()),
            other => other,
        }
    }
}

/// Why nothing more is recorded.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// As long as it may get.
    #[error("{path}: reached the size allowed ({max_bytes} bytes); allow more with --record-mib")]
    Full { path: PathBuf, max_bytes: u64 },
    /// The system refused.
    #[error("{path}: {source}; {kept} bytes of whole blocks are kept")]
    Refused {
        path: PathBuf,
        source: io::Error,
        /// Good length.
        kept: u64,
    },
}

/// A recording being written.
#[derive(Debug)]
pub struct WtraceFile<M: Medium = File> {
    medium: M,
    path: PathBuf,
    length: u64,
    max_bytes: u64,
    is_stopped: bool,
}

impl WtraceFile<File> {
    /// A new file; an existing one only when forced.
    pub fn create(path: &Path, is_forced: bool, max_bytes: u64) -> io::Result<WtraceFile> {
        let place = FilePlace::of(path)?;
        // Truncated only once it is ours: another recorder may be writing to it.
        let mut file = if is_forced && place.exists() { place.existing()? } else { place.create_new()? };
        lock(&file)?;
        if is_forced && file.metadata()?.is_file() {
            file.cut(0)?;
        }
        Ok(WtraceFile::over(file, path, 0, max_bytes))
    }

    /// Standard output: blocks are on their way as soon as they are whole.
    pub fn standard_output(max_bytes: u64) -> io::Result<WtraceFile> {
        let out = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(WtraceFile::over(File::from(out), Path::new("-"), 0, max_bytes))
    }

    /// An existing file, to be continued at the end of its good part.
    pub fn resume(path: &Path, good_bytes: u64, max_bytes: u64) -> io::Result<WtraceFile> {
        let file = FilePlace::of(path)?.existing()?;
        lock(&file)?;
        let mut file = WtraceFile::over(file, path, good_bytes, max_bytes);
        file.medium.cut(good_bytes)?;
        Ok(file)
    }
}

/// One recorder for one file; the kernel drops the lock with the descriptor.
fn lock(file: &File) -> io::Result<()> {
    rustix::fs::flock(file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| io::Error::new(io::ErrorKind::ResourceBusy, "another recorder is writing to it"))
}

/// A plain file, opened without waiting for anybody, and how far it may be read: a file with a hole up to it and a little more,
/// because zeros are no block, and what follows would be damage.
fn opened(path: &Path) -> io::Result<(File, Option<u64>)> {
    // A FIFO that nobody writes to would keep us waiting, a device may act on being opened.
    let not_plain = || io::Error::new(io::ErrorKind::InvalidInput, "not a plain file");
    if !std::fs::metadata(path)?.is_file() {
        return Err(not_plain());
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(not_plain());
    }
    // Some of the hole, so that it is told from an unfinished file.
    let end = crate::input::data_ends_at(&file).map(|at| at.saturating_add(FIRST));
    Ok((file, end))
}

/// The whole file; refused above the limit, because it is read into memory.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let (mut file, end) = opened(path)?;
    let too_long = || io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {max_bytes} bytes"));
    // Nothing large is read into memory before it says that it is ours; what is not ours its reader refuses by name.
    let mut bytes = Vec::new();
    Read::by_ref(&mut file).take(FIRST).read_to_end(&mut bytes)?;
    if !is_known(&bytes) {
        return Ok(bytes);
    }
    if file.metadata()?.len() > max_bytes {
        return Err(too_long());
    }
    let end = end.map_or(max_bytes + 1, |at| at.min(max_bytes + 1));
    file.take(end.saturating_sub(bytes.len() as u64)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_long());
    }
    Ok(bytes)
}

/// A recording piece by piece: any length, and never more of it in memory than a piece.
#[derive(Debug)]
pub struct Pieces {
    file: io::Take<File>,
}

/// A piece.
const PIECE: u64 = 1 << 18;

impl Pieces {
    /// Of this file.
    pub fn open(path: &Path) -> io::Result<Pieces> {
        let (file, end) = opened(path)?;
        Ok(Pieces { file: file.take(end.unwrap_or(u64::MAX)) })
    }

    /// Appends the next piece; false where there is none.
    pub fn more(&mut self, into: &mut Vec<u8>) -> io::Result<bool> {
        Read::by_ref(&mut self.file).take(PIECE).read_to_end(into).map(|n| n > 0)
    }
}

impl<M: Medium> WtraceFile<M> {
    /// Over any medium that already holds `length` good bytes.
    pub fn over(medium: M, path: &Path, length: u64, max_bytes: u64) -> WtraceFile<M> {
        WtraceFile { medium, path: path.to_path_buf(), length, max_bytes, is_stopped: false }
    }

    /// Appends whole blocks. After an error nothing more is taken, and the file ends with its last whole block.
    pub fn append(&mut self, blocks: &[u8]) -> Result<(), RecordError> {
        if self.is_stopped || blocks.is_empty() {
            return Ok(());
        }
        if self.length + blocks.len() as u64 > self.max_bytes {
            self.is_stopped = true;
            return Err(RecordError::Full { path: self.path.clone(), max_bytes: self.max_bytes });
        }
        match self.medium.append(blocks) {
            Ok(()) => {
                self.length += blocks.len() as u64;
                Ok(())
            }
            Err(source) => {
                self.is_stopped = true;
                // If even this fails the file is torn, which its reader notices by the checksum.
                let _ = self.medium.cut(self.length);
                Err(RecordError::Refused { path: self.path.clone(), source, kept: self.length })
            }
        }
    }

    /// The last blocks, past the size limit if need be (a few dozen bytes), and to the disk.
    pub fn finish(&mut self, blocks: &[u8]) -> Result<u64, RecordError> {
        let refused = |source, kept| RecordError::Refused { path: self.path.clone(), source, kept };
        if let Err(source) = self.medium.append(blocks) {
            let _ = self.medium.cut(self.length);
            return Err(refused(source, self.length));
        }
        self.length += blocks.len() as u64;
        self.medium.sync().map_err(|source| refused(source, self.length))?;
        Ok(self.length)
    }

    /// Bytes so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Has an error ended it?
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::record::wtrace::MAGIC;

    /// Fails at the Nth append, once or for ever, having written half of it.
    #[derive(Debug, Default)]
    struct Faulty {
        bytes: Vec<u8>,
        fails_at: usize,
        is_for_ever: bool,
        n: usize,
    }

    impl Medium for Faulty {
        fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
            self.n += 1;
            if self.n == self.fails_at || (self.is_for_ever && self.n > self.fails_at) {
                self.bytes.extend(&bytes[..bytes.len() / 2]);
                return Err(io::Error::from_raw_os_error(28));
            }
            self.bytes.extend(bytes);
            Ok(())
        }
        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.bytes.truncate(usize::try_from(length).unwrap());
            Ok(())
        }
        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn whichever_write_fails_the_file_ends_with_a_whole_block() {
        for (fails_at, is_for_ever) in (1..=5).flat_map(|n| [(n, false), (n, true)]) {
            let medium = Faulty { fails_at, is_for_ever, ..Faulty::default() };
            let mut file = WtraceFile::over(medium, Path::new("x.wtrace"), 0, 1000);
            let mut n_errors = 0;
            for _ in 0..4 {
                n_errors += usize::from(file.append(b"0123456789").is_err());
            }
            let finished = file.finish(b"END");
            let text = String::from_utf8(file.medium.bytes.clone()).unwrap();
            assert_eq!(text.trim_end_matches("END").len() % 10, 0, "{fails_at} {is_for_ever}: {text}");
            assert_eq!(text.len() as u64, file.length());
            assert_eq!(n_errors, usize::from(fails_at <= 4), "told once");
            assert_eq!(text.ends_with("END"), finished.is_ok());
        }
    }

    #[test]
    fn size_is_bounded_and_nothing_is_overwritten_unasked() {
        let folder = std::env::temp_dir().join(format!("wtrace-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.wtrace");
        let ours = [MAGIC, &[1, 2]].concat();
        let mut file = WtraceFile::create(&path, false, 25).unwrap();
        file.append(&ours).unwrap();
        assert!(matches!(file.append(&[2; 20]), Err(RecordError::Full { .. })));
        assert!(file.append(&[3; 1]).is_ok() && file.length() == 20 && file.is_stopped());
        assert_eq!(WtraceFile::create(&path, false, 25).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(read(&path, 25).unwrap(), ours);
        assert!(read(&path, 19).is_err());
        assert_eq!(WtraceFile::resume(&path, 15, 100).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
        drop(file);
        let mut again = WtraceFile::resume(&path, 15, 100).unwrap();
        again.finish(&[9]).unwrap();
        assert_eq!(read(&path, 25).unwrap().len(), 16);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

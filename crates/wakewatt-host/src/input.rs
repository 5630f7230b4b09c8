//! Files that the user names: opened once, looked at, and read no further than they may be long.
//!
//! Whoever runs wakewatt as root hands it files that others wrote. A FIFO would keep it waiting, a device can act on being
//! opened, a sparse file of a terabyte fits a mail, and a file can grow between the look and the reading. So the name is
//! looked at before it is opened and the descriptor after it, nothing is waited for, and one byte more than allowed ends
//! the reading. What has holes was written by no program that makes such files. Pipes, and so what a shell puts in place
//! of `<(…)`, are refused: a temporary file does the same and can be looked at.
//!
//! What the bytes mean is the business of the caller's parser; every kind of file has its size here.

use rustix::fs::{Mode, OFlags, SeekFrom};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What a file is to be.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// With its article: "a profile".
    pub what: &'static str,
    /// Longest that is read.
    pub max_bytes: u64,
    /// What to do when it is none.
    pub hint: &'static str,
}

/// A `.host` file: 60 KiB for 576 CPUs.
pub const HOST: Kind = Kind {
    what: ".host file",
    max_bytes: 64 << 20,
    hint: "make one with: wakewatt capture -o FILE; a folder is given with --sysroot",
};
/// A run file: some tens of megabytes after many hours.
pub const RUN: Kind = Kind {
    what: "run file",
    max_bytes: wakewatt_core::record::run_file::MAX_BYTES as u64,
    hint: "make one with --save FILE of doctor, measure or load",
};
/// What `watch --record` wrote: a kilobyte a moment on a small machine, a hundred on the largest.
pub const WATCH: Kind =
    Kind { what: "recording of watch", max_bytes: 1 << 30, hint: "make a recording with: wakewatt watch --record DIR" };
/// A segment of an agent's history: a sixteenth of its limit.
pub const HISTORY: Kind =
    Kind { what: "history of an agent", max_bytes: 1 << 30, hint: "make one with: wakewatt agent --history DIR" };
/// A profile: lines that people write.
pub const PROFILE: Kind = Kind {
    what: "profile",
    max_bytes: 1 << 20,
    hint: "a shipped one goes by its name: latency, throughput, efficiency",
};
/// A plan of an experiment.
pub const PLAN: Kind =
    Kind { what: "plan", max_bytes: 1 << 20, hint: "list the shipped ones with: wakewatt experiment list" };
/// A plan of a rollout, and a list of machines.
pub const ROLLOUT: Kind =
    Kind { what: "plan of a rollout", max_bytes: 1 << 20, hint: "begin with: wakewatt fleet rollout --example" };
/// Names that people write, one a line.
pub const HOSTS: Kind =
    Kind { what: "list of hosts", max_bytes: 16 << 20, hint: "write one host a line: web-01 group=web" };
/// A server to simulate; recorded arrivals make it long.
pub const SERVER: Kind =
    Kind { what: "server file", max_bytes: 64 << 20, hint: "make one with: wakewatt simulate --example plain" };
/// The pages of a shop.
pub const MIX: Kind = Kind { what: "mix of pages", max_bytes: 1 << 20, hint: "leave out --mix for the shipped one" };
/// Certificates of authorities: a distribution's whole store is 250 KiB.
pub const AUTHORITIES: Kind =
    Kind { what: "file of certificates", max_bytes: 16 << 20, hint: "name a file in PEM with --ca" };
/// What a server shows of itself.
pub const CHAIN: Kind =
    Kind { what: "certificate", max_bytes: 1 << 20, hint: "name a chain of certificates in PEM with --tls-cert" };
/// The key of such a certificate.
pub const KEY: Kind =
    Kind { what: "key", max_bytes: 1 << 20, hint: "name the certificate's key in PEM with --tls-key" };
/// Authorities whose clients are let in.
pub const CLIENTS: Kind = Kind {
    what: "file of authorities",
    max_bytes: 1 << 20,
    hint: "name authorities of clients in PEM with --client-ca",
};
/// What wakewatt keeps for itself: journals, and a run folder, whose blocks grow for hours.
pub const KEPT: Kind = Kind { what: "file of wakewatt's own", max_bytes: 1 << 30, hint: "look who wrote it" };
/// A power model.
pub const MODEL: Kind = Kind { what: "power model", max_bytes: 1 << 20, hint: "make one with --calibrate" };

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The system refused.
    #[error("{}: cannot be read: {error}; {}", path.display(), kind.hint)]
    Refused {
        path: PathBuf,
        /// What it was to be.
        kind: Kind,
        error: io::Error,
    },
    /// It is a folder, a pipe, a device or a socket.
    #[error("{}: not a file but {found}; {}", path.display(), kind.hint)]
    NotAFile {
        path: PathBuf,
        /// What it was to be.
        kind: Kind,
        /// What it is.
        found: &'static str,
    },
    /// It has holes.
    #[error("{}: a sparse file, which no {} is; {}", path.display(), kind.what, kind.hint)]
    Sparse {
        path: PathBuf,
        /// What it was to be.
        kind: Kind,
    },
    /// Longer than allowed.
    #[error("{}: longer than {} KiB, which is more than any {} has; {}", path.display(), kind.max_bytes >> 10, kind.what, kind.hint)]
    TooLong {
        path: PathBuf,
        /// What it was to be.
        kind: Kind,
    },
    /// Not UTF-8.
    #[error("{}: not a {}: it is not text; {}", path.display(), kind.what, kind.hint)]
    NotText {
        path: PathBuf,
        /// What it was to be.
        kind: Kind,
    },
}

/// A plain file, opened for reading without waiting for anybody.
pub(crate) fn open(path: &Path, kind: Kind) -> Result<File, InputError> {
    let refused = |error: io::Error| InputError::Refused { path: path.into(), kind, error };
    // Before opening: a tape rewinds and a watchdog starts when it is opened.
    check(path, kind, std::fs::metadata(path).map_err(refused)?.file_type().into())?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(|e| refused(e.into()))?);
    // And after: the name may stand for something else by now.
    look(&file, path, kind)?;
    Ok(file)
}

fn look(file: &File, path: &Path, kind: Kind) -> Result<(), InputError> {
    let refused = |error: io::Error| InputError::Refused { path: path.into(), kind, error };
    let meta = file.metadata().map_err(refused)?;
    check(path, kind, meta.file_type().into())?;
    if meta.len() > kind.max_bytes {
        return Err(InputError::TooLong { path: path.into(), kind });
    }
    if data_ends_at(file).is_some_and(|end| end < meta.len()) {
        return Err(InputError::Sparse { path: path.into(), kind });
    }
    Ok(())
}

/// Where the first hole begins; none where the file system does not say.
pub(crate) fn data_ends_at(file: &File) -> Option<u64> {
    let end = rustix::fs::seek(file, SeekFrom::Hole(0)).ok();
    // Asking has moved the place to read from.
    rustix::fs::seek(file, SeekFrom::Start(0)).ok().and(end)
}

/// The bytes of a file that the user named.
pub fn read(path: &Path, kind: Kind) -> Result<Vec<u8>, InputError> {
    bytes_of(open(path, kind)?, path, kind)
}

/// The bytes of a file that is open already.
pub fn look_and_read(file: File, path: &Path, kind: Kind) -> Result<Vec<u8>, InputError> {
    look(&file, path, kind)?;
    bytes_of(file, path, kind)
}

fn bytes_of(file: File, path: &Path, kind: Kind) -> Result<Vec<u8>, InputError> {
    let refused = |error: io::Error| InputError::Refused { path: path.into(), kind, error };
    let mut bytes = Vec::new();
    file.take(kind.max_bytes + 1).read_to_end(&mut bytes).map_err(refused)?;
    if bytes.len() as u64 > kind.max_bytes {
        return Err(InputError::TooLong { path: path.into(), kind });
    }
    Ok(bytes)
}

/// Its first bytes, by which a caller tells what it is.
pub fn front(path: &Path, kind: Kind) -> Result<Vec<u8>, InputError> {
    let refused = |error: io::Error| InputError::Refused { path: path.into(), kind, error };
    let mut bytes = Vec::new();
    open(path, kind)?.take(64).read_to_end(&mut bytes).map_err(refused)?;
    Ok(bytes)
}

/// The same as text.
pub fn read_text(path: &Path, kind: Kind) -> Result<String, InputError> {
    text_of(open(path, kind)?, path, kind)
}

/// The text of a file that is open already, because its owner was looked at.
pub fn text_of(file: File, path: &Path, kind: Kind) -> Result<String, InputError> {
    String::from_utf8(look_and_read(file, path, kind)?).map_err(|_| InputError::NotText { path: path.into(), kind })
}

fn check(path: &Path, kind: Kind, found: Found) -> Result<(), InputError> {
    match found.0 {
        None => Ok(()),
        Some(found) => Err(InputError::NotAFile { path: path.into(), kind, found }),
    }
}

/// In words what stands in the place of a file.
struct Found(Option<&'static str>);

impl From<std::fs::FileType> for Found {
    fn from(found: std::fs::FileType) -> Found {
        use std::os::unix::fs::FileTypeExt;
        Found(match found {
            f if f.is_file() => None,
            f if f.is_dir() => Some("a folder"),
            f if f.is_fifo() => Some("a pipe (save what comes out of it to a file first)"),
            f if f.is_socket() => Some("a socket"),
            _ => Some("a device"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::FileType;

    const SMALL: Kind = Kind { what: "test", max_bytes: 8192, hint: "try another" };

    fn said(path: &Path) -> String {
        read(path, SMALL).unwrap_err().to_string()
    }

    #[test]
    fn only_plain_files_of_a_sane_size_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("good"), "text").unwrap();
        assert_eq!(read_text(&at("good"), SMALL).unwrap(), "text");
        std::os::unix::fs::symlink("good", at("link")).unwrap();
        assert_eq!(read(&at("link"), SMALL).unwrap(), b"text");
        assert!(said(dir.path()).contains("not a file but a folder; try another"));
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(said(&at("pipe")).contains("not a file but a pipe"));
        let _listening = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        assert!(said(&at("socket")).contains("not a file but a socket"));
        assert!(said(Path::new("/dev/zero")).contains("not a file but a device"));
        assert!(said(&at("none")).contains("No such file"));
        std::fs::write(at("long"), [b'x'; 8193]).unwrap();
        assert!(said(&at("long")).contains("longer than 8 KiB"));
        std::fs::write(at("binary"), [0xff]).unwrap();
        assert!(read_text(&at("binary"), SMALL).unwrap_err().to_string().contains("not text"));
        File::create(at("sparse")).unwrap().set_len(1 << 40).unwrap();
        assert!(said(&at("sparse")).contains("longer than"));
        File::create(at("sparse")).unwrap().set_len(8000).unwrap();
        // A file system that does not tell holes reads them as what they are: zeros.
        assert!(
            read(&at("sparse"), SMALL).is_err_and(|e| matches!(e, InputError::Sparse { .. }))
                || data_ends_at(&File::open(at("sparse")).unwrap()) == Some(8000)
        );
    }

    /// `/proc` says 0 bytes and gives more; what is read counts, not what is said.
    #[test]
    fn what_is_longer_than_it_says_is_refused() {
        let tiny = Kind { max_bytes: 16, ..SMALL };
        assert!(matches!(read(Path::new("/proc/self/status"), tiny), Err(InputError::TooLong { .. })));
        assert!(read(Path::new("/proc/self/status"), SMALL).is_ok());
    }
}

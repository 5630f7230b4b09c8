//! Files and folders that somebody sent: opened for reading, unpacked on the way, never unpacked to a disk.
//!
//! gzip and xz are told by their first bytes. What comes out is limited, because a kilobyte of either can stand for gigabytes; a folder is
//! walked without following a link and no further than a support report goes. What the bytes mean is the caller's business.

use crate::input::{self, InputError, Kind};
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Text to import; events may be long.
pub const TEXT: Kind = Kind {
    what: "text to import",
    max_bytes: 64 << 30,
    hint: "give files, folders or archives of other tools' output; docs/import.md lists them",
};
/// What may come out of a packed file.
const MAX_UNPACKED: u64 = 16 << 30;
/// Entries of a folder and all below it.
const MAX_FILES: usize = 500_000;
/// How deep.
const MAX_DEPTH: usize = 32;
const BUFFER: usize = 1 << 18;

/// A file's content as it was before it was packed.
pub fn open(path: &Path) -> Result<Box<dyn BufRead>, InputError> {
    let file = input::open(path, TEXT)?;
    unpacked(file).map_err(|error| InputError::Refused { path: path.into(), kind: TEXT, error })
}

/// The same of standard input, which can be read once.
pub fn standard_input() -> io::Result<Box<dyn BufRead>> {
    unpacked(io::stdin().take(TEXT.max_bytes))
}

/// The same of what lies inside another file.
pub fn unpacked<'a>(mut file: impl Read + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let mut front = [0u8; 6];
    let mut n = 0;
    while n < front.len() {
        match file.read(&mut front[n..])? {
            0 => break,
            more => n += more,
        }
    }
    let whole = io::Cursor::new(front[..n].to_vec()).chain(file);
    Ok(match front {
        [0x1f, 0x8b, ..] => {
            buffered(Packed(flate2::read::MultiGzDecoder::new(BufReader::new(whole)).take(MAX_UNPACKED)))
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            buffered(Packed(lzma_rust2::XzReader::new(BufReader::new(whole), true).take(MAX_UNPACKED)))
        }
        _ => buffered(whole),
    })
}

/// Says in plain words why nothing more comes out of a packed file; libraries speak of their buffers.
struct Packed<R>(R);

impl<R: Read> Read for Packed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "the packed file is cut off"),
            _ => error,
        })
    }
}

/// How a file is packed that is not unpacked here, by its first bytes: the packing, and what unpacks it.
pub fn other_packing(front: &[u8]) -> Option<(&'static str, &'static str)> {
    let known: [(&[u8], _, _); 5] = [
        (b"BZh", "bzip2", "bunzip2"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "unzstd"),
        (b"PK\x03\x04", "zip", "unzip"),
        (b"7z\xbc\xaf\x27\x1c", "7-Zip", "7z x"),
        (&[0x1f, 0x9d], "compress", "uncompress"),
    ];
    known.into_iter().find(|(mark, ..)| front.starts_with(mark)).map(|(_, packing, program)| (packing, program))
}

fn buffered<'a>(inner: impl Read + 'a) -> Box<dyn BufRead + 'a> {
    Box::new(BufReader::with_capacity(BUFFER, inner))
}

/// The plain files below a folder, by their names within it, sorted; links are passed over.
pub fn below(folder: &Path) -> Result<Vec<String>, InputError> {
    let refused = |error: io::Error| InputError::Refused { path: folder.into(), kind: TEXT, error };
    let mut found = Vec::new();
    let mut open = vec![(String::new(), 0)];
    while let Some((name, depth)) = open.pop() {
        for entry in std::fs::read_dir(folder.join(&name)).map_err(refused)? {
            let entry = entry.map_err(refused)?;
            let (Ok(kind), Some(own)) = (entry.file_type(), entry.file_name().to_str().map(str::to_string)) else {
                continue;
            };
            let inner = if name.is_empty() { own } else { format!("{name}/{own}") };
            if kind.is_dir() && depth < MAX_DEPTH {
                open.push((inner, depth + 1));
            } else if kind.is_file() {
                found.push(inner);
            }
            if found.len() > MAX_FILES {
                return Err(refused(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    format!("more than {MAX_FILES} files"),
                )));
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn packed_and_plain_files_read_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let text = "CPUidle driver: intel_idle\n".repeat(1000);
        let plain = dir.path().join("plain");
        std::fs::write(&plain, &text).unwrap();
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        packer.write_all(text.as_bytes()).unwrap();
        let packed = dir.path().join("packed");
        std::fs::write(&packed, packer.finish().unwrap()).unwrap();
        for file in [&plain, &packed] {
            let mut out = String::new();
            open(file).unwrap().read_to_string(&mut out).unwrap();
            assert_eq!(out, text);
        }
        let half = std::fs::read(&packed).unwrap();
        let why = unpacked(&half[..half.len() / 2]).unwrap().read_to_string(&mut String::new()).unwrap_err();
        assert_eq!(why.to_string(), "the packed file is cut off");
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/x"), "x").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dir.path().join("link")).unwrap();
        assert_eq!(below(dir.path()).unwrap(), ["packed", "plain", "sub/x"]);
        assert!(open(dir.path()).is_err());
    }
}

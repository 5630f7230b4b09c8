//! The archive a kernel unpacks as its first root: cpio in the "newc" form.
//!
//! The format is a hundred bytes of hexadecimal text per file (kernel: Documentation/driver-api/early-userspace/
//! buffer-format.rst), so it is written here: nothing has to be root to make a device node, and equal input makes an equal
//! archive. Owner is root, times are 0. Not compressed: unpacking 30 MB of gzip costs the emulated CPU half a second more
//! than copying it (measured, alternating: uptime at the command 3.3 s and 3.9 s).

use std::collections::BTreeSet;

/// An archive being written.
#[derive(Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    folders: BTreeSet<String>,
    n_entries: u32,
}

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_777;
const CHARACTER_DEVICE: u32 = 0o020_600;

impl Archive {
    /// A folder and those above it.
    pub(super) fn folder(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || self.folders.contains(path) {
            return;
        }
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
        self.folders.insert(path.to_string());
        self.entry(path, FOLDER, (0, 0), &[]);
    }

    /// A file and the folders above it.
    pub(super) fn file(&mut self, path: &str, permissions: u32, content: &[u8]) {
        self.above(path);
        self.entry(path, FILE | permissions, (0, 0), content);
    }

    /// A symbolic link.
    pub(super) fn link(&mut self, path: &str, target: &str) {
        self.above(path);
        self.entry(path, LINK, (0, 0), target.as_bytes());
    }

    /// A character device.
    pub(super) fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.above(path);
        self.entry(path, CHARACTER_DEVICE, (major, minor), &[]);
    }

    /// The whole archive.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }

    fn above(&mut self, path: &str) {
        if let Some((above, _)) = path.trim_matches('/').rsplit_once('/') {
            self.folder(above);
        }
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        let path = path.trim_start_matches('/');
        self.n_entries += 1;
        let (name_size, size) = (path.len() + 1, content.len());
        let n_links = if mode & 0o170_000 == 0o040_000 { 2 } else { 1 };
        let numbers = [
            self.n_entries as usize, // inode: any, but not twice
            mode as usize,
            0, // owner
            0, // group
            n_links,
            0, // time
            size,
            0, // major and minor of the file system
            0,
            device.0 as usize,
            device.1 as usize,
            name_size,
            0, // check sum: not in this form
        ];
        self.bytes.extend(b"070701");
        for number in numbers {
            self.bytes.extend(format!("{number:08X}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    /// Names and contents end on multiples of four.
    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_testing::{Lacks, skipped};

    #[test]
    fn entries_are_headed_and_padded() {
        let mut archive = Archive::default();
        archive.file("/a/b", 0o755, b"hello");
        archive.file("a/c", 0o644, b"");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("07070100000001000041ED"), "a folder comes before what is in it: {text:?}");
        assert_eq!(text.matches("070701").count(), 4, "a, a/b, a/c, trailer");
        let file = &text[text.find("00000002000081ED").unwrap()..];
        assert_eq!(&file[48..56], "00000005", "size");
        assert_eq!(&file[104..112], "a/b\0\0\0he");
    }

    #[test]
    fn cpio_reads_it() {
        let Some(_) = crate::bench::installed("cpio") else {
            return skipped("cpio_reads_it", Lacks::Program("cpio"), "no cpio to read the archive with");
        };
        let folder = tempfile::tempdir().unwrap();
        let mut archive = Archive::default();
        archive.file("bin/x", 0o755, &[0, 1, 255]);
        archive.link("bin/y", "x");
        let path = folder.path().join("archive");
        std::fs::write(&path, archive.finish()).unwrap();
        let status = std::process::Command::new("cpio")
            .args(["--quiet", "-id", "-F"])
            .arg(&path)
            .current_dir(folder.path())
            .status()
            .unwrap();
        assert!(status.success());
        assert_eq!(std::fs::read(folder.path().join("bin/y")).unwrap(), [0, 1, 255]);
    }
}

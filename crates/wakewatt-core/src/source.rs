//! Where facts come from: one trait over a live machine, an unpacked tree, a `.host` file or a test's text.
//!
//! A `Source` answers four questions: what does this file hold, what is in this folder, where does this link point,
//! what is in this MSR. It never answers with a default: a file that is missing, forbidden or unreadable is an error
//! that says which. Paths are always the machine's own absolute paths (`/sys/...`), wherever the bytes really lie.
//!
//! [`Tree`] is the machine in memory: what a `.host` file is read into, and the mini-language of the tests.

use crate::units::Cpu;
use std::collections::BTreeMap;

/// Why a source gave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The kernel has no such file (ENOENT, ENODEV, ENXIO, ENOTDIR).
    Absent,
    /// It exists, but not for this user (EACCES, EPERM).
    Denied,
    /// The recording does not say: nobody asked for it when the capture was made.
    NotRecorded,
    /// It is there and cannot be read (EIO, symlink loop, larger than any kernel file …).
    Failed,
}

/// A failed read, with the operating system's word for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{detail}")]
pub struct ReadError {
    /// The class, which decides what kind of gap it becomes.
    pub kind: ErrorKind,
    /// For people, e.g. "Permission denied".
    pub detail: String,
}

impl ReadError {
    /// Builds an error.
    pub fn new(kind: ErrorKind, detail: impl Into<String>) -> Self {
        ReadError { kind, detail: detail.into() }
    }
    /// "no such file", the most frequent answer.
    pub fn absent() -> Self {
        ReadError::new(ErrorKind::Absent, "no such file")
    }
}

/// What a source answers.
pub type Read<T> = Result<T, ReadError>;

/// A machine to read from.
pub trait Source {
    /// The bytes of a file, whole.
    fn read(&self, path: &str) -> Read<Vec<u8>>;
    /// The names in a folder, sorted, without `.` and `..`.
    fn list(&self, path: &str) -> Read<Vec<String>>;
    /// The target of a symbolic link, as written.
    fn link(&self, path: &str) -> Read<String>;
    /// A model-specific register of one CPU.
    fn msr(&self, cpu: Cpu, address: u32) -> Read<u64>;
    /// Does reading disturb the machine? On a live one an MSR read is an interrupt that wakes that CPU.
    fn is_live(&self) -> bool {
        false
    }
    /// Was it put together from what other tools printed? Then what it does not hold says nothing at all: not that a file is
    /// absent, nor that a CPU lacks what its neighbours have.
    fn is_imported(&self) -> bool {
        false
    }
    /// What it means that a folder does not list a name: absent, but for a partial tree, which holds only what somebody
    /// chose to copy.
    fn missing(&self) -> ReadError {
        ReadError::absent()
    }
    /// What this is, for headings: "this machine", "recorded host x.host".
    fn origin(&self) -> String;
}

/// A machine in memory: absolute path to bytes, or to the error that reading it gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// File contents, or the recorded failure.
    pub files: BTreeMap<String, Read<Vec<u8>>>,
    /// Folder listings that were recorded as such; others are derived from the file paths.
    pub folders: BTreeMap<String, Read<Vec<String>>>,
    /// Symbolic links.
    pub links: BTreeMap<String, Read<String>>,
    /// MSR values by (address, cpu).
    pub msrs: BTreeMap<(u32, Cpu), Read<u64>>,
    /// What to call it.
    pub name: String,
    /// A recording: what it does not hold was not asked for, which is not the same as absent.
    pub is_recording: bool,
    /// A recording made from a partial tree: not even a folder's listing proves absence.
    pub is_partial: bool,
    /// Made from other tools' text: see [`Source::is_imported`].
    pub is_imported: bool,
}

impl Tree {
    /// The tests' mini-language: `//- /path` starts a file, the lines up to the next are its text;
    /// `//- /path!denied` (or absent, failed) records an error; `//- msr 0x1b0 cpu0 6` records a register.
    pub fn from_text(text: &str) -> Tree {
        let mut tree = Tree { name: "test".into(), ..Tree::default() };
        let mut current: Option<(String, String)> = None;
        for line in text.lines() {
            let Some(head) = line.trim_start().strip_prefix("//- ") else {
                if let Some((_, body)) = &mut current {
                    body.push_str(line.trim_start());
                    body.push('\n');
                }
                continue;
            };
            if let Some((path, body)) = current.take() {
                tree.files.insert(path, Ok(body.into_bytes()));
            }
            let words: Vec<&str> = head.split_whitespace().collect();
            match words[..] {
                ["msr", address, cpu, value] => {
                    let hex = |s: &str| u64::from_str_radix(s.trim_start_matches("0x"), 16).unwrap_or(0);
                    let cpu = cpu.trim_start_matches("cpu").parse().unwrap_or(0);
                    tree.msrs.insert((u32::try_from(hex(address)).unwrap_or(0), cpu), Ok(hex(value)));
                }
                ["link", path, target] => {
                    tree.links.insert(path.into(), Ok(target.into()));
                }
                _ => match head.trim().split_once('!') {
                    Some((path, "denied")) => {
                        tree.files.insert(path.into(), Err(ReadError::new(ErrorKind::Denied, "Permission denied")));
                    }
                    Some((path, _)) => {
                        tree.files.insert(path.into(), Err(ReadError::new(ErrorKind::Failed, "Input/output error")));
                    }
                    None => current = Some((head.trim().to_string(), String::new())),
                },
            }
        }
        if let Some((path, body)) = current {
            tree.files.insert(path, Ok(body.into_bytes()));
        }
        tree
    }
}

impl Tree {
    /// What to answer for a path the tree does not hold: in a recording, only a listed parent folder proves absence.
    fn missing_at(&self, path: &str) -> ReadError {
        if self.is_imported {
            return Source::missing(self);
        }
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        match self.folders.get(parent) {
            // Sorted, as every listing is: a scan of a long one for each of its names would be quadratic.
            Some(Ok(names)) if names.binary_search_by(|n| n.as_str().cmp(name)).is_ok() => {
                ReadError::new(ErrorKind::NotRecorded, "not recorded")
            }
            Some(_) => Source::missing(self),
            None if self.is_recording => ReadError::new(ErrorKind::NotRecorded, "not recorded"),
            None => ReadError::absent(),
        }
    }
}

impl Source for Tree {
    fn read(&self, path: &str) -> Read<Vec<u8>> {
        self.files.get(path).cloned().unwrap_or_else(|| Err(self.missing_at(path)))
    }

    fn list(&self, path: &str) -> Read<Vec<String>> {
        if let Some(recorded) = self.folders.get(path) {
            return recorded.clone();
        }
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let mut names: Vec<String> = Vec::new();
        let files =
            self.files.range(prefix.clone()..).take_while(|(p, _)| p.starts_with(&prefix)).map(|(p, r)| (p, r.is_ok()));
        let links =
            self.links.range(prefix.clone()..).take_while(|(p, _)| p.starts_with(&prefix)).map(|(p, r)| (p, r.is_ok()));
        for (file, is_there) in files.chain(links) {
            let rest = &file[prefix.len()..];
            let name = rest.split('/').next().unwrap_or(rest);
            // A recorded "absent" proves nothing about the folder it would lie in; a refused or failed read does.
            let lies_there = |e: &ReadError| matches!(e.kind, ErrorKind::Denied | ErrorKind::Failed);
            if (is_there || self.files.get(file).is_some_and(|r| r.as_ref().is_err_and(lies_there)))
                && names.last().is_none_or(|last| last != name)
            {
                names.push(name.to_string());
            }
        }
        if names.is_empty() {
            return Err(self.missing_at(path));
        }
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn link(&self, path: &str) -> Read<String> {
        self.links.get(path).cloned().unwrap_or_else(|| Err(self.missing_at(path)))
    }

    fn msr(&self, cpu: Cpu, address: u32) -> Read<u64> {
        self.msrs
            .get(&(address, cpu))
            .cloned()
            .unwrap_or_else(|| Err(ReadError::new(ErrorKind::NotRecorded, "not recorded")))
    }

    fn is_imported(&self) -> bool {
        self.is_imported
    }

    fn missing(&self) -> ReadError {
        if self.is_imported {
            return ReadError::new(ErrorKind::NotRecorded, "no imported text says it");
        }
        if self.is_partial { ReadError::new(ErrorKind::NotRecorded, "not in this tree") } else { ReadError::absent() }
    }

    fn origin(&self) -> String {
        self.name.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_lists_what_its_paths_imply() {
        let tree =
            Tree::from_text("//- /sys/a/one\n1\n//- /sys/a/two/x\n2\n//- /sys/a/secret!denied\n//- msr 0x1b0 cpu3 f\n");
        assert_eq!(tree.list("/sys/a").unwrap(), ["one", "secret", "two"]);
        assert_eq!(tree.read("/sys/a/one").unwrap(), b"1\n");
        assert_eq!(tree.read("/sys/a/secret").unwrap_err().kind, ErrorKind::Denied);
        assert_eq!(tree.read("/sys/none").unwrap_err().kind, ErrorKind::Absent);
        assert_eq!(tree.msr(3, 0x1b0).unwrap(), 15);
        assert_eq!(tree.list("/sys/none").unwrap_err().kind, ErrorKind::Absent);
    }
}

//! A book in a folder: `state.json`, `audit.jsonl` and a lock; an ended rollout's state stays beside it under its own name.
//!
//! One folder is one fleet's book: the lock is what refuses a second rollout. It must lie on a disk that only one machine
//! writes to, because two machines do not see each other's locks everywhere.

use super::{Book, BookError, id_of};
use crate::audit::{Key, seal};
use crate::node::NodeName;
use std::collections::BTreeMap;
use std::path::Path;
use wakewatt_host::store::StoreError;
use wakewatt_host::store_held::{HeldError, HeldFolder};

/// The state.
pub const STATE: &str = "state.json";
/// The log.
pub const AUDIT: &str = "audit.jsonl";

/// It, held.
#[derive(Debug)]
pub struct Folder {
    held: HeldFolder,
    key: Option<Key>,
    last: Option<Vec<u8>>,
    /// Nothing was written yet: what lies there may be another rollout's.
    is_first: bool,
}

impl Folder {
    /// Holds it. `who` is told to whoever comes meanwhile; with a key lines of the log are signed.
    pub fn open(path: &Path, who: &str, key: Option<Key>) -> Result<Folder, BookError> {
        let held = HeldFolder::take(path, who).map_err(|e| match e {
            HeldError::Busy { folder, holder } => BookError::Held { place: folder, holder, until: None },
            other => BookError::Broken { place: path.display().to_string(), why: other.to_string() },
        })?;
        let log = held.load(AUDIT).map_err(broken)?.unwrap_or_default();
        let body = log.strip_suffix(b"\n").unwrap_or(&log);
        let last = body.rsplit(|b| *b == b'\n').next().filter(|line| !line.is_empty());
        Ok(Folder { last: last.map(<[u8]>::to_vec), held, key, is_first: true })
    }

    /// Another rollout's state goes aside under its own name before it is written over.
    fn put_aside(&self, state: &[u8]) -> Result<(), BookError> {
        let Some(old) = self.held.load(STATE).map_err(broken)? else { return Ok(()) };
        match (id_of(&old), id_of(state)) {
            (Some(old), new) if Some(&old) != new.as_ref() => {
                self.held.rename(STATE, &format!("{old}.json")).map_err(broken)
            }
            _ => Ok(()),
        }
    }
}

fn broken(error: StoreError) -> BookError {
    BookError::Broken { place: error.path.display().to_string(), why: error.what }
}

impl Book for Folder {
    fn place(&self) -> String {
        self.held.path().display().to_string()
    }

    fn read(&mut self) -> Result<Option<Vec<u8>>, BookError> {
        self.held.load(STATE).map_err(broken)
    }

    fn write(&mut self, state: &[u8]) -> Result<(), BookError> {
        if std::mem::take(&mut self.is_first) {
            self.put_aside(state)?;
        }
        self.held.replace(STATE, state).map_err(broken)
    }

    fn audit(&mut self, line: &str) -> Result<(), BookError> {
        let line = seal(line, self.last.as_deref(), self.key.as_ref());
        self.held.append(AUDIT, &line).map_err(broken)?;
        self.last = Some(line.into_bytes());
        Ok(())
    }

    fn annotate(&mut self, _: &NodeName, _: &BTreeMap<String, String>) -> Result<(), BookError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::check;

    #[test]
    fn a_book_goes_on_where_it_was_left_and_its_log_holds_together() {
        let dir = tempfile::tempdir().unwrap();
        let key = || Some(Key::new(b"k"));
        {
            let mut book = Folder::open(dir.path(), "ann", key()).unwrap();
            assert_eq!(book.read().unwrap(), None);
            book.write(br#"{"id":"x-1"}"#).unwrap();
            book.audit(r#"{"what":"apply"}"#).unwrap();
            assert!(
                matches!(Folder::open(dir.path(), "bob", None), Err(BookError::Held { holder, .. }) if holder == "ann")
            );
        }
        // Another test may be starting a program that still has the file.
        let again = || Folder::open(dir.path(), "ann", key());
        let mut book = (0..6000)
            .find_map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                again().ok()
            })
            .unwrap();
        assert_eq!(book.read().unwrap().unwrap(), br#"{"id":"x-1"}"#);
        book.audit(r#"{"what":"undo"}"#).unwrap();
        book.write(br#"{"id":"x-1","a":1}"#).unwrap();
        assert!(!dir.path().join("x-1.json").exists(), "the same goes on");
        drop(book);
        let mut book = (0..6000)
            .find_map(|_| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                again().ok()
            })
            .unwrap();
        book.write(br#"{"id":"x-2"}"#).unwrap();
        let log = std::fs::read(dir.path().join(AUDIT)).unwrap();
        let checked = check(&log, key().as_ref());
        assert_eq!((checked.n_lines, checked.n_signed, checked.faults.len()), (2, 2, 0));
        assert!(dir.path().join("x-1.json").is_file());
    }
}

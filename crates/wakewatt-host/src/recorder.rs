//! A source that remembers what it was asked and what it answered: `capture` is this, and nothing else.
//!
//! What was asked once is answered from memory the next time, so that whoever reads facts through it has those of the recording.
//!
//! Because the parsers themselves are the list of what to save, a new fact is in the next capture without anybody
//! keeping a list of paths.

use std::cell::RefCell;
use wakewatt_core::source::{ErrorKind, Read, ReadError, Source, Tree};
use wakewatt_core::units::Cpu;

/// Wraps a source and records.
pub struct Recorder<'a> {
    inner: &'a dyn Source,
    tree: RefCell<Tree>,
}

impl<'a> Recorder<'a> {
    /// Starts recording.
    pub fn new(inner: &'a dyn Source) -> Self {
        Recorder {
            inner,
            tree: RefCell::new(Tree {
                name: inner.origin(),
                is_recording: true,
                is_partial: inner.missing().kind == ErrorKind::NotRecorded,
                is_imported: inner.is_imported(),
                ..Tree::default()
            }),
        }
    }

    /// What was recorded.
    pub fn into_tree(self) -> Tree {
        self.tree.into_inner()
    }
}

impl Source for Recorder<'_> {
    fn read(&self, path: &str) -> Read<Vec<u8>> {
        if let Some(known) = self.tree.borrow().files.get(path) {
            return known.clone();
        }
        let answer = self.inner.read(path);
        self.tree.borrow_mut().files.insert(path.into(), answer.clone());
        answer
    }

    fn list(&self, path: &str) -> Read<Vec<String>> {
        if let Some(known) = self.tree.borrow().folders.get(path) {
            return known.clone();
        }
        let answer = self.inner.list(path);
        self.tree.borrow_mut().folders.insert(path.into(), answer.clone());
        answer
    }

    fn link(&self, path: &str) -> Read<String> {
        if let Some(known) = self.tree.borrow().links.get(path) {
            return known.clone();
        }
        let answer = self.inner.link(path);
        self.tree.borrow_mut().links.insert(path.into(), answer.clone());
        answer
    }

    fn msr(&self, cpu: Cpu, address: u32) -> Read<u64> {
        if let Some(known) = self.tree.borrow().msrs.get(&(address, cpu)) {
            return known.clone();
        }
        let answer = self.inner.msr(cpu, address);
        if !matches!(&answer, Err(e) if e.kind == ErrorKind::NotRecorded) {
            self.tree.borrow_mut().msrs.insert((address, cpu), answer.clone());
        }
        answer
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }

    fn is_imported(&self) -> bool {
        self.inner.is_imported()
    }

    fn missing(&self) -> ReadError {
        self.inner.missing()
    }

    fn origin(&self) -> String {
        self.inner.origin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Counts how often it was asked.
    struct Changing(Cell<u8>);

    impl Source for Changing {
        fn read(&self, _: &str) -> Read<Vec<u8>> {
            self.0.set(self.0.get() + 1);
            Ok(vec![self.0.get()])
        }
        fn list(&self, _: &str) -> Read<Vec<String>> {
            Err(ReadError::absent())
        }
        fn link(&self, _: &str) -> Read<String> {
            Err(ReadError::absent())
        }
        fn msr(&self, _: Cpu, _: u32) -> Read<u64> {
            Err(ReadError::absent())
        }
        fn origin(&self) -> String {
            "a machine that changes".into()
        }
    }

    #[test]
    fn what_was_answered_once_stays_so() {
        let source = Changing(Cell::new(0));
        let recorder = Recorder::new(&source);
        assert_eq!((recorder.read("/x").unwrap(), recorder.read("/x").unwrap()), (vec![1], vec![1]));
        assert_eq!(recorder.into_tree().files["/x"].as_ref().unwrap(), &[1]);
    }
}

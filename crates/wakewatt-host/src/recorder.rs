//! A source that remembers what it was asked and what it answered: `capture` is this, and nothing else.
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
        let answer = self.inner.read(path);
        self.tree.borrow_mut().files.insert(path.into(), answer.clone());
        answer
    }

    fn list(&self, path: &str) -> Read<Vec<String>> {
        let answer = self.inner.list(path);
        self.tree.borrow_mut().folders.insert(path.into(), answer.clone());
        answer
    }

    fn link(&self, path: &str) -> Read<String> {
        let answer = self.inner.link(path);
        self.tree.borrow_mut().links.insert(path.into(), answer.clone());
        answer
    }

    fn msr(&self, cpu: Cpu, address: u32) -> Read<u64> {
        let answer = self.inner.msr(cpu, address);
        if !matches!(&answer, Err(e) if e.kind == ErrorKind::NotRecorded) {
            self.tree.borrow_mut().msrs.insert((address, cpu), answer.clone());
        }
        answer
    }

    fn is_live(&self) -> bool {
        self.inner.is_live()
    }

    fn missing(&self) -> ReadError {
        self.inner.missing()
    }

    fn origin(&self) -> String {
        self.inner.origin()
    }
}

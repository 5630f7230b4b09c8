//! A source that fails on purpose: the Nth operation, once or from then on, or with spoiled bytes.
//!
//! The test pattern is SQLite's: run the whole program with the first operation failing, then the second, and so on
//! until it succeeds; nothing may panic, and everything else must still be reported.

use std::cell::Cell;
use wakewatt_core::source::{ErrorKind, Read, ReadError, Source};
use wakewatt_core::units::Cpu;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This operation fails (I/O error), the others work.
    Once,
    /// This one and all later ones fail.
    Forever,
    /// The file vanishes between list and read.
    Vanish,
    /// The content is cut in half.
    Truncate,
    /// The content is binary.
    Binary,
}

/// Wraps a source and spoils operation number `at`, counted from 0.
pub struct Faulty<'a> {
    inner: &'a dyn Source,
    at: usize,
    fault: Fault,
    count: Cell<usize>,
}

impl<'a> Faulty<'a> {
    /// Wraps.
    pub fn new(inner: &'a dyn Source, at: usize, fault: Fault) -> Self {
        Faulty { inner, at, fault, count: Cell::new(0) }
    }

    /// How many operations have been asked for.
    pub fn n_operations(&self) -> usize {
        self.count.get()
    }

    fn turn(&self) -> bool {
        let now = self.count.replace(self.count.get() + 1);
        now == self.at || (self.fault == Fault::Forever && now > self.at)
    }

    fn error(&self) -> ReadError {
        match self.fault {
            Fault::Vanish => ReadError::absent(),
            _ => ReadError::new(ErrorKind::Failed, "injected fault"),
        }
    }
}

impl Source for Faulty<'_> {
    fn read(&self, path: &str) -> Read<Vec<u8>> {
        if !self.turn() {
            return self.inner.read(path);
        }
        match self.fault {
            Fault::Truncate => self.inner.read(path).map(|b| b[..b.len() / 2].to_vec()),
            Fault::Binary => Ok((0..=255).rev().collect()),
            _ => Err(self.error()),
        }
    }

    fn list(&self, path: &str) -> Read<Vec<String>> {
        if self.turn() { Err(self.error()) } else { self.inner.list(path) }
    }

    fn link(&self, path: &str) -> Read<String> {
        if self.turn() { Err(self.error()) } else { self.inner.link(path) }
    }

    fn msr(&self, cpu: Cpu, address: u32) -> Read<u64> {
        if self.turn() { Err(self.error()) } else { self.inner.msr(cpu, address) }
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

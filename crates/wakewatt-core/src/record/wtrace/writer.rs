//! Makes the bytes of a recording: header, then blocks as they fill.
//!
//! What [`Encoder`] returns is to be appended to the file as it is; each call's bytes are whole blocks, so a write that
//! fails can be cut off at the last good length.

use super::header::{Header, Mark};
use super::pairs::{self, Grid};
use super::{MAGIC, PAIRS_PER_BLOCK, choices, kind};
use crate::samples::idle_choice::IdleChoice;
use crate::samples::idle_pair::IdlePair;
use std::collections::{BTreeMap, BTreeSet};

/// Collects pairs by CPU and packs them.
#[derive(Clone, Debug)]
pub struct Encoder {
    grid: Grid,
    waiting: BTreeMap<u32, Vec<IdlePair>>,
    asked: BTreeMap<u32, Vec<IdleChoice>>,
    n_packed: u64,
}

impl Encoder {
    /// The encoder, and the first bytes of a new file.
    pub fn start(header: &Header) -> (Encoder, Vec<u8>) {
        let mut out = MAGIC.to_vec();
        put_block(&mut out, kind::HEADER, &json(header));
        (Encoder::resume(header), out)
    }

    /// For a file that has its header already: that header decides how deadlines are coded.
    pub fn resume(header: &Header) -> Encoder {
        Encoder { grid: Grid::of(header), waiting: BTreeMap::new(), asked: BTreeMap::new(), n_packed: 0 }
    }

    /// Takes a pair; returns blocks when one is full.
    pub fn push(&mut self, pair: IdlePair) -> Option<Vec<u8>> {
        let waiting = self.waiting.entry(pair.cpu).or_default();
        waiting.push(pair);
        if waiting.len() < PAIRS_PER_BLOCK {
            return None;
        }
        let mut out = Vec::new();
        self.pack(pair.cpu, &mut out);
        Some(out)
    }

    /// Takes a question to the governor, before its pair; returns blocks when one is full.
    pub fn push_choice(&mut self, choice: IdleChoice) -> Option<Vec<u8>> {
        let asked = self.asked.entry(choice.cpu).or_default();
        asked.push(choice);
        if asked.len() < PAIRS_PER_BLOCK {
            return None;
        }
        let mut out = Vec::new();
        self.pack(choice.cpu, &mut out);
        Some(out)
    }

    /// What waits of a CPU: what was asked first, so that a reader has it when the stays come.
    fn pack(&mut self, cpu: u32, out: &mut Vec<u8>) {
        if let Some(asked) = self.asked.get_mut(&cpu).filter(|asked| !asked.is_empty()) {
            put_block(out, kind::CHOICES, &choices::encode(asked));
            asked.clear();
        }
        if let Some(waiting) = self.waiting.get_mut(&cpu).filter(|w| !w.is_empty()) {
            put_block(out, kind::PAIRS, &pairs::encode(waiting, self.grid));
            self.n_packed += waiting.len() as u64;
            waiting.clear();
        }
    }

    /// Everything that waits, then a remark.
    pub fn mark(&mut self, mark: &Mark) -> Vec<u8> {
        let mut out = self.flush();
        put_block(&mut out, kind::MARK, &json(mark));
        out
    }

    /// Everything that waits.
    pub fn flush(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let cpus: BTreeSet<u32> = self.waiting.keys().chain(self.asked.keys()).copied().collect();
        cpus.into_iter().for_each(|cpu| self.pack(cpu, &mut out));
        out
    }

    /// Everything that waits, and the end.
    pub fn end(&mut self) -> Vec<u8> {
        let mut out = self.flush();
        put_block(&mut out, kind::END, &[]);
        out
    }

    /// Pairs in the blocks returned so far.
    pub fn n_packed(&self) -> u64 {
        self.n_packed
    }
}

/// Kind, length, checksum of kind and payload, payload.
fn put_block(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    out.push(kind);
    out.extend(u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(super::reader::checksum(kind, payload).to_le_bytes());
    out.extend(payload);
}

fn json(value: &impl serde::Serialize) -> Vec<u8> {
    // Structures of ours with string keys: cannot fail.
    serde_json::to_vec(value).unwrap_or_default()
}

//! One format reading one section: what it takes is marked line by line, so that what nobody takes can be named.
//!
//! A format is two functions: how likely the lines are its own, and what they say. Every likely one reads the section, the
//! likeliest first; a line that one took is not offered to the next. So outputs that were pasted together without prompts
//! still come apart, and a format need only be sure of the lines it takes.

use crate::document::{Derived, Left};
use crate::facts::{Facts, Place};
use crate::section::{Line, Section};
use std::collections::HashMap;
use wakewatt_core::samples::timeline::Timeline;

/// What became of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mark {
    /// Nobody took it.
    #[default]
    Open,
    /// Its content is used.
    Taken,
    /// It is known, and holds nothing that is used.
    Unused,
}

/// Another tool's output.
pub struct Format {
    /// Stable word.
    pub id: &'static str,
    /// What people call this format.
    pub title: &'static str,
    /// How likely the section holds it: 0 not at all, from 10 on it is read; a prompt that says so is worth 50.
    pub detect: fn(&Section<'_>) -> u32,
    /// Reads it.
    pub read: fn(&mut Reading<'_>),
}

/// What is read into.
#[derive(Debug, Default)]
pub struct Taken {
    /// The machine.
    pub facts: Facts,
    /// Figures.
    pub derived: Vec<Derived>,
    /// Figures over time.
    pub timelines: Vec<Timeline>,
    /// What must be known.
    pub remarks: Vec<String>,
    /// Those of the remarks that were read and are no fact of the host: what somebody chose, what a kernel said of itself.
    pub said: Vec<String>,
    /// Of each figure its place, by file, word and part.
    pub(crate) known: HashMap<(u32, String, String), usize>,
}

/// Most remarks, and lines that are named.
pub(crate) const MAX_NAMED: usize = 1000;
/// Most figures: a large server has some ten of each CPU.
const MAX_FIGURES: usize = 50_000;

impl Taken {
    pub(crate) fn remark(&mut self, text: String) {
        if self.remarks.len() < MAX_NAMED && !self.remarks.contains(&text) {
            self.remarks.push(text);
        }
    }
}

/// One format at work on one section.
pub struct Reading<'a> {
    /// The lines.
    pub section: &'a Section<'a>,
    /// What became of each.
    pub marks: &'a mut [Mark],
    /// Why a line was left, where a format says so.
    pub left: &'a mut Vec<Left>,
    /// What came of them.
    pub taken: &'a mut Taken,
    /// Which file.
    pub file: u32,
    /// Facts, figures and events so far.
    pub n_taken: usize,
}

impl<'a> Reading<'a> {
    /// The lines that nobody took yet, with their place among all.
    pub fn open_lines(&self) -> Vec<(usize, &'a Line<'a>)> {
        let section = self.section;
        section.lines.iter().enumerate().filter(|(at, _)| self.marks[*at] == Mark::Open).collect()
    }

    fn place(&self, at: usize) -> Place {
        Place { file: self.file, line: self.section.lines[at].number }
    }

    /// This line says that about a file of the kernel.
    pub fn put(&mut self, at: usize, path: &str, value: &str) {
        let place = self.place(at);
        let section = self.section;
        self.n_taken += usize::from(self.taken.facts.put(place, &section.lines[at].text, path, value));
        self.marks[at] = Mark::Taken;
    }

    /// The same, concluded and not read: whatever any text says outright comes first, and is no contradiction.
    pub fn conclude(&mut self, at: usize, path: &str, value: &str) {
        let (place, section) = (self.place(at), self.section);
        self.n_taken += usize::from(self.taken.facts.conclude(place, &section.lines[at].text, path, value));
        self.marks[at] = Mark::Taken;
    }

    /// Bytes as they are.
    pub fn put_bytes(&mut self, at: usize, path: &str, value: Vec<u8>) {
        let place = self.place(at);
        let section = self.section;
        self.n_taken += usize::from(self.taken.facts.put_bytes(place, &section.lines[at].text, path, value));
        self.marks[at] = Mark::Taken;
    }

    /// A register.
    pub fn put_msr(&mut self, at: usize, address: u32, cpu: u32, value: u64) {
        let (place, section) = (self.place(at), self.section);
        self.taken.facts.put_msr(place, &section.lines[at].text, address, cpu, value);
        self.n_taken += 1;
        self.marks[at] = Mark::Taken;
    }

    /// Evidence with this path and word comes from that line.
    pub fn hint(&mut self, at: usize, path: &str, word: &str) {
        let (place, section) = (self.place(at), self.section);
        self.taken.facts.hint(place, &section.lines[at].text, path, word);
    }

    /// Its content was used in another way.
    pub fn take(&mut self, at: usize) {
        self.marks[at] = Mark::Taken;
    }

    /// It is known, and nothing in it is used.
    pub fn unused(&mut self, at: usize) {
        if self.marks[at] == Mark::Open {
            self.marks[at] = Mark::Unused;
        }
    }

    /// It belongs to this format and cannot be read, because.
    pub fn refuse(&mut self, at: usize, why: &str) {
        let line = &self.section.lines[at];
        if self.left.len() < MAX_NAMED && self.left.iter().all(|left| left.line != line.number) {
            self.left.push(Left {
                line: line.number,
                text: line.text.trim().chars().take(160).collect(),
                why: why.into(),
            });
        }
    }

    /// What must be known.
    pub fn remark(&mut self, text: String) {
        self.taken.remark(text);
    }

    /// The text says so, and it is no fact of the host.
    pub fn say(&mut self, text: String) {
        if self.taken.said.len() < MAX_NAMED && !self.taken.said.contains(&text) {
            self.taken.said.push(text.clone());
        }
        self.taken.remark(text);
    }

    /// One reading of a figure; those of one name are kept together.
    pub fn figure(&mut self, at: usize, what: &str, of: &str, unit: &str, value: f64) {
        self.marks[at] = Mark::Taken;
        if !value.is_finite() {
            return;
        }
        self.n_taken += 1;
        let taken = &mut *self.taken;
        let key = (self.file, what.to_string(), of.to_string());
        if let Some(known) = taken.known.get(&key).and_then(|index| taken.derived.get_mut(*index)) {
            known.n += 1;
            known.mean += (value - known.mean) / known.n as f64;
            (known.min, known.max) = (known.min.min(value), known.max.max(value));
        } else if taken.derived.len() < MAX_FIGURES {
            let file = taken.facts.names.get(self.file as usize).cloned().unwrap_or_default();
            let (what, of, unit) = (what.into(), of.into(), unit.into());
            let line = self.section.lines[at].number;
            taken.known.insert(key, taken.derived.len());
            taken.derived.push(Derived { what, of, unit, n: 1, mean: value, min: value, max: value, file, line });
        }
    }
}

/// 10 for each of so many lines that pass, at most 40, and 50 if the prompt says so.
pub fn likely(section: &Section<'_>, program: &str, is_own: impl Fn(&str) -> bool) -> u32 {
    let n = section.lines.iter().take(20_000).filter(|line| is_own(line.text.trim())).take(4).count();
    let n = u32::try_from(n).unwrap_or(4);
    // A prompt alone is a hint; without a line of its own there is nothing to read.
    if n == 0 { 0 } else { n * 10 + if section.is_by(program) { 50 } else { 0 } }
}

//! What other tools printed, read and judged: for machines where nothing may be run.
//!
//! A support case brings text: outputs of cpupower, turbostat, dmidecode, a kernel log, a terminal pasted whole, an archive of
//! sosreport. They say what this program would read itself from the kernel's files, so they are turned into those files
//! ([`facts`]), each with the line that says it, and everything behind that is core's. Figures that a tool had made (shares, watts,
//! delays) stay figures. Recorded events ([`events`]) become wake-ups by idle state, and a recording for `replay`.
//!
//! Formats are told by content, never by a file's name ([`formats`]); a format takes the lines it is sure of, and what nobody took is
//! named line by line. Nothing here opens anything: files, folders and archives are the caller's.
//!
//! **Invariants:** no text makes it panic or take memory out of proportion; the first of two contradicting lines is kept and both are
//! said; what no text says is unknown, never absent.

pub mod archive;
pub mod document;
pub mod events;
pub mod facts;
pub mod formats;
mod paths;
pub mod plain;
mod programs;
pub mod reading;
pub mod section;
pub mod tar;

use document::{Document, FileRead, Found, Left};
use events::{EventText, Recorded};
use facts::Facts;
use reading::{Format, MAX_NAMED, Mark, Reading, Taken};
use section::{Section, sections};
use std::collections::HashMap;
use std::io::BufRead;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::source::Tree;

/// From here on a text is read as a format.
const ENOUGH: u32 = 10;
/// Letters of a line that is named.
const SHOWN: usize = 160;

/// A text to be read.
pub enum Input {
    /// One that fits into memory.
    Text {
        /// What it is called, wherever it lay.
        name: String,
        /// The kernel's file that it is a copy of, if it is one.
        path: Option<String>,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// Recorded events, of any length: told by [`events::are_events`] from the first bytes.
    Events {
        /// What it is called.
        name: String,
        /// Its lines.
        lines: Box<dyn BufRead>,
    },
}

/// All that came of the texts.
#[derive(Debug, Default)]
pub struct Imported {
    /// The machine, and which line says what.
    pub facts: Facts,
    /// What was measured when the texts were made.
    pub samples: Samples,
    /// What was understood, and what was not.
    pub document: Document,
    /// Those of its remarks that a text says outright and that are no fact of the host.
    pub said: Vec<String>,
    /// Idle intervals, if the events hold any.
    pub recorded: Recorded,
}

impl Imported {
    /// Of a `.host` file, which needs no reading of text.
    pub fn of_host(tree: Tree) -> Imported {
        Imported { facts: Facts::of(tree), ..Imported::default() }
    }

    /// Was anything understood?
    pub fn is_empty(&self) -> bool {
        self.document.files.iter().all(|file| file.formats.iter().all(|found| found.n_taken == 0))
    }

    /// What a report says of the texts beside its findings.
    pub fn not_done(&self) -> Vec<NotDone> {
        let mut all = Vec::new();
        for file in self.document.files.iter().filter(|file| file.n_not_understood > 0).take(20) {
            let (n, of) = (file.n_not_understood, file.n_lines);
            // A file's name does not begin a sentence: its first letter is its own.
            let name = &file.file;
            let why = format!("{n} of {of} lines of {name} were not understood; wakewatt import names them");
            all.push(NotDone::new(Step::Unnamed, why));
        }
        for conflict in self.document.conflicts.iter().take(20) {
            let (kept, other) = (&conflict.kept, &conflict.other);
            let said = format!(
                "{} line {} says {}, {} line {} says {}; the first is kept",
                kept.file, kept.line, kept.says, other.file, other.line, other.says
            );
            all.push(NotDone::named(format!("contradiction on {}", conflict.path), said));
        }
        all.extend(self.document.remarks.iter().take(20).map(|remark| {
            let is_said = self.said.contains(remark);
            NotDone::named(if is_said { "said by a text and not judged here" } else { "imported text" }, remark.clone())
        }));
        all
    }
}

/// Reads the texts as one machine.
pub fn import(inputs: Vec<Input>) -> Imported {
    import_while(inputs, &mut |_, _| true)
}

/// The same as long as `goes_on` says so, which is asked before each text with how many have been read of how many. What is
/// left out then is said in a remark.
pub fn import_while(mut inputs: Vec<Input>, goes_on: &mut dyn FnMut(usize, usize) -> bool) -> Imported {
    // The kernel's own files say most, so they come first.
    inputs.sort_by_key(|input| !matches!(input, Input::Text { path: Some(_), .. }));
    let mut taken = Taken { facts: Facts::new(), ..Taken::default() };
    let mut document = Document::default();
    let mut texts: Vec<EventText> = Vec::new();
    let n_inputs = inputs.len();
    for (n_read, input) in inputs.into_iter().enumerate() {
        if !goes_on(n_read, n_inputs) {
            taken.remark(format!("{n_read} of {n_inputs} texts were read, the kernel's own files first; time was up"));
            break;
        }
        let file = u32::try_from(taken.facts.names.len()).unwrap_or(u32::MAX);
        match input {
            Input::Text { name, path, bytes } => {
                taken.facts.names.push(name.clone());
                taken.facts.grow(bytes.len());
                let (read, events) = read_text(name, path, &bytes, file, &mut taken);
                texts.extend(events.into_iter().map(|(first_line, bytes)| {
                    EventText::of(document.files.len(), first_line, Box::new(std::io::Cursor::new(bytes))).in_part()
                }));
                document.files.push(read);
            }
            Input::Events { name, lines } => {
                taken.facts.names.push(name.clone());
                texts.push(EventText::of(document.files.len(), 1, lines));
                document.files.push(FileRead { file: name, ..FileRead::default() });
            }
        }
    }
    let mut samples = Samples { timelines: std::mem::take(&mut taken.timelines), ..Samples::default() };
    let mut recorded = Recorded::default();
    if !texts.is_empty() {
        name_machine(&mut taken.facts);
        let snapshot =
            Snapshot::read(&taken.facts.tree, |topic| matches!(topic, "idle" | "kernel" | "qos" | "topology"));
        let came = events::read(texts, &snapshot, &mut document);
        (samples.trace, recorded) = (came.traced, came.recorded);
        document.wakeups = came.wakeups;
        came.remarks.into_iter().for_each(|remark| taken.remark(remark));
    }
    name_machine(&mut taken.facts);
    if taken.facts.n_refused > 0 {
        let n = taken.facts.n_refused;
        taken.remark(format!("{n} entries were left out: the texts are too short to speak of so large a machine"));
    }
    document.n_facts = taken.facts.tree.files.len() + taken.facts.tree.msrs.len();
    document.conflicts = taken.facts.conflicts.clone();
    document.derived = taken.derived;
    document.remarks = taken.remarks;
    Imported { facts: taken.facts, samples, document, said: taken.said, recorded }
}

/// Headings name the texts.
fn name_machine(facts: &mut Facts) {
    let names = &facts.names;
    let some: Vec<&str> = names.iter().take(3).map(String::as_str).collect();
    let more = names.len().saturating_sub(some.len());
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    facts.tree.name = format!("host imported from {}{rest}", some.join(", "));
}

/// Parts of a text that are events: first line, and bytes.
type EventParts = Vec<(u32, Vec<u8>)>;

fn read_text(name: String, path: Option<String>, bytes: &[u8], file: u32, taken: &mut Taken) -> (FileRead, EventParts) {
    let text = plain::decoded(bytes);
    let mut read = FileRead { file: name, ..FileRead::default() };
    let mut parts = Vec::new();
    let (mut all, n_left_out) = match path {
        Some(path) => {
            let lines = text
                .lines()
                .zip(1..)
                .take(section::MAX_LINES)
                .map(|(line, number)| section::Line { number, text: line.into() });
            (vec![Section { path: Some(path), lines: lines.collect(), ..Section::default() }], 0)
        }
        None => {
            let (mut all, n_left_out) = sections(&text);
            let cut_at = section::cut_at(&text);
            all.iter_mut().for_each(|section| section.cut_at = cut_at);
            if let Some(last) = all.last_mut().filter(|_| n_left_out == 0 && !text.ends_with('\n')) {
                last.has_open_end = true;
            }
            // Files printed in a row are told apart by how many CPUs there are, which other outputs say.
            all.sort_by_key(|section| section.files().is_some());
            (all, n_left_out)
        }
    };
    if n_left_out > 0 {
        taken.remark(format!(
            "{}: {n_left_out} lines beyond the first {} were not looked at",
            read.file,
            section::MAX_LINES
        ));
    }
    for section in &mut all {
        if section.path.is_none() && events::are_events(&mut section.lines.iter().map(|line| &*line.text)) {
            let first = section.lines.first().map_or(1, |line| line.number);
            let text: Vec<&str> = section.lines.iter().map(|line| &*line.text).collect();
            // Lines that are no events are offered to the formats as well, so the section stays.
            parts.push((first, text.join("\n").into_bytes()));
            section.lines.retain(|line| !events::is_event(&line.text));
        }
        read_section(section, file, &mut read, taken);
    }
    read.not_understood.sort_by_key(|left| left.line);
    read.formats.sort_by_key(|found| found.from_line);
    (read, parts)
}

fn read_section(section: &Section<'_>, file: u32, read: &mut FileRead, taken: &mut Taken) {
    let mut marks = vec![Mark::Open; section.lines.len()];
    let mut left: Vec<Left> = Vec::new();
    let mut likely: Vec<(u32, &Format)> = formats::FORMATS
        .iter()
        .map(|format| ((format.detect)(section), *format))
        .filter(|(score, _)| *score >= ENOUGH)
        .collect();
    likely.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    for (_, format) in likely {
        let before = marks.clone();
        let mut reading = Reading { section, marks: &mut marks, left: &mut left, taken: &mut *taken, file, n_taken: 0 };
        (format.read)(&mut reading);
        let n_taken = reading.n_taken;
        let own: Vec<usize> = (0..marks.len()).filter(|at| marks[*at] != before[*at]).collect();
        if let (Some(first), Some(last)) = (own.first(), own.last()) {
            read.formats.push(Found {
                format: format.id.into(),
                title: format.title.into(),
                from_line: section.lines[*first].number,
                to_line: section.lines[*last].number,
                n_understood: own.iter().filter(|at| marks[**at] == Mark::Taken).count(),
                n_taken,
            });
        }
    }
    let last = section.lines.last().zip(marks.last()).filter(|_| section.has_open_end);
    // A line that somebody typed is whole as it is.
    if let Some((line, _)) = last.filter(|(line, mark)| **mark == Mark::Taken && line.number > 1) {
        let (name, n) = (&read.file, line.number);
        taken.remark(format!(
            "{name}: no line end behind line {n}, the last: if the text was cut there, that line says less than it did"
        ));
    }
    let left: HashMap<u32, Left> = left.into_iter().map(|left| (left.line, left)).collect();
    for (line, mark) in section.lines.iter().zip(&marks).filter(|(line, _)| !line.text.trim().is_empty()) {
        read.n_lines += 1;
        let refused = left.get(&line.number);
        match mark {
            // A line can be one format's and still hold what it could not read.
            Mark::Taken if refused.is_none() => read.n_understood += 1,
            Mark::Unused if refused.is_none() => read.n_unused += 1,
            _ => {
                read.n_not_understood += 1;
                if read.not_understood.len() < MAX_NAMED {
                    read.not_understood.push(refused.cloned().unwrap_or_else(|| Left {
                        line: line.number,
                        text: line.text.trim().chars().take(SHOWN).collect(),
                        why: section.why_left(),
                    }));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;

//! Several texts of events as one, in the order of their times, a line of each in memory.
//!
//! Each tool sorts what it prints, so the next event of all is the least of the next of each. An event that stands before an earlier
//! one of its own text is counted and read where it stands.

use super::line::{Event, Names, What, event};
use crate::document::Left;
use crate::plain;
use std::io::BufRead;

/// Lines that are named.
const MAX_LEFT: usize = 200;

/// Which tool printed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Perf,
    TraceCmd,
}

impl Kind {
    pub(crate) fn id(self) -> &'static str {
        match self {
            Kind::Perf => "perf-script",
            Kind::TraceCmd => "trace-cmd",
        }
    }
    pub(crate) fn title(self) -> &'static str {
        match self {
            Kind::Perf => "perf script",
            Kind::TraceCmd => "trace-cmd report",
        }
    }
}

/// A text of events.
pub struct EventText {
    pub(crate) file: usize,
    pub(crate) first_line: u32,
    pub(crate) last_line: u32,
    pub(crate) kind: Kind,
    pub(crate) n_lines: usize,
    pub(crate) n_events: usize,
    pub(crate) n_other: usize,
    pub(crate) n_left: usize,
    pub(crate) n_backwards: usize,
    pub(crate) left: Vec<Left>,
    lines: Box<dyn BufRead>,
    next: Option<Event>,
    last_at_ns: u64,
    /// Lines that are no events stay with the formats, where the text is a part of another.
    is_part: bool,
}

impl EventText {
    /// Of the file with this number, from this line on.
    pub(crate) fn of(file: usize, first_line: u32, lines: Box<dyn BufRead>) -> EventText {
        EventText {
            file,
            first_line,
            last_line: first_line.saturating_sub(1),
            kind: Kind::Perf,
            n_lines: 0,
            n_events: 0,
            n_other: 0,
            n_left: 0,
            n_backwards: 0,
            left: Vec::new(),
            lines,
            next: None,
            last_at_ns: 0,
            is_part: false,
        }
    }

    /// Other lines of the same text go to the formats.
    pub(crate) fn in_part(mut self) -> EventText {
        self.is_part = true;
        self
    }

    fn leave(&mut self, text: &str, why: &str) {
        self.n_left += 1;
        if self.left.len() < MAX_LEFT {
            let text = text.trim().chars().take(160).collect();
            self.left.push(Left { line: self.last_line, text, why: why.into() });
        }
    }

    fn advance(&mut self, names: &mut Names, buffer: &mut Vec<u8>) {
        self.next = None;
        loop {
            buffer.clear();
            match read_line(&mut *self.lines, buffer) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    self.last_line = self.last_line.saturating_add(1);
                    return self.leave("", &format!("the text ends here: {error}"));
                }
            }
            self.last_line = self.last_line.saturating_add(1);
            let raw = String::from_utf8_lossy(buffer);
            let text = plain::line(&raw);
            if text.trim().is_empty() {
                continue;
            }
            let read = event(&text, names);
            if read.is_none() && self.is_part {
                continue;
            }
            self.n_lines += 1;
            match read {
                Some(Ok(Event { what: What::Other, .. })) => self.n_other += 1,
                Some(Ok(event)) => {
                    if self.n_events == 0
                        && !["power:", "sched:", "irq:", "irq_vectors:", "timer:"]
                            .iter()
                            .any(|family| text.contains(family))
                    {
                        self.kind = Kind::TraceCmd;
                    }
                    self.n_events += 1;
                    self.n_backwards += usize::from(event.at_ns < self.last_at_ns);
                    self.last_at_ns = self.last_at_ns.max(event.at_ns);
                    self.next = Some(event);
                    return;
                }
                Some(Err(why)) => self.leave(&text, why),
                // Comments and the heads of ftrace's file, trace-cmd's first lines.
                None if text.starts_with('#') || text.starts_with("cpus=") || text.starts_with("version =") => {
                    self.n_other += 1
                }
                None => self.leave(&text, "no event with CPU, time and name"),
            }
        }
    }
}

/// A line, cut where it is longer than any event.
fn read_line(lines: &mut dyn BufRead, buffer: &mut Vec<u8>) -> std::io::Result<bool> {
    let mut is_any = false;
    loop {
        let available = lines.fill_buf()?;
        if available.is_empty() {
            return Ok(is_any);
        }
        is_any = true;
        let end = available.iter().position(|b| *b == b'\n');
        let n = end.map_or(available.len(), |at| at + 1);
        let room = plain::MAX_LINE.saturating_sub(buffer.len());
        buffer.extend_from_slice(&available[..end.unwrap_or(n).min(room)]);
        lines.consume(n);
        if end.is_some() {
            return Ok(true);
        }
    }
}

/// All of them.
pub(crate) struct Merged {
    texts: Vec<EventText>,
    buffer: Vec<u8>,
}

impl Merged {
    pub(crate) fn of(texts: Vec<EventText>, names: &mut Names) -> Merged {
        let mut merged = Merged { texts, buffer: Vec::new() };
        for text in &mut merged.texts {
            text.advance(names, &mut merged.buffer);
        }
        merged
    }

    /// The next of all.
    pub(crate) fn next(&mut self, names: &mut Names) -> Option<Event> {
        let least = self.texts.iter().enumerate().filter_map(|(at, text)| Some((text.next?.at_ns, at))).min()?.1;
        let text = &mut self.texts[least];
        let event = text.next;
        text.advance(names, &mut self.buffer);
        event
    }

    /// What became of their lines.
    pub(crate) fn finished(self) -> Vec<EventText> {
        self.texts
    }
}

//! An answer on its way through the log of a pod: written by `wakewatt carried`, read by the carrier.
//!
//! A log is one stream of lines, in which standard output and error are mixed, that a runtime cuts, rotates and may lose the
//! beginning of; the exit code is elsewhere, and later than we want it where something lives on. So the answer is put into
//! lines of its own kind: the output in base64, then an end with the exit code, the last of the standard error, the length
//! and a checksum. What is not such a line is no part of it; an end that does not fit its lines says that some were lost.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// Before every line.
const MARK: &str = "wakewatt-answer/1 ";
const END: &str = "end ";
/// Bytes a line: runtimes cut lines at 16 KiB.
const A_LINE: usize = 6000;
/// Longest line that is read.
pub(super) const LONGEST_LINE: u64 = 16 << 10;
/// As much of the standard error as is sent along.
const SAID: usize = 4096;

/// What a command came to, on the far side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its exit code; 128 and the signal's number where one ended it.
    pub code: i32,
    /// Its standard output; as much as was asked for.
    pub output: Vec<u8>,
    /// There was more of it.
    pub is_cut: bool,
    /// Its standard error; the last of it is sent.
    pub said: String,
    /// It was ended because its time was up.
    pub is_late: bool,
}

#[derive(Serialize, Deserialize)]
struct Tail {
    code: i32,
    n_bytes: usize,
    crc32: u32,
    is_cut: bool,
    is_late: bool,
    said: String,
}

impl Answer {
    /// As lines of a log.
    pub fn to_lines(&self) -> String {
        let mut lines = String::with_capacity(self.output.len() * 3 / 2 + 256);
        for part in self.output.chunks(A_LINE) {
            let _ = writeln!(lines, "{MARK}{}", STANDARD.encode(part));
        }
        let skipped = self.said.len().saturating_sub(SAID);
        let from = (skipped..self.said.len()).find(|at| self.said.is_char_boundary(*at)).unwrap_or(self.said.len());
        let tail = Tail {
            code: self.code,
            n_bytes: self.output.len(),
            crc32: crc32fast::hash(&self.output),
            is_cut: self.is_cut,
            is_late: self.is_late,
            said: self.said[from..].into(),
        };
        let _ = writeln!(lines, "{MARK}{END}{}", serde_json::to_string(&tail).unwrap_or_default());
        lines
    }

    /// The first whole answer among the lines of a log, with no more output than this; none where there is none.
    pub fn from_lines(log: &str, at_most: usize) -> Option<Answer> {
        let mut reader = Reader::new(at_most);
        log.lines().find_map(|line| reader.line(line).transpose())?.ok()
    }
}

/// Why lines are no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spoilt {
    /// More than is taken.
    TooLong,
    /// Lines were lost or changed on the way.
    Torn,
}

/// An answer that is being read.
#[derive(Debug, Default)]
pub(super) struct Reader {
    output: Vec<u8>,
    at_most: usize,
}

impl Reader {
    pub(super) fn new(at_most: usize) -> Reader {
        Reader { output: Vec::new(), at_most }
    }

    /// One line of the log; the answer once that is complete.
    pub(super) fn line(&mut self, line: &str) -> Result<Option<Answer>, Spoilt> {
        let Some(rest) = line.trim_end().strip_prefix(MARK) else { return Ok(None) };
        let Some(tail) = rest.strip_prefix(END) else {
            let part = STANDARD.decode(rest).map_err(|_| Spoilt::Torn)?;
            if self.output.len() + part.len() > self.at_most {
                return Err(Spoilt::TooLong);
            }
            self.output.extend(part);
            return Ok(None);
        };
        let tail: Tail = serde_json::from_str(tail).map_err(|_| Spoilt::Torn)?;
        if tail.is_cut {
            return Err(Spoilt::TooLong);
        }
        let output = std::mem::take(&mut self.output);
        if tail.n_bytes != output.len() || tail.crc32 != crc32fast::hash(&output) {
            return Err(Spoilt::Torn);
        }
        Ok(Some(Answer { code: tail.code, output, is_cut: false, said: tail.said, is_late: tail.is_late }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_whole() {
        let answer = Answer { code: 7, output: b"x".to_vec(), said: "y".into(), ..Answer::default() };
        assert_eq!(Answer::from_lines(&format!("noise\n{}", answer.to_lines()), 9), Some(answer));
        assert_eq!(Answer::from_lines("noise", 9), None);
    }

    fn read(lines: &str, at_most: usize) -> Result<Option<Answer>, Spoilt> {
        let mut reader = Reader::new(at_most);
        lines.lines().find_map(|line| reader.line(line).transpose()).transpose()
    }

    #[test]
    fn any_output_comes_back_and_lost_lines_are_noticed() {
        let output: Vec<u8> = (0..20_000u32).map(|n| (n % 251) as u8).collect();
        let answer = Answer { code: 6, output, said: "ä".repeat(4000), ..Answer::default() };
        let lines = answer.to_lines();
        assert!(lines.lines().all(|l| l.len() < 16 << 10), "runtimes cut longer ones");
        let back = read(&format!("noise\n{lines}"), 20_000).unwrap().unwrap();
        assert_eq!((back.code, &back.output), (6, &answer.output));
        assert!(back.said.len() <= SAID && back.said.starts_with('ä'));
        assert_eq!(read(&lines, 19_999), Err(Spoilt::TooLong));
        let later: String = lines.lines().skip(1).fold(String::new(), |all, line| all + line + "\n");
        assert_eq!(read(&later, 20_000), Err(Spoilt::Torn));
        assert_eq!(read("wakewatt-answer/1 &&&", 9), Err(Spoilt::Torn));
        assert_eq!(read("wakewatt-answer/1 end {}", 9), Err(Spoilt::Torn));
        assert_eq!(read("", 9), Ok(None));
        let cut = Answer { is_cut: true, ..Answer::default() };
        assert_eq!(read(&cut.to_lines(), 9), Err(Spoilt::TooLong));
    }
}

//! The run file: what one run of wakewatt knew, as one JSON document that can be judged, shown and compared later.
//!
//! Facts are kept as the text of a `.host` file, masked as `capture` masks, and read again by the parsers of the reader:
//! so a rule that did not exist when a run was made can still be asked of it, and no fact needs a second form. Samples are
//! kept as they are. Members that a reader does not know are ignored, members that a file lacks are empty; another
//! version is refused. Described in docs/run-format.md. Touching the disk is the caller's business.
//!
//! What people named is masked as in a capture, and with the capture's own names (run_file/private.rs). What somebody wrote
//! into a plan stays: its name and question, the ids and titles of its arms. Runs are joined on those.

mod private;

use super::cited::Cited;
use super::host_file::{self, HostFileError};
use super::mask::Names;
use crate::evidence::Evidence;
use crate::facts::Snapshot;
use crate::samples::Samples;
use crate::samples::busy::QuietWait;
use crate::samples::not_done::NotDone;
use serde::{Deserialize, Serialize};

/// The name in the document's `schema`.
pub const SCHEMA: &str = "wakewatt/run/v1";
/// A run of many hours on a big machine is some tens of megabytes; beyond this it is something else.
pub const MAX_BYTES: usize = 256 << 20;

/// Why a run file could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunFileError {
    /// Not JSON, or JSON of something else.
    #[error("not a run file ({0}); make one with --save FILE of doctor, measure or load")]
    NotARunFile(String),
    /// A document that wakewatt prints, but not this one.
    #[error("this is a document of --json ({0}), which holds no facts to read again; make a run file with --save FILE")]
    OtherDocument(String),
    /// Another version of the format.
    #[error("{0}; this wakewatt reads {SCHEMA}. Use the wakewatt that wrote the file, or make the run again")]
    Version(String),
    /// It ends too early.
    #[error("cut off at line {line}, column {column}; copy the file again, whole")]
    Cut {
        /// Line, from 1.
        line: usize,
        /// Column.
        column: usize,
    },
    /// Damaged, or changed by hand.
    #[error("damaged: {0}; copy the file again, or make the run again")]
    Damaged(String),
    /// Too large to be one.
    #[error("{} MiB is more than any run file ({} MiB)", .0 >> 20, MAX_BYTES >> 20)]
    TooLarge(usize),
    /// The facts in it do not parse.
    #[error("the facts in it: {0}")]
    Host(#[from] HostFileError),
}

/// What a run knew.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunFile {
    /// When it was written, as `2026-11-21T09:00:00Z`.
    pub made_at: String,
    /// The command that made it, without its options: `measure disk`.
    pub command: String,
    /// The facts: text of a `.host` file.
    pub host: String,
    /// What was measured.
    #[serde(flatten)]
    pub samples: Samples,
    /// Why doctor ran the experiments it ran, what matters most first.
    #[serde(default)]
    pub chosen_because: Vec<String>,
    /// What was seen while waiting for a quiet spell, if that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet_wait: Option<QuietWait>,
    /// What was not looked at, and why.
    #[serde(default)]
    pub not_done: Vec<NotDone>,
    /// Of a run whose facts were imported: which line of which text the findings rest on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cited: Vec<Cited>,
}

impl RunFile {
    /// From what is known, the facts as text and the names that were masked in it. The facts in `evidence` are not kept:
    /// the text is.
    pub fn of(
        evidence: &Evidence,
        host: String,
        names: Names,
        command: &str,
        made_at: String,
    ) -> Result<RunFile, RunFileError> {
        RunFile::of_imported(evidence, host, names, command, made_at, Vec::new())
    }

    /// The same of facts that were imported, with the lines that the findings rest on.
    pub fn of_imported(
        evidence: &Evidence,
        host: String,
        mut names: Names,
        command: &str,
        made_at: String,
        cited: Vec<Cited>,
    ) -> Result<RunFile, RunFileError> {
        // Every member by name, so that a new one is not forgotten here.
        let Evidence { facts: _, samples, chosen_because, quiet_wait, not_done, made_at_s: _ } = evidence.clone();
        let command = command.into();
        let run = RunFile { made_at, command, host, samples, chosen_because, quiet_wait, not_done, cited };
        run.masked(&mut names)
    }

    /// The same without what people named; `names` are those that were masked already.
    pub fn masked(self, names: &mut Names) -> Result<RunFile, RunFileError> {
        private::mask(self, names)
    }

    /// Back to evidence; the facts are read again. `name` is what the facts call their origin.
    pub fn evidence(&self, name: &str) -> Result<Evidence, RunFileError> {
        let tree = host_file::read(&self.host, name)?;
        let RunFile { made_at: _, command: _, host: _, samples, chosen_because, quiet_wait, not_done, cited: _ } =
            self.clone();
        Ok(Evidence {
            facts: Snapshot::read(&tree, |_| true),
            samples,
            chosen_because,
            quiet_wait,
            not_done,
            made_at_s: None,
        })
    }

    /// Does this look like a run file, rather than a `.host` file? Decided by the first character that is no blank.
    pub fn is_one(text: &str) -> bool {
        text.trim_start().starts_with('{')
    }

    /// Reads the document.
    pub fn read(text: &str) -> Result<RunFile, RunFileError> {
        #[derive(Deserialize)]
        struct Name {
            schema: Option<String>,
        }
        #[derive(Deserialize)]
        struct Head {
            made_at: String,
            command: String,
            host: String,
            #[serde(default)]
            chosen_because: Vec<String>,
            #[serde(default)]
            quiet_wait: Option<QuietWait>,
            #[serde(default)]
            not_done: Vec<NotDone>,
            #[serde(default)]
            cited: Vec<Cited>,
        }
        if text.len() > MAX_BYTES {
            return Err(RunFileError::TooLarge(text.len()));
        }
        if !RunFile::is_one(text) {
            return Err(RunFileError::NotARunFile("it does not begin with {".into()));
        }
        let name: Name = serde_json::from_str(text).map_err(|e| broken(&e))?;
        match name.schema.as_deref() {
            Some(SCHEMA) => {}
            Some(name) if name.starts_with("wakewatt/run/") => return Err(RunFileError::Version(short(name))),
            Some(name) if name.starts_with("wakewatt/") => return Err(RunFileError::OtherDocument(short(name))),
            _ => return Err(RunFileError::NotARunFile("it has no \"schema\" of wakewatt".into())),
        }
        // Twice over the text: read as one, its samples would all be held in a form between before they are read.
        let head: Head = serde_json::from_str(text).map_err(|e| broken(&e))?;
        let samples: Samples = serde_json::from_str(text).map_err(|e| broken(&e))?;
        let Head { made_at, command, host, chosen_because, quiet_wait, not_done, cited } = head;
        Ok(RunFile { made_at, command, host, samples, chosen_because, quiet_wait, not_done, cited })
    }
}

fn broken(error: &serde_json::Error) -> RunFileError {
    if error.is_eof() {
        RunFileError::Cut { line: error.line(), column: error.column() }
    } else {
        RunFileError::Damaged(short(&error.to_string()))
    }
}

/// Foreign text in an error: no control characters, and not all of it.
fn short(text: &str) -> String {
    crate::visible::line(text).chars().take(160).collect()
}

#[cfg(test)]
mod tests;

//! After the boot: did the parameters arrive, were they understood, and do they show?
//!
//! Four questions in this order, because each answer is worth less without the one before: was there a boot at all
//! (`line`), does the kernel's line have every word once and in force (`line`), do driver, governor and idle states
//! of *every* CPU agree (`idle`, `frequency`), and what did the kernel say while it started (`log`). Pure: the
//! machine is a [`Source`] and the kernel's log is text, because reading it needs rights that the rest does not.
//!
//! What this cannot see: whether a processor really stays out of a state. That is measured, not read.

mod line;
mod idle;
mod frequency;
mod log;

use super::Argument;
use serde::{Deserialize, Serialize};
use wakewatt_core::source::{ErrorKind, Source};

/// What the plan wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootWanted {
    pub arguments: Vec<Argument>,
    /// The boot in which the plan was carried out; none if that is not known.
    pub planned_in_boot: Option<String>,
}

impl BootWanted {
    /// The value wanted for a parameter; empty for a bare word.
    fn value(&self, key: &str) -> Option<&str> {
        self.arguments.iter().rfind(|a| a.has_name(key)).map(|a| a.value().unwrap_or_default())
    }
}

/// The answer to one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum BootVerdict {
    /// It is as wanted.
    Holds,
    /// It is not as wanted.
    Broken,
    /// The machine does not say.
    CannotTell {
        /// Why it cannot be told.
        why: String,
    },
}

/// One line of the result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// What is checked.
    pub what: String,
    /// What it should be.
    pub wanted: String,
    /// What it is on the running system.
    pub found: String,
    /// What the comparison says.
    pub verdict: BootVerdict,
    /// Where it was read.
    pub path: String,
}

/// All checks, in the order of the questions. `kernel_log`: the text of this boot, none if it could not be read.
pub fn check(source: &dyn Source, kernel_log: Option<&str>, wanted: &BootWanted) -> Vec<Check> {
    let mut checks = Vec::new();
    line::boot(source, wanted, &mut checks);
    line::words(source, wanted, &mut checks);
    line::parameters(source, wanted, &mut checks);
    idle::driver(source, wanted, &mut checks);
    idle::states(source, wanted, &mut checks);
    frequency::policies(source, wanted, &mut checks);
    log::said(kernel_log, wanted, &mut checks);
    checks
}

impl Check {
    fn new(what: impl Into<String>, path: impl Into<String>, wanted: impl Into<String>) -> Check {
        let verdict = BootVerdict::CannotTell { why: "not looked at".into() };
        Check { what: what.into(), wanted: wanted.into(), found: String::new(), verdict, path: path.into() }
    }

    fn found(mut self, found: impl Into<String>, holds: bool) -> Check {
        self.found = found.into();
        self.verdict = if holds { BootVerdict::Holds } else { BootVerdict::Broken };
        self
    }

    fn cannot_tell(mut self, found: impl Into<String>, why: impl Into<String>) -> Check {
        self.found = found.into();
        self.verdict = BootVerdict::CannotTell { why: why.into() };
        self
    }
}

/// A one-line file, or why there is none.
fn text(source: &dyn Source, path: &str) -> Result<String, String> {
    match source.read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).trim().to_string()),
        Err(e) if e.kind == ErrorKind::Absent => Err("the kernel has no such file".into()),
        Err(e) => Err(e.detail),
    }
}

#[cfg(test)]
mod tests;

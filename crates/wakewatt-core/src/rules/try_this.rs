//! What would answer a question that could not be answered.

use crate::samples::worded::worded;
use std::fmt;
use wakewatt_words::{Language, within, word};

/// What would help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TryThis {
    /// Nothing, where the kernel or the machine does not have what the question is about.
    NothingHere,
    /// This: a sentence that begins with a verb.
    Do(String),
}

/// In documents it is the English.
fn nothing() -> &'static str {
    word!("nothing, if this kernel or machine does not have it; see wakewatt inspect")
}

impl TryThis {
    /// From a document.
    pub fn read(text: &str) -> TryThis {
        if text == within(Language::English, nothing) { TryThis::NothingHere } else { TryThis::Do(text.into()) }
    }
}

impl fmt::Display for TryThis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TryThis::NothingHere => nothing(),
            TryThis::Do(text) => text,
        })
    }
}

impl From<&str> for TryThis {
    fn from(text: &str) -> TryThis {
        TryThis::Do(text.into())
    }
}

impl From<String> for TryThis {
    fn from(text: String) -> TryThis {
        TryThis::Do(text)
    }
}

worded!(TryThis);

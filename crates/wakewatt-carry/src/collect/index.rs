//! The index of a collection: who was asked for what, who answered, into which file, and who did not and why.
//!
//! It is also how a collection goes on: what it calls whole, and what still has that length and checksum on disk, is not asked
//! for again. The checksum (CRC-32) finds what was cut or damaged; it proves nothing against somebody who means to deceive.

use super::what::What;
use crate::carrier::CarryError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The index of a collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Index {
    /// By which way the nodes were reached: ssh, kubernetes.
    pub carrier: String,
    /// When this collection was begun, in UTC.
    pub began_at: String,
    /// When this index was last written, in UTC.
    pub written_at: String,
    /// Are nodes called by numbers here, and is what carriers said left out?
    pub is_masked: bool,
    /// Has every node given everything it was asked for?
    pub is_complete: bool,
    /// What was asked of every node.
    pub asked: Vec<What>,
    /// The nodes, by name.
    pub nodes: BTreeMap<String, Collected>,
}

/// What came of one node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Collected {
    /// Labels of the cluster, or the groups it is in; empty where names are masked.
    pub labels: BTreeMap<String, String>,
    /// One for each thing asked, in its order.
    pub answers: Vec<Answer>,
}

/// What came of one thing asked of one node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// What was asked.
    pub what: What,
    /// When it came, or was given up, in UTC.
    pub at: String,
    /// How long that took, in milliseconds.
    pub took_ms: u64,
    /// What it came to.
    pub outcome: Outcome,
}

/// What an answer came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It is a file.
    Whole {
        /// Its name in the folder.
        file: String,
        /// Its length in bytes.
        bytes: u64,
        /// Its CRC-32, eight hexadecimal digits.
        crc32: String,
    },
    /// There is none.
    Missing {
        /// Of which sort the reason is.
        reason: Reason,
        /// The reason in words.
        why: String,
    },
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The carrier does not work here.
    Carrier,
    /// The node cannot be reached.
    Unreachable,
    /// No answer in time.
    TimedOut,
    /// Refused on the way.
    Refused,
    /// Longer than what is taken.
    TooLong,
    /// wakewatt could not do it there.
    Failed,
    /// What came is not what was asked for, or not all of it.
    NotWhole,
    /// It could not be written here.
    NotWritten,
    /// Not asked: the node did not answer what was asked before.
    NotAsked,
    /// Not asked: the collection was interrupted.
    Interrupted,
}

impl Reason {
    /// Of an error on the way.
    pub(super) fn of(error: &CarryError) -> Reason {
        match error {
            CarryError::Carrier { .. } => Reason::Carrier,
            CarryError::Unreachable { .. } => Reason::Unreachable,
            CarryError::TimedOut { .. } => Reason::TimedOut,
            CarryError::Refused { .. } => Reason::Refused,
            CarryError::TooLong { .. } => Reason::TooLong,
        }
    }

    /// Will the node be as silent to the next question?
    pub(super) fn is_of_the_way(self) -> bool {
        matches!(self, Reason::Carrier | Reason::Unreachable | Reason::TimedOut | Reason::Refused)
    }

    /// Without a name of anything.
    pub fn words(self) -> &'static str {
        match self {
            Reason::Carrier => "the carrier does not work here",
            Reason::Unreachable => "cannot be reached",
            Reason::TimedOut => "no answer in time",
            Reason::Refused => "refused on the way",
            Reason::TooLong => "the answer is longer than is taken",
            Reason::Failed => "wakewatt could not do it there",
            Reason::NotWhole => "what came is not whole",
            Reason::NotWritten => "could not be written here",
            Reason::NotAsked => "not asked, because it did not answer before",
            Reason::Interrupted => "not asked, because the collection was interrupted",
        }
    }
}

impl Index {
    /// The answer of a node to a question, where there is one.
    pub fn answer(&self, node: &str, what: What) -> Option<&Answer> {
        self.nodes.get(node)?.answers.iter().find(|a| a.what == what)
    }

    /// Answers that are files, and all that were asked for.
    pub fn n_whole_of(&self) -> (usize, usize) {
        let whole = self.answers().filter(|(_, a)| matches!(a.outcome, Outcome::Whole { .. })).count();
        (whole, self.nodes.len() * self.asked.len())
    }

    /// Bytes of all files.
    pub fn n_bytes(&self) -> u64 {
        let bytes = |a: &Answer| if let Outcome::Whole { bytes, .. } = a.outcome { bytes } else { 0 };
        self.answers().map(|(_, a)| bytes(a)).sum()
    }

    /// Every answer with its node.
    pub fn answers(&self) -> impl Iterator<Item = (&str, &Answer)> {
        self.nodes.iter().flat_map(|(name, node)| node.answers.iter().map(move |a| (name.as_str(), a)))
    }
}

/// The checksum as the index has it.
pub(super) fn checksum(bytes: &[u8]) -> String {
    format!("{:08x}", crc32fast::hash(bytes))
}

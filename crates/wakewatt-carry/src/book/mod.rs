//! Where it is written down how far a rollout has come, so that another operator sees it and a killed one can go on.

pub mod cluster;
pub mod folder;

use crate::node::NodeName;
use std::collections::BTreeMap;

/// Why the book could not be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BookError {
    /// Somebody else holds it.
    #[error("{place}: held by {holder}; one rollout at a time. If that one is dead, its hold ends by itself{}", until.as_ref().map_or(String::new(), |u| format!(" at {u}")))]
    Held {
        /// Where.
        place: String,
        /// Who, as they wrote it.
        holder: String,
        /// When the hold ends by itself, where it does.
        until: Option<String>,
    },
    /// Written by somebody else since it was read.
    #[error("{0}: was changed by somebody else meanwhile; nothing was written")]
    Changed(String),
    /// It cannot be read or written.
    #[error("{place}: {why}")]
    Broken {
        /// Where.
        place: String,
        /// What is wrong, and what to try.
        why: String,
    },
}

/// One rollout's state. A book that is open is held; dropping it lets it go.
pub trait Book {
    /// Where it is, for people: a folder, `configmap wakewatt/rollout`.
    fn place(&self) -> String;
    /// The state as last written; `None` before the first time.
    fn read(&mut self) -> Result<Option<Vec<u8>>, BookError>;
    /// The state, whole, durable when this returns. Renews the hold.
    fn write(&mut self, state: &[u8]) -> Result<(), BookError>;
    /// A line of the audit log, appended and durable: one JSON object without a line feed.
    fn audit(&mut self, line: &str) -> Result<(), BookError>;
    /// What is to be seen at a node itself (annotations); empty values take the key away. Nothing where nodes have none.
    fn annotate(&mut self, node: &NodeName, marks: &BTreeMap<String, String>) -> Result<(), BookError>;
    /// The hold must be renewed at least so often, in seconds; `None` where it does not end by itself. `renew` does it without a state.
    fn renew_every_s(&self) -> Option<u64> {
        None
    }
    /// Renews the hold; an error means it is lost, and nothing may be changed any more.
    fn renew(&mut self) -> Result<(), BookError> {
        Ok(())
    }
}

/// A rollout's id, where it can be a name.
fn id_of(state: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(state).ok()?;
    NodeName::new(value.get("id")?.as_str()?).ok().map(String::from)
}

//! Where Redfish documents come from, and why one does not: a trait over a BMC and over a folder that somebody recorded.

use serde_json::Value;
use wakewatt_host::bmc::BmcError;

/// Why there is no document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDocument {
    /// The service has none there (404), or the recording does not hold it.
    #[error("{0}: there is no such document")]
    Absent(String),
    /// This user may not see it.
    #[error("{0}: this user may not read it (HTTP status 403)")]
    Denied(String),
    /// Refused with another status.
    #[error("{path}: HTTP status {status}{}", if said.is_empty() { String::new() } else { format!(": {said}") })]
    Status {
        /// What was asked for.
        path: String,
        /// The HTTP status.
        status: u16,
        /// The BMC's own words, shown safely.
        said: String,
    },
    /// Not JSON.
    #[error("{0}: the answer is no JSON")]
    NotJson(String),
    /// It cannot be read: too long, a link that leaves the folder.
    #[error("{path}: {why}")]
    Unreadable {
        /// What was asked for.
        path: String,
        /// The system's words.
        why: String,
    },
    /// The BMC cannot be talked to.
    #[error(transparent)]
    Bmc(#[from] BmcError),
}

/// A document and its ETag.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// The document.
    pub json: Value,
    /// From the header, else from `@odata.etag`.
    pub etag: Option<String>,
}

/// Something that answers GET.
pub trait Service {
    /// The document at a path of this server.
    fn get(&mut self, path: &str) -> Result<Document, NoDocument>;
    /// What this is, for headings: a URL, a folder.
    fn origin(&self) -> String;
}

/// What was answered to a request that changes something.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Path of a job or task, if one of this server was named.
    pub location: Option<String>,
    /// The ids of messages, such as `Base.1.8.PropertyUnknown`.
    pub message_ids: Vec<String>,
    /// The BMC's own words, shown safely; empty where it says nothing.
    pub said: String,
}

impl Answer {
    /// Does its status say yes?
    pub fn is_yes(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Is one of its messages this, whatever registry and version it is of?
    pub fn has_message(&self, name: &str) -> bool {
        self.message_ids.iter().any(|id| id.rsplit('.').next() == Some(name))
    }
}

/// Something that can be changed.
pub trait Change: Service {
    /// PATCHes a document, on the condition that it is still this one.
    fn patch(&mut self, path: &str, body: &str, if_match: Option<&str>) -> Result<Answer, BmcError>;
    /// POSTs: never with a condition (BMCs answer 412 to that).
    fn post(&mut self, path: &str, body: &str) -> Result<Answer, BmcError>;
    /// Deletes a job or task.
    fn delete(&mut self, path: &str) -> Result<Answer, BmcError>;
}

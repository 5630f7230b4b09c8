//! What goes to and fro: a request, an answer, and values by name.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Values by name.
pub type Attributes = Map<String, Value>;

/// A request.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    /// Names in small letters.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Option<Value>,
}

impl Reply {
    pub(super) fn of(status: u16, body: Value) -> Reply {
        Reply { status, headers: Vec::new(), body: Some(body) }
    }
    pub(super) fn error(status: u16, id: &str, message: &str) -> Reply {
        Reply::of(
            status,
            json!({ "error": { "code": "Base.1.12.GeneralError", "message": "An error.",
            "@Message.ExtendedInfo": [{ "MessageId": id, "Message": message }] } }),
        )
    }
    pub(super) fn empty(status: u16) -> Reply {
        Reply { status, headers: Vec::new(), body: None }
    }
    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Reply {
        self.headers.push((name, value.into()));
        self
    }
}

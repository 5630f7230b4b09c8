//! Questions to the API server, and its answers as types: done, refused for a reason, or nobody there.
//!
//! Nobody there is worth asking again until the time is up: an API server that is restarted, a proxy that lost its way, a
//! server that says "too much, later". Refused is not. What a refusal of permission needs is the line that shows it
//! (`kubectl auth can-i …`), so every request says what it is in the words of RBAC.

use super::door::{Door, Kubectl};
use super::http::Request;
use serde_json::Value;
use std::io::{self, ErrorKind};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use wakewatt_core::visible;

/// Largest document taken: five thousand nodes are about 60 MB, asked for in pages of 250.
const LARGEST: usize = 32 << 20;
/// Longest that one request takes, of those that do not stay open.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a server that was away may refuse by mistake.
const WARMING_UP: Duration = Duration::from_secs(20);
/// Between two tries, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// What a request is, in the words of RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right<'a> {
    /// get, list, create, update, patch, delete.
    pub verb: &'static str,
    /// `jobs.batch`, `pods/log`.
    pub resource: &'static str,
    /// None for what the whole cluster has.
    pub namespace: Option<&'a str>,
}

impl Right<'_> {
    /// The line that asks whether one has it.
    pub fn question(&self) -> String {
        let (resource, sub) = self.resource.split_once('/').unwrap_or((self.resource, ""));
        let sub = if sub.is_empty() { String::new() } else { format!(" --subresource={sub}") };
        let namespace = self.namespace.map(|n| format!(" --namespace {n}")).unwrap_or_default();
        format!("kubectl auth can-i {} {resource}{sub}{namespace}", self.verb)
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// Nobody answered in time; whether the request was carried out cannot be told.
    #[error("the API server does not answer: {0}")]
    Away(String),
    /// No right to.
    #[error("{said}; ask: {question}")]
    Forbidden {
        /// The server's words.
        said: String,
        /// The line that asks for the right.
        question: String,
    },
    /// There is no such thing.
    #[error("not found: {0}")]
    Missing(String),
    /// It is there already, or was changed meanwhile.
    #[error("{0}")]
    Conflict(String),
    /// Any other refusal.
    #[error("HTTP status {status}: {said}")]
    Refused {
        /// Its number.
        status: u16,
        /// The server's words.
        said: String,
    },
    /// Longer than what is taken, or no JSON.
    #[error("{0}")]
    Unreadable(&'static str),
    /// kubectl cannot be started.
    #[error("{0}")]
    NoWay(String),
}

/// Is it the name of an object (RFC 1123)? What goes into a path must be nothing else.
pub fn is_name(text: &str) -> bool {
    let is_edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let is_inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'.');
    text.len() <= 200 && is_edge(text.bytes().next()) && is_edge(text.bytes().last()) && text.bytes().all(is_inside)
}

/// What is sent along.
#[derive(Clone, Copy, Debug)]
pub enum Body<'a> {
    /// Nothing.
    None,
    /// An object.
    Object(&'a Value),
    /// What is to be merged into an object; null takes away.
    Merge(&'a Value),
}

/// The API server.
#[derive(Debug)]
pub struct Api {
    door: Door,
    away: Mutex<Option<Instant>>,
}

impl Api {
    /// Through this kubectl, started when first needed.
    pub fn new(kubectl: Kubectl) -> Api {
        Api { door: Door::new(kubectl), away: Mutex::new(None) }
    }

    /// Asks, and again while nobody is there and time is left. Not for what may be done twice by that.
    pub fn ask(&self, right: Right<'_>, path: &str, body: Body<'_>, until: Instant) -> Result<Value, ApiError> {
        let mut pause = PAUSE.0;
        loop {
            let error = match self.ask_once(right, path, body, until) {
                Err(error @ ApiError::Away(_)) => {
                    if let Ok(mut away) = self.away.lock() {
                        *away = Some(Instant::now());
                    }
                    error
                }
                // A server that has just started refuses everybody until it has read its rules.
                Err(error @ ApiError::Forbidden { .. }) if self.has_just_come_back() => error,
                other => return other,
            };
            if Instant::now() + pause >= until {
                return Err(error);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE.1);
        }
    }

    fn has_just_come_back(&self) -> bool {
        self.away.lock().is_ok_and(|away| away.is_some_and(|at| at.elapsed() < WARMING_UP))
    }

    /// Asks once.
    pub fn ask_once(&self, right: Right<'_>, path: &str, body: Body<'_>, until: Instant) -> Result<Value, ApiError> {
        let until = until.min(Instant::now() + PATIENCE);
        let (content_type, bytes) = match body {
            Body::None => ("", Vec::new()),
            Body::Object(value) => ("application/json", value.to_string().into_bytes()),
            Body::Merge(value) => ("application/merge-patch+json", value.to_string().into_bytes()),
        };
        let request = Request { method: method(right.verb), path, content_type, body: &bytes };
        let answer = self.door.ask(request, until).map_err(|e| self.no_answer(&e))?;
        let status = answer.status;
        let bytes = answer.whole(LARGEST).map_err(|e| self.no_answer(&e))?;
        let bytes = bytes.ok_or(ApiError::Unreadable("an answer of more than 32 MiB"))?;
        let document: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        match refusal(status, &document, &bytes, right) {
            Some(error) => Err(error),
            None if document.is_null() => Err(ApiError::Unreadable("an answer that is no JSON")),
            None => Ok(document),
        }
    }

    /// The log of a pod from its beginning, as it grows, until its end or the deadline.
    pub(super) fn follow(&self, right: Right<'_>, path: &str, until: Instant) -> Result<super::http::Answer, ApiError> {
        let request = Request { method: "GET", path, content_type: "", body: b"" };
        let answer = self.door.ask(request, until).map_err(|e| self.no_answer(&e))?;
        if answer.status == 200 {
            return Ok(answer);
        }
        let status = answer.status;
        let bytes = answer.whole(64 << 10).ok().flatten().unwrap_or_default();
        let document = serde_json::from_slice(&bytes).unwrap_or_default();
        let error = refusal(status, &document, &bytes, right).unwrap_or(ApiError::Unreadable("an unexpected answer"));
        let is_early = matches!(error, ApiError::Forbidden { .. }) && self.has_just_come_back();
        Err(if is_early { ApiError::Away(error.to_string()) } else { error })
    }

    fn no_answer(&self, error: &io::Error) -> ApiError {
        match error.kind() {
            // What our own side cannot do: no kubectl, or one that ends at once.
            ErrorKind::Other => ApiError::NoWay(error.to_string()),
            _ => {
                let words = self.door.last_words();
                let tail = if words.is_empty() { words } else { format!(" ({words})") };
                ApiError::Away(format!("{error}{tail}"))
            }
        }
    }
}

fn method(verb: &str) -> &'static str {
    match verb {
        "create" => "POST",
        "update" => "PUT",
        "patch" => "PATCH",
        "delete" => "DELETE",
        _ => "GET",
    }
}

/// What a status means; none for success.
fn refusal(status: u16, document: &Value, bytes: &[u8], right: Right<'_>) -> Option<ApiError> {
    let said = document["message"].as_str().map_or_else(|| String::from_utf8_lossy(bytes), Into::into);
    let said: String = visible::line(said.trim()).chars().take(500).collect();
    match status {
        200..300 => None,
        401 | 403 => Some(ApiError::Forbidden { said, question: right.question() }),
        404 => Some(ApiError::Missing(said)),
        409 => Some(ApiError::Conflict(said)),
        // The server or the proxy in front of it: later.
        429 | 500..600 => Some(ApiError::Away(format!("HTTP status {status}: {said}"))),
        _ => Some(ApiError::Refused { status, said }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_more_than_a_name_in_a_path_is_none() {
        for bad in ["", "A", "a/b", "..", "-a", "a b", "a?b", "a%2f", "ä"] {
            assert!(!is_name(bad), "{bad}");
        }
        assert!(is_name("rollout-2026.11") && is_name("w"));
    }

    #[test]
    fn a_refusal_of_permission_names_the_line_that_shows_it() {
        let right = |resource, namespace| Right { verb: "create", resource, namespace };
        assert_eq!(
            right("jobs.batch", Some("wakewatt")).question(),
            "kubectl auth can-i create jobs.batch --namespace wakewatt"
        );
        assert_eq!(right("nodes", None).question(), "kubectl auth can-i create nodes");
        let log = Right { verb: "get", resource: "pods/log", namespace: Some("x") };
        assert_eq!(log.question(), "kubectl auth can-i get pods --subresource=log --namespace x");
        let status = |status| refusal(status, &serde_json::json!({"message": "no\u{1b}"}), b"", log);
        assert_eq!(status(201), None);
        assert!(matches!(status(403), Some(ApiError::Forbidden { said, .. }) if said == "no\\x1b"));
        assert!(matches!(status(502), Some(ApiError::Away(_))));
        assert!(matches!(status(409), Some(ApiError::Conflict(_))));
        assert!(matches!(status(422), Some(ApiError::Refused { status: 422, .. })));
    }
}

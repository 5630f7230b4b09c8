//! The page `/` and the documents of `/api/v1`: this node now, and what it has been.
//!
//! How the page looks is lent by the caller, whose report has the style. It is made once for each reading, the past is read from the disk at most once
//! a minute, and by one request at a time, so that who asks a lot costs little.

use super::admission::Admission;
use crate::engine::Ask;
use crate::node::Node;
use crate::node::past::Past;
use axum::body::Bytes;
use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Sender;

/// Makes the page; the error says why not.
pub type PageMaker = Arc<dyn Fn(&Node, &Past) -> Result<String, String> + Send + Sync>;

/// The past is read again after this.
const PAST_FRESH: Duration = Duration::from_secs(60);

/// What all requests share.
pub(crate) struct Shared {
    /// To what reads.
    pub asks: Sender<Ask>,
    /// Makes the page.
    pub maker: PageMaker,
    /// The version that documents name.
    pub version: &'static str,
    /// What is asked of those who ask.
    pub admission: Admission,
    /// Where the past is kept; none where it is not.
    pub history: Option<PathBuf>,
    past: tokio::sync::Mutex<Option<(Instant, Arc<Past>)>>,
    page: Mutex<Option<Made>>,
}

/// A page and what it was made of.
#[derive(Clone)]
struct Made {
    node: Arc<Node>,
    past: Arc<Past>,
    bytes: Bytes,
}

impl Shared {
    pub(crate) fn new(
        asks: Sender<Ask>,
        maker: PageMaker,
        admission: Admission,
        version: &'static str,
        history: Option<PathBuf>,
    ) -> Arc<Shared> {
        let (past, page) = (tokio::sync::Mutex::default(), Mutex::default());
        Arc::new(Shared { asks, maker, version, admission, history, past, page })
    }

    /// The last hours, a minute old at most.
    pub(super) async fn past(&self) -> Arc<Past> {
        let Some(folder) = self.history.clone() else {
            return Arc::new(Past::none("the agent runs without --history"));
        };
        // Who comes while it is read waits for the same answer.
        let mut held = self.past.lock().await;
        if let Some((_, past)) = held.as_ref().filter(|(at, _)| at.elapsed() < PAST_FRESH) {
            return Arc::clone(past);
        }
        let now_ms = wakewatt_host::clock::realtime_ns() / 1_000_000;
        let read = tokio::task::spawn_blocking(move || Past::read(&folder, now_ms)).await;
        let past = Arc::new(read.unwrap_or_else(|_| Past::none("reading the history failed")));
        *held = Some((Instant::now(), Arc::clone(&past)));
        past
    }

    /// The page of this reading.
    pub(super) fn page(&self, node: &Arc<Node>, past: &Arc<Past>) -> Response {
        // Whatever panicked while it held this left a whole page or none.
        let mut held = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |made: &&Made| Arc::ptr_eq(&made.node, node) && Arc::ptr_eq(&made.past, past);
        if let Some(made) = held.as_ref().filter(is_it) {
            return html(made.bytes.clone());
        }
        match (self.maker)(node, past) {
            Ok(text) => {
                let made = Made { node: Arc::clone(node), past: Arc::clone(past), bytes: Bytes::from(text) };
                let bytes = made.bytes.clone();
                *held = Some(made);
                html(bytes)
            }
            Err(why) => {
                (StatusCode::INTERNAL_SERVER_ERROR, format!("the page could not be made: {why}\n")).into_response()
            }
        }
    }

    /// A document with its schema's name first.
    pub(super) fn document(&self, name: &str, body: &impl Serialize) -> Response {
        #[derive(Serialize)]
        struct Envelope<'a, T> {
            schema: &'a str,
            wakewatt: &'a str,
            #[serde(flatten)]
            body: &'a T,
        }
        let envelope = Envelope { schema: &format!("wakewatt/{name}/v1"), wakewatt: self.version, body };
        let mut answer = axum::Json(envelope).into_response();
        answer.headers_mut().insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
        answer
    }
}

/// Even if foreign text became markup, the browser would load and run nothing.
fn html(bytes: Bytes) -> Response {
    const POLICY: &str =
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
    let said: [(HeaderName, &str); 5] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (said, bytes).into_response()
}

//! What can be asked: `/`, `/metrics`, `/healthz`, `/api/v1/node`, `/api/v1/past`, `/api/v1/now`.

use super::page::Shared;
use crate::engine::Ask;
use crate::format::Format;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::Duration;
use tokio::sync::oneshot;

/// A reading takes milliseconds; a machine that hangs shall not hang its asker.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// For whom a certificate has let in: that no page elsewhere has.
pub(super) fn known(shared: Arc<Shared>) -> Router {
    pages().with_state(shared)
}

/// For everybody else.
pub(super) fn stranger(shared: Arc<Shared>) -> Router {
    let admission = shared.admission.clone();
    // A page elsewhere does not know the token, whatever name it asks by.
    let guarded = if admission.has_token() {
        pages().layer(axum::middleware::from_fn_with_state(admission, super::admission::look))
    } else {
        pages().layer(axum::middleware::from_fn(super::hosts::look))
    };
    guarded.with_state(shared)
}

fn pages() -> Router<Arc<Shared>> {
    Router::new()
        .route("/", get(page))
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .route("/api/v1/node", get(node))
        .route("/api/v1/past", get(past))
        .route("/api/v1/now", get(now))
        .fallback(|| async { StatusCode::NOT_FOUND })
}

/// The engine's answer, or why there is none.
async fn asked<T>(asks: &SyncSender<Ask>, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Response> {
    let not_now = |why: &'static str| (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    let late = || not_now("the machine could not be read in time\n");
    let (answer, answered) = oneshot::channel();
    asks.try_send(ask(answer)).map_err(|why| match why {
        TrySendError::Full(_) => not_now("too many questions wait for a reading already; ask again later\n"),
        TrySendError::Disconnected(_) => late(),
    })?;
    match tokio::time::timeout(ANSWER_TIME, answered).await {
        Ok(Ok(found)) => Ok(found),
        _ => Err(late()),
    }
}

async fn page(State(shared): State<Arc<Shared>>) -> Result<Response, Response> {
    let node = asked(&shared.asks, Ask::Node).await?;
    let past = shared.past().await;
    Ok(shared.page(&node, &past))
}

async fn metrics(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Result<Response, Response> {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let format = Format::accepted(accept);
    let page = asked(&shared.asks, Ask::Page).await?;
    Ok(([(header::CONTENT_TYPE, format.content_type())], page.bytes(format)).into_response())
}

/// Does the thread that reads still answer?
async fn health(State(shared): State<Arc<Shared>>) -> Result<&'static str, Response> {
    asked(&shared.asks, Ask::Page).await.map(|_| "ok\n")
}

async fn node(State(shared): State<Arc<Shared>>) -> Result<Response, Response> {
    let node = asked(&shared.asks, Ask::Node).await?;
    Ok(shared.document("agent-node", &*node))
}

async fn past(State(shared): State<Arc<Shared>>) -> Response {
    shared.document("agent-past", &*shared.past().await)
}

/// Every CPU, as `watch --json` says it.
async fn now(State(shared): State<Arc<Shared>>) -> Result<Response, Response> {
    let rates = asked(&shared.asks, Ask::Rates).await?;
    let too_early = || (StatusCode::SERVICE_UNAVAILABLE, "rates need a second reading; ask again\n").into_response();
    Ok(shared.document("watch", &*rates.ok_or_else(too_early)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn who_finds_the_queue_full_is_told_at_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (asks, asked_for) = sync_channel(2);
        let begun = std::time::Instant::now();
        for _ in 0..2 {
            asks.try_send(Ask::Stop).unwrap();
        }
        let status = || runtime.block_on(asked(&asks, Ask::Page)).err().map(|response| response.status());
        assert_eq!(status(), Some(StatusCode::SERVICE_UNAVAILABLE));
        assert!(begun.elapsed() < ANSWER_TIME, "nobody waited");
        drop(asked_for);
        assert_eq!(status(), Some(StatusCode::SERVICE_UNAVAILABLE), "nobody reads any more");
    }
}

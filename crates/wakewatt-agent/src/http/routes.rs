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
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::oneshot;

/// For whoever has been let in.
pub(super) fn pages(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .route("/api/v1/node", get(node))
        .route("/api/v1/past", get(past))
        .route("/api/v1/now", get(now))
        .fallback(|| async { StatusCode::NOT_FOUND })
        .with_state(shared)
}

/// The engine's answer, or why there is none.
async fn asked<T>(asks: &Sender<Ask>, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Response> {
    let not_now = |why: &'static str| (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    let ended = || not_now("nobody reads this machine any more\n");
    let (answer, answered) = oneshot::channel();
    asks.try_send(ask(answer)).map_err(|why| match why {
        TrySendError::Full(_) => not_now("too many questions wait for a reading already; ask again later\n"),
        TrySendError::Closed(_) => ended(),
    })?;
    answered.await.map_err(|_| ended())
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

/// Is the machine still read?
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

    #[test]
    fn who_finds_the_queue_full_is_told_at_once() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (asks, asked_for) = tokio::sync::mpsc::channel(2);
        for _ in 0..2 {
            asks.try_send(Ask::Stop).unwrap();
        }
        let status = || runtime.block_on(asked(&asks, Ask::Page)).err().map(|response| response.status());
        assert_eq!(status(), Some(StatusCode::SERVICE_UNAVAILABLE));
        drop(asked_for);
        assert_eq!(status(), Some(StatusCode::SERVICE_UNAVAILABLE), "nobody reads any more");
    }
}

//! What can be asked: `/metrics`, `/healthz`, `/api/v1/now`.

use crate::engine::Ask;
use crate::format::Format;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::mpsc::Sender;
use std::time::Duration;
use tokio::sync::oneshot;

/// A reading takes milliseconds; a machine that hangs shall not hang its asker.
const ANSWER_TIME: Duration = Duration::from_secs(10);

pub(super) fn router(asks: Sender<Ask>) -> Router {
    Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(health))
        .route("/api/v1/now", get(now))
        .with_state(asks)
}

/// The engine's answer, or why there is none.
async fn asked<T>(asks: &Sender<Ask>, ask: impl FnOnce(oneshot::Sender<T>) -> Ask) -> Result<T, Response> {
    let late = || (StatusCode::SERVICE_UNAVAILABLE, "the machine could not be read in time\n").into_response();
    let (answer, answered) = oneshot::channel();
    asks.send(ask(answer)).map_err(|_| late())?;
    match tokio::time::timeout(ANSWER_TIME, answered).await {
        Ok(Ok(found)) => Ok(found),
        _ => Err(late()),
    }
}

async fn metrics(State(asks): State<Sender<Ask>>, headers: HeaderMap) -> Response {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    let format = Format::accepted(accept);
    match asked(&asks, Ask::Page).await {
        Ok(page) => ([(header::CONTENT_TYPE, format.content_type())], format.write(&page)).into_response(),
        Err(late) => late,
    }
}

/// Does the thread that reads still answer?
async fn health(State(asks): State<Sender<Ask>>) -> Response {
    match asked(&asks, Ask::Page).await {
        Ok(_) => "ok\n".into_response(),
        Err(late) => late,
    }
}

async fn now(State(asks): State<Sender<Ask>>) -> Response {
    match asked(&asks, Ask::Rates).await {
        Ok(Some(rates)) => axum::Json(&*rates).into_response(),
        Ok(None) => (StatusCode::SERVICE_UNAVAILABLE, "rates need a second reading; ask again\n").into_response(),
        Err(late) => late,
    }
}

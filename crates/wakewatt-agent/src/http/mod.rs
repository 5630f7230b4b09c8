//! The way in: a few pages over HTTP/1.1, with a limit on everything that somebody else can make large.
//!
//! Connections (64), size of a request's head (16 KiB, 32 lines), time for the head (5 s), time for a connection (30 s), questions that wait (64), no bodies. One
//! thread; what is slow is the reading, which has its own.

mod admission;
mod door;
mod hosts;
mod page;
mod routes;
mod tls;

pub use admission::{Admission, AdmissionError};
pub use door::Door;
pub use page::PageMaker;
pub(crate) use page::Shared;
pub use tls::{Files, TlsError};

use axum::Router;
use door::Came;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

/// Connections at once; more wait to be accepted.
const MOST_CONNECTIONS: usize = 64;
/// For the first line and the headers, and before them for agreeing on keys.
const HEAD_TIME: Duration = Duration::from_secs(5);
const HEAD_BYTES: usize = 16 * 1024;
const HEAD_LINES: usize = 32;
/// For all requests of one connection.
const CONNECTION_TIME: Duration = Duration::from_secs(30);
/// After a failed accept (no more files): a moment, not a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves until `stop` is done.
pub(crate) async fn serve(door: Door, shared: Arc<Shared>, stop: impl Future<Output = ()>) -> std::io::Result<()> {
    let admission = shared.admission.clone();
    let routers = Routers::new(&shared);
    let door = door.open()?;
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    tokio::pin!(stop);
    loop {
        let permit = tokio::select! {
            permit = Arc::clone(&room).acquire_owned() => permit,
            () = &mut stop => return Ok(()),
        };
        let Ok(permit) = permit else { return Ok(()) };
        let accepted = tokio::select! {
            accepted = door.accept() => accepted,
            () = &mut stop => return Ok(()),
        };
        match accepted {
            Ok(Came::Near(stream)) => {
                let router = routers.stranger.clone();
                tokio::spawn(async move {
                    connection(stream, router).await;
                    drop(permit);
                });
            }
            Ok(Came::Far(stream)) => {
                let (routers, acceptor) = (routers.clone(), admission.acceptor());
                tokio::spawn(async move {
                    match acceptor {
                        None => connection(stream, routers.stranger).await,
                        // Whoever does not speak TLS, or takes too long over it, is not answered.
                        Some(acceptor) => {
                            if let Ok(Ok(stream)) = tokio::time::timeout(HEAD_TIME, acceptor.accept(stream)).await {
                                // A certificate that was shown has been looked at.
                                let is_known = stream.get_ref().1.peer_certificates().is_some();
                                connection(stream, if is_known { routers.known } else { routers.stranger }).await;
                            }
                        }
                    }
                    drop(permit);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// What is answered to whom.
#[derive(Clone)]
struct Routers {
    /// Who showed a certificate.
    known: Router,
    /// Everybody else.
    stranger: Router,
}

impl Routers {
    fn new(shared: &Arc<Shared>) -> Routers {
        Routers { known: routes::known(Arc::clone(shared)), stranger: routes::stranger(Arc::clone(shared)) }
    }
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, router: Router) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_LINES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // How a stranger's connection ends is his business.
    let _ = tokio::time::timeout(CONNECTION_TIME, served).await;
}

/// May this address be listened on without encryption and a password? Only where nobody else can reach it.
pub fn is_private(address: &SocketAddr) -> bool {
    address.ip().is_loopback()
}

//! The way in: a few pages over HTTP/1.1, with a limit on everything that somebody else can make large.
//!
//! Connections (64), size of a request's head (16 KiB, 32 lines), time for the first head (5 s), for an answer (30 s; 3 minutes on a connection that is kept), between an
//! answer and the next question (3 minutes), questions that wait (64), no bodies. After an hour an answer is a connection's last. A kept connection
//! saves making one for each scrape (a tenth to a sixth of its CPU time on one guest), and wakes nobody but once in those minutes. Where all places are taken one goes to whoever comes, from whoever has
//! asked nothing for longest, and each answer is the last of its connection. The thread that answers also reads (`engine`): while a reading lasts nobody is answered and no limit is
//! looked at, and who asked meanwhile is looked at before who is silent.

mod admission;
mod door;
mod hosts;
mod page;
mod places;
mod routes;
mod tls;

pub use admission::{Admission, AdmissionError};
pub use door::Door;
pub use page::PageMaker;
pub(crate) use page::Shared;
pub use tls::{Files, TlsError};

use axum::Router;
use axum::response::Response;
use door::Came;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use places::{Place, Places, Terms};
use std::future::Future;
use std::net::SocketAddr;
use std::ops::ControlFlow::{Break, Continue};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// For the first line and the headers, and before them for agreeing on keys.
const HEAD_TIME: Duration = Duration::from_secs(5);
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Longer than anybody waits from scrape to scrape.
const BETWEEN: Duration = Duration::from_secs(180);
const CONNECTION_TIME: Duration = Duration::from_secs(3600);
/// Who has asked nothing after so long may be sent away for somebody else: a program sends its question with its first packet.
const PATIENCE: Duration = Duration::from_millis(250);
const TERMS: Terms = Terms {
    most: 64,
    patience: PATIENCE,
    head: HEAD_TIME,
    answer: ANSWER_TIME,
    between: BETWEEN,
    whole: CONNECTION_TIME,
};
const HEAD_BYTES: usize = 16 * 1024;
const HEAD_LINES: usize = 32;
/// After a failed accept (no more files): a moment, not a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves until `stop` is done.
pub(crate) async fn serve(door: Door, shared: Arc<Shared>, stop: impl Future<Output = ()>) -> std::io::Result<()> {
    let admission = shared.admission.clone();
    let house = House { pages: routes::pages(Arc::clone(&shared)), guard: Guard::of(&admission) };
    let door = door.open()?;
    let places = Places::new(TERMS);
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            accepted = door.accept() => accepted,
            () = &mut stop => return Ok(()),
        };
        // Somebody is there: now one may have to leave.
        let place = tokio::select! {
            place = places.take() => places.sit(place),
            () = &mut stop => return Ok(()),
        };
        match accepted {
            Ok(Came::Near(stream)) => {
                let house = house.clone();
                tokio::spawn(async move { place.within(connection(stream, house, &place)).await });
            }
            Ok(Came::Far(stream)) => {
                let (house, acceptor) = (house.clone(), admission.acceptor());
                tokio::spawn(async move {
                    let served = async {
                        match acceptor {
                            None => connection(stream, house, &place).await,
                            // Whoever does not speak TLS is not answered.
                            Some(acceptor) => {
                                if let Ok(stream) = acceptor.accept(stream).await {
                                    // A certificate that was shown has been looked at.
                                    let is_known = stream.get_ref().1.peer_certificates().is_some();
                                    let house = if is_known { House { guard: Guard::None, ..house } } else { house };
                                    connection(stream, house, &place).await;
                                }
                            }
                        }
                    };
                    place.within(served).await;
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// What is answered, and who looks at who asks.
#[derive(Clone)]
struct House {
    pages: Router,
    guard: Guard,
}

/// What is asked of who asks.
#[derive(Clone)]
enum Guard {
    /// Nothing: a certificate has let him in, which no page elsewhere has.
    None,
    /// The token. A page elsewhere does not know it, whatever name it asks by.
    Token(Admission),
    /// To ask by an address.
    Host,
}

impl Guard {
    fn of(admission: &Admission) -> Guard {
        if admission.has_token() { Guard::Token(admission.clone()) } else { Guard::Host }
    }

    /// Before anything is made of a question.
    fn refusal(&self, request: &Request<Incoming>) -> Option<Response> {
        match self {
            Guard::None => None,
            Guard::Token(admission) => admission::refusal(admission, request),
            Guard::Host => hosts::refusal(request),
        }
    }
}

async fn connection(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, house: House, place: &Place) {
    let (pages, guard) = (TowerToHyperService::new(house.pages), house.guard);
    let answered = service_fn(|request: Request<Incoming>| {
        place.has_asked();
        let asked = guard.refusal(&request).map_or_else(|| Continue(pages.call(request)), Break);
        async move {
            let mut answer = match asked {
                Continue(asked) => asked.await,
                Break(refused) => Ok(refused),
            };
            let is_last = place.has_answer();
            if let Ok(answer) = &mut answer {
                // Who shows nothing has no connection kept for him.
                if is_last || answer.status() == StatusCode::UNAUTHORIZED {
                    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
            }
            answer
        }
    });
    // The place has the clock: one timer, where the library would set one for the head and another for each head after it.
    let served = http1::Builder::new()
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES)
        .max_headers(HEAD_LINES)
        .serve_connection(TokioIo::new(stream), answered);
    // How a stranger's connection ends is his business.
    let _ = served.await;
}

/// May this address be listened on without encryption and a password? Only where nobody else can reach it.
pub fn is_private(address: &SocketAddr) -> bool {
    address.ip().is_loopback()
}

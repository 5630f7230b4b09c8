//! One client's connection: HTTP/1.1 that stays open, through hyper.
//!
//! A connection that the server has closed meanwhile is opened anew before the request, which costs that request its time,
//! as it would a browser. A request that was sent and got no answer is never sent again: it is a failure.

use super::mix::Request;
use http_body_util::{BodyExt, Full};
use hyper::Uri;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Whom to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// What the Host header says.
    pub host: String,
    /// Addresses, in the order to try; the first that answered at the start.
    pub at: SocketAddr,
    /// Before every path: empty, or `/shop`.
    pub prefix: String,
}

/// Why there was no good answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    /// No connection.
    Refused,
    /// The connection broke, or what came was not HTTP.
    Broken,
    /// Too late.
    Timeout,
    /// A status of 400 or more.
    Status(u16),
    /// Not finished when the level ended.
    Unfinished,
}

impl Failure {
    /// For people.
    pub fn word(self) -> String {
        match self {
            Failure::Refused => "no connection".into(),
            Failure::Broken => "connection broken".into(),
            Failure::Timeout => "timeout".into(),
            Failure::Status(status) => format!("status {status}"),
            Failure::Unfinished => "unfinished".into(),
        }
    }
}

/// A connection, open or not yet.
#[derive(Debug, Default)]
pub struct Connection(Option<SendRequest<Full<Bytes>>>);

impl Connection {
    /// Asks for a page and reads all of it; the status is below 400.
    pub async fn ask(&mut self, target: &Target, request: &Request) -> Result<(), Failure> {
        let done = self.try_ask(target, request).await;
        if matches!(done, Err(Failure::Refused | Failure::Broken)) {
            self.close();
        }
        done
    }

    /// Drops it: after a timeout an answer may still come, which belongs to nobody.
    pub fn close(&mut self) {
        self.0 = None;
    }

    async fn try_ask(&mut self, target: &Target, request: &Request) -> Result<(), Failure> {
        let mut sender = match still_open(self.0.take()).await {
            Some(open) => open,
            None => open(target).await?,
        };
        let uri: Uri = format!("{}{}", target.prefix, request.path).parse().map_err(|_| Failure::Broken)?;
        let mut made = hyper::Request::builder()
            .method(request.method.clone())
            .uri(uri)
            .header(HOST, &target.host)
            .header(USER_AGENT, concat!("wakewatt/", env!("CARGO_PKG_VERSION")));
        if let Some(kind) = &request.content_type {
            made = made.header(CONTENT_TYPE, kind);
        }
        let made = made.body(Full::from(request.body.clone())).map_err(|_| Failure::Broken)?;
        let mut answer = sender.send_request(made).await.map_err(|_| Failure::Broken)?;
        while let Some(frame) = answer.body_mut().frame().await {
            frame.map_err(|_| Failure::Broken)?;
        }
        self.0 = Some(sender);
        match answer.status().as_u16() {
            status @ 400.. => Err(Failure::Status(status)),
            _ => Ok(()),
        }
    }
}

async fn still_open(sender: Option<SendRequest<Full<Bytes>>>) -> Option<SendRequest<Full<Bytes>>> {
    let mut sender = sender?;
    sender.ready().await.is_ok().then_some(sender)
}

async fn open(target: &Target) -> Result<SendRequest<Full<Bytes>>, Failure> {
    #[allow(clippy::disallowed_methods)] // An address, not a name.
    let stream = TcpStream::connect(target.at).await.map_err(|_| Failure::Refused)?;
    // A request is one small write; without this the next would wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|_| Failure::Broken)?;
    // Ends by itself when the sender is dropped or the server closes.
    tokio::task::spawn_local(async move { drop(connection.await) });
    Ok(sender)
}

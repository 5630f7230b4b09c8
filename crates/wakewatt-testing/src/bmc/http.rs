//! Just enough HTTP for one request on a connection.

use super::message::{Reply, Request};
use super::state::State;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Longer requests are not for this.
const MAX_BODY: usize = 1 << 20;

pub(super) fn serve(stream: TcpStream, state: &Mutex<State>) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(10)));
    let mut reader = BufReader::new(stream);
    let Some(request) = read(&mut reader) else { return };
    let reply = state.lock().unwrap_or_else(PoisonError::into_inner).answer(&request);
    write(reader.into_inner(), &reply);
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let mut request = Request { method: words.next()?.into(), path: words.next()?.into(), ..Request::default() };
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? <= 2 {
            break;
        }
        let (name, value) = line.split_once(':')?;
        request.headers.insert(name.trim().to_ascii_lowercase(), value.trim().into());
    }
    let length: usize = request.headers.get("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
    request.body = vec![0; length.min(MAX_BODY)];
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn write(mut stream: TcpStream, reply: &Reply) {
    let mut head = format!("HTTP/1.1 {} X\r\nContent-Type: application/json\r\nConnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let body = reply.body.as_ref().map(ToString::to_string).unwrap_or_default();
    head.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    let _ = stream.write_all(head.as_bytes());
}

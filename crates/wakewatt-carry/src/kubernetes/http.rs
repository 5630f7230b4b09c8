//! HTTP/1.1 to `kubectl proxy` over its socket: one request a connection, every read within a deadline, nothing held that is too long.
//!
//! kubectl speaks TLS, finds the credentials and renews them; what is left for us is a plain request on a socket that only
//! this user reaches. So this is short: a status, two ways of saying where the body ends, and a reader for the log of a pod
//! that is still being written. The far side is not trusted to be brief: headers, chunks and bodies have limits.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest line of a header or of a chunk's size.
const LONGEST_LINE: u64 = 16 << 10;
/// Most lines of headers.
const MOST_HEADERS: usize = 200;

/// A request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) method: &'static str,
    /// With its question mark and what follows.
    pub(super) path: &'a str,
    pub(super) content_type: &'static str,
    pub(super) body: &'a [u8],
}

/// A connection whose reads and writes end at one moment.
struct Deadlined {
    socket: UnixStream,
    until: Instant,
}

impl Deadlined {
    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

impl Read for Deadlined {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.socket.set_read_timeout(Some(self.left()?))?;
        self.socket.read(into).map_err(late)
    }
}

/// A timeout of a socket is called "would block" by the system.
fn late(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

/// Where the body ends.
enum Ends {
    /// After so many bytes.
    After(u64),
    /// Pieces with their sizes; what is left of this one; none before the first.
    Chunks(Option<u64>),
    /// It has ended.
    Now,
    /// With the connection.
    Close,
}

/// An answer whose body is still to be read.
pub(super) struct Answer {
    pub(super) status: u16,
    ends: Ends,
    from: BufReader<Deadlined>,
}

/// Asks. The deadline holds for the body, too.
pub(super) fn ask(socket: &Path, request: Request<'_>, until: Instant) -> io::Result<Answer> {
    let socket = UnixStream::connect(socket)?;
    let mut from = Deadlined { socket, until };
    from.socket.set_write_timeout(Some(from.left()?))?;
    let mut head = format!(
        "{} {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAccept: application/json, */*\r\n",
        request.method, request.path
    );
    if !request.body.is_empty() {
        head += &format!("Content-Type: {}\r\nContent-Length: {}\r\n", request.content_type, request.body.len());
    }
    head += "\r\n";
    from.socket.write_all(head.as_bytes()).and_then(|()| from.socket.write_all(request.body)).map_err(late)?;
    let mut from = BufReader::new(from);
    let status = line(&mut from)?;
    let status = status.split(' ').nth(1).and_then(|word| word.parse().ok()).ok_or_else(|| broken("no HTTP status"))?;
    let mut ends = Ends::Close;
    for _ in 0..MOST_HEADERS {
        let header = line(&mut from)?;
        let Some((name, value)) = header.split_once(':') else {
            return Ok(Answer { status, ends, from });
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
            ends = Ends::Chunks(None);
        } else if name.eq_ignore_ascii_case("content-length") && !matches!(ends, Ends::Chunks(_)) {
            ends = Ends::After(value.parse().map_err(|_| broken("a Content-Length that is no number"))?);
        }
    }
    Err(broken("headers without an end"))
}

fn broken(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// A line without its end; the end of the connection is an error.
fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(String::from_utf8_lossy(&line).trim_end_matches('\r').to_string())
}

impl Read for Answer {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = match &mut self.ends {
            Ends::Now => return Ok(0),
            Ends::Close => return self.from.read(into),
            Ends::After(left) => *left,
            Ends::Chunks(Some(left)) if *left > 0 => *left,
            Ends::Chunks(left) => {
                if left.is_some() {
                    // The end of the line behind the piece before.
                    line(&mut self.from)?;
                }
                let size = line(&mut self.from)?;
                let size = size.split(';').next().unwrap_or_default().trim();
                let size = u64::from_str_radix(size, 16).map_err(|_| broken("a chunk without a size"))?;
                *left = Some(size);
                size
            }
        };
        if most == 0 {
            self.ends = Ends::Now;
            return Ok(0);
        }
        let length = usize::try_from(most).unwrap_or(usize::MAX).min(into.len());
        let n = self.from.read(&mut into[..length])?;
        if n == 0 && length > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Ends::After(left) | Ends::Chunks(Some(left)) = &mut self.ends {
            *left -= n as u64;
        }
        Ok(n)
    }
}

impl Answer {
    /// The whole body, up to a limit; none above it.
    pub(super) fn whole(mut self, at_most: usize) -> io::Result<Option<Vec<u8>>> {
        let mut body = Vec::new();
        (&mut self).take(at_most as u64 + 1).read_to_end(&mut body)?;
        Ok((body.len() <= at_most).then_some(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// What is read of an answer that is sent so.
    fn read(answer: &'static [u8], at_most: usize) -> Result<(u16, Option<String>), io::ErrorKind> {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("s");
        let listener = UnixListener::bind(&at).unwrap();
        let server = std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let mut head = [0u8; 1024];
            let _ = socket.read(&mut head);
            let _ = socket.write_all(answer);
        });
        let request = Request { method: "GET", path: "/", content_type: "", body: b"" };
        let until = Instant::now() + Duration::from_secs(60);
        let read = ask(&at, request, until).and_then(|answer| {
            let status = answer.status;
            Ok((status, answer.whole(at_most)?.map(|body| String::from_utf8_lossy(&body).into_owned())))
        });
        server.join().unwrap();
        read.map_err(|e| e.kind())
    }

    #[test]
    fn a_body_ends_where_it_says_and_a_cut_one_is_an_error() {
        use io::ErrorKind::{InvalidData, UnexpectedEof};
        let body = |status, text: &str| Ok((status, Some(text.to_string())));
        assert_eq!(read(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", 9), body(200, "abc"));
        assert_eq!(read(b"HTTP/1.1 404 No\r\n\r\nabc", 9), body(404, "abc"));
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n";
        assert_eq!(read(chunked, 9), body(200, "abc"));
        assert_eq!(read(chunked, 2), Ok((200, None)), "longer than is taken");
        assert_eq!(read(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc", 9), Err(UnexpectedEof));
        assert_eq!(read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nab", 9), Err(UnexpectedEof));
        assert_eq!(read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 9), Err(InvalidData));
        assert_eq!(read(b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", 9), Err(InvalidData));
        assert_eq!(read(b"nonsense\r\n\r\n", 9), Err(InvalidData));
        assert_eq!(read(b"HTTP/1.1 200 OK\r\nA: b\r\n", 9), Err(UnexpectedEof));
    }

    #[test]
    fn who_says_nothing_is_waited_for_until_the_deadline() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("s");
        let _listener = UnixListener::bind(&at).unwrap();
        let request = Request { method: "GET", path: "/", content_type: "", body: b"" };
        let error = ask(&at, request, Instant::now() + Duration::from_millis(100)).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}

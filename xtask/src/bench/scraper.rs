//! Asks as Prometheus does, for whoever measures what a scrape costs: the header lines of Debian's 2.42 as it sent them to a listener of ours, and
//! one connection for all scrapes, as long as the server keeps it.
//!
//! Both matter: who is asked for gzip may pack its page, and who keeps a connection saves making one.

use anyhow::{Context, Result, bail, ensure};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const LINES: &str = "User-Agent: Prometheus/2.42.0+ds\r\nAccept: application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1\r\nAccept-Encoding: gzip\r\nX-Prometheus-Scrape-Timeout-Seconds: 10\r\n";
/// No page of metrics is larger.
const MOST_BYTES: u64 = 64 << 20;

/// A Prometheus that scrapes one address.
pub(super) struct Scraper {
    address: SocketAddr,
    kept: Option<BufReader<TcpStream>>,
}

impl Scraper {
    pub(super) fn of(address: SocketAddr) -> Scraper {
        Scraper { address, kept: None }
    }

    /// Lets the connection go: the next question makes one.
    pub(super) fn let_go(&mut self) {
        self.kept = None;
    }

    /// Bytes of the page as they came, packed or not.
    pub(super) fn scrape(&mut self) -> Result<usize> {
        if let Some(mut kept) = self.kept.take()
            && let Ok((bytes, is_kept)) = self.over(&mut kept)
        {
            self.kept = is_kept.then_some(kept);
            return Ok(bytes);
        }
        // None was kept, or the server has let it go since.
        let stream = TcpStream::connect_timeout(&self.address, Duration::from_secs(10))?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let mut stream = BufReader::new(stream);
        let (bytes, is_kept) = self.over(&mut stream)?;
        self.kept = is_kept.then_some(stream);
        Ok(bytes)
    }

    /// A question and its answer; may the next go the same way?
    fn over(&self, stream: &mut BufReader<TcpStream>) -> Result<(usize, bool)> {
        let question = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n{LINES}\r\n", self.address);
        stream.get_mut().write_all(question.as_bytes())?;
        answer(stream)
    }
}

/// Bytes of the body, and whether another answer may follow on this connection.
fn answer(from: &mut impl BufRead) -> Result<(usize, bool)> {
    let status = line(from)?;
    ensure!(status.starts_with("HTTP/1.1 200"), "{status}");
    let (mut length, mut is_chunked, mut is_kept) = (None, false, true);
    loop {
        let line = line(from)?.to_ascii_lowercase();
        let Some((name, value)) = line.split_once(':') else { break };
        match (name, value.trim()) {
            ("content-length", n) => length = Some(n.parse::<u64>().context("content-length")?),
            ("transfer-encoding", "chunked") => is_chunked = true,
            ("connection", "close") => is_kept = false,
            _ => {}
        }
    }
    let n_bytes = match length {
        _ if is_chunked => chunks(from)?,
        Some(length) => pass(from, length)?,
        None if is_kept => bail!("an answer without a length"),
        None => pass_all(from)?,
    };
    Ok((usize::try_from(n_bytes)?, is_kept))
}

fn line(from: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    ensure!(from.take(16 * 1024).read_line(&mut line)? > 0, "the server has closed");
    Ok(line.trim_end().to_string())
}

fn chunks(from: &mut impl BufRead) -> Result<u64> {
    let mut sum = 0;
    loop {
        let size = line(from)?;
        let size = u64::from_str_radix(size.split(';').next().unwrap_or_default(), 16).context("size of a chunk")?;
        sum += pass(from, size)?;
        line(from)?;
        if size == 0 {
            return Ok(sum);
        }
    }
}

fn pass(from: &mut impl BufRead, n_bytes: u64) -> Result<u64> {
    ensure!(n_bytes <= MOST_BYTES, "{n_bytes} bytes");
    let passed = std::io::copy(&mut from.take(n_bytes), &mut std::io::sink())?;
    ensure!(passed == n_bytes, "the answer was cut after {passed} of {n_bytes} bytes");
    Ok(passed)
}

fn pass_all(from: &mut impl BufRead) -> Result<u64> {
    Ok(std::io::copy(&mut from.take(MOST_BYTES), &mut std::io::sink())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_each_shape() {
        let of = |text: &str| answer(&mut text.as_bytes()).ok();
        assert_eq!(of("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\nHTTP"), Some((4, true)));
        assert_eq!(of("HTTP/1.1 200 OK\r\nconnection: close\r\nContent-Length: 4\r\n\r\na 1\n"), Some((4, false)));
        assert_eq!(of("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), Some((3, true)));
        assert_eq!(of("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcde"), Some((5, false)));
        for bad in [
            "",
            "HTTP/1.1 421 Misdirected Request\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na 1\n",
            "HTTP/1.1 200 OK\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }
}

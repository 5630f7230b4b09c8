//! The door to a Prometheus-compatible store: questions over HTTP(S), answers as they come, a limit on each and on time.
//!
//! The agent, its trust and its resolver are those of the meters (`http.rs`). A token goes over TLS or to this host, as
//! a password does. What is too much for the store has several words: Prometheus answers 422 or 503 to a query that would
//! load too many samples or takes too long, VictoriaMetrics 422 and 429, proxies 413, 502 and 504; all of them mean that a
//! smaller question may do, and so does a deadline that passed.

use crate::http::{Exposed, Http, check_exposed, check_url};
use crate::power::Trust;
use crate::secret::Secret;
use std::io::Read;
use std::time::Duration;

/// Most of a refusal's text that is read.
const MOST_OF_A_REFUSAL: u64 = 4096;

/// A store that can be asked.
pub struct MetricsStore {
    http: Http,
    base: String,
    token: Option<Secret>,
    max_bytes: u64,
}

/// Why a store gave no answer. None of these holds the token.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The URL is none, or trust cannot be had.
    #[error("{0}")]
    Unusable(String),
    /// A token would cross the network as it is.
    #[error("{}: the token would cross the network unencrypted; use https://, or leave --token-file out", .0.url)]
    Exposed(Exposed),
    /// The store says that it is too much at once.
    #[error("{url}: HTTP status {status}: {said}")]
    TooMuch {
        /// Where it was asked, without the question.
        url: String,
        /// Its status.
        status: u16,
        /// What it said.
        said: String,
    },
    /// No answer in time.
    #[error("{url}: {said}; give it more time (--timeout), or ask for less (--last, --windows)")]
    TooLong {
        /// Where it was asked, without the question.
        url: String,
        /// What the client said.
        said: String,
    },
    /// No connection, or a broken one.
    #[error("{url}: {why}")]
    NoAnswer {
        /// Where it was asked, without the question.
        url: String,
        /// What the connection said.
        why: String,
    },
    /// Any other status.
    #[error("{url}: HTTP status {status}{said}")]
    Refused {
        /// Where it was asked, without the question.
        url: String,
        /// Its status.
        status: u16,
        /// What it said, behind a colon.
        said: String,
    },
}

impl MetricsStore {
    /// At this URL, which may hold a path (`https://metrics.example/select/0/prometheus`). Nothing is asked yet.
    pub fn new(
        url: &str,
        token: Option<Secret>,
        trust: &Trust,
        deadline: Duration,
        max_bytes: u64,
    ) -> Result<MetricsStore, StoreError> {
        let base = check_url(url, "https://metrics.example").map_err(StoreError::Unusable)?;
        if token.is_some() {
            check_exposed(base).map_err(StoreError::Exposed)?;
        }
        let http = Http::within(base, trust, deadline).map_err(StoreError::Unusable)?;
        Ok(MetricsStore { http, base: base.into(), token, max_bytes })
    }

    /// Asks a path with its query, already encoded. Reading past the limit fails.
    pub fn get(&self, path: &str) -> Result<impl Read + use<>, StoreError> {
        let url = format!("{}{}", self.base, path.split('?').next().unwrap_or_default());
        let authorization = self.token.as_ref().map(|token| format!("Bearer {}", token.expose()));
        let asked = self.http.stream(&format!("{}{path}", self.base), authorization.as_deref(), self.max_bytes);
        let (status, body) = match asked {
            Ok(answered) => answered,
            Err((true, said)) => return Err(StoreError::TooLong { url, said }),
            Err((false, why)) => return Err(StoreError::NoAnswer { url, why }),
        };
        if (200..300).contains(&status) {
            return Ok(body);
        }
        let mut said = Vec::new();
        // A refusal without words is one all the same.
        let _ = body.take(MOST_OF_A_REFUSAL).read_to_end(&mut said);
        let said: String = String::from_utf8_lossy(&said).split_whitespace().collect::<Vec<_>>().join(" ");
        let said: String = said.chars().take(300).collect();
        Err(match status {
            413 | 422 | 429 | 502 | 503 | 504 => StoreError::TooMuch { url, status, said },
            401 | 403 => {
                StoreError::Refused { url, status, said: ": name a token that may read (--token-file)".into() }
            }
            300..=399 => StoreError::Refused { url, status, said: ", which is not followed".into() },
            _ if said.is_empty() => StoreError::Refused { url, status, said },
            _ => StoreError::Refused { url, status, said: format!(": {said}") },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    /// Answers one request after the other with these words, and tells the heads.
    fn serve(answers: Vec<String>) -> (String, std::sync::mpsc::Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for (answer, stream) in answers.into_iter().zip(listener.incoming().flatten()) {
                let mut reader = BufReader::new(stream);
                let mut head = String::new();
                while reader.read_line(&mut head).is_ok_and(|n| n > 2) {}
                let _ = tell.send(head);
                let _ = reader.get_mut().write_all(answer.as_bytes());
            }
        });
        (url, told)
    }

    fn answer(status: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
    }

    fn store(url: &str, token: Option<&str>) -> Result<MetricsStore, StoreError> {
        let token = token.map(|t| Secret::first_line(t).unwrap());
        MetricsStore::new(url, token, &Trust::default(), Duration::from_secs(30), 100)
    }

    #[test]
    fn a_token_is_shown_to_this_host_and_to_nobody_in_the_clear() {
        let (url, told) = serve(vec![answer("200 OK", "{}")]);
        let mut text = String::new();
        store(&url, Some("t0k")).unwrap().get("/api/v1/query?query=up").unwrap().read_to_string(&mut text).unwrap();
        let head = told.recv().unwrap();
        assert!(
            text == "{}" && head.contains("Bearer t0k") && head.starts_with("GET /api/v1/query?query=up "),
            "{head}"
        );
        let why = store("http://metrics.example:9090", Some("t0k")).err().unwrap().to_string();
        assert!(why.contains("unencrypted") && !why.contains("t0k"), "{why}");
        assert!(store("metrics.example", None).is_err());
    }

    #[test]
    fn what_is_too_much_is_told_from_what_is_refused() {
        let endless = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}", "x".repeat(1000));
        let (url, _told) = serve(vec![
            answer("422 Unprocessable Entity", r#"{"error":"query processing would load too many samples"}"#),
            answer("401 Unauthorized", ""),
            answer("302 Found\r\nLocation: http://127.0.0.1:1/", ""),
            endless,
        ]);
        let store = store(&url, None).unwrap();
        let why = store.get("/x").err().unwrap();
        assert!(matches!(why, StoreError::TooMuch { .. }) && why.to_string().contains("too many samples"), "{why}");
        assert!(store.get("/x").err().unwrap().to_string().contains("--token-file"));
        assert!(store.get("/x").err().unwrap().to_string().contains("not followed"));
        let read = store.get("/x").unwrap().read_to_end(&mut Vec::new());
        assert!(read.is_err(), "an answer beyond its limit fails: {read:?}");
    }
}

//! Sending documents to a server that a person named, again and again: what became of each?
//!
//! The one HTTP client of the house (`http.rs`): certificates checked, no redirects, no proxies, five seconds. Credentials are a header out of a file
//! that only its owner may read, and go over TLS or to this host, nowhere else.

use crate::http::{Http, check_exposed, check_url};
use crate::power::Trust;
use crate::secret::{Secret, SecretError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// No URL, or one that holds credentials.
    #[error("{0}")]
    Url(String),
    /// Whom to believe.
    #[error("{0}")]
    Trust(String),
    /// The file of the header.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// Its first line is none.
    #[error("{0}: its first line is no header; write for example: Authorization: Bearer TOKEN")]
    NoHeader(PathBuf),
    /// Credentials for all to read.
    #[error("{0}: credentials would cross the network unencrypted; use https://")]
    Exposed(String),
}

/// Where to, and how it is shown who sends.
pub struct Push {
    http: Http,
    url: String,
    /// Name and value.
    header: Option<(String, Secret)>,
}

/// What became of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Taken; this was answered.
    Taken(Vec<u8>),
    /// Not now: why, and after how long the server wants it again, where it says so.
    Later(String, Option<Duration>),
    /// Never: why.
    Refused(String),
}

impl Push {
    /// Sends to this URL, to `path` where it names none of its own; `header` is a file whose first line is `Name: value`.
    pub fn open(url: &str, path: &str, ca: Option<&Path>, header: Option<&Path>) -> Result<Push, PushError> {
        let base = check_url(url, "https://collector.example:4318").map_err(PushError::Url)?;
        let has_path = base.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
        let url = if has_path { base.to_string() } else { format!("{base}{path}") };
        let header = header.map(read_header).transpose()?;
        if header.is_some() {
            check_exposed(&url).map_err(|_| PushError::Exposed(url.clone()))?;
        }
        let trust = Trust { ca: ca.map(Path::to_path_buf), is_insecure: false };
        let http = Http::new(&url, &trust).map_err(PushError::Trust)?;
        Ok(Push { http, url, header })
    }

    /// Where to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The port that is spoken to.
    pub fn port(&self) -> u16 {
        let authority = self.url.split("://").nth(1).and_then(|rest| rest.split(['/', '?']).next()).unwrap_or_default();
        let named = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
        let other = if self.url.starts_with("https://") { 443 } else { 80 };
        named.and_then(|(_, port)| port.parse().ok()).unwrap_or(other)
    }

    /// Sends one document of this type.
    pub fn send(&self, content_type: &str, body: &[u8]) -> Sent {
        let mut headers = vec![("Content-Type", content_type)];
        headers.extend(self.header.as_ref().map(|(name, value)| (name.as_str(), value.expose())));
        let response = match self.http.send(&self.url, &headers, body) {
            Ok(response) => response,
            Err(why) => return Sent::Later(why, None),
        };
        let said = || format!("{}: HTTP status {}", self.url, response.status);
        match response.status {
            200..=299 => Sent::Taken(response.body),
            // As the protocol has it; other errors would be the same again.
            429 | 502 | 503 | 504 => Sent::Later(said(), response.retry_after_s.map(Duration::from_secs)),
            _ => Sent::Refused(said()),
        }
    }
}

fn read_header(path: &Path) -> Result<(String, Secret), PushError> {
    let none = || PushError::NoHeader(path.into());
    let line = Secret::from_file(path)?;
    let (name, value) = line.expose().split_once(':').ok_or_else(none)?;
    let is_name = |c: u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c);
    let is_value = |c: u8| c == b'\t' || (0x20..0x7f).contains(&c);
    if name.is_empty() || !name.bytes().all(is_name) || !value.bytes().all(is_value) {
        return Err(none());
    }
    Ok((name.to_string(), Secret::first_line(value.trim()).map_err(|_| none())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn where_it_goes_and_by_which_port() {
        for (url, whole, port) in [
            ("http://localhost:4318", "http://localhost:4318/v1/metrics", 4318),
            ("https://otel.example/", "https://otel.example/v1/metrics", 443),
            ("http://[::1]", "http://[::1]/v1/metrics", 80),
            ("http://127.0.0.1:9090/api/v1/otlp/v1/metrics", "http://127.0.0.1:9090/api/v1/otlp/v1/metrics", 9090),
        ] {
            let ca = tempfile::NamedTempFile::new().unwrap();
            let push = Push::open(url, "/v1/metrics", None, None);
            // Who has no authorities on this machine is refused TLS.
            if let Err(PushError::Trust(why)) = &push {
                assert!(url.starts_with("https://") && why.contains("authorities"), "{why} {ca:?}");
                continue;
            }
            let push = push.unwrap_or_else(|why| panic!("{url}: {why}"));
            assert_eq!((push.url(), push.port()), (whole, port));
        }
        let refused = Push::open("ftp://x", "/", None, None).err().map(|why| why.to_string());
        assert!(refused.as_ref().is_some_and(|why| why.contains("collector.example")), "{refused:?}");
        let refused = Push::open("http://me:secret@h", "/", None, None).err();
        assert!(matches!(refused, Some(PushError::Url(_))));
        assert!(!format!("{refused:?}").contains("secret"));
    }

    #[test]
    fn credentials_come_from_a_closed_file_and_go_nowhere_in_the_clear() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("header");
        let open = |text: &str, mode: u32, url: &str| {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            Push::open(url, "/v1/metrics", None, Some(&file)).map(|push| push.header.unwrap().0)
        };
        const HERE: &str = "http://127.0.0.1:4318";
        assert_eq!(open("Authorization: Bearer abc\n", 0o600, HERE).unwrap(), "Authorization");
        assert!(matches!(open("Authorization: Bearer abc\n", 0o644, HERE), Err(PushError::Secret(_))));
        for text in ["Bearer abc\n", ": x\n", "A b: x\n", "Name: \u{1}\n", "Name: \n"] {
            assert!(matches!(open(text, 0o600, HERE), Err(PushError::NoHeader(_))), "{text:?}");
        }
        let exposed = open("api-key: abc\n", 0o600, "http://otel.example:4318");
        assert!(matches!(exposed, Err(PushError::Exposed(url)) if url.contains("otel.example")));
    }
}

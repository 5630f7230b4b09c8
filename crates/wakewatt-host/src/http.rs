//! HTTP for meters and BMCs behind a network: one blocking client with deadlines.
//!
//! ureq with rustls: blocking (the house has no async), no C library beside libc, and static. Certificates are checked
//! against a file the user names, else the distribution's store; without either, TLS is refused rather than unchecked.
//! Redirects are not followed and proxies of the environment are not used: credentials must go to the named host and
//! nowhere else, and over plain HTTP only to this host or where the user says so ([`check_exposed`]). Host names are
//! looked up by our own [`resolve`](crate::resolve). Answers longer than a limit (4 MiB for a meter's) are refused. Nothing of
//! a request appears in an error but its URL.

use crate::{authorities, resolve};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::io::Read as _;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

/// A BMC over TLS may take seconds.
const DEADLINE: Duration = Duration::from_secs(5);
const MAX_BODY: u64 = 4 << 20;
/// The same for one that is asked for a registry of a megabyte, or to change something.
const PATIENCE: Duration = Duration::from_secs(30);
const MAX_SHORT_BODY: u64 = 64 << 10;

/// Whom to believe.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Certificates of authorities, PEM; the distribution's when not given.
    pub ca: Option<PathBuf>,
    /// Believe anybody.
    pub is_insecure: bool,
}

/// The client.
pub(crate) struct Http(ureq::Agent);

/// What a server answered with success.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) token: Option<String>,
    pub(crate) location: Option<String>,
}

/// What a server answered to bytes.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) retry_after_s: Option<u64>,
    pub(crate) body: Vec<u8>,
}

/// What went wrong, and the status if it was one.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: Option<u16>,
    pub(crate) why: String,
}

/// What a server answered, whatever its status says.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) etag: Option<String>,
    pub(crate) location: Option<String>,
    pub(crate) token: Option<String>,
    /// The server asks to be left alone for so long.
    pub(crate) retry_after_s: Option<u64>,
    pub(crate) bytes: Vec<u8>,
}

/// No answer, or one that is not taken.
#[derive(Debug)]
pub(crate) enum NoReply {
    TooLong,
    Failed(String),
}

/// Is this a URL to send credentials to, or what would be one? `user:password@` in it would end in logs.
pub(crate) fn check_url<'a>(url: &'a str, example: &str) -> Result<&'a str, String> {
    let rest = url.strip_prefix("https://").or(url.strip_prefix("http://"));
    let authority = rest.and_then(|r| r.split(['/', '?', '#']).next()).unwrap_or_default();
    if authority.is_empty() {
        return Err(format!("{url:?} is not a URL such as {example}"));
    }
    if authority.contains('@') {
        return Err("a URL must hold no user or password: they would be seen by everybody on this machine".into());
    }
    Ok(url.trim_end_matches('/'))
}

/// A password would go over the network as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{url}: the password would cross the network unencrypted; use https://, or allow it with --plain-http-password"
)]
pub struct Exposed {
    /// Where to.
    pub url: String,
}

/// May a password be sent to this URL? Over TLS, or to this host itself.
pub(crate) fn check_exposed(url: &str) -> Result<(), Exposed> {
    let exposed = Err(Exposed { url: url.into() });
    let Some(rest) = url.strip_prefix("http://") else { return Ok(()) };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, _)) => host,
        None => authority.split(':').next().unwrap_or_default(),
    };
    // Names other than this one may lead elsewhere tomorrow.
    let is_here = host.parse().map_or(host.eq_ignore_ascii_case("localhost"), |ip: IpAddr| ip.is_loopback());
    if is_here { Ok(()) } else { exposed }
}

/// [`resolve`], as the client wants it.
#[derive(Debug)]
struct Names;

impl Resolver for Names {
    fn resolve(
        &self,
        uri: &ureq::http::Uri,
        _: &ureq::config::Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let host = uri.host().ok_or(ureq::Error::HostNotFound)?;
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
        let found = resolve::Resolver::within(*timeout.after).addresses(host, port);
        let found = found.map_err(|why| ureq::Error::Other(why.into()))?;
        let mut all = self.empty();
        found.into_iter().take(16).for_each(|at| all.push(at));
        Ok(all)
    }
}

impl Http {
    /// For this URL and the others of its kind.
    pub(crate) fn new(url: &str, trust: &Trust) -> Result<Http, String> {
        Http::within(url, trust, DEADLINE)
    }

    /// For a BMC that may take its time.
    pub(crate) fn patient(url: &str, trust: &Trust) -> Result<Http, String> {
        Http::within(url, trust, PATIENCE)
    }

    /// With a deadline for each request, its answer included.
    pub(crate) fn within(url: &str, trust: &Trust, deadline: Duration) -> Result<Http, String> {
        let mut tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .disable_verification(trust.is_insecure);
        if url.starts_with("https://") && !trust.is_insecure {
            tls = tls.root_certs(RootCerts::Specific(Arc::new(believed(trust)?)));
        } else {
            tls = tls.root_certs(RootCerts::Specific(Arc::new(Vec::new())));
        }
        let config = ureq::Agent::config_builder()
            .tls_config(tls.build())
            .timeout_global(Some(deadline))
            .max_redirects(0)
            .proxy(None)
            .http_status_as_error(false)
            .user_agent(concat!("wakewatt/", env!("CARGO_PKG_VERSION")));
        Ok(Http(ureq::Agent::with_parts(config.build(), DefaultConnector::default(), Names)))
    }

    pub(crate) fn get(&self, url: &str, headers: &[(&str, String)]) -> Result<Answer, Refused> {
        let request = headers.iter().fold(self.0.get(url), |r, (name, value)| r.header(*name, value));
        answer(url, request.header("Accept", "application/json").call())
    }

    /// Asks and gives the answer as it comes, whatever its status; after so many bytes, reading fails. The error says whether it
    /// was the deadline.
    pub(crate) fn stream(
        &self,
        url: &str,
        authorization: Option<&str>,
        max_bytes: u64,
    ) -> Result<(u16, ureq::BodyReader<'static>), (bool, String)> {
        let request = authorization.iter().fold(self.0.get(url), |r, value| r.header("Authorization", *value));
        let request = request.header("Accept", "application/json").config().http_status_as_error(false).build();
        let late = |error: ureq::Error| (matches!(error, ureq::Error::Timeout(_)), error.to_string());
        let response = request.call().map_err(late)?;
        let status = response.status().as_u16();
        Ok((status, response.into_body().into_with_config().limit(max_bytes).reader()))
    }

    pub(crate) fn post(&self, url: &str, body: &str) -> Result<Answer, Refused> {
        answer(url, self.0.post(url).header("Content-Type", "application/json").send(body))
    }

    /// Any request; what the server says against it is an answer, too.
    pub(crate) fn ask(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, String)],
        body: Option<&str>,
        max_bytes: u64,
    ) -> Result<Reply, NoReply> {
        let failed = |why: String| NoReply::Failed(why);
        let mut request = ureq::http::Request::builder().method(method).uri(url).header("Accept", "application/json");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let response = match body {
            Some(text) => {
                let request = request.header("Content-Type", "application/json").body(text.to_string());
                self.0.run(request.map_err(|e| failed(e.to_string()))?)
            }
            None => self.0.run(request.body(()).map_err(|e| failed(e.to_string()))?),
        };
        let mut response = response.map_err(|e| failed(e.to_string()))?;
        let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_string);
        let (etag, location, token) = (header("ETag"), header("Location"), header("X-Auth-Token"));
        let retry_after_s = header("Retry-After").and_then(|text| text.trim().parse().ok());
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        let read = response.body_mut().as_reader().take(max_bytes + 1).read_to_end(&mut bytes);
        read.map_err(|e| failed(e.to_string()))?;
        if bytes.len() as u64 > max_bytes {
            return Err(NoReply::TooLong);
        }
        Ok(Reply { status, etag, location, token, retry_after_s, bytes })
    }

    /// Sends bytes, and returns whatever status came back with its `Retry-After` in seconds and the start of its body.
    pub(crate) fn send(&self, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<Response, String> {
        let request = self.0.post(url).config().http_status_as_error(false).build();
        let request = headers.iter().fold(request, |r, (name, value)| r.header(*name, *value));
        let mut response = request.send(body).map_err(|why| format!("{url}: {why}"))?;
        let after = response.headers().get("Retry-After").and_then(|v| v.to_str().ok()?.trim().parse().ok());
        let status = response.status().as_u16();
        // What is longer is no answer to a push; the status says enough.
        let body = response.body_mut().with_config().limit(MAX_SHORT_BODY).read_to_vec().unwrap_or_default();
        Ok(Response { status, retry_after_s: after, body })
    }

    pub(crate) fn delete(&self, url: &str, headers: &[(&str, String)]) {
        let request = headers.iter().fold(self.0.delete(url), |r, (name, value)| r.header(*name, value));
        let _ = request.call();
    }
}

fn answer(url: &str, response: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Result<Answer, Refused> {
    let refused = |error: ureq::Error| Refused { status: None, why: format!("{url}: {error}") };
    let mut response = response.map_err(refused)?;
    let header = |name: &str| response.headers().get(name).and_then(|v| v.to_str().ok()).map(str::to_string);
    let (token, location, status) = (header("X-Auth-Token"), header("Location"), response.status().as_u16());
    if !(200..300).contains(&status) {
        let words = match status {
            401 => "user or password are wrong".into(),
            403 => "this user may not".into(),
            code @ (400..) => format!("HTTP status {code}"),
            code => format!("HTTP status {code}, which is not followed"),
        };
        return Err(Refused { status: Some(status), why: format!("{url}: {words}") });
    }
    let text = response.body_mut().with_config().limit(MAX_BODY).lossy_utf8(true).read_to_string().map_err(refused)?;
    Ok(Answer { text, token, location })
}

fn believed(trust: &Trust) -> Result<Vec<Certificate<'static>>, String> {
    let (path, bytes) = authorities::read(trust.ca.as_deref())
        .map_err(|e| e.to_string())?
        .ok_or("no certificates of authorities on this machine; name a file (--ca), or trust blindly (--insecure)")?;
    let found: Vec<Certificate<'static>> = parse_pem(&bytes)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if found.is_empty() { Err(format!("{}: holds no certificate", path.display())) } else { Ok(found) }
}

/// The value of an Authorization header (RFC 7617).
pub(crate) fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_password_are_coded_as_the_rfc_has_it() {
        assert_eq!(basic("Aladdin", "open sesame"), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }

    #[test]
    fn a_password_goes_over_tls_or_to_this_host() {
        for url in ["https://bmc", "http://127.0.0.1:8000", "http://[::1]/", "http://localhost:1/x", "http://127.9.9.9"]
        {
            assert_eq!(check_exposed(url), Ok(()), "{url}");
        }
        for url in
            ["http://bmc", "http://localhost.evil.example", "http://10.0.0.1", "http://[2001:db8::1]:80", "http://"]
        {
            assert_eq!(check_exposed(url), Err(Exposed { url: url.into() }));
        }
    }

    #[test]
    fn no_credentials_in_a_url() {
        let check_url = |url| check_url(url, "https://h.example");
        assert_eq!(check_url("https://bmc/"), Ok("https://bmc"));
        assert!(check_url("https://root:x@bmc/").unwrap_err().contains("no user or password"));
        assert!(!check_url("https://root:secret@bmc/").unwrap_err().contains("secret"));
        assert!(check_url("bmc").unwrap_err().ends_with("such as https://h.example"));
        assert!(check_url("ftp://bmc").is_err() && check_url("https://").is_err());
    }
}

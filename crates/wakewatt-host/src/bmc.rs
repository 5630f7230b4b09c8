//! A BMC to talk to over Redfish: one session, one request at a time, and a goodbye.
//!
//! Source: DMTF DSP0266 (sessions: a POST answers with `X-Auth-Token` and the session's place, which is deleted at the
//! end; basic authentication where the service has no sessions). TLS is checked, a password crosses no network in the clear
//! unless the user says so, redirects are not followed (`http.rs`). BMCs are slow and easily overrun: there is
//! `PAUSE` between two requests, and a BMC that asks for time (429, or 503 with `Retry-After`) gets it, up to
//! `LONGEST_WAIT_S`, a few times. A request that changes something is sent again after 429 only, which says that it was not
//! looked at. Answers may come compressed though nobody asked for that (HPE's registries), so they are unpacked here, within
//! the same limit.

use crate::http::{Exposed, Http, NoReply, Trust, basic, check_exposed, check_url};
use crate::secret::Secret;
use std::io::Read as _;
use std::time::{Duration, Instant};

/// Where sessions are opened (DSP0266).
const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";
/// The longest answer that is taken; registries of BIOS attributes have one or two megabytes.
pub const MAX_BYTES: u64 = 16 << 20;
/// Between two requests.
const PAUSE: Duration = Duration::from_millis(50);
/// Longer than this nobody is waited for at a time.
const LONGEST_WAIT_S: u64 = 20;
/// So often a request is sent that the BMC puts off.
const TRIES: u32 = 4;

/// Whom to ask, as whom, and whom to believe.
#[derive(Clone, Debug, Default)]
pub struct BmcAccount {
    /// Such as `https://bmc.example`.
    pub url: String,
    /// None: without authentication.
    pub user: Option<String>,
    /// From a file or the environment, never from the command line.
    pub password: Option<Secret>,
    /// May the password cross a network unencrypted?
    pub is_plain_allowed: bool,
    /// Whose certificates count.
    pub trust: Trust,
}

/// Why there is no talking to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BmcError {
    /// No URL to send anything to, or no certificates to check it with.
    #[error("{0}")]
    Unusable(String),
    /// The password would be seen.
    #[error(transparent)]
    Exposed(#[from] Exposed),
    /// It does not let this user in.
    #[error("{url}: refuses this user and password (HTTP status {status})")]
    NotLetIn {
        /// Where.
        url: String,
        /// Its status.
        status: u16,
    },
    /// No answer.
    #[error("{url}: {why}")]
    NoAnswer {
        /// What was asked for.
        url: String,
        /// The client's words.
        why: String,
    },
    /// More than anybody needs.
    #[error("{url}: the answer is longer than {} MiB and is not taken", MAX_BYTES >> 20)]
    TooLong {
        /// What was asked for.
        url: String,
    },
    /// It has asked for time too often, or for too much.
    #[error("{url}: the BMC is busy and asks to be left alone (HTTP status {status}); try again later")]
    Busy {
        /// What was asked for.
        url: String,
        /// Its status.
        status: u16,
    },
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// GET, PATCH, POST or DELETE.
    pub method: &'a str,
    /// From the server's root on.
    pub path: &'a str,
    /// JSON.
    pub body: Option<&'a str>,
    /// Only if the document is still this one.
    pub if_match: Option<&'a str>,
}

/// An answer, with whatever status.
#[derive(Clone, Debug, Default)]
pub struct BmcReply {
    /// The HTTP status.
    pub status: u16,
    /// Of the document.
    pub etag: Option<String>,
    /// Where a job, task or session is, as sent.
    pub location: Option<String>,
    /// The body, unpacked.
    pub bytes: Vec<u8>,
}

/// An open session.
pub struct Bmc {
    http: Http,
    base: String,
    headers: Vec<(&'static str, String)>,
    session: Option<String>,
    last: Option<Instant>,
}

impl Bmc {
    /// Logs in. Without a user nothing is sent yet.
    pub fn enter(account: &BmcAccount) -> Result<Bmc, BmcError> {
        let base = check_url(&account.url, "https://bmc.example").map_err(BmcError::Unusable)?.to_string();
        if account.user.is_some() && !account.is_plain_allowed {
            check_exposed(&base)?;
        }
        let http = Http::patient(&base, &account.trust).map_err(BmcError::Unusable)?;
        let mut bmc = Bmc { http, base, headers: Vec::new(), session: None, last: None };
        if let Some(user) = &account.user {
            let lacks = || BmcError::Unusable(format!("{}: a user without a password", account.url));
            bmc.log_in(user, account.password.as_ref().ok_or_else(lacks)?)?;
        }
        Ok(bmc)
    }

    fn log_in(&mut self, user: &str, password: &Secret) -> Result<(), BmcError> {
        let body = serde_json::json!({ "UserName": user, "Password": password.expose() }).to_string();
        let url = format!("{}{SESSIONS}", self.base);
        let reply = self.send("POST", &url, &[], Some(&body))?;
        match (reply.status, reply.token) {
            (200..300, Some(token)) => {
                self.headers = vec![("X-Auth-Token", token)];
                // A session whose place is not on this server is not ours to delete.
                let place = reply.location.unwrap_or_default();
                let place = place.strip_prefix(&self.base).unwrap_or(&place);
                self.session = place.starts_with("/redfish/").then(|| place.to_string());
                Ok(())
            }
            (401 | 403, _) => Err(BmcError::NotLetIn { url, status: reply.status }),
            // A service without sessions takes the user with each request.
            _ => {
                self.headers = vec![("Authorization", basic(user, password.expose()))];
                Ok(())
            }
        }
    }

    /// The URL without a path.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Sends a request; an answer with an error's status is an answer.
    pub fn ask(&mut self, request: Request<'_>) -> Result<BmcReply, BmcError> {
        let url = format!("{}{}", self.base, request.path);
        let mut headers = self.headers.clone();
        headers.extend(request.if_match.map(|etag| ("If-Match", etag.to_string())));
        let mut reply = self.send(request.method, &url, &headers, request.body)?;
        for n_sent in 1.. {
            let is_put_off = match reply.status {
                429 => true,
                503 => request.method == "GET" && reply.retry_after_s.is_some(),
                _ => false,
            };
            if !is_put_off {
                break;
            }
            let wait_s = reply.retry_after_s.unwrap_or(1);
            if n_sent == TRIES || wait_s > LONGEST_WAIT_S {
                return Err(BmcError::Busy { url, status: reply.status });
            }
            std::thread::sleep(Duration::from_secs(wait_s));
            reply = self.send(request.method, &url, &headers, request.body)?;
        }
        if reply.status == 401 {
            return Err(BmcError::NotLetIn { url, status: 401 });
        }
        let bytes = unpacked(reply.bytes).ok_or(BmcError::TooLong { url })?;
        Ok(BmcReply { status: reply.status, etag: reply.etag, location: reply.location, bytes })
    }

    fn send(
        &mut self,
        method: &str,
        url: &str,
        headers: &[(&str, String)],
        body: Option<&str>,
    ) -> Result<crate::http::Reply, BmcError> {
        if let Some(rest) = self.last.and_then(|last| PAUSE.checked_sub(last.elapsed())) {
            std::thread::sleep(rest);
        }
        let reply = self.http.ask(method, url, headers, body, MAX_BYTES);
        self.last = Some(Instant::now());
        reply.map_err(|why| match why {
            NoReply::TooLong => BmcError::TooLong { url: url.into() },
            NoReply::Failed(why) => BmcError::NoAnswer { url: url.into(), why },
        })
    }
}

impl Drop for Bmc {
    fn drop(&mut self) {
        if let Some(place) = &self.session {
            self.http.delete(&format!("{}{place}", self.base), &self.headers);
        }
    }
}

/// Without gzip; none where more comes out than is taken. What does not unpack is handed on as it is, and is no JSON then.
fn unpacked(bytes: Vec<u8>) -> Option<Vec<u8>> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Some(bytes);
    }
    let mut out = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(&bytes[..]).take(MAX_BYTES + 1);
    match reader.read_to_end(&mut out) {
        Err(_) => Some(bytes),
        Ok(_) if out.len() as u64 > MAX_BYTES => None,
        Ok(_) => Some(out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write as _;

    #[test]
    fn a_compressed_answer_is_unpacked_within_the_limit() {
        let pack = |bytes: &[u8]| {
            let mut coder = GzEncoder::new(Vec::new(), Compression::best());
            coder.write_all(bytes).unwrap();
            coder.finish().unwrap()
        };
        assert_eq!(unpacked(pack(b"{}")), Some(b"{}".to_vec()));
        assert_eq!(unpacked(b"{}".to_vec()), Some(b"{}".to_vec()));
        assert_eq!(unpacked(pack(&vec![b' '; usize::try_from(MAX_BYTES).unwrap() + 1])), None);
        assert_eq!(unpacked(vec![0x1f, 0x8b, 0]), Some(vec![0x1f, 0x8b, 0]));
    }

    #[test]
    fn a_password_is_not_sent_in_the_clear() {
        let password = Secret::first_line("secret").ok();
        let account =
            BmcAccount { url: "http://bmc.invalid".into(), user: Some("u".into()), password, ..BmcAccount::default() };
        assert!(matches!(Bmc::enter(&account).err(), Some(BmcError::Exposed(_))));
    }
}

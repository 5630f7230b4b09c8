//! Who may ask where others can reach the agent: who speaks TLS with it, and shows a certificate or knows the token. On this machine alone neither is needed.
//!
//! How the way is encrypted, and which certificates of clients are believed, is `tls`; who brings one of these needs no token. The token is a bearer token for programs,
//! or the password of any user for browsers, which ask for one.

use super::tls::{Files, Tls, TlsError};
use crate::trouble::Teller;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use wakewatt_host::secret::{Secret, SecretError};

/// A token that is shorter could be guessed over the network.
const LEAST_TOKEN: usize = 16;

/// Why nobody could be let in.
#[derive(Debug, Error)]
pub enum AdmissionError {
    /// Certificate, key, or whose certificates are believed.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The file with the token.
    #[error(transparent)]
    Token(#[from] SecretError),
    /// A token that is no obstacle.
    #[error("{}: a token of fewer than {LEAST_TOKEN} characters can be guessed; make one with: openssl rand -hex 32", .0.display())]
    Short(PathBuf),
}

/// What is asked of those who ask.
#[derive(Clone, Debug, Default)]
pub struct Admission {
    tls: Option<Arc<Tls>>,
    token: Option<Secret>,
}

impl Admission {
    /// From files: certificate chain and key, token; each may be left out. A renewal that fails goes to the teller.
    pub fn open(tls: Option<Files>, token: Option<&Path>, teller: Teller) -> Result<Admission, AdmissionError> {
        let tls = tls.map(|files| Tls::open(files, teller)).transpose()?.map(Arc::new);
        let Some(file) = token else { return Ok(Admission { tls, token: None }) };
        let token = Secret::from_file(file)?;
        if token.expose().len() < LEAST_TOKEN {
            return Err(AdmissionError::Short(file.into()));
        }
        Ok(Admission { tls, token: Some(token) })
    }

    /// Are answers encrypted?
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Must who asks know the token?
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// May who asks show a certificate of its own?
    pub fn has_clients(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_clients())
    }

    /// Must every client show one? Where there is no token that it could know instead.
    fn needs_client(&self) -> bool {
        self.has_clients() && !self.has_token()
    }

    /// What takes connections; none where they are not encrypted.
    pub(super) fn acceptor(&self) -> Option<TlsAcceptor> {
        self.tls.as_ref().map(|tls| tls.acceptor(self.needs_client()))
    }

    /// Does this header show the token?
    fn admits(&self, header: Option<&str>) -> bool {
        let Some(token) = &self.token else { return true };
        let Some((kind, rest)) = header.and_then(|header| header.split_once(' ')) else { return false };
        if kind.eq_ignore_ascii_case("bearer") {
            return is_same(rest.trim().as_bytes(), token.expose().as_bytes());
        }
        let shown = kind.eq_ignore_ascii_case("basic").then(|| STANDARD.decode(rest.trim()).ok()).flatten();
        let password = shown.as_deref().and_then(|both| both.splitn(2, |byte| *byte == b':').nth(1));
        password.is_some_and(|password| is_same(password, token.expose().as_bytes()))
    }
}

/// What somebody is told who does not know the token.
pub(super) fn refusal<B>(admission: &Admission, request: &Request<B>) -> Option<Response> {
    let shown = request.headers().get(header::AUTHORIZATION).and_then(|header| header.to_str().ok());
    if admission.admits(shown) {
        return None;
    }
    let how = [(header::WWW_AUTHENTICATE, "Bearer realm=\"wakewatt\", Basic realm=\"wakewatt\", charset=\"UTF-8\"")];
    let why = "show the token: Authorization: Bearer TOKEN, or as the password of any user\n";
    Some((StatusCode::UNAUTHORIZED, how, why).into_response())
}

/// Without telling by its time where they differ; only their lengths are no secret.
fn is_same(shown: &[u8], token: &[u8]) -> bool {
    let differs = shown.iter().zip(token).fold(0u8, |sum, (a, b)| sum | (a ^ b));
    shown.len() == token.len() && std::hint::black_box(differs) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn silent() -> Teller {
        Teller::new("certificate", Arc::new(|_| {}))
    }

    fn file(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("token");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    #[test]
    fn only_the_whole_token_opens() {
        let dir = tempfile::tempdir().unwrap();
        let admission = Admission::open(None, Some(&file(dir.path(), "0123456789abcdef\n")), silent()).unwrap();
        assert!(admission.has_token() && !admission.is_encrypted());
        let basic = |both: &str| format!("Basic {}", STANDARD.encode(both));
        for good in ["Bearer 0123456789abcdef", "bearer 0123456789abcdef", &basic("anybody:0123456789abcdef")] {
            assert!(admission.admits(Some(good)), "{good}");
        }
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer 0123456789abcdeF",
            "0123456789abcdef",
            "Basic 0123456789abcdef",
            &basic("0123456789abcdef"),
            &basic("0123456789abcdef:"),
        ] {
            assert!(!admission.admits(Some(bad)), "{bad}");
        }
        assert!(!admission.admits(None));
        assert!(Admission::default().admits(None), "nothing is asked for");
    }

    #[test]
    fn a_token_that_can_be_guessed_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let short = Admission::open(None, Some(&file(dir.path(), "short\n")), silent()).unwrap_err().to_string();
        assert!(short.contains("can be guessed") && !short.contains("short\n"), "{short}");
    }
}

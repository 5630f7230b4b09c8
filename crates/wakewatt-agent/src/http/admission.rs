//! Who may ask where others can reach the agent: who speaks TLS with it and knows the token. On this machine alone neither is needed.
//!
//! The certificate is looked at again every half minute, because it is renewed while the agent runs; a pair of files that cannot be used, half replaced perhaps, leaves
//! the one before in force. The token is a bearer token for programs, or the password of any user for browsers, which ask for one.

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use wakewatt_host::input::{self, InputError};
use wakewatt_host::secret::{Secret, SecretError};

/// The certificate is looked at again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// A token that is shorter could be guessed over the network.
const LEAST_TOKEN: usize = 16;

/// Why nobody could be let in.
#[derive(Debug, Error)]
pub enum AdmissionError {
    /// A file with certificate or key.
    #[error(transparent)]
    File(#[from] InputError),
    /// What is in it.
    #[error("{}: {why}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
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
    /// From files: certificate chain and key, token; each may be left out.
    pub fn open(pair: Option<(&Path, &Path)>, token: Option<&Path>) -> Result<Admission, AdmissionError> {
        let tls = pair.map(|(chain, key)| Tls::open(chain, key)).transpose()?.map(Arc::new);
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

    /// What takes connections; none where they are not encrypted.
    pub(super) fn acceptor(&self) -> Option<TlsAcceptor> {
        self.tls.as_ref().map(|tls| tls.acceptor())
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

/// Lets in who knows the token.
pub(super) async fn look(State(admission): State<Admission>, request: Request, next: Next) -> Response {
    let shown = request.headers().get(header::AUTHORIZATION).and_then(|header| header.to_str().ok());
    if admission.admits(shown) {
        return next.run(request).await;
    }
    let how = [(header::WWW_AUTHENTICATE, "Bearer realm=\"wakewatt\", Basic realm=\"wakewatt\", charset=\"UTF-8\"")];
    let why = "show the token: Authorization: Bearer TOKEN, or as the password of any user\n";
    (StatusCode::UNAUTHORIZED, how, why).into_response()
}

/// Without telling by its time where they differ; only their lengths are no secret.
fn is_same(shown: &[u8], token: &[u8]) -> bool {
    let differs = shown.iter().zip(token).fold(0u8, |sum, (a, b)| sum | (a ^ b));
    shown.len() == token.len() && std::hint::black_box(differs) == 0
}

/// Certificate and key, as files and as last read.
#[derive(Debug)]
struct Tls {
    chain: PathBuf,
    key: PathBuf,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    config: Arc<rustls::ServerConfig>,
    bytes: (Vec<u8>, Vec<u8>),
    looked_at: Instant,
}

impl Tls {
    fn open(chain: &Path, key: &Path) -> Result<Tls, AdmissionError> {
        let bytes = read(chain, key)?;
        let config = config(chain, key, &bytes)?;
        let held = Mutex::new(Held { config, bytes, looked_at: Instant::now() });
        Ok(Tls { chain: chain.into(), key: key.into(), held })
    }

    fn acceptor(&self) -> TlsAcceptor {
        // Whoever panicked while it held this left one that was in force.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.looked_at.elapsed() >= LOOK_AGAIN {
            held.looked_at = Instant::now();
            self.renew(&mut held);
        }
        TlsAcceptor::from(Arc::clone(&held.config))
    }

    /// Takes what is in the files now, where that is another pair that can be used.
    fn renew(&self, held: &mut Held) {
        let Ok(bytes) = read(&self.chain, &self.key) else { return };
        if bytes != held.bytes
            && let Ok(config) = config(&self.chain, &self.key, &bytes)
        {
            (held.config, held.bytes) = (config, bytes);
        }
    }
}

fn read(chain: &Path, key: &Path) -> Result<(Vec<u8>, Vec<u8>), AdmissionError> {
    Ok((input::read(chain, input::CHAIN)?, input::read(key, input::KEY)?))
}

fn config(chain: &Path, key: &Path, bytes: &(Vec<u8>, Vec<u8>)) -> Result<Arc<rustls::ServerConfig>, AdmissionError> {
    let wrong = |path: &Path, why: String| AdmissionError::Certificate { path: path.into(), why };
    let certificates: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(&bytes.0).collect();
    let certificates = certificates.map_err(|why| wrong(chain, format!("no certificate in PEM: {why}")))?;
    if certificates.is_empty() {
        return Err(wrong(chain, "holds no certificate in PEM".into()));
    }
    let secret = PrivateKeyDer::from_pem_slice(&bytes.1).map_err(|why| wrong(key, format!("no key in PEM: {why}")))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let made = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, secret));
    let mut made = made.map_err(|why| wrong(chain, format!("cannot be used with {}: {why}", key.display())))?;
    made.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(made))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn file(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("token");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    #[test]
    fn only_the_whole_token_opens() {
        let dir = tempfile::tempdir().unwrap();
        let admission = Admission::open(None, Some(&file(dir.path(), "0123456789abcdef\n"))).unwrap();
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
        let short = Admission::open(None, Some(&file(dir.path(), "short\n"))).unwrap_err().to_string();
        assert!(short.contains("can be guessed") && !short.contains("short\n"), "{short}");
        let rubbish = file(dir.path(), "rubbish");
        let why = Admission::open(Some((&rubbish, &rubbish)), None).unwrap_err().to_string();
        assert!(why.contains("no certificate"), "{why}");
    }
}

//! TLS of the agent: its certificate and private key, and the CAs that client certificates are verified with.
//!
//! The key is read by the rule for secrets (`wakewatt_host::secret`). Certificate and CA file must belong to root or the
//! agent's user and must not be writable by others: with another CA anybody could connect. Anybody may read them.
//!
//! A certificate that has expired, or is not valid yet, is used all the same, because clients decide whom they believe, and told as well.
//!
//! The files are looked at again when somebody comes, at most every half minute, because certificates are renewed while the agent runs. What cannot be used, a pair half replaced perhaps, leaves
//! the one before in force, and is told: once in the log, and on every page until it is mended.

use crate::trouble::Teller;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;
use wakewatt_host::authorities::{self, AuthorityError};
use wakewatt_host::input;
use wakewatt_host::secret::{self, SecretError};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

/// The files are looked at again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// Why the way cannot be encrypted.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file with certificates.
    #[error(transparent)]
    File(#[from] AuthorityError),
    /// The key, which others could read or exchange.
    #[error(transparent)]
    Key(#[from] SecretError),
    /// What is in it.
    #[error("{}: {why}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Where certificates lie.
#[derive(Clone, Debug)]
pub struct Files {
    /// Our chain, PEM.
    pub chain: PathBuf,
    /// Its key, PEM.
    pub key: PathBuf,
    /// Authorities whose clients are let in, PEM.
    pub clients: Option<PathBuf>,
}

/// As files and as last read.
#[derive(Debug)]
pub(super) struct Tls {
    files: Files,
    teller: Teller,
    held: Mutex<Held>,
}

#[derive(Debug)]
struct Held {
    configs: Configs,
    validity: Validity,
    bytes: Bytes,
    looked_at: Instant,
}

#[derive(Debug, PartialEq, Eq)]
struct Bytes {
    chain: Vec<u8>,
    key: Vec<u8>,
    clients: Option<Vec<u8>>,
}

/// For those who must show a certificate, and for those who may.
#[derive(Debug)]
struct Configs {
    must: Arc<rustls::ServerConfig>,
    may: Arc<rustls::ServerConfig>,
}

impl Tls {
    pub(super) fn open(files: Files, teller: Teller) -> Result<Tls, TlsError> {
        let bytes = read(&files)?;
        let validity = Validity::of(&files.chain, &bytes.chain)?;
        let held = Held { configs: configs(&files, &bytes)?, validity, bytes, looked_at: Instant::now() };
        let tls = Tls { files, teller, held: Mutex::new(held) };
        tls.tell(validity, None);
        Ok(tls)
    }

    pub(super) fn has_clients(&self) -> bool {
        self.files.clients.is_some()
    }

    pub(super) fn acceptor(&self, must_show: bool) -> TlsAcceptor {
        // Whoever panicked while it held this left one that was in force.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.looked_at.elapsed() >= LOOK_AGAIN {
            held.looked_at = Instant::now();
            self.renew(&mut held);
        }
        TlsAcceptor::from(Arc::clone(if must_show { &held.configs.must } else { &held.configs.may }))
    }

    /// Takes what is in the files now, where that is something else and can be used.
    fn renew(&self, held: &mut Held) {
        let renewed = read(&self.files).and_then(|bytes| {
            if bytes != held.bytes {
                let validity = Validity::of(&self.files.chain, &bytes.chain)?;
                (held.configs, held.validity, held.bytes) = (configs(&self.files, &bytes)?, validity, bytes);
            }
            Ok(())
        });
        let why = renewed.err().map(|why| format!("not renewed, the one before stays in force: {why}"));
        self.tell(held.validity, why);
    }

    fn tell(&self, validity: Validity, trouble: Option<String>) {
        self.teller.ends(validity.until_s);
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let chain = self.files.chain.display();
        self.teller.tell(trouble.or(validity.trouble(now_s).map(|why| format!("{chain}: {why}; renew it"))));
    }
}

/// When our own certificate holds, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Validity {
    from_s: u64,
    until_s: u64,
}

impl Validity {
    /// Of the first certificate of a chain, which is our own.
    fn of(path: &Path, pem: &[u8]) -> Result<Validity, TlsError> {
        let wrong = |why: String| TlsError::Certificate { path: path.into(), why };
        let chain = certificates(path, pem)?;
        let own = chain.first().map_or(&[][..], |der| der.as_ref());
        let read = Certificate::from_der(own).map_err(|why| wrong(format!("not a certificate of X.509: {why}")))?;
        let validity = read.tbs_certificate.validity;
        let [from_s, until_s] = [validity.not_before, validity.not_after].map(|time| time.to_unix_duration().as_secs());
        Ok(Validity { from_s, until_s })
    }

    /// Why clients that look refuse it now.
    fn trouble(self, now_s: u64) -> Option<String> {
        let day = |s: u64| humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(s));
        match now_s {
            _ if now_s > self.until_s => Some(format!("expired at {}", day(self.until_s))),
            _ if now_s < self.from_s => Some(format!("not valid before {}", day(self.from_s))),
            _ => None,
        }
    }
}

fn read(files: &Files) -> Result<Bytes, TlsError> {
    let clients = files.clients.as_deref().map(|file| authorities::trusted(file, input::CLIENTS)).transpose()?;
    let key = secret::bytes(&files.key, input::KEY)?;
    Ok(Bytes { chain: authorities::trusted(&files.chain, input::CHAIN)?, key, clients })
}

fn configs(files: &Files, bytes: &Bytes) -> Result<Configs, TlsError> {
    let wrong = |path: &Path, why: String| TlsError::Certificate { path: path.into(), why };
    let chain = certificates(&files.chain, &bytes.chain)?;
    let key =
        || PrivateKeyDer::from_pem_slice(&bytes.key).map_err(|why| wrong(&files.key, format!("no key in PEM: {why}")));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        || rustls::ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let unfit = |why: rustls::Error| wrong(&files.chain, format!("cannot be used with {}: {why}", files.key.display()));
    let finish = |made: Result<rustls::ServerConfig, rustls::Error>| {
        let mut made = made.map_err(unfit)?;
        made.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok::<_, TlsError>(Arc::new(made))
    };
    let (Some(file), Some(clients)) = (&files.clients, &bytes.clients) else {
        let key = key()?;
        let made = builder().and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        let all = finish(made)?;
        return Ok(Configs { must: Arc::clone(&all), may: all });
    };
    let mut roots = RootCertStore::empty();
    for authority in certificates(file, clients)? {
        roots.add(authority).map_err(|why| wrong(file, format!("holds no authority: {why}")))?;
    }
    let roots = Arc::new(roots);
    let with = |is_optional: bool| {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
        let verifier = if is_optional { verifier.allow_unauthenticated() } else { verifier };
        let verifier = verifier.build().map_err(|why| wrong(file, why.to_string()))?;
        let (chain, key) = (chain.clone(), key()?);
        finish(builder().and_then(|builder| builder.with_client_cert_verifier(verifier).with_single_cert(chain, key)))
    };
    Ok(Configs { must: with(false)?, may: with(true)? })
}

fn certificates(path: &Path, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |why: String| TlsError::Certificate { path: path.into(), why };
    let found: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|why| wrong(format!("no certificate in PEM: {why}")))?;
    if found.is_empty() { Err(wrong("holds no certificate in PEM".into())) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;
    use wakewatt_testing::{Lacks, skipped};

    /// Certificate and key, PEM; none where nobody can make one.
    fn pair(folder: &Path) -> Option<(Vec<u8>, Vec<u8>)> {
        let (chain, key) = (folder.join("made.crt"), folder.join("made.key"));
        let args =
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
        let mut command = Command::new("openssl");
        command.args(args).args(["-subj", "/CN=localhost", "-keyout"]).arg(&key).arg("-out").arg(&chain);
        let made = command.output();
        made.is_ok_and(|made| made.status.success()).then(|| (fs::read(chain).unwrap(), fs::read(key).unwrap()))
    }

    fn key_file(path: &Path, bytes: &[u8]) {
        fs::write(path, bytes).unwrap();
        fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }

    #[test]
    fn a_pair_that_does_not_fit_is_told_and_the_one_before_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let (Some(first), Some(next)) = (pair(dir.path()), pair(dir.path())) else {
            skipped("agent::renewal", Lacks::Program("openssl"), "no certificate to be had");
            return;
        };
        let files = Files { chain: dir.path().join("crt"), key: dir.path().join("key"), clients: None };
        fs::write(&files.chain, &first.0).unwrap();
        key_file(&files.key, &first.1);
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let lines = Arc::clone(&said);
        let say = Arc::new(move |line: &str| lines.lock().unwrap().push(line.to_string()));
        let teller = Teller::new("certificate", say);
        let tls = Tls::open(files.clone(), teller.clone()).unwrap();
        let look = || tls.renew(&mut tls.held.lock().unwrap());
        let in_force = || Arc::as_ptr(&tls.held.lock().unwrap().configs.may);
        let before = in_force();
        look();
        assert!(said.lock().unwrap().is_empty() && in_force() == before, "nothing is new");
        fs::write(&files.chain, &next.0).unwrap();
        look();
        look();
        let why = teller.now().unwrap();
        assert!(why.contains("the one before stays in force") && why.contains("cannot be used with"), "{why}");
        assert_eq!((said.lock().unwrap().len(), in_force()), (1, before));
        fs::remove_file(&files.key).unwrap();
        look();
        assert!(teller.now().unwrap().contains("cannot be read"), "{teller:?}");
        key_file(&files.key, &next.1);
        look();
        assert_eq!(teller.now(), None);
        assert!(in_force() != before && said.lock().unwrap().last().unwrap() == "certificate: mended");
    }

    /// Refused at startup with the command that repairs it; at a reload the previous files stay in use.
    #[test]
    fn a_key_that_others_read_and_cas_that_others_write_are_refused() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let dir = tempfile::tempdir().unwrap();
        let Some((chain, key)) = pair(dir.path()) else {
            skipped("agent::key_mode", Lacks::Program("openssl"), "no certificate to be had");
            return;
        };
        let at = |name: &str| dir.path().join(name);
        let files = Files { chain: at("crt"), key: at("key"), clients: Some(at("ca")) };
        for (name, bytes) in [("crt", &chain), ("key", &key), ("ca", &chain)] {
            fs::write(at(name), bytes).unwrap();
        }
        let mode = |name: &str, mode| fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
        mode("key", 0o600);
        let is_root = rustix::process::geteuid().is_root();
        type Spoilt<'a> = (&'static str, Box<dyn Fn() + 'a>, &'static str);
        let mut spoilt: Vec<Spoilt<'_>> = vec![
            ("key", Box::new(|| mode("key", 0o644)), "chmod 600"),
            ("ca", Box::new(|| mode("ca", 0o666)), "chmod go-w"),
            ("crt", Box::new(|| mode("crt", 0o646)), "chmod go-w"),
        ];
        if is_root {
            let own = |name: &'static str, uid| chown(at(name), Some(uid), None).unwrap();
            spoilt.push(("key", Box::new(move || own("key", 1000)), "chown 0"));
            spoilt.push(("ca", Box::new(move || own("ca", 1000)), "chown 0"));
        }
        let teller = Teller::new("certificate", Arc::new(|_| {}));
        let tls = Tls::open(files.clone(), teller.clone()).unwrap();
        for (name, spoil, advice) in spoilt {
            spoil();
            let why = Tls::open(files.clone(), teller.clone()).unwrap_err().to_string();
            let is_named = why.contains(&at(name).display().to_string()) && why.contains(advice);
            assert!(is_named, "{name}: {why}");
            tls.renew(&mut tls.held.lock().unwrap());
            let told = teller.now().unwrap();
            assert!(told.contains("the one before stays in force") && told.contains(advice), "{name}: {told}");
            mode(name, if name == "key" { 0o600 } else { 0o644 });
            if is_root {
                chown(at(name), Some(0), None).unwrap();
            }
            tls.renew(&mut tls.held.lock().unwrap());
            assert_eq!(teller.now(), None, "{name}");
        }
    }

    #[test]
    fn an_expired_certificate_is_told_with_its_end() {
        let (day_s, now_s) = (86_400, 1_000_000_000);
        let trouble = |from_s, until_s| Validity { from_s, until_s }.trouble(now_s);
        assert_eq!(trouble(now_s - day_s, now_s + day_s), None);
        assert_eq!(trouble(0, now_s - day_s).unwrap(), "expired at 2001-09-08T01:46:40Z");
        assert_eq!(trouble(now_s + day_s, now_s + 2 * day_s).unwrap(), "not valid before 2001-09-10T01:46:40Z");
        let dir = tempfile::tempdir().unwrap();
        let Some((chain, key)) = pair(dir.path()) else {
            skipped("agent::expiry", Lacks::Program("openssl"), "no certificate to be had");
            return;
        };
        let files = Files { chain: dir.path().join("crt"), key: dir.path().join("key"), clients: None };
        fs::write(&files.chain, chain).unwrap();
        key_file(&files.key, &key);
        let teller = Teller::new("certificate", Arc::new(|_| {}));
        let tls = Tls::open(files, teller.clone()).unwrap();
        assert_eq!(teller.now(), None);
        let left_s = teller.end_s().unwrap() - SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!((86_400..=2 * 86_400).contains(&left_s), "made for two days: {left_s}");
        tls.held.lock().unwrap().validity.until_s = 86_400;
        tls.renew(&mut tls.held.lock().unwrap());
        assert!(teller.now().unwrap().contains("expired at 1970-01-02T00:00:00Z; renew it"), "{teller:?}");
        assert_eq!(teller.end_s(), Some(86_400));
    }

    #[test]
    fn rubbish_is_no_certificate() {
        let dir = tempfile::tempdir().unwrap();
        let rubbish = dir.path().join("rubbish");
        key_file(&rubbish, b"rubbish");
        let files = Files { chain: rubbish.clone(), key: rubbish, clients: None };
        let why = Tls::open(files, Teller::new("certificate", Arc::new(|_| {}))).unwrap_err().to_string();
        assert!(why.contains("no certificate"), "{why}");
    }
}

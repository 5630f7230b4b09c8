//! How a PostgreSQL server is reached: its connection string, the password, and whether what goes over the wire is sealed.
//!
//! A password in an argument is read by everybody on the machine (`ps`), so a connection string with one is refused; it
//! comes from a file or from PGPASSWORD instead, and goes on to the shop's process through its standard input.
//!
//! `sslmode` as in libpq, where its default is unsafe made safe: to this machine (loopback, a socket in the file system)
//! nothing is sealed unless asked for, because nobody else hears it and it costs what is to be measured; to another host TLS
//! is required and the certificate checked, also its name, and `sslmode=disable` must be said to go without.

use postgres::config::{Host, SslMode};
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use postgres::{Config, Socket};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, InvalidDnsNameError, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;
use wakewatt_host::authorities;

/// A connection string that is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// Not understood. Its text may hold a password and is not repeated.
    #[error("the connection string cannot be read; write postgres://user@host:5432/database")]
    Unreadable,
    /// Everybody could read it.
    #[error(
        "the connection string holds a password, which everybody on this machine can read in the list of processes; \
         take it out, and name a file with --database-password-file or set PGPASSWORD"
    )]
    HasPassword,
}

/// Reads a connection string as a person has written it.
pub fn check(url: &str) -> Result<(), UrlError> {
    match parse(url)?.get_password() {
        Some(_) => Err(UrlError::HasPassword),
        None => Ok(()),
    }
}

/// Is it said that nothing need be sealed, to a host that is not this one?
pub fn is_open_to_others(url: &str) -> bool {
    parse(url).is_ok_and(|config| !is_here(&config) && config.get_ssl_mode() == SslMode::Disable)
}

fn parse(url: &str) -> Result<Config, UrlError> {
    // Both check more than libpq's require, and so does our require.
    let url = ["verify-full", "verify-ca"]
        .iter()
        .fold(url.to_string(), |url, word| url.replace(&format!("sslmode={word}"), "sslmode=require"));
    url.parse().map_err(|_| UrlError::Unreadable)
}

/// The configuration, with the mode that will be kept to.
pub(super) fn config(url: &str, password: Option<&str>) -> Result<Config, UrlError> {
    let mut config = parse(url)?;
    if let Some(password) = password {
        config.password(password);
    }
    let mode = match (config.get_ssl_mode(), is_here(&config)) {
        (SslMode::Prefer, true) | (SslMode::Disable, _) => SslMode::Disable,
        _ => SslMode::Require,
    };
    config.ssl_mode(mode);
    Ok(config)
}

/// Does every address lie on this machine?
fn is_here(config: &Config) -> bool {
    if !config.get_hostaddrs().is_empty() {
        return config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback);
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let ip = name.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
            name.eq_ignore_ascii_case("localhost") || ip.is_ok_and(|ip| ip.is_loopback())
        }
    })
}

/// TLS with the authorities of this file, or of the distribution. Without any, nobody is believed.
#[derive(Clone)]
pub(super) struct Tls(TlsConnector);

impl Tls {
    pub(super) fn new(ca: Option<&Path>) -> Result<Tls, String> {
        let mut roots = RootCertStore::empty();
        if let Some((path, bytes)) = authorities::read(ca).map_err(|e| e.to_string())? {
            roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&bytes).flatten());
            if ca.is_some() && roots.is_empty() {
                return Err(format!("{}: holds no certificate", path.display()));
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Tls(TlsConnector::from(Arc::new(config))))
    }
}

/// To one server.
pub(super) struct Handshake {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Sealed;
    type TlsConnect = Handshake;
    type Error = InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, InvalidDnsNameError> {
        Ok(Handshake { connector: self.0.clone(), name: ServerName::try_from(host)?.to_owned() })
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Sealed;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Sealed>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move { Ok(Sealed(self.connector.connect(self.name, socket).await?)) })
    }
}

/// The connection, after the handshake.
pub(super) struct Sealed(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Sealed {
    fn channel_binding(&self) -> ChannelBinding {
        // The certificate and its name are checked; SCRAM without it is bound to nothing else.
        ChannelBinding::none()
    }
}

impl AsyncRead for Sealed {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, to)
    }
}

impl AsyncWrite for Sealed {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_testing::{Lacks, skipped};

    #[test]
    fn a_password_in_the_string_is_refused_and_not_repeated() {
        for url in
            ["postgres://u:hunter2@db/x", "postgresql://u@db/x?password=hunter2", "host=db user=u password=hunter2"]
        {
            let error = check(url).unwrap_err();
            assert!(error == UrlError::HasPassword && !error.to_string().contains("hunter2"), "{url}: {error}");
        }
        let error = check("mysql://u:hunter2@db/x").unwrap_err();
        assert!(error == UrlError::Unreadable && !error.to_string().contains("hunter2"));
        assert_eq!(check("postgres://u@db:5432/x"), Ok(()));
    }

    #[test]
    fn nothing_goes_plain_to_another_host_unless_that_is_said() {
        use SslMode::{Disable, Require};
        for (url, mode) in [
            ("postgres://u@127.0.0.1/x", Disable),
            ("postgres://u@localhost/x", Disable),
            ("postgres://u@[::1]/x", Disable),
            ("host=/run/postgresql user=u", Disable),
            ("postgres://u@localhost/x?sslmode=require", Require),
            ("postgres://u@db.example/x", Require),
            ("postgres://u@db.example/x?sslmode=prefer", Require),
            ("postgres://u@db.example/x?sslmode=verify-full", Require),
            ("postgres://u@127.0.0.1,db.example/x", Require),
            ("host=localhost hostaddr=10.0.0.7 user=u", Require),
            ("postgres://u@db.example/x?sslmode=disable", Disable),
        ] {
            assert_eq!(config(url, None).unwrap().get_ssl_mode(), mode, "{url}");
        }
        assert!(is_open_to_others("postgres://u@db/x?sslmode=disable") && !is_open_to_others("postgres://u@db/x"));
        assert!(!is_open_to_others("postgres://u@127.0.0.1/x"));
    }

    /// Key and certificate for localhost, made by openssl; none where that is not installed.
    fn certificate(folder: &Path) -> Option<Arc<rustls::ServerConfig>> {
        let at = |name: &str| folder.join(name);
        let (key, cert) = (at("key.pem"), at("cert.pem"));
        let args =
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
        let names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext"];
        let made = std::process::Command::new("openssl")
            .args(args)
            .args(names)
            .args(["basicConstraints=critical,CA:FALSE", "-keyout"])
            .args([key.as_os_str(), "-out".as_ref(), cert.as_os_str()])
            .output();
        if !made.is_ok_and(|out| out.status.success()) {
            return None;
        }
        let chain = CertificateDer::pem_file_iter(&cert).unwrap().map(Result::unwrap).collect();
        let key = rustls::pki_types::PrivateKeyDer::from_pem_file(&key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        Some(Arc::new(config.unwrap().with_no_client_auth().with_single_cert(chain, key).unwrap()))
    }

    /// A server that takes TLS, asks for a password in the clear and turns everybody away; returns what it was told.
    fn stub(config: Arc<rustls::ServerConfig>) -> (u16, std::thread::JoinHandle<Option<String>>) {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let serve = move || {
            let (mut socket, _) = listener.accept().ok()?;
            socket.read_exact(&mut [0u8; 8]).ok()?;
            socket.write_all(b"S").ok()?;
            let mut tls = rustls::StreamOwned::new(rustls::ServerConnection::new(config).ok()?, socket);
            let mut message = |has_kind: bool| {
                let mut head = vec![0u8; if has_kind { 5 } else { 4 }];
                tls.read_exact(&mut head).ok()?;
                let length = u32::from_be_bytes(head[head.len() - 4..].try_into().ok()?);
                let mut body = vec![0u8; length as usize - 4];
                tls.read_exact(&mut body).ok()?;
                if !has_kind {
                    tls.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3]).ok()?;
                    tls.flush().ok()?;
                }
                Some(body)
            };
            message(false)?;
            let password = message(true)?;
            Some(String::from_utf8_lossy(&password).trim_end_matches('\0').to_string())
        };
        (port, std::thread::spawn(serve))
    }

    #[test]
    fn a_password_goes_through_tls_and_only_to_who_is_believed() {
        let dir = tempfile::tempdir().unwrap();
        let Some(server) = certificate(dir.path()) else {
            let test = "a_password_goes_through_tls_and_only_to_who_is_believed";
            return skipped(test, Lacks::Program("openssl"), "no openssl to make a certificate");
        };
        let connect = |ca: Option<&Path>, host: &str| {
            let (port, told) = stub(Arc::clone(&server));
            let url = format!("host={host} hostaddr=127.0.0.1 port={port} user=u dbname=x sslmode=require");
            let mut config = config(&url, Some("hunter2")).unwrap();
            config.connect_timeout(std::time::Duration::from_secs(60));
            let error = config.connect(Tls::new(ca).unwrap()).map(drop).unwrap_err();
            (super::super::store::StoreError::from(error).to_string(), told.join().unwrap())
        };
        let ca = dir.path().join("cert.pem");
        assert_eq!(connect(Some(&ca), "localhost").1.as_deref(), Some("hunter2"), "TLS to whom the file vouches for");
        let (why, told) = connect(Some(&ca), "db.example");
        assert!(told.is_none() && why.contains("certificate"), "another name: {why}");
        let (why, told) = connect(None, "localhost");
        assert!(told.is_none() && why.contains("certificate"), "unknown to the distribution: {why}");
        assert!(Tls::new(Some(Path::new("/etc/hosts"))).map(drop).unwrap_err().contains("holds no certificate"));
    }
}

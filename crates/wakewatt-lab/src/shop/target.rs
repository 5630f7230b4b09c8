//! A shop named by its URL: where it is, whether it answers, and whether it is on this machine.
//!
//! HTTP only. A shop behind TLS is asked on the far side of what ends it, which is also where its own work begins.

use super::client::Target;
use super::server::ServerDescription;
use super::usage;
use hyper::Uri;
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::time::Duration;
use wakewatt_host::resolve;

/// `http://host[:port][/path]`, looked up.
pub fn parse(url: &str) -> Result<Target, String> {
    let fail = |why: &str| format!("{}: {why}", url.escape_default());
    let uri: Uri = url.parse().map_err(|_| fail("not a URL; write http://host:port/path"))?;
    match uri.scheme_str() {
        Some("http") => {}
        Some("https") => return Err(fail("only http: name the server behind what ends TLS")),
        _ => return Err(fail("write http://host:port/path")),
    }
    let authority = uri.authority().ok_or_else(|| fail("no host; write http://host:port/path"))?;
    if authority.as_str().contains('@') {
        return Err("user and password in a URL are not sent; leave them out".into());
    }
    let found = resolve::addresses(authority.host(), authority.port_u16().unwrap_or(80));
    let found = found.map_err(|e| fail(&format!("the host cannot be found: {e}")))?;
    let at = *found.first().ok_or_else(|| fail("the host has no address"))?;
    let path = uri.path_and_query().map_or("", |p| p.as_str()).trim_end_matches('/');
    Ok(Target { host: authority.to_string(), at, prefix: path.to_string() })
}

/// Does it answer, and is it ours? An error when nobody answers.
pub fn look(target: &Target) -> Result<Option<ServerDescription>, String> {
    let wait = Duration::from_secs(5);
    TcpStream::connect_timeout(&target.at, wait).map_err(|e| {
        format!("{}: nobody answers ({e}); is the server running, and its port open to this host?", target.at)
    })?;
    Ok(usage::ask(target).ok())
}

/// An address of this machine? Only those can be bound.
pub fn is_here(ip: IpAddr) -> bool {
    UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shop::server::tests::Open;

    #[test]
    fn urls() {
        let ok = parse("http://127.0.0.1:8080/shop/").unwrap();
        assert_eq!(
            (ok.at.to_string().as_str(), ok.prefix.as_str(), ok.host.as_str()),
            ("127.0.0.1:8080", "/shop", "127.0.0.1:8080")
        );
        assert_eq!(parse("http://127.0.0.1").unwrap().at.port(), 80);
        assert_eq!(parse("http://[::1]:1/").unwrap().at.to_string(), "[::1]:1");
        for (url, says) in [
            ("https://a/", "TLS"),
            ("ftp://a/", "write http"),
            ("127.0.0.1:80", "write http"),
            ("", "URL"),
            ("http://a:b@127.0.0.1/", "left"),
            ("http://no.such.host.invalid/", "cannot be found"),
        ] {
            let why = parse(url).unwrap_err();
            assert!(why.contains(says) || says == "left" && why.contains("leave"), "{url}: {why}");
        }
    }

    #[test]
    fn who_answers() {
        let shop = Open::shop();
        let of = |at| Target { host: "x".into(), at, prefix: String::new() };
        assert_eq!(look(&of(shop.at)).unwrap().unwrap().n_products, 100);
        assert!(is_here(shop.at.ip()) && !is_here("192.0.2.1".parse().unwrap()));
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert!(look(&of(nobody)).unwrap_err().contains("nobody answers"));
    }
}

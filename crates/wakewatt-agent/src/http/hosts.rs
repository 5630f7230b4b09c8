//! Whom a request believes to be asking: the `Host` of a page elsewhere is refused.
//!
//! A page that a browser shows may ask the server it came from. Whoever owns that server's name can let it point to 127.0.0.1 after the page was loaded (DNS
//! rebinding), and the page reads what only this machine should. It cannot hide the name by which it asks. So only addresses and
//! `localhost` are answered: they belong to nobody who could point them elsewhere. Who brings a name of his own (a proxy) asks by the address.

use axum::http::{Request, StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use std::net::{Ipv4Addr, Ipv6Addr};

/// What somebody is told, unless the host asked for is this machine's beyond doubt.
pub(super) fn refusal<B>(request: &Request<B>) -> Option<Response> {
    if is_ours(request) {
        return None;
    }
    let why = "the agent answers to an address or to localhost, not to another name: a web page could ask by a name of its own; \
               ask for example http://127.0.0.1:9742/\n";
    Some((StatusCode::MISDIRECTED_REQUEST, why).into_response())
}

fn is_ours<B>(request: &Request<B>) -> bool {
    let mut named = request.headers().get_all(header::HOST).iter().map(|host| host.to_str().ok()).peekable();
    // Programs of old say no host; browsers always do.
    let is_said = named.peek().is_some() || request.version() == Version::HTTP_10;
    let in_line = request.uri().authority().map(|authority| Some(authority.as_str()));
    is_said && named.chain(in_line).all(|host| host.is_some_and(is_unnamed))
}

/// An address or `localhost`, with or without a port.
fn is_unnamed(host: &str) -> bool {
    let is_port = |port: &str| port.is_empty() || port.strip_prefix(':').is_some_and(|p| p.parse::<u16>().is_ok());
    if let Some((address, port)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return address.parse::<Ipv6Addr>().is_ok() && is_port(port);
    }
    let (name, port) = host.split_at(host.find(':').unwrap_or(host.len()));
    is_port(port) && (name.parse::<Ipv4Addr>().is_ok() || name.eq_ignore_ascii_case("localhost"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    #[test]
    fn an_address_is_nobodys_name() {
        for ours in
            ["127.0.0.1:9742", "127.0.0.1", "[::1]:9742", "[::1]", "localhost", "LocalHost:9742", "192.0.2.7:80"]
        {
            assert!(is_unnamed(ours), "{ours}");
        }
        for other in [
            "evil.example",
            "evil.example:9742",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.example@127.0.0.1",
            "127.0.0.1:9742:1",
            "127.0.0.1:x",
            "::1",
            "[::1]x",
            "[evil.example]",
            "2130706433",
            "",
        ] {
            assert!(!is_unnamed(other), "{other}");
        }
    }

    #[test]
    fn every_name_of_a_request_counts() {
        let asked = |line: &str, version: Version, hosts: &[&str]| {
            let mut builder = Request::builder().uri(line).version(version);
            for host in hosts {
                builder = builder.header(header::HOST, *host);
            }
            is_ours(&builder.body(Body::empty()).unwrap())
        };
        assert!(asked("/", Version::HTTP_11, &["127.0.0.1"]) && asked("/", Version::HTTP_10, &[]));
        assert!(!asked("/", Version::HTTP_11, &[]) && !asked("/", Version::HTTP_10, &["evil.example"]));
        assert!(!asked("/", Version::HTTP_11, &["127.0.0.1", "evil.example"]));
        assert!(!asked("http://evil.example/", Version::HTTP_11, &["127.0.0.1"]));
    }
}

//! /etc/hosts and /etc/resolv.conf (hosts(5), resolv.conf(5)): what they say, as far as it is followed here.
//!
//! Read anew for every name. A line that cannot be read is passed over, as everybody else does.

use super::number;
use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

/// Lists that block advertisers reach some megabytes.
const MAX_BYTES: u64 = 16 << 20;
/// As in resolv.conf(5).
const MAX_SERVERS: usize = 3;
const MAX_SEARCH: usize = 6;

/// Whom to ask, and how patiently.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) servers: Vec<SocketAddr>,
    pub(super) search: Vec<String>,
    pub(super) n_dots: usize,
    pub(super) patience: Duration,
    pub(super) n_attempts: u32,
    pub(super) is_tcp_only: bool,
}

impl Config {
    /// A file that is missing means a server on this host.
    pub(super) fn read(path: &Path, port: u16) -> Config {
        Config::parse(&text(path), port)
    }

    fn parse(text: &str, port: u16) -> Config {
        let mut out = Config {
            servers: Vec::new(),
            search: Vec::new(),
            n_dots: 1,
            patience: Duration::from_secs(5),
            n_attempts: 2,
            is_tcp_only: false,
        };
        for line in text.lines().filter(|line| !line.starts_with(['#', ';'])) {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => {
                    let server = words.next().and_then(|word| number(word).ok().flatten());
                    out.servers.extend(server.map(|at| super::with_port(at, port)));
                }
                // The last of either line holds.
                Some("search" | "domain") => {
                    let domains = words.map(|word| word.trim_matches('.').to_ascii_lowercase());
                    out.search = domains.filter(|domain| super::checked(domain).is_ok()).take(MAX_SEARCH).collect();
                }
                Some("options") => words.for_each(|word| out.option(word)),
                _ => {}
            }
        }
        out.servers.truncate(MAX_SERVERS);
        if out.servers.is_empty() {
            out.servers.push((Ipv4Addr::LOCALHOST, port).into());
        }
        out
    }

    fn option(&mut self, word: &str) {
        let (name, value) = word.split_once(':').unwrap_or((word, ""));
        let value: Option<u32> = value.parse().ok();
        match (name, value) {
            ("ndots", Some(n)) => self.n_dots = n.min(15) as usize,
            ("timeout", Some(n)) => self.patience = Duration::from_secs(n.clamp(1, 30).into()),
            ("attempts", Some(n)) => self.n_attempts = n.clamp(1, 5),
            ("use-vc", _) => self.is_tcp_only = true,
            _ => {}
        }
    }

    /// The names to ask for, in this order, without the dot at the end.
    pub(super) fn candidates(&self, name: &str) -> Vec<String> {
        if let Some(whole) = name.strip_suffix('.') {
            return vec![whole.into()];
        }
        let mut all: Vec<String> = self.search.iter().map(|domain| format!("{name}.{domain}")).collect();
        let is_first = name.matches('.').count() >= self.n_dots;
        all.insert(if is_first { 0 } else { all.len() }, name.into());
        all.retain(|candidate| candidate.len() <= 253);
        all
    }
}

/// What a file of hosts says of this name; ports are zero.
pub(super) fn hosts(path: &Path, name: &str) -> Vec<SocketAddr> {
    let text = text(path);
    let of_line = |line: &str| {
        let mut words = line.split('#').next().unwrap_or_default().split_ascii_whitespace();
        let at = number(words.next()?).ok().flatten()?;
        words.any(|word| word.trim_end_matches('.').eq_ignore_ascii_case(name)).then_some(at)
    };
    text.lines().filter_map(of_line).collect()
}

fn text(path: &Path) -> String {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
    if read.is_err() {
        return String::new();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_followed_of_resolv_conf() {
        let text = "# made by somebody\nnameserver 192.0.2.1\nnameserver nonsense\nnameserver 2001:db8::53\n\
                    nameserver fe80::1%1\nnameserver 192.0.2.4\ndomain old.example\nsearch Corp.Example. b.example bad..name\n\
                    options ndots:20 timeout:0 attempts:99 rotate use-vc edns0\n";
        let found = Config::parse(text, 53);
        let servers: Vec<String> = found.servers.iter().map(ToString::to_string).collect();
        assert_eq!(servers, ["192.0.2.1:53", "[2001:db8::53]:53", "[fe80::1%1]:53"]);
        assert_eq!(found.search, ["corp.example", "b.example"]);
        assert_eq!((found.n_dots, found.patience.as_secs(), found.n_attempts, found.is_tcp_only), (15, 1, 5, true));
        assert_eq!(Config::parse("", 53).servers, ["127.0.0.1:53".parse().unwrap()]);
    }

    #[test]
    fn where_a_name_is_looked_for() {
        let config = Config::parse("search a.example b.example\noptions ndots:2", 53);
        assert_eq!(config.candidates("db"), ["db.a.example", "db.b.example", "db"]);
        assert_eq!(config.candidates("db.x"), ["db.x.a.example", "db.x.b.example", "db.x"]);
        assert_eq!(config.candidates("db.x.y"), ["db.x.y", "db.x.y.a.example", "db.x.y.b.example"]);
        assert_eq!(config.candidates("db."), ["db"]);
    }
}

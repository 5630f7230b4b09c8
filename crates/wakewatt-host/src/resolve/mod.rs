//! Names to addresses, without the C library: which address has this host?
//!
//! A static glibc's getaddrinfo loads the machine's NSS libraries (/etc/nsswitch.conf), so a program run as root would run
//! code of whatever lies there, built for another libc. So nothing here goes through it, and `clippy.toml` bans what would.
//! In this order: a number is itself; `localhost` and names below it are loopback, whatever anybody says (RFC 6761); then
//! /etc/hosts; then the name servers of /etc/resolv.conf (RFC 1034, 1035, resolv.conf(5)), A and AAAA.
//!
//! A name with a dot at its end is asked as it stands. One with fewer dots than `ndots` is tried below each `search` domain
//! first and as it stands last; one with as many or more, the other way round. Only "no such name" leads on to the next
//! candidate: a server that fails ends the search, because another name's address would be a wrong answer. Addresses that
//! this machine has a route to come first, of these IPv6 (RFC 6724 in its plainest form).
//!
//! Left out, on purpose: NIS, LDAP, mDNS (`.local`), systemd's own names (its DNS stub at 127.0.0.53 is asked like any
//! server), `sortlist`, EDNS, DNSSEC, a cache, names that are not ASCII (write `xn--…`), and numbers like `127.1`.

mod config;
mod dns;
#[cfg(test)]
mod tests;

use config::Config;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// All that one name may cost.
const DEADLINE: Duration = Duration::from_secs(10);
/// A name server that answers one question answers another as fast, or does not mean to.
const PATIENCE_FOR_MORE: Duration = Duration::from_secs(1);

/// Why a name has no address.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ResolveError {
    /// It can be no host's name.
    #[error("{host:?} is no host name: {why}")]
    NoName {
        /// As given.
        host: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Not HOST:PORT.
    #[error("{text:?}: no port; write HOST:PORT, such as 10.0.0.2:7117 or [2001:db8::1]:7117")]
    NoPort {
        /// As given.
        text: String,
    },
    /// `%…` names no interface.
    #[error("{host:?}: {scope:?} is no network interface of this machine; `wakewatt inspect net` lists them")]
    NoInterface {
        /// As given.
        host: String,
        /// What stood behind the `%`.
        scope: String,
    },
    /// Everybody who was asked knows of no such name, or of no address for it.
    #[error("no address for {host}: not in {hosts}, and {servers} (of {config}) know none")]
    Unknown {
        host: String,
        /// The file of hosts.
        hosts: PathBuf,
        /// Who was asked.
        servers: String,
        /// The file that names the servers.
        config: PathBuf,
    },
    /// Nobody could say.
    #[error("no address for {host}: {why}; look at {config}, or give an address")]
    NoAnswer {
        host: String,
        /// What the last server did.
        why: String,
        /// The file that names the servers.
        config: PathBuf,
    },
}

/// Where to look.
#[derive(Clone, Debug)]
pub struct Resolver {
    hosts: PathBuf,
    config: PathBuf,
    /// The servers' port.
    port: u16,
    deadline: Duration,
    /// For IPv6 addresses, once there are others.
    patience_for_more: Duration,
}

impl Default for Resolver {
    fn default() -> Resolver {
        Resolver {
            hosts: "/etc/hosts".into(),
            config: "/etc/resolv.conf".into(),
            port: 53,
            deadline: DEADLINE,
            patience_for_more: PATIENCE_FOR_MORE,
        }
    }
}

/// Addresses of `HOST:PORT`, at least one.
pub fn host_and_port(text: &str) -> Result<Vec<SocketAddr>, ResolveError> {
    let no_port = || ResolveError::NoPort { text: text.into() };
    let (host, port) = text.rsplit_once(':').ok_or_else(no_port)?;
    // An IPv6 address without brackets has colons of its own.
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    if host.contains(':') && !is_bracketed {
        return Err(no_port());
    }
    let port = port.parse().map_err(|_| no_port())?;
    addresses(host, port)
}

/// Addresses of a host (a name, or a number with or without brackets) with this port, at least one.
pub fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>, ResolveError> {
    Resolver::default().addresses(host, port)
}

impl Resolver {
    /// The machine's, with no more time than this.
    pub fn within(most: Duration) -> Resolver {
        Resolver { deadline: most.min(DEADLINE), ..Resolver::default() }
    }

    /// As [`addresses`].
    pub fn addresses(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, ResolveError> {
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        if let Some(number) = number(bare)? {
            return Ok(vec![with_port(number, port)]);
        }
        let name = checked(bare)?;
        let asked = name.trim_end_matches('.');
        if asked == "localhost" || asked.ends_with(".localhost") {
            return Ok([IpAddr::V4(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()]
                .map(|ip| SocketAddr::new(ip, port))
                .to_vec());
        }
        let known = config::hosts(&self.hosts, asked);
        let known = if known.is_empty() { self.ask(&name)? } else { known };
        let mut all: Vec<SocketAddr> = known.into_iter().map(|known| with_port(known, port)).collect();
        all.sort_by_cached_key(|at| (!has_route(*at), at.is_ipv4()));
        all.dedup();
        Ok(all)
    }

    fn ask(&self, name: &str) -> Result<Vec<SocketAddr>, ResolveError> {
        let config = Config::read(&self.config, self.port);
        let until = Instant::now() + self.deadline;
        for candidate in config.candidates(name) {
            let found = dns::addresses(&candidate, &config, until, self.patience_for_more)
                .map_err(|why| ResolveError::NoAnswer { host: name.into(), why, config: self.config.clone() })?;
            if !found.is_empty() {
                return Ok(found.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect());
            }
        }
        let servers: Vec<String> = config.servers.iter().map(|at| at.ip().to_string()).collect();
        Err(ResolveError::Unknown {
            host: name.into(),
            hosts: self.hosts.clone(),
            servers: servers.join(", "),
            config: self.config.clone(),
        })
    }
}

/// An address written as a number; of IPv6 perhaps with the interface it is meant on (RFC 4007).
fn number(text: &str) -> Result<Option<SocketAddr>, ResolveError> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(Some(SocketAddr::new(ip, 0)));
    }
    let Some((ip, scope)) = text.split_once('%') else { return Ok(None) };
    let Ok(ip) = ip.parse::<Ipv6Addr>() else { return Ok(None) };
    let index = scope.parse().ok().filter(|index| *index > 0).or_else(|| interface(scope));
    let no_interface = || ResolveError::NoInterface { host: text.into(), scope: scope.into() };
    Ok(Some(SocketAddrV6::new(ip, 0, 0, index.ok_or_else(no_interface)?).into()))
}

fn interface(name: &str) -> Option<u32> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None).ok()?;
    netdevice::name_to_index(&socket, name).ok()
}

fn with_port(mut at: SocketAddr, port: u16) -> SocketAddr {
    at.set_port(port);
    at
}

/// Connecting a datagram socket sends nothing; the kernel only looks for a route.
#[allow(clippy::disallowed_methods)] // An address, not a name.
fn has_route(at: SocketAddr) -> bool {
    let any: IpAddr = if at.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // A port of zero is not connected to.
    UdpSocket::bind((any, 0)).and_then(|socket| socket.connect(with_port(at, 53))).is_ok()
}

/// In lower case, if it can be a host's name (RFC 1123, and the underscore that some networks use).
fn checked(host: &str) -> Result<String, ResolveError> {
    let no_name = |why| Err(ResolveError::NoName { host: host.into(), why });
    let labels = host.strip_suffix('.').unwrap_or(host);
    if labels.len() > 253 {
        return no_name("longer than 253 bytes");
    }
    if !host.is_ascii() {
        return no_name("not ASCII; write it as xn--…");
    }
    let is_label = |label: &str| {
        let is_fine = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(is_fine)
    };
    if !labels.split('.').all(is_label) {
        return no_name("letters, digits and dashes, in parts of 1 to 63 between dots");
    }
    if labels.rsplit('.').next().is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit())) {
        return no_name("it ends in a number, and is no whole address");
    }
    Ok(host.to_ascii_lowercase())
}

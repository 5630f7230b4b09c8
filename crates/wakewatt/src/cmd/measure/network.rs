//! `wakewatt measure network`: arguments to a plan; names of peers to addresses.

use super::Measured;
use crate::cli::NetworkArgs;
use crate::exit::{Code, Failure};
use anyhow::Result;
use std::net::{IpAddr, SocketAddr};
use wakewatt_core::samples::network::Transport;
use wakewatt_host::resolve;
use wakewatt_lab::context::Lab;
use wakewatt_lab::survey::{self, Found, NetworkPlan, Peer};

/// Runs it.
pub(super) fn run(args: &NetworkArgs, lab: Lab<'_>) -> Result<Measured> {
    if args.icmp {
        let Found { samples: icmp, not_done } = survey::ping(lab, &plan(args, host)?)?;
        return Ok(Measured { icmp, not_done, ..Measured::default() });
    }
    let Found { samples: network, not_done } = survey::round_trips(lab, &plan(args, host_and_port)?)?;
    Ok(Measured { network, not_done, ..Measured::default() })
}

fn plan<A>(args: &NetworkArgs, address: fn(&str) -> Result<A>) -> Result<NetworkPlan<A>> {
    let peer = |name: &String| Ok::<_, anyhow::Error>(Peer { name: name.clone(), address: address(name)? });
    let transports = [Transport::Udp, Transport::Tcp].into_iter();
    Ok(NetworkPlan {
        peer: args.peer.as_ref().map(peer).transpose()?,
        transports: transports.filter(|t| args.transport.iter().any(|word| word == t.word())).collect(),
        cpu: args.cpu,
        responder_cpu: args.responder_cpu,
        gap_ns: args.gap,
        duration_ns: args.duration,
    })
}

fn host_and_port(peer: &str) -> Result<SocketAddr> {
    let addresses = resolve::host_and_port(peer)
        .map_err(|e| Failure::error(Code::Usage, format!("--peer: {e}; give HOST:PORT, such as 10.0.0.2:7117")))?;
    addresses.first().copied().ok_or_else(|| Failure::error(Code::Usage, format!("--peer {peer}: no address")))
}

/// A name or address; a port, which a ping has not, is cut off.
fn host(peer: &str) -> Result<IpAddr> {
    let bare = peer.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = bare.parse() {
        return Ok(address);
    }
    let host = peer.rsplit_once(':').map_or(peer, |(host, _)| host);
    let fail =
        |why: String| Failure::error(Code::Usage, format!("--peer {peer}: {why}; give a host, such as 10.0.0.2"));
    let addresses = resolve::addresses(host, 0).map_err(|e| fail(e.to_string()))?;
    addresses.first().map(|a| a.ip()).ok_or_else(|| fail("no address".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_hosts_with_or_without_port() {
        let ip = |text: &str| host(text).unwrap().to_string();
        assert_eq!((ip("10.0.0.2"), ip("10.0.0.2:7117")), ("10.0.0.2".into(), "10.0.0.2".into()));
        assert_eq!((ip("fe80::1"), ip("[::1]"), ip("[::1]:7")), ("fe80::1".into(), "::1".into(), "::1".into()));
        assert!(host("no such host").is_err());
    }
}

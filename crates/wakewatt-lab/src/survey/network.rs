//! Round trips over the network, or over loopback where no peer is named; and pings.

use super::{Found, allowed_cpus, each};
use crate::bench::{self, IcmpSpec, NetworkSpec, RespondSpec, Responder};
use crate::context::Lab;
use crate::pick;
use crate::refusal::Refusal;
use std::net::{IpAddr, SocketAddr};
use wakewatt_core::facts::{Cpus, Domain, topology::Topology};
use wakewatt_core::samples::icmp::IcmpSample;
use wakewatt_core::samples::network::{NetworkSample, Transport};
use wakewatt_core::units::Cpu;

/// Whom to ask.
#[derive(Clone, Debug)]
pub struct Peer<A> {
    /// As it was named.
    pub name: String,
    /// Where it is.
    pub address: A,
}

/// What is to be measured; `A` is an address with a port, or without one for pings.
#[derive(Clone, Debug)]
pub struct NetworkPlan<A> {
    /// Whom to ask; ourselves, over loopback, when none.
    pub peer: Option<Peer<A>>,
    /// Transports; both when empty. A ping has none.
    pub transports: Vec<Transport>,
    /// The requester's CPU; the first that is allowed when none.
    pub cpu: Option<Cpu>,
    /// The responder's, over loopback; a near one when none.
    pub responder_cpu: Option<Cpu>,
    /// Pause between planned requests.
    pub gap_ns: u64,
    /// Time per transport.
    pub duration_ns: u64,
}

impl<A> NetworkPlan<A> {
    fn cpu(&self) -> Result<Cpu, Refusal> {
        let first = self.cpu.or(allowed_cpus()?.first());
        first.ok_or_else(|| Refusal::Unavailable("no CPU to run on".into()))
    }
}

/// Measures round trips, one transport after the other.
pub fn round_trips(lab: Lab<'_>, plan: &NetworkPlan<SocketAddr>) -> Result<Found<NetworkSample>, Refusal> {
    let cpu = plan.cpu()?;
    let mut responder = None;
    let (peer, name, responder_cpu) = match &plan.peer {
        Some(peer) => (peer.address, peer.name.clone(), None),
        None => {
            let topology = Topology::read(lab.src, &Cpus::read(lab.src));
            let allowed = allowed_cpus()?;
            let responder_cpu = plan.responder_cpu.or_else(|| pick::partner(&topology, &allowed, cpu));
            let started = Responder::start(&RespondSpec::loopback(responder_cpu));
            let started = responder.insert(started.map_err(|e| Refusal::Unavailable(e.to_string()))?);
            (started.address(), "loopback".to_string(), responder_cpu)
        }
    };
    let mut transports = vec![Transport::Udp, Transport::Tcp];
    transports.retain(|t| plan.transports.is_empty() || plan.transports.contains(t));
    let mut found = Found::default();
    each(
        lab,
        &transports,
        |t| format!("{} to {name}", t.word()),
        |transport| {
            let spec = NetworkSpec {
                gap_ns: plan.gap_ns,
                local_responder_cpu: responder_cpu,
                ..NetworkSpec::to(*transport, peer, cpu, plan.duration_ns)
            };
            let sample = bench::round_trip(&spec, lab.stop, lab.src).map(|slice| slice.sample);
            let sample = sample.map(|sample| NetworkSample { peer: name.clone(), ..sample });
            found.add(|| format!("{} round trip to {name}", transport.word()), sample);
        },
    );
    Ok(found)
}

/// Pings, each divided along its way where the kernel lets us.
pub fn ping(lab: Lab<'_>, plan: &NetworkPlan<IpAddr>) -> Result<Found<IcmpSample>, Refusal> {
    let name = plan.peer.as_ref().map_or("loopback".to_string(), |peer| peer.name.clone());
    let peer = plan.peer.as_ref().map_or(std::net::Ipv4Addr::LOCALHOST.into(), |peer| peer.address);
    let spec = IcmpSpec { gap_ns: plan.gap_ns, ..IcmpSpec::to(peer, plan.cpu()?, plan.duration_ns) };
    let sample = bench::ping(&spec, lab.stop, lab.src).map(|sample| IcmpSample { peer: name.clone(), ..sample });
    let mut found = Found::default();
    found.add(|| format!("ICMP round trip to {name}"), sample);
    Ok(found)
}

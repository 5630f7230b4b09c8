//! A socket that sends ICMP echoes to one peer and gets its replies.
//!
//! A ping socket (SOCK_DGRAM, IPPROTO_ICMP) needs no privilege where `net.ipv4.ping_group_range` allows the group; the
//! kernel then chooses the identifier and the checksum. Otherwise a raw socket, which needs CAP_NET_RAW; it is filtered
//! to replies, or on loopback the request itself would wake the thread that waits for the reply. IP_RECVERR makes "no
//! route", "host unreachable" and the like errors of the socket instead of silence. ping(8), icmp(7), raw(7).

use crate::timestamps::{Received, enable_receive_stamps, receive};
use rustix::fd::OwnedFd;
use rustix::io;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sockopt};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Header and 56 bytes, as ping sends.
pub const ECHO_BYTES: usize = 64;
/// Room for a reply with an IPv4 header in front.
const BUFFER_BYTES: usize = 192;

/// Which socket it became.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoSocketKind {
    /// Unprivileged.
    Ping,
    /// With CAP_NET_RAW.
    Raw,
}

/// Connected to one peer.
#[derive(Debug)]
pub struct EchoSocket {
    fd: OwnedFd,
    kind: EchoSocketKind,
    local: IpAddr,
    peer: IpAddr,
    id: u16,
    buffer: [u8; BUFFER_BYTES],
}

/// A reply of the peer to this socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoReply {
    /// Of which request.
    pub sequence: u16,
    /// When the kernel took it in, CLOCK_REALTIME; none if it gave no stamp.
    pub kernel_rx_at_ns: Option<u64>,
}

impl EchoSocket {
    /// Opens and connects; a wait for a reply ends after `look`.
    pub fn open(peer: IpAddr, look: Duration) -> io::Result<EchoSocket> {
        let (family, protocol) = match peer {
            IpAddr::V4(_) => (AddressFamily::INET, ipproto::ICMP),
            IpAddr::V6(_) => (AddressFamily::INET6, ipproto::ICMPV6),
        };
        let open = |kind| rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, Some(protocol));
        let (fd, kind) = match open(SocketType::DGRAM) {
            Ok(fd) => (fd, EchoSocketKind::Ping),
            Err(_) => (open(SocketType::RAW)?, EchoSocketKind::Raw),
        };
        if kind == EchoSocketKind::Raw {
            only_replies(&fd, peer)?;
        }
        rustix::net::connect(&fd, &SocketAddr::new(peer, 0))?;
        let local = SocketAddr::try_from(rustix::net::getsockname(&fd)?)?;
        // Two runs at once must differ; the process number does, but for its upper half.
        let own_id = u16::try_from(std::process::id() & 0xffff).unwrap_or(1);
        let id = if kind == EchoSocketKind::Ping { local.port() } else { own_id };
        sockopt::set_socket_timeout(&fd, sockopt::Timeout::Recv, Some(look))?;
        report_errors(&fd, peer)?;
        // Without stamps the round trip is still known.
        let _ = enable_receive_stamps(fd.as_fd());
        Ok(EchoSocket { fd, kind, local: local.ip(), peer, id, buffer: [0; BUFFER_BYTES] })
    }

    /// Which kind it became.
    pub fn kind(&self) -> EchoSocketKind {
        self.kind
    }

    /// The identifier of its echoes.
    pub fn id(&self) -> u16 {
        self.id
    }

    /// The source address of its requests.
    pub fn local(&self) -> IpAddr {
        self.local
    }

    /// Sends one request.
    pub fn send(&self, sequence: u16) -> io::Result<()> {
        let packet = request(self.peer.is_ipv4(), self.id, sequence);
        rustix::net::send(&self.fd, &packet, SendFlags::empty()).map(|_| ())
    }

    /// Waits for the next packet: none if it is no reply to this socket.
    pub fn receive(&mut self) -> std::io::Result<Option<EchoReply>> {
        let Received { n_bytes, kernel_rx_at_ns, .. } = receive(self.fd.as_fd(), &mut self.buffer)?;
        let mut packet = &self.buffer[..n_bytes.min(BUFFER_BYTES)];
        if self.kind == EchoSocketKind::Raw && self.peer.is_ipv4() {
            let header = packet.first().map_or(0, |b| usize::from(b & 0xf) * 4);
            packet = packet.get(header..).unwrap_or_default();
        }
        Ok(reply_to(packet, self.peer.is_ipv4(), self.id).map(|sequence| EchoReply { sequence, kernel_rx_at_ns }))
    }
}

fn request(is_v4: bool, id: u16, sequence: u16) -> [u8; ECHO_BYTES] {
    let mut packet = [0; ECHO_BYTES];
    packet[0] = if is_v4 { 8 } else { 128 };
    packet[4..6].copy_from_slice(&id.to_be_bytes());
    packet[6..8].copy_from_slice(&sequence.to_be_bytes());
    if is_v4 {
        // ICMPv6's covers addresses too; the kernel fills it in.
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

/// The sequence number, if this is a reply to that identifier.
fn reply_to(packet: &[u8], is_v4: bool, id: u16) -> Option<u16> {
    let is_reply = packet.first() == Some(if is_v4 { &0 } else { &129 });
    let word = |at: usize| Some(u16::from_be_bytes(packet.get(at..at + 2)?.try_into().ok()?));
    (is_reply && word(4) == Some(id)).then(|| word(6)).flatten()
}

/// RFC 1071.
fn checksum(packet: &[u8]) -> u16 {
    let words = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}

/// A raw socket gets only echo replies.
fn only_replies(fd: &OwnedFd, peer: IpAddr) -> io::Result<()> {
    const ICMP_FILTER: libc::c_int = 1; // linux/icmp.h, linux/icmpv6.h: both 1; a set bit blocks the type
    match peer {
        IpAddr::V4(_) => set_option(fd, 255, ICMP_FILTER, &[!1]), // SOL_RAW
        IpAddr::V6(_) => {
            let mut blocked = [u32::MAX; 8];
            blocked[129 / 32] &= !(1 << (129 % 32));
            set_option(fd, libc::IPPROTO_ICMPV6, ICMP_FILTER, &blocked)
        }
    }
}

fn report_errors(fd: &OwnedFd, peer: IpAddr) -> io::Result<()> {
    match peer {
        IpAddr::V4(_) => set_option(fd, libc::IPPROTO_IP, libc::IP_RECVERR, &[1]),
        IpAddr::V6(_) => set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVERR, &[1]),
    }
}

fn set_option(fd: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &[u32]) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of_val(value)).map_err(|_| io::Errno::INVAL)?;
    // SAFETY: the value is live for the call, of the length given, and only read.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, value.as_ptr().cast(), length) };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(io::Errno::IO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_built_and_foreign_ones_ignored() {
        let packet = request(true, 0x1234, 7);
        assert_eq!((packet[0], &packet[4..8]), (8, &[0x12, 0x34, 0, 7][..]));
        assert_eq!(checksum(&packet), 0, "a packet with its checksum sums to zero");
        let mut reply = packet;
        reply[0] = 0;
        assert_eq!(reply_to(&reply, true, 0x1234), Some(7));
        assert_eq!(reply_to(&packet, true, 0x1234), None, "the request itself");
        assert_eq!(reply_to(&reply, true, 0x1235), None);
        assert!((0..8).all(|n| reply_to(&reply[..n], true, 0x1234).is_none()));
    }

    #[test]
    fn loopback_answers_where_sockets_are_allowed() {
        let Ok(mut socket) = EchoSocket::open([127, 0, 0, 1].into(), Duration::from_millis(200)) else { return };
        socket.send(9).unwrap();
        let reply = (0..10).find_map(|_| socket.receive().ok().flatten());
        assert_eq!(reply.map(|r| r.sequence), Some(9));
    }
}

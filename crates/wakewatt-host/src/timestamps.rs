//! When the kernel saw a packet: software receive stamps through SO_TIMESTAMPING.
//!
//! The stamp is CLOCK_REALTIME, taken where the packet enters the stack (for a NIC: in the driver's poll, after the
//! interrupt woke the CPU). Documentation/networking/timestamping.rst. With TCP the stamp is that of the segment that
//! completed the bytes read. Transmit stamps (error queue) and hardware stamps are not asked for.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Asks for software receive stamps on this socket.
pub fn enable_receive_stamps(socket: BorrowedFd<'_>) -> io::Result<()> {
    let flags: libc::c_uint = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    // SAFETY: the value is a live int of the size given, only read during the call; the descriptor is borrowed.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const flags).cast(),
            socklen_of::<libc::c_uint>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// One receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// Bytes in the buffer (a longer datagram is cut).
    pub n_bytes: usize,
    /// When the kernel took it in, CLOCK_REALTIME; none if it gave no stamp.
    pub kernel_rx_at_ns: Option<u64>,
    /// Who sent it: filled for unconnected datagram sockets.
    pub from: Option<std::net::SocketAddr>,
}

/// Control data, aligned as cmsghdr wants it: room for three timespecs and their header.
#[repr(C, align(8))]
struct Control([u8; 128]);

/// Receives with its stamp. Allocates nothing.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<Received> {
    let mut control = Control([0; 128]);
    // SAFETY: both are plain C structs for which all zeros is a value.
    let (mut address, mut message): (libc::sockaddr_storage, libc::msghdr) = unsafe { std::mem::zeroed() };
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    message.msg_name = (&raw mut address).cast();
    message.msg_namelen = socklen_of::<libc::sockaddr_storage>();
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    #[allow(clippy::unnecessary_cast)] // usize with glibc, u32 with musl
    {
        message.msg_controllen = control.0.len() as _;
    }
    // SAFETY: every pointer in the message is to live memory of the length beside it, and outlives the call.
    let n = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    let n_bytes = usize::try_from(n).map_err(|_| io::Error::last_os_error())?;
    let from = address_of(&address, message.msg_namelen);
    Ok(Received { n_bytes, kernel_rx_at_ns: stamp_of(&message), from })
}

fn stamp_of(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel filled msg_control and set msg_controllen; the CMSG functions stay within that.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: not null, so it points to a whole cmsghdr inside the control buffer.
        let head = unsafe { header.read_unaligned() };
        if head.cmsg_level == libc::SOL_SOCKET && head.cmsg_type == libc::SO_TIMESTAMPING {
            // SAFETY: a message of this type holds three timespecs, of which the first is the software stamp.
            let stamp = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
            let (seconds, ns) = (u64::try_from(stamp.tv_sec).ok()?, u64::try_from(stamp.tv_nsec).ok()?);
            return (seconds > 0).then_some(seconds * 1_000_000_000 + ns);
        }
        // SAFETY: header came from the same message.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    None
}

fn address_of(address: &libc::sockaddr_storage, length: libc::socklen_t) -> Option<std::net::SocketAddr> {
    let start: *const libc::sockaddr_storage = address;
    match i32::from(address.ss_family) {
        libc::AF_INET if length >= socklen_of::<libc::sockaddr_in>() => {
            // SAFETY: the family says sockaddr_in, the kernel wrote that many bytes, and the storage is aligned for it.
            let v4 = unsafe { &*start.cast::<libc::sockaddr_in>() };
            let ip = std::net::Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some((ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 if length >= socklen_of::<libc::sockaddr_in6>() => {
            // SAFETY: as above, for sockaddr_in6.
            let v6 = unsafe { &*start.cast::<libc::sockaddr_in6>() };
            let ip = std::net::Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(std::net::SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}

fn socklen_of<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    #[test]
    fn a_datagram_comes_with_stamp_and_sender() {
        let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        enable_receive_stamps(b.as_fd()).unwrap();
        // The kernel switches stamping on from a worker, a moment after the option was set: the first may lack one.
        let (mut before, mut buffer) = (0, [0u8; 64]);
        let mut round = || {
            before = crate::clock::realtime_ns();
            a.send_to(b"hello", b.local_addr().unwrap()).unwrap();
            receive(b.as_fd(), &mut buffer).unwrap()
        };
        let mut got = round();
        for _ in 0..6000 {
            if got.kernel_rx_at_ns.is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
            got = round();
        }
        assert_eq!((got.n_bytes, &buffer[..5]), (5, &b"hello"[..]));
        assert_eq!(got.from, a.local_addr().ok());
        let stamp = got.kernel_rx_at_ns.unwrap();
        assert!(before <= stamp && stamp <= crate::clock::realtime_ns());
    }
}

//! One echo as the kernel side keeps it, and as the rest of the house sees it.
//!
//! The `Raw` structures are twins of those in `icmp.bpf.c` and `shared/net.h`: same members, same order.

use std::net::IpAddr;

pub(super) const SIDE_REQUESTER: u32 = 1;
pub(super) const SIDE_RESPONDER: u32 = 2;

/// What tells one echo from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoName {
    /// The identifier of the requester.
    pub id: u16,
    /// Its sequence number.
    pub sequence: u16,
    /// Source address of the request.
    pub requester: IpAddr,
    /// Its destination.
    pub responder: IpAddr,
}

/// Something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When, CLOCK_MONOTONIC.
    pub at_ns: u64,
    pub cpu: u32,
    /// The idle state this CPU was in since the stamp before; none when it was awake.
    pub state: Option<u32>,
}

/// One echo from one side; what was not seen is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EchoStamps {
    /// The request (requester) or the reply (responder) was handed to the device.
    pub sent: Option<Stamp>,
    /// The reply or the request was first seen.
    pub arrival: Option<Stamp>,
    /// The stack began to process it.
    pub processing: Option<Stamp>,
    /// The requesting thread was woken; none when it had not gone to sleep yet.
    pub waking: Option<Stamp>,
    /// It ran.
    pub running: Option<Stamp>,
    /// The packet came through a driver's poll: if `arrival` has an idle state, the interrupt had woken the CPU from it
    /// before the stamp.
    pub is_polled: bool,
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct RawKey {
    side: u32,
    id: u16,
    sequence: u16,
    requester: [u8; 16],
    responder: [u8; 16],
}

impl RawKey {
    pub(super) fn new(name: &EchoName, side: u32) -> RawKey {
        RawKey {
            side,
            id: name.id.to_be(),
            sequence: name.sequence.to_be(),
            requester: bytes_of(name.requester),
            responder: bytes_of(name.responder),
        }
    }
}

fn bytes_of(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(v4) => {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&v4.octets());
            bytes
        }
        IpAddr::V6(v6) => v6.octets(),
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawStamp {
    at_ns: u64,
    cpu: u32,
    slot: u32,
}

impl RawStamp {
    fn stamp(self) -> Option<Stamp> {
        (self.at_ns > 0).then(|| Stamp { at_ns: self.at_ns, cpu: self.cpu, state: self.slot.checked_sub(1) })
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct RawEcho {
    sent: RawStamp,
    arrival: RawStamp,
    processing: RawStamp,
    waking: RawStamp,
    running: RawStamp,
    netns: u32,
    flags: u32,
}

impl RawEcho {
    pub(super) fn stamps(&self) -> EchoStamps {
        EchoStamps {
            sent: self.sent.stamp(),
            arrival: self.arrival.stamp(),
            processing: self.processing.stamp(),
            waking: self.waking.stamp(),
            running: self.running.stamp(),
            is_polled: self.flags & 1 != 0,
        }
    }
}

// SAFETY: plain integers without padding, valid for every bit pattern.
unsafe impl aya::Pod for RawKey {}
// SAFETY: as above.
unsafe impl aya::Pod for RawEcho {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twins_have_the_size_of_the_c_side() {
        assert_eq!((size_of::<RawKey>(), size_of::<RawEcho>()), (40, 88));
    }

    #[test]
    fn what_was_not_seen_is_none() {
        let seen = RawStamp { at_ns: 5, cpu: 1, slot: 2 };
        let not = RawStamp { at_ns: 0, cpu: 0, slot: 0 };
        let raw = RawEcho { sent: seen, arrival: seen, processing: not, waking: not, running: not, netns: 1, flags: 1 };
        let stamps = raw.stamps();
        assert_eq!(stamps.sent, Some(Stamp { at_ns: 5, cpu: 1, state: Some(1) }));
        assert_eq!((stamps.processing, stamps.is_polled), (None, true));
        let name =
            EchoName { id: 0x1234, sequence: 1, requester: [10, 0, 0, 1].into(), responder: [10, 0, 0, 2].into() };
        let key = RawKey::new(&name, SIDE_RESPONDER);
        assert_eq!((key.id.to_ne_bytes(), &key.responder[..5]), ([0x12, 0x34], &[10, 0, 0, 2, 0][..]));
    }
}

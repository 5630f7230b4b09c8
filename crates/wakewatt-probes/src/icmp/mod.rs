//! The kernel's own part of an ICMP echo.

use crate::Probe;

/// See the essay above.
pub const PROBE: Probe = Probe {
    id: "icmp",
    help: "time between receiving an ICMP echo request and sending the reply, by idle state",
    object: aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/icmp.bpf.o")),
};

//! A round-trip measurement, and how it splits.
//!
//! Differences are only taken between stamps of one host, so no clock is synchronised: requester time = user receive
//! minus kernel receive on the requester; responder time = user send minus kernel receive on the responder; the rest
//! of the round trip is wire and stack.

use super::{IdleDelta, Scheduling, Window};
use crate::distribution::Distribution;
use serde::{Deserialize, Serialize};

/// What carries the round trips.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// UDP, one datagram each way.
    Udp,
    /// A stream with TCP_NODELAY.
    Tcp,
}

impl Transport {
    /// For tables and ids.
    pub fn word(self) -> &'static str {
        match self {
            Transport::Udp => "udp",
            Transport::Tcp => "tcp",
        }
    }
}

/// Where the round trip went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Split {
    /// Kernel receive to user receive on the requester: its wake-up.
    pub requester: Distribution,
    /// Kernel receive to user send on the responder: its wake-up and its work.
    pub responder: Distribution,
    /// The rest: both stacks, interrupt, cable.
    pub wire: Distribution,
}

/// One measured round-trip distribution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NetworkSample {
    /// Over UDP or over TCP.
    pub transport: Transport,
    /// `loopback`, or the peer as given (masked in shared files).
    pub peer: String,
    /// The CPU the requester was pinned to.
    pub requester_cpu: Option<u32>,
    /// The CPU the responder was pinned to, as far as known.
    pub responder_cpu: Option<u32>,
    /// Pause between planned requests.
    pub gap_ns: u64,
    /// How the requester was scheduled.
    pub scheduling: Scheduling,
    /// Send to user receive; from the planned send where the reply before came later than that plan.
    pub round_trip: Distribution,
    /// The split, or why there is none.
    pub split: Result<Split, String>,
    /// How many requests were sent.
    pub n_sent: u64,
    /// Requests never answered within the time-out; not in `round_trip`.
    pub n_lost: u64,
    /// Requests whose planned time was already over when they were sent.
    pub n_late_starts: u64,
    /// From when to when it was measured.
    pub window: Window,
    /// Idle counters of the two CPUs meanwhile.
    pub idle: Vec<IdleDelta>,
}

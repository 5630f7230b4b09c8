//! A ping, split along its way: who had it when, and out of which idle state the CPU was woken for it.
//!
//! An echo is answered by the kernel, so there is no process to stamp it. The parts come from tracepoints of one kernel,
//! and differences are taken only between stamps of one host. With the peer on another host its two parts are unknown
//! here and contained in the wire; the same probe there tells them. With the peer on this kernel (another network
//! namespace, or loopback) all are known, and the sum of the parts of one echo is its round trip exactly.
//!
//! A processing CPU that is woken by another CPU (RPS, or a software device) shows its wake-up between arrival and
//! processing. A CPU that is woken by a network card's interrupt leaves its idle state before the first stamp: that is
//! inside the wire, and `hidden` says so with what the idle state claims.

use super::{IdleDelta, Label, Scheduling, Window};
use crate::distribution::Distribution;
use serde::{Deserialize, Serialize};
use wakewatt_words::word;

/// A stretch of the way, in the order of the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stretch {
    /// Requester: from the system call until the request is handed to the device.
    Send,
    /// Both ways together: from handed to the device until first seen on the other side; what remains.
    Wire,
    /// Responder: from first seen until its stack processes it. Contains the wake-up of the CPU that does.
    ResponderWake,
    /// Responder: from processing until the reply is handed to the device.
    ResponderWork,
    /// Requester: from the reply first seen until its stack processes it. Contains the wake-up of the CPU that does.
    RequesterWake,
    /// Requester: from processing until the waiting thread runs. Contains the wake-up of the CPU it runs on.
    RequesterRun,
    /// Requester: from running until the system call returned.
    Return,
}

impl Stretch {
    /// All, in the order of the way.
    pub const ALL: [Stretch; 7] = [
        Stretch::Send,
        Stretch::Wire,
        Stretch::ResponderWake,
        Stretch::ResponderWork,
        Stretch::RequesterWake,
        Stretch::RequesterRun,
        Stretch::Return,
    ];

    /// For tables.
    pub fn words(self) -> &'static str {
        match self {
            Stretch::Send => word!("requester: call to device"),
            Stretch::Wire => word!("wire, both ways"),
            Stretch::ResponderWake => word!("responder: arrival to processing"),
            Stretch::ResponderWork => word!("responder: processing to reply"),
            Stretch::RequesterWake => word!("requester: arrival to processing"),
            Stretch::RequesterRun => word!("requester: processing to running"),
            Stretch::Return => word!("requester: running to answer"),
        }
    }

    /// Whose it is.
    pub fn side(self) -> &'static str {
        match self {
            Stretch::Wire => "wire",
            Stretch::ResponderWake | Stretch::ResponderWork => "responder",
            _ => "requester",
        }
    }
}

/// How long echoes took on one stretch of their way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IcmpPart {
    /// Which stretch of the echo's way.
    pub stretch: Stretch,
    /// What the numbers are worth.
    pub label: Label,
    /// Why there are none, or what they contain beside their name.
    pub remark: Option<String>,
    /// How long the stretch took, over all echoes that were divided.
    pub time: Distribution,
    /// Mean over mean round trip; none where the round trip is not known.
    pub share_ratio: Option<f64>,
    /// The same, by CPU and the idle state it was woken from; most frequent first. Empty where no CPU is waited for.
    pub by_state: Vec<StatePart>,
}

impl IcmpPart {
    /// There is none, because.
    pub fn unavailable(stretch: Stretch, why: impl Into<String>) -> IcmpPart {
        let (time, by_state) = (Distribution::default(), Vec::new());
        IcmpPart { stretch, label: Label::Unavailable, remark: Some(why.into()), time, share_ratio: None, by_state }
    }
}

/// Echoes whose stretch was spent on this CPU, woken from this state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StatePart {
    /// The CPU that was woken.
    pub cpu: u32,
    /// The idle state it had asked for, by name; none when it was awake.
    pub state: Option<String>,
    /// How long this stretch took for echoes met by this CPU in this state.
    pub time: Distribution,
}

/// Leaving an idle state before the first stamp could be taken.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HiddenExit {
    /// Whose CPU was woken: `requester` or `responder`.
    pub side: String,
    /// The CPU that took the network card's interrupt.
    pub cpu: u32,
    /// The state it was in.
    pub state: String,
    /// How many echoes were met by a CPU in this state.
    pub n: u64,
    /// What the state claims to take at worst; none when it claims nothing.
    pub claimed_ns: Option<u64>,
    /// Always modelled: a claim stands for what the stamps cannot see.
    pub label: Label,
}

/// Which stretch of which CPU takes most of the round trip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Payer {
    /// The stretch with the largest median.
    pub stretch: Stretch,
    /// The CPU it was mostly spent on.
    pub cpu: Option<u32>,
    /// The idle state that CPU was mostly woken from.
    pub state: Option<String>,
    /// Median of the stretch, in nanoseconds.
    pub time_ns: u64,
    /// Median of the round trip.
    pub round_trip_ns: u64,
}

/// One measured ping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IcmpSample {
    /// The peer as given (masked in shared files).
    pub peer: String,
    /// Is the peer's kernel this one? Then its parts are known.
    pub is_peer_local: bool,
    /// Kind of socket: `ping` (unprivileged) or `raw`.
    pub socket: String,
    /// The CPU the requester was pinned to.
    pub requester_cpu: u32,
    /// Pause between planned requests.
    pub gap_ns: u64,
    /// How the requester was scheduled.
    pub scheduling: Scheduling,
    /// Send to user receive; from the planned send where the reply before came later than that plan.
    pub round_trip: Distribution,
    /// Kernel receive stamp to user receive: the whole of the requester's side after arrival, also without tracepoints.
    pub requester: Option<Distribution>,
    /// Every stretch, in the order of the way, also those that are unavailable.
    pub parts: Vec<IcmpPart>,
    /// Which stretch takes most; none without a split.
    pub payer: Option<Payer>,
    /// Exits that lie before the first stamp.
    pub hidden: Vec<HiddenExit>,
    /// How many echo requests were sent.
    pub n_sent: u64,
    /// Requests never answered within the time-out; not in `round_trip`.
    pub n_lost: u64,
    /// Replies that came after the time-out.
    pub n_late_replies: u64,
    /// Requests whose planned time was already over when they were sent.
    pub n_late_starts: u64,
    /// Replies with stamps missing: in the round trip, not in the parts.
    pub n_unsplit: u64,
    /// Why it ended before its time.
    pub ended_early: Option<String>,
    /// From when to when it was measured.
    pub window: Window,
    /// Idle counters of the requester's CPU meanwhile.
    pub idle: Vec<IdleDelta>,
}

/// What a host answered, seen on that host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IcmpAnswers {
    /// How many echoes this kernel answered in the window.
    pub n_answered: u64,
    /// The two stretches of a responder.
    pub parts: Vec<IcmpPart>,
    /// Exits that lie before the first stamp.
    pub hidden: Vec<HiddenExit>,
    /// Events not seen because a program was already running on that CPU; none where the kernel does not say.
    pub n_missed: Option<u64>,
    /// From when to when echoes were counted.
    pub window: Window,
}

/// The stretch with the largest median, if the round trip has one.
pub fn payer(round_trip: &Distribution, parts: &[IcmpPart]) -> Option<Payer> {
    let known = parts.iter().filter_map(|p| Some((p.time.p50_ns()?, p)));
    let (time_ns, part) = known.max_by_key(|(median_ns, _)| *median_ns)?;
    let main = part.by_state.iter().max_by_key(|s| s.time.n);
    Some(Payer {
        stretch: part.stretch,
        cpu: main.map(|s| s.cpu),
        state: main.and_then(|s| s.state.clone()),
        time_ns,
        round_trip_ns: round_trip.p50_ns()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(stretch: Stretch, ns: u64, state: Option<&str>) -> IcmpPart {
        let time = Distribution::from_ns([ns; 20]);
        let by_state = vec![StatePart { cpu: 1, state: state.map(str::to_string), time: time.clone() }];
        IcmpPart { stretch, label: Label::Measured, remark: None, time, share_ratio: None, by_state }
    }

    #[test]
    fn the_largest_stretch_pays_and_absence_pays_nothing() {
        let parts = [
            part(Stretch::Send, 3_000, None),
            part(Stretch::ResponderWake, 38_000, Some("C6")),
            part(Stretch::RequesterWake, 2_000, Some("POLL")),
            IcmpPart::unavailable(Stretch::ResponderWork, "no"),
        ];
        let payer = payer(&Distribution::from_ns([61_000; 20]), &parts).unwrap();
        assert_eq!((payer.stretch, payer.cpu, payer.state.as_deref()), (Stretch::ResponderWake, Some(1), Some("C6")));
        assert!(payer.time_ns.abs_diff(38_000) < 100 && payer.round_trip_ns.abs_diff(61_000) < 100);
        assert_eq!(super::payer(&Distribution::default(), &parts), None);
        assert_eq!(Stretch::ALL.map(Stretch::side)[2], "responder");
    }
}

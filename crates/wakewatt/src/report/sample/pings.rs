//! A made-up ping between two name spaces of one machine, divided along its way, and what its CPUs got done meanwhile.

use super::{Dice, window};
use wakewatt_core::distribution::Distribution;
use wakewatt_core::samples::icmp::{HiddenExit, IcmpPart, IcmpSample, StatePart, Stretch, payer};
use wakewatt_core::samples::work::{CpuWork, WorkSample};
use wakewatt_core::samples::{Label, Scheduling};

/// Echoes that were answered.
const N: usize = 2_000;

/// The responder's wake-up from C6 pays most; the first stretch could not be seen.
pub(super) fn pings() -> Vec<IcmpSample> {
    let mut dice = Dice(23);
    let mut times = |p50_ns: f64, n: usize| Distribution::from_ns((0..n).map(|_| dice.latency_ns(p50_ns, 2.4)));
    let mut parts: Vec<IcmpPart> = [
        (Stretch::Wire, 4_100.0, 0.05),
        (Stretch::ResponderWake, 46_000.0, 0.58),
        (Stretch::ResponderWork, 3_300.0, 0.04),
        (Stretch::RequesterWake, 17_000.0, 0.21),
        (Stretch::RequesterRun, 7_900.0, 0.1),
        (Stretch::Return, 1_400.0, 0.02),
    ]
    .into_iter()
    .map(|(stretch, p50_ns, share)| IcmpPart {
        stretch,
        label: Label::Measured,
        remark: None,
        time: times(p50_ns, N),
        share_ratio: Some(share),
        by_state: Vec::new(),
    })
    .collect();
    for part in parts.iter_mut().filter(|p| p.stretch == Stretch::ResponderWake) {
        let cell = |state: Option<&str>, time| StatePart { cpu: 1, state: state.map(Into::into), time };
        part.by_state = vec![cell(Some("C6"), times(49_000.0, N - 200)), cell(None, times(2_100.0, 200))];
    }
    parts.insert(0, IcmpPart::unavailable(Stretch::Send, "the kernel has no tracepoint net:net_dev_queue"));
    let round_trip = times(81_000.0, N);
    let hidden = HiddenExit {
        side: "requester".into(),
        cpu: 0,
        state: "C6".into(),
        n: 61,
        claimed_ns: Some(170_000),
        label: Label::Modelled,
    };
    vec![IcmpSample {
        peer: "10.0.0.2".into(),
        is_peer_local: true,
        socket: "ping".into(),
        requester_cpu: 0,
        gap_ns: 1_000_000,
        scheduling: Scheduling::Fifo(80),
        payer: payer(&round_trip, &parts),
        round_trip,
        requester: Some(times(25_000.0, N)),
        parts,
        hidden: vec![hidden],
        n_sent: N as u64 + 3,
        n_lost: 3,
        n_late_replies: 0,
        n_late_starts: 2,
        n_unsplit: 5,
        ended_early: None,
        window: window(60_000, 2_003),
        idle: Vec::new(),
    }]
}

/// One CPU computes, one waits for memory, one hardly ran, and one was not counted.
pub(super) fn work() -> WorkSample {
    let cpu = |cpu, busy_ratio, n_cycles, n_instructions| CpuWork { cpu, busy_ratio, n_cycles, n_instructions };
    let cpus = vec![
        cpu(0, 0.97, 31_040_000_000, 71_400_000_000),
        cpu(1, 0.94, 30_100_000_000, 9_930_000_000),
        cpu(2, 0.03, 410_000_000, 380_000_000),
        cpu(3, 0.01, 0, 0),
    ];
    WorkSample { window: window(64_000, 10_000), cpus }
}

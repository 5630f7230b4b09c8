//! Wake-ups of four kinds and round trips over loopback, on the machine as it was found.

use super::{Ground, left_out};
use crate::bench::{self, NetworkSpec, RespondSpec, Responder};
use crate::pick;
use crate::survey::{OneWakeup, Policy, one_wakeup};
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::network::Transport;
use wakewatt_core::samples::not_done::{NotDone, Step};
use wakewatt_core::samples::waker::Pauses;
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_core::units::Cpu;

/// Between two wake-ups.
const GAP_NS: u64 = 1_000_000;
/// The wake-ups; last the one of the experiment once more, as an ordinary thread meets it.
const WAKES: [(WakeKind, Policy); 5] = [
    (WakeKind::Timer, Policy::Fifo),
    (WakeKind::Futex, Policy::Fifo),
    (WakeKind::Eventfd, Policy::Fifo),
    (WakeKind::Ipi, Policy::Fifo),
    (WakeKind::Eventfd, Policy::Ordinary),
];
/// Probes in all, for the share that is done.
const N_PROBES: f64 = WAKES.len() as f64 + 2.0;

/// All of them, one after the other.
pub(super) fn run(ground: Ground<'_>, evidence: &mut Evidence) {
    let Ground { lab, cpu, times, .. } = ground;
    ground.onlooker.part("doctor");
    let from_cpu = pick::partner(&evidence.facts.topology, ground.allowed, cpu);
    let pauses = Pauses::Exponential { seed: ground.seed() };
    for (at, (kind, policy)) in WAKES.into_iter().enumerate() {
        if lab.is_stopped() {
            return;
        }
        lab.tell.progress(at as f64 / N_PROBES, &format!("measuring as found: {} wake-up", kind.word()));
        let one = OneWakeup { kind, cpu, from_cpu, gap_ns: GAP_NS, pauses, policy, duration_ns: times.probe_ns };
        match one_wakeup(lab, &one) {
            Ok(sample) => evidence.samples.wakeups.push(sample),
            Err(why) => evidence.not_done.push(NotDone::named(format!("{} wake-up", kind.word()), why.to_string())),
        }
    }
    match from_cpu {
        Some(from_cpu) => round_trips(ground, from_cpu, evidence),
        None => left_out(evidence, Step::Network, "a round trip over loopback needs two CPUs".into()),
    }
}

fn round_trips(ground: Ground<'_>, from_cpu: Cpu, evidence: &mut Evidence) {
    let Ground { lab, cpu, times, .. } = ground;
    let responder = match Responder::start(&RespondSpec::loopback(Some(cpu))) {
        Ok(responder) => responder,
        Err(why) => return left_out(evidence, Step::Network, why.to_string().into()),
    };
    for (at, transport) in [Transport::Udp, Transport::Tcp].into_iter().enumerate() {
        if lab.is_stopped() {
            return;
        }
        let words = format!("measuring as found: {} round trips over loopback", transport.word());
        lab.tell.progress((at + WAKES.len()) as f64 / N_PROBES, &words);
        let spec = NetworkSpec {
            local_responder_cpu: Some(cpu),
            ..NetworkSpec::to(transport, responder.address(), from_cpu, times.probe_ns)
        };
        match bench::round_trip(&spec, lab.stop, lab.src) {
            Ok(mut slice) => {
                slice.sample.peer = "loopback".into();
                evidence.samples.network.push(slice.sample);
            }
            Err(why) => {
                evidence.not_done.push(NotDone::named(format!("{} round trip", transport.word()), why.to_string()));
            }
        }
    }
}

//! Pings at planned times, each echo divided by the stamps of the kernel.
//!
//! The round trip needs only a socket. The division needs tracepoints (root, or CAP_BPF and CAP_PERFMON, and BTF); when
//! they are refused the round trip is measured all the same and the parts say why. The stamps of an echo are fetched
//! after its reply, while nothing is awaited: one or two look-ups, about a microsecond, before the next planned time.
//!
//! Plans as in `network`: from the send, or from the plan where the reply before came later than it.

use super::gaps::Gaps;
use super::icmp_parts::{Parts, States, divide};
use super::respond::{STOP_LOOK, is_pause};
use super::*;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use wakewatt_core::samples::Window;
use wakewatt_core::samples::icmp::{IcmpSample, payer};
use wakewatt_core::samples::waker::Pauses;
use wakewatt_core::source::Source;
use wakewatt_core::stats::distribution::{Distribution, Recorder};
use wakewatt_host::echo::{EchoReply, EchoSocket, EchoSocketKind};
use wakewatt_host::sched::MeasuringThread;
use wakewatt_host::{clock, sleep};
use wakewatt_probes::icmp::{EchoName, IcmpProbe};

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IcmpSpec {
    /// Whom to ask.
    pub peer: IpAddr,
    /// The CPU the requester is pinned to.
    pub cpu: Cpu,
    /// Planned time between requests.
    pub gap_ns: u64,
    /// How the gaps are drawn.
    pub pauses: Pauses,
    /// After this a reply is lost.
    pub timeout_ns: u64,
    /// Discarded first.
    pub warmup_ns: u64,
    /// Counted.
    pub duration_ns: u64,
    /// SCHED_FIFO priority to try.
    pub fifo_priority: Option<u8>,
    /// Divide the round trips, if the kernel lets us.
    pub is_splitting: bool,
}

impl IcmpSpec {
    /// A request each ms from this CPU.
    pub fn to(peer: IpAddr, cpu: Cpu, duration_ns: u64) -> IcmpSpec {
        IcmpSpec {
            peer,
            cpu,
            gap_ns: DEFAULT_GAP_NS,
            pauses: Pauses::Fixed,
            timeout_ns: 1_000_000_000,
            warmup_ns: DEFAULT_WARMUP_NS,
            duration_ns,
            fifo_priority: Some(DEFAULT_FIFO_PRIORITY),
            is_splitting: true,
        }
    }
}

/// Measures, until done or stopped.
pub fn ping(spec: &IcmpSpec, stop: &AtomicBool, src: &dyn Source) -> Result<IcmpSample, BenchError> {
    check_cpu(spec.cpu)?;
    check_gap(spec.gap_ns)?;
    let socket = EchoSocket::open(spec.peer, STOP_LOOK).map_err(|e| cannot_open(spec.peer, e.into()))?;
    let states = States::read(src);
    let probe = match spec.is_splitting {
        true => IcmpProbe::request(socket.id(), states.n()).map_err(|e| e.to_string()),
        false => Err("not asked for".into()),
    };
    let baseline = IdleBaseline::read(src, &[spec.cpu]);
    let measured = std::thread::scope(|scope| scope.spawn(|| Run::new(spec, socket, probe).measure(stop)).join());
    let done = measured.map_err(|_| BenchError::Crashed)??;
    let mut sample = done.sample(&states)?;
    sample.idle = baseline.since(src);
    Ok(sample)
}

fn cannot_open(peer: IpAddr, why: std::io::Error) -> BenchError {
    if why.kind() == std::io::ErrorKind::PermissionDenied {
        return BenchError::Unavailable(
            "sending ICMP echoes was refused: run as root, give the binary CAP_NET_RAW, or let this group ping (sysctl \
             net.ipv4.ping_group_range)"
                .into(),
        );
    }
    BenchError::system(format!("reaching {peer} (is there a route?)"), why)
}

struct Run<'a> {
    spec: &'a IcmpSpec,
    socket: EchoSocket,
    probe: Result<IcmpProbe, String>,
    round_trip: Recorder,
    requester: Recorder,
    parts: Parts,
    n_sent: u64,
    n_lost: u64,
    n_late_replies: u64,
    n_late_starts: u64,
    n_unsplit: u64,
    ended_early: Option<String>,
}

/// A run and how it was made.
struct Done<'a> {
    run: Run<'a>,
    scheduling: wakewatt_core::samples::Scheduling,
    window: Window,
}

/// A reply and when user space had it.
struct Arrival {
    reply: EchoReply,
    at_ns: u64,
    real_at_ns: u64,
}

impl<'a> Run<'a> {
    fn new(spec: &'a IcmpSpec, socket: EchoSocket, probe: Result<IcmpProbe, String>) -> Run<'a> {
        Run {
            spec,
            socket,
            probe,
            round_trip: Recorder::default(),
            requester: Recorder::default(),
            parts: Parts::new(),
            n_sent: 0,
            n_lost: 0,
            n_late_replies: 0,
            n_late_starts: 0,
            n_unsplit: 0,
            ended_early: None,
        }
    }

    fn measure(mut self, stop: &AtomicBool) -> Result<Done<'a>, BenchError> {
        let thread = MeasuringThread::enter(Some(self.spec.cpu), self.spec.fifo_priority)
            .map_err(|e| BenchError::system(format!("pinning a thread to CPU {}", self.spec.cpu), e))?;
        let mut gaps = Gaps::new(self.spec.gap_ns, self.spec.pauses);
        let mut now_ns = clock::monotonic_ns();
        let count_from_ns = now_ns + self.spec.warmup_ns;
        let end_at_ns = count_from_ns + self.spec.duration_ns;
        let mut planned_at_ns = now_ns + gaps.next_ns();
        let mut sequence: u16 = 0;
        while planned_at_ns.max(now_ns) < end_at_ns && !stop.load(Ordering::Relaxed) {
            let is_late = planned_at_ns <= now_ns;
            if !is_late && sleep::sleep_until(planned_at_ns).is_err() {
                continue;
            }
            sequence = sequence.wrapping_add(1);
            let is_counted = planned_at_ns >= count_from_ns;
            let sent_at_ns = clock::monotonic_ns();
            let arrival = match self.socket.send(sequence) {
                Ok(()) => self.wait_for(sequence, sent_at_ns, stop),
                Err(why) => Err(why.into()),
            };
            now_ns = clock::monotonic_ns();
            self.n_sent += u64::from(is_counted);
            self.n_late_starts += u64::from(is_counted && is_late);
            match arrival {
                Ok(Some(arrival)) => {
                    let from_ns = if is_late { planned_at_ns } else { sent_at_ns };
                    self.record(sequence, from_ns, sent_at_ns, &arrival, is_counted);
                }
                Ok(None) if stop.load(Ordering::Relaxed) => self.n_sent -= u64::from(is_counted),
                Ok(None) => {
                    self.n_lost += u64::from(is_counted);
                    // The time-out is not a latency: what was planned meanwhile is not sent late in a burst.
                    planned_at_ns = now_ns;
                }
                // The interface went, or a router says that there is no way.
                Err(why) if self.round_trip.is_empty() => {
                    return Err(BenchError::system(
                        format!("pinging {} (is it up and reachable?)", self.spec.peer),
                        why,
                    ));
                }
                Err(why) => {
                    self.n_lost += u64::from(is_counted);
                    self.ended_early = Some(format!("after {} replies: {why}", self.round_trip.len()));
                    break;
                }
            }
            planned_at_ns += gaps.next_ns();
        }
        let scheduling = thread.scheduling().clone();
        drop(thread);
        let window = Window { start_at_ns: count_from_ns, end_at_ns: now_ns.max(count_from_ns) };
        Ok(Done { run: self, scheduling, window })
    }

    /// The reply to this request; none when it did not come in time.
    fn wait_for(&mut self, sequence: u16, sent_at_ns: u64, stop: &AtomicBool) -> std::io::Result<Option<Arrival>> {
        loop {
            let got = match self.socket.receive() {
                Ok(got) => got,
                Err(why) if is_pause(&why) => None,
                Err(why) => return Err(why),
            };
            let (at_ns, real_at_ns) = (clock::monotonic_ns(), clock::realtime_ns());
            match got {
                Some(reply) if reply.sequence == sequence => return Ok(Some(Arrival { reply, at_ns, real_at_ns })),
                Some(_) => self.n_late_replies += 1,
                None => {}
            }
            if at_ns.saturating_sub(sent_at_ns) >= self.spec.timeout_ns || stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
    }

    fn record(&mut self, sequence: u16, from_ns: u64, sent_at_ns: u64, arrival: &Arrival, is_counted: bool) {
        // Taken in the warm-up too, so that nothing old is left in the kernel.
        let stamps = self.probe.as_mut().ok().map(|probe| {
            let (id, requester) = (self.socket.id(), self.socket.local());
            probe.take(&EchoName { id, sequence, requester, responder: self.spec.peer })
        });
        if !is_counted {
            return;
        }
        self.round_trip.saturating_record(arrival.at_ns.saturating_sub(from_ns).max(1));
        let kernel_rx_at_ns = arrival.reply.kernel_rx_at_ns;
        if let Some(ns) = kernel_rx_at_ns.and_then(|at_ns| arrival.real_at_ns.checked_sub(at_ns)) {
            self.requester.saturating_record(ns.max(1));
        }
        let Some(stamps) = stamps else { return };
        let Ok((Some(own), far)) = stamps else {
            self.n_unsplit += 1;
            return;
        };
        match divide(sent_at_ns, arrival.at_ns, &own, far.as_ref()) {
            Some(divided) => self.parts.add(&divided, &own, far.as_ref()),
            None => self.n_unsplit += 1,
        }
    }
}

impl Done<'_> {
    fn sample(self, states: &States) -> Result<IcmpSample, BenchError> {
        let Done { run, scheduling, window } = self;
        if run.n_sent == 0 {
            return Err(BenchError::NoSamples);
        }
        let peer = run.spec.peer;
        if run.round_trip.is_empty() {
            return Err(BenchError::Unavailable(format!(
                "none of {} echoes to {peer} was answered; is it up, and does it answer pings (firewall, sysctl \
                 net.ipv4.icmp_echo_ignore_all)?",
                run.n_sent
            )));
        }
        let (parts, hidden) = run.parts.finish(states, run.probe.as_ref().err().map(String::as_str));
        let round_trip = Distribution::recorded(&run.round_trip);
        let socket = match run.socket.kind() {
            EchoSocketKind::Ping => "ping",
            EchoSocketKind::Raw => "raw",
        };
        Ok(IcmpSample {
            peer: peer.to_string(),
            is_peer_local: run.parts.is_peer_local(),
            socket: socket.into(),
            requester_cpu: run.spec.cpu,
            gap_ns: run.spec.gap_ns,
            scheduling,
            requester: (!run.requester.is_empty()).then(|| Distribution::recorded(&run.requester)),
            payer: payer(&round_trip, &parts),
            round_trip,
            parts,
            hidden,
            n_sent: run.n_sent,
            n_lost: run.n_lost,
            n_late_replies: run.n_late_replies,
            n_late_starts: run.n_late_starts,
            n_unsplit: run.n_unsplit,
            ended_early: run.ended_early,
            window,
            idle: Vec::new(),
        })
    }
}

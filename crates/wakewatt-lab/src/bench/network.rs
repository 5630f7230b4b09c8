//! A round trip at a low, planned rate, split into requester, responder and the rest.
//!
//! Only stamps of one host are subtracted from each other, so no clocks are synchronised (docs/methods/network.md): requester =
//! user receive - kernel receive here; responder = user send - kernel receive there; wire and stack = round trip -
//! both. The split needs software receive stamps on both sides; a sample with a stamp missing or a clock that jumped
//! is in the round trip and not in the split.
//!
//! The round trip counts from the send, or, where the reply before came later than the next planned send, from the
//! plan (no coordinated omission); what is still unsent when the time is over, or was planned while a lost reply was
//! waited for, is not sent. The requester's own pacing timer is outside it. The split always starts at the
//! send. Transmit stamps are not used: the way down the sending stack is in "wire". Loopback has no interrupt and no
//! cable; the requester's send runs the receiver's stack.

use super::gaps::Gaps;
use super::respond::{STOP_LOOK, is_pause};
use super::slice::RoundTripHists;
use super::wire::{Direction, LENGTH, Message};
use super::*;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wakewatt_core::samples::network::{NetworkSample, Transport};
use wakewatt_core::samples::waker::Pauses;
use wakewatt_core::samples::{Scheduling, Window};
use wakewatt_core::source::Source;
use wakewatt_core::stats::distribution::Distribution;
use wakewatt_host::sched::MeasuringThread;
use wakewatt_host::timestamps::{Received, enable_receive_stamps, receive};
use wakewatt_host::{clock, sleep};

const CONNECT_LIMIT: Duration = Duration::from_secs(1);

/// What to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkSpec {
    /// UDP or TCP.
    pub transport: Transport,
    /// The responder.
    pub peer: SocketAddr,
    /// The CPU the requester is pinned to.
    pub cpu: Cpu,
    /// The responder's CPU where it runs on this host: its idle counters are read too.
    pub local_responder_cpu: Option<Cpu>,
    /// Planned time between requests; 0: the next follows the reply at once, which is no plan and no CPU sleeps long.
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
}

impl NetworkSpec {
    /// A request each ms from this CPU.
    pub fn to(transport: Transport, peer: SocketAddr, cpu: Cpu, duration_ns: u64) -> NetworkSpec {
        NetworkSpec {
            transport,
            peer,
            cpu,
            local_responder_cpu: None,
            gap_ns: DEFAULT_GAP_NS,
            pauses: Pauses::Fixed,
            timeout_ns: 200_000_000,
            warmup_ns: DEFAULT_WARMUP_NS,
            duration_ns,
            fifo_priority: Some(DEFAULT_FIFO_PRIORITY),
        }
    }
}

/// Measures, until done or stopped.
pub fn round_trip(spec: &NetworkSpec, stop: &AtomicBool, src: &dyn Source) -> Result<NetworkSlice, BenchError> {
    check_cpu(spec.cpu)?;
    if spec.gap_ns > 0 {
        check_gap(spec.gap_ns)?;
    }
    let link = Link::open(spec).map_err(|e| {
        let doing =
            format!("reaching a responder by {} at {} (is one running there?)", spec.transport.word(), spec.peer);
        BenchError::system(doing, e)
    })?;
    let cpus: Vec<Cpu> = [Some(spec.cpu), spec.local_responder_cpu].into_iter().flatten().collect();
    let baseline = IdleBaseline::read(src, &cpus);
    let measured = std::thread::scope(|scope| scope.spawn(|| Run::new(spec, link).measure(stop)).join());
    let mut slice = measured.map_err(|_| BenchError::Crashed)??;
    slice.sample.idle = baseline.since(src);
    Ok(slice)
}

enum Link {
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Link {
    fn open(spec: &NetworkSpec) -> std::io::Result<Link> {
        let link = match spec.transport {
            Transport::Udp => {
                let any: SocketAddr = if spec.peer.is_ipv4() {
                    (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
                } else {
                    (std::net::Ipv6Addr::UNSPECIFIED, 0).into()
                };
                let socket = UdpSocket::bind(any)?;
                // Connected: the kernel drops what others send.
                #[allow(clippy::disallowed_methods)] // An address, not a name.
                socket.connect(spec.peer)?;
                socket.set_read_timeout(Some(STOP_LOOK))?;
                Link::Udp(socket)
            }
            Transport::Tcp => {
                let stream = TcpStream::connect_timeout(&spec.peer, CONNECT_LIMIT)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(STOP_LOOK))?;
                stream.set_write_timeout(Some(STOP_LOOK))?;
                Link::Tcp(stream)
            }
        };
        enable_receive_stamps(link.fd())?;
        Ok(link)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Link::Udp(socket) => socket.as_fd(),
            Link::Tcp(stream) => stream.as_fd(),
        }
    }

    fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Link::Udp(socket) => socket.send(bytes).map(|_| ()),
            Link::Tcp(stream) => stream.write_all(bytes),
        }
    }
}

/// A reply with the stamps of its arrival.
struct Arrival {
    reply: Message,
    at_ns: u64,
    user_rx_at_ns: u64,
    kernel_rx_at_ns: Option<u64>,
}

struct Run<'a> {
    spec: &'a NetworkSpec,
    link: Link,
    hists: RoundTripHists,
    session: u64,
    n_filled: usize,
    buffer: [u8; LENGTH],
    n_sent: u64,
    n_lost: u64,
    n_late_starts: u64,
    n_unsplit: u64,
    responder_cpu: Option<Cpu>,
}

impl<'a> Run<'a> {
    fn new(spec: &'a NetworkSpec, link: Link) -> Run<'a> {
        // Two runs at once differ in time of day; that is all a session number is for.
        let session = clock::realtime_ns() ^ (u64::from(std::process::id()) << 40);
        Run {
            spec,
            link,
            hists: RoundTripHists::new(),
            session,
            n_filled: 0,
            buffer: [0; LENGTH],
            n_sent: 0,
            n_lost: 0,
            n_late_starts: 0,
            n_unsplit: 0,
            responder_cpu: None,
        }
    }

    fn measure(mut self, stop: &AtomicBool) -> Result<NetworkSlice, BenchError> {
        let thread = MeasuringThread::enter(Some(self.spec.cpu), self.spec.fifo_priority)
            .map_err(|e| BenchError::system(format!("pinning a thread to CPU {}", self.spec.cpu), e))?;
        let mut gaps = Gaps::new(self.spec.gap_ns, self.spec.pauses);
        let has_plan = self.spec.gap_ns > 0;
        let mut now_ns = clock::monotonic_ns();
        let count_from_ns = now_ns + self.spec.warmup_ns;
        let end_at_ns = count_from_ns + self.spec.duration_ns;
        let mut planned_at_ns = now_ns + gaps.next_ns();
        let mut sequence = 0;
        while planned_at_ns.max(now_ns) < end_at_ns && !stop.load(Ordering::Relaxed) {
            let is_late = has_plan && planned_at_ns <= now_ns;
            if has_plan && !is_late && sleep::sleep_until(planned_at_ns).is_err() {
                continue;
            }
            sequence += 1;
            let request = Message::request(self.session, sequence).encode();
            let sent_at_ns = clock::monotonic_ns();
            let is_counted = planned_at_ns >= count_from_ns;
            let arrival = match self.link.send(&request) {
                Ok(()) => self.wait_for(sequence, sent_at_ns, stop),
                Err(why) => Err(why),
            };
            now_ns = clock::monotonic_ns();
            if is_counted {
                self.n_sent += 1;
                self.n_late_starts += u64::from(is_late);
            }
            match arrival {
                Ok(Some(arrival)) if is_counted => {
                    self.record(if is_late { planned_at_ns } else { sent_at_ns }, sent_at_ns, &arrival);
                }
                Ok(Some(_)) => {}
                Ok(None) if stop.load(Ordering::Relaxed) => self.n_sent -= u64::from(is_counted),
                Ok(None) => {
                    self.n_lost += u64::from(is_counted);
                    // The time-out is not a latency: what was planned meanwhile is not sent late in a burst.
                    planned_at_ns = now_ns;
                }
                Err(why) => {
                    let doing = format!("talking to the responder at {} (did it stop?)", self.spec.peer);
                    return Err(BenchError::system(doing, why));
                }
            }
            planned_at_ns = if has_plan { planned_at_ns + gaps.next_ns() } else { now_ns };
        }
        let scheduling = thread.scheduling().clone();
        drop(thread);
        self.finish(scheduling, Window { start_at_ns: count_from_ns, end_at_ns: now_ns.max(count_from_ns) })
    }

    /// The reply to this request; none when it did not come in time. Anything else that comes is ignored.
    fn wait_for(&mut self, sequence: u64, sent_at_ns: u64, stop: &AtomicBool) -> std::io::Result<Option<Arrival>> {
        loop {
            let got = match receive(self.link.fd(), &mut self.buffer[self.n_filled..]) {
                Ok(got) if got.n_bytes == 0 && self.spec.transport == Transport::Tcp => {
                    return Err(std::io::ErrorKind::ConnectionReset.into());
                }
                Ok(got) => got,
                Err(why) if is_pause(&why) => Received::default(),
                Err(why) => return Err(why),
            };
            let (at_ns, user_rx_at_ns) = (clock::monotonic_ns(), clock::realtime_ns());
            self.n_filled += got.n_bytes;
            if self.n_filled == LENGTH || self.spec.transport == Transport::Udp {
                let reply = Message::decode(&self.buffer[..self.n_filled])
                    .filter(|m| m.direction == Direction::Reply && m.session == self.session && m.sequence == sequence);
                self.n_filled = 0;
                if let Some(reply) = reply {
                    let kernel_rx_at_ns = got.kernel_rx_at_ns;
                    return Ok(Some(Arrival { reply, at_ns, user_rx_at_ns, kernel_rx_at_ns }));
                }
            }
            if at_ns.saturating_sub(sent_at_ns) >= self.spec.timeout_ns || stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
    }

    fn record(&mut self, from_ns: u64, sent_at_ns: u64, arrival: &Arrival) {
        self.hists.round_trip.saturating_record(arrival.at_ns.saturating_sub(from_ns).max(1));
        self.responder_cpu = arrival.reply.cpu;
        match split(arrival.at_ns.saturating_sub(sent_at_ns), arrival) {
            Some([requester, responder, wire]) => {
                self.hists.requester.saturating_record(requester.max(1));
                self.hists.responder.saturating_record(responder.max(1));
                self.hists.wire.saturating_record(wire.max(1));
            }
            None => self.n_unsplit += 1,
        }
    }

    fn finish(self, scheduling: Scheduling, window: Window) -> Result<NetworkSlice, BenchError> {
        let Run { spec, hists, n_sent, n_lost, n_late_starts, n_unsplit, responder_cpu, .. } = self;
        if n_sent == 0 {
            return Err(BenchError::NoSamples);
        }
        if hists.round_trip.is_empty() {
            return Err(BenchError::Unavailable(format!(
                "none of {n_sent} requests to {} was answered; is `wakewatt respond` running there, of the same version, \
                 and is the port open?",
                spec.peer
            )));
        }
        let peer = if spec.peer.ip().is_loopback() { "loopback".into() } else { spec.peer.to_string() };
        let sample = NetworkSample {
            transport: spec.transport,
            peer,
            requester_cpu: Some(spec.cpu),
            responder_cpu,
            gap_ns: spec.gap_ns,
            scheduling,
            round_trip: Distribution::recorded(&hists.round_trip),
            split: hists.split().ok_or_else(|| "no reply came with kernel receive stamps from both hosts".to_string()),
            n_sent,
            n_lost,
            n_late_starts,
            window,
            idle: Vec::new(),
        };
        Ok(NetworkSlice { sample, hists, n_unsplit })
    }
}

/// Requester, responder, wire; their sum is the round trip exactly. None where a stamp is missing or a clock jumped.
fn split(round_trip_ns: u64, arrival: &Arrival) -> Option<[u64; 3]> {
    let reply = &arrival.reply;
    let requester = arrival.user_rx_at_ns.checked_sub(arrival.kernel_rx_at_ns?)?;
    let kernel_rx_at_ns = Some(reply.kernel_rx_at_ns).filter(|at| *at > 0)?;
    let responder = reply.user_tx_at_ns.checked_sub(kernel_rx_at_ns)?;
    let wire = round_trip_ns.checked_sub(requester)?.checked_sub(responder)?;
    Some([requester, responder, wire])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_split_sums_up_and_a_jumped_clock_is_no_split() {
        let reply = Message { kernel_rx_at_ns: 1000, user_tx_at_ns: 1030, ..Message::request(1, 1) };
        let good = Arrival { reply, at_ns: 0, user_rx_at_ns: 520, kernel_rx_at_ns: Some(500) };
        assert_eq!(split(60, &good), Some([20, 30, 10]));
        assert_eq!(split(49, &good), None, "parts larger than the whole");
        assert_eq!(split(60, &Arrival { user_rx_at_ns: 400, ..good }), None);
        let no_stamp = Message { kernel_rx_at_ns: 0, ..reply };
        assert_eq!(split(60, &Arrival { reply: no_stamp, ..good }), None);
    }
}

//! The other end of a round trip: answers each request with three stamps of its own clock.
//!
//! UDP and TCP on the same port. It answers only whole requests of its version, with as many bytes as it got, and keeps
//! nothing. It binds to loopback unless told otherwise, since whoever reaches the port can make this CPU work. TCP
//! serves several connections, each in a thread of its own, so that nobody waits for a slow client: one that sends
//! nothing for 30 s is closed, one that takes more than a second for a request once begun, and one that does not read its
//! replies. More than the limit are closed at once, also more than a few from one address: nobody holds every place.
//!
//! Whoever waits for connections is not measured, so it must not be where it is measured: that thread is an ordinary one on
//! the other CPUs, asleep until somebody knocks. Only the threads that answer are pinned and of the real-time class.

use super::wire::{Direction, LENGTH, Message};
use super::*;
use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use wakewatt_core::samples::Scheduling;
use wakewatt_host::affinity::keep_off;
use wakewatt_host::sched::MeasuringThread;
use wakewatt_host::sleep::Event;
use wakewatt_host::timestamps::{enable_receive_stamps, receive};
use wakewatt_host::{clock, sleep};

/// How often a waiting thread looks at its stop flag.
pub(crate) const STOP_LOOK: Duration = Duration::from_millis(50);
/// The UDP thread sits on the measured CPU and would wake it each time: it is told by a datagram, and looks only for safety.
const UDP_LOOK: Duration = Duration::from_secs(1);
const SILENT_LIMIT_NS: u64 = 30_000_000_000;
/// A request comes in one piece or two: who takes longer for the rest of one is no requester.
const PIECE_LIMIT_NS: u64 = 1_000_000_000;
/// Connections at a time. A measurement needs one.
const MOST_CONNECTIONS: usize = 16;
/// Of these, from one address.
const MOST_OF_ONE: usize = 4;

/// How to respond.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RespondSpec {
    /// Address and port; port 0 takes a free one.
    pub bind: SocketAddr,
    /// The CPU to pin to.
    pub cpu: Option<Cpu>,
    /// SCHED_FIFO priority to try.
    pub fifo_priority: Option<u8>,
}

impl RespondSpec {
    /// On loopback, a free port, pinned or not.
    pub fn loopback(cpu: Option<Cpu>) -> RespondSpec {
        let bind = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        RespondSpec { bind, cpu, fifo_priority: Some(DEFAULT_FIFO_PRIORITY) }
    }
}

/// A running responder; dropping it stops it.
#[derive(Debug)]
pub struct Responder {
    address: SocketAddr,
    scheduling: Scheduling,
    stop: Arc<AtomicBool>,
    /// Wakes who waits for connections.
    end: Arc<Event>,
    threads: Vec<JoinHandle<()>>,
}

impl Responder {
    /// Binds and answers from two threads.
    pub fn start(spec: &RespondSpec) -> Result<Responder, BenchError> {
        Responder::with_limit(spec, SILENT_LIMIT_NS)
    }

    fn with_limit(spec: &RespondSpec, silent_limit_ns: u64) -> Result<Responder, BenchError> {
        if let Some(cpu) = spec.cpu {
            check_cpu(cpu)?;
        }
        let (udp, tcp) = bind(spec.bind)?;
        let at = |e| BenchError::system(format!("setting up the sockets at {}", spec.bind), e);
        let address = udp.local_addr().map_err(at)?;
        enable_receive_stamps(udp.as_fd()).map_err(at)?;
        udp.set_read_timeout(Some(UDP_LOOK)).map_err(at)?;
        tcp.set_nonblocking(true).map_err(at)?;
        let end = Arc::new(Event::new().map_err(std::io::Error::from).map_err(at)?);
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = std::sync::mpsc::channel();
        let scheduling = Scheduling::Other("not started".into());
        let mut responder = Responder { address, scheduling, stop, end: Arc::clone(&end), threads: Vec::new() };
        responder.spawn(spec, ready, move |cpu, stop| serve_udp(&udp, cpu, stop))?;
        responder.spawn_acceptor(tcp, spec.clone(), silent_limit_ns)?;
        responder.scheduling = is_ready
            .recv()
            .map_err(|_| BenchError::Crashed)?
            .map_err(|e| BenchError::system("pinning the responder", e))?;
        Ok(responder)
    }

    fn spawn(
        &mut self,
        spec: &RespondSpec,
        ready: std::sync::mpsc::Sender<Result<Scheduling, std::io::Error>>,
        serve: impl FnOnce(Option<Cpu>, &AtomicBool) + Send + 'static,
    ) -> Result<(), BenchError> {
        let (spec, stop) = (spec.clone(), Arc::clone(&self.stop));
        let body = move || match MeasuringThread::enter(spec.cpu, spec.fifo_priority) {
            Err(why) => drop(ready.send(Err(why.into()))),
            Ok(thread) => {
                let _ = ready.send(Ok(thread.scheduling().clone()));
                drop(ready);
                serve(spec.cpu, &stop);
            }
        };
        let handle = std::thread::Builder::new().name("wakewatt-respond".into()).spawn(body);
        self.threads.push(handle.map_err(|e| BenchError::system("starting a responder thread", e))?);
        Ok(())
    }

    fn spawn_acceptor(&mut self, tcp: TcpListener, spec: RespondSpec, silent_limit_ns: u64) -> Result<(), BenchError> {
        let (stop, end) = (Arc::clone(&self.stop), Arc::clone(&self.end));
        let body = move || {
            // Where there is no other CPU, or none may be chosen, it stays where it is: it sleeps.
            let _ = spec.cpu.map(keep_off);
            serve_tcp(&tcp, &spec, silent_limit_ns, &stop, &end);
        };
        let handle = std::thread::Builder::new().name("wakewatt-accept".into()).spawn(body);
        self.threads.push(handle.map_err(|e| BenchError::system("starting a responder thread", e))?);
        Ok(())
    }

    /// Where it listens, UDP and TCP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How it is scheduled.
    pub fn scheduling(&self) -> &Scheduling {
        &self.scheduling
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.end.signal();
        let _ = poke(self.address);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Responds until stopped; says first where.
pub fn respond(spec: &RespondSpec, stop: &AtomicBool, on_ready: impl FnOnce(&Responder)) -> Result<(), BenchError> {
    let responder = Responder::start(spec)?;
    on_ready(&responder);
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(STOP_LOOK);
    }
    Ok(())
}

fn bind(address: SocketAddr) -> Result<(UdpSocket, TcpListener), BenchError> {
    let mut last = None;
    // A port that is free for UDP may be taken for TCP: with port 0, try another.
    for _ in 0..if address.port() == 0 { 16 } else { 1 } {
        let both = UdpSocket::bind(address).and_then(|udp| {
            let tcp = TcpListener::bind(udp.local_addr()?)?;
            Ok((udp, tcp))
        });
        match both {
            Ok(both) => return Ok(both),
            Err(why) => last = Some(why),
        }
    }
    let why = last.unwrap_or_else(|| ErrorKind::AddrInUse.into());
    Err(BenchError::system(format!("binding UDP and TCP to {address} (another port may be free)"), why))
}

/// An empty datagram, which is no request, to whoever waits for one.
fn poke(address: SocketAddr) -> std::io::Result<usize> {
    let (any, own): (IpAddr, IpAddr) = match address.ip() {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), Ipv6Addr::LOCALHOST.into()),
    };
    let to = if address.ip().is_unspecified() { own } else { address.ip() };
    UdpSocket::bind((any, 0))?.send_to(&[], (to, address.port()))
}

/// The reply to a request, all but the send stamp.
fn reply_to(bytes: &[u8], kernel_rx_at_ns: Option<u64>, user_rx_at_ns: u64, cpu: Option<Cpu>) -> Option<Message> {
    let request = Message::decode(bytes).filter(|m| m.direction == Direction::Request)?;
    let kernel_rx_at_ns = kernel_rx_at_ns.unwrap_or(0);
    Some(Message { direction: Direction::Reply, kernel_rx_at_ns, user_rx_at_ns, cpu, ..request })
}

fn serve_udp(socket: &UdpSocket, cpu: Option<Cpu>, stop: &AtomicBool) {
    // One byte more than a message, so that a longer datagram is seen to be one.
    let mut buffer = [0; LENGTH + 1];
    while !stop.load(Ordering::Relaxed) {
        let Ok(got) = receive(socket.as_fd(), &mut buffer) else { continue };
        let user_rx_at_ns = clock::realtime_ns();
        let reply = reply_to(&buffer[..got.n_bytes], got.kernel_rx_at_ns, user_rx_at_ns, cpu);
        if let (Some(mut reply), Some(from)) = (reply, got.from) {
            reply.user_tx_at_ns = clock::realtime_ns();
            let _ = socket.send_to(&reply.encode(), from);
        }
    }
}

/// Who is connected.
#[derive(Debug, Default)]
struct Places(Mutex<Vec<IpAddr>>);

impl Places {
    /// A place, if there is one for this peer; dropping it gives it back.
    fn take(&self, peer: IpAddr) -> Option<Seat<'_>> {
        let peer = peer.to_canonical();
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let n_own = taken.iter().filter(|other| **other == peer).count();
        (taken.len() < MOST_CONNECTIONS && n_own < MOST_OF_ONE).then(|| {
            taken.push(peer);
            Seat { places: self, peer }
        })
    }
}

struct Seat<'a> {
    places: &'a Places,
    peer: IpAddr,
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = taken.iter().position(|other| *other == self.peer) {
            taken.swap_remove(at);
        }
    }
}

fn serve_tcp(listener: &TcpListener, spec: &RespondSpec, silent_limit_ns: u64, stop: &AtomicBool, end: &Event) {
    let places = Places::default();
    std::thread::scope(|scope| {
        while !stop.load(Ordering::Relaxed) {
            match listener.accept() {
                Ok((stream, peer)) => {
                    // Closed at once: one more thread would be the price of knocking.
                    let Some(place) = places.take(peer.ip()) else { continue };
                    let serve = move || {
                        // As the responder itself is pinned and scheduled; refused there, it was said so at the start.
                        if let Ok(_thread) = MeasuringThread::enter(spec.cpu, spec.fifo_priority) {
                            let _ = serve_connection(stream, spec.cpu, silent_limit_ns, stop);
                        }
                        drop(place);
                    };
                    // Without a thread the connection and its place are dropped with what it would have run.
                    let _ = std::thread::Builder::new().name("wakewatt-respond".into()).spawn_scoped(scope, serve);
                }
                Err(why) if why.kind() == ErrorKind::WouldBlock => end.wait_or_readable(listener.as_fd()),
                // A peer that is gone already, or no descriptor left: the queue is still there, so not at once again.
                Err(_) => drop(sleep::sleep_until(clock::monotonic_ns() + 20_000_000)),
            }
        }
    });
}

fn serve_connection(
    mut stream: TcpStream,
    cpu: Option<Cpu>,
    silent_limit_ns: u64,
    stop: &AtomicBool,
) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(STOP_LOOK))?;
    stream.set_write_timeout(Some(STOP_LOOK))?;
    enable_receive_stamps(stream.as_fd())?;
    let (mut buffer, mut n_filled) = ([0; LENGTH], 0);
    // When the last whole request came, and when the one under way began.
    let (mut heard_at_ns, mut begun_at_ns) = (clock::monotonic_ns(), 0);
    while !stop.load(Ordering::Relaxed) {
        let is_late = |now_ns: u64| match n_filled {
            0 => now_ns - heard_at_ns > silent_limit_ns,
            _ => now_ns - begun_at_ns > PIECE_LIMIT_NS,
        };
        if is_late(clock::monotonic_ns()) {
            return Err(ErrorKind::TimedOut.into());
        }
        let got = match receive(stream.as_fd(), &mut buffer[n_filled..]) {
            Ok(got) if got.n_bytes == 0 => return Ok(()),
            Ok(got) => got,
            Err(why) if is_pause(&why) => continue,
            Err(why) => return Err(why),
        };
        let user_rx_at_ns = clock::realtime_ns();
        if n_filled == 0 {
            begun_at_ns = clock::monotonic_ns();
        }
        n_filled += got.n_bytes;
        if n_filled == LENGTH {
            n_filled = 0;
            // Not our protocol: hang up.
            let reply = reply_to(&buffer, got.kernel_rx_at_ns, user_rx_at_ns, cpu);
            let Some(mut reply) = reply else { return Ok(()) };
            reply.user_tx_at_ns = clock::realtime_ns();
            stream.write_all(&reply.encode())?;
            heard_at_ns = clock::monotonic_ns();
        }
    }
    Ok(())
}

pub(crate) fn is_pause(why: &std::io::Error) -> bool {
    matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    const PATIENCE: Duration = Duration::from_secs(120);

    fn connected(address: SocketAddr) -> TcpStream {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn is_answered(stream: &mut TcpStream) -> bool {
        // Who is hung up on may learn it while writing.
        let is_written = stream.write_all(&Message::request(1, 1).encode()).is_ok();
        let mut reply = [0; LENGTH];
        is_written
            && stream.read_exact(&mut reply).is_ok()
            && Message::decode(&reply).is_some_and(|m| m.direction == Direction::Reply)
    }

    #[test]
    fn silent_and_slow_clients_hold_nobody_up() {
        let spec = RespondSpec { fifo_priority: None, ..RespondSpec::loopback(None) };
        // Nobody waits for the limit of silence here, however slow the machine.
        let responder = Responder::with_limit(&spec, u64::MAX).unwrap();
        // One says nothing, one stops in the middle, one sends and never reads.
        let silent = connected(responder.address());
        let mut slow = connected(responder.address());
        slow.write_all(&Message::request(1, 1).encode()[..LENGTH / 2]).unwrap();
        let mut deaf = connected(responder.address());
        deaf.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        let request = Message::request(1, 1).encode();
        let mut n_sent = 0;
        while n_sent < 1_000_000 && deaf.write_all(&request).is_ok() {
            n_sent += 1;
        }
        assert!(is_answered(&mut connected(responder.address())), "others are served");
        // Who stopped in the middle is hung up on, and the one that says nothing is not, yet.
        assert_eq!(slow.read(&mut [0; 1]).unwrap(), 0);
        silent.set_nonblocking(true).unwrap();
        assert_eq!((&silent).read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn more_than_the_limit_of_one_address_are_closed_and_places_come_free() {
        let spec = RespondSpec { fifo_priority: None, ..RespondSpec::loopback(None) };
        let responder = Responder::start(&spec).unwrap();
        let mut all: Vec<TcpStream> = (0..MOST_OF_ONE).map(|_| connected(responder.address())).collect();
        assert!(all.iter_mut().all(is_answered));
        assert!(!is_answered(&mut connected(responder.address())), "closed");
        drop(all);
        let start = std::time::Instant::now();
        while !is_answered(&mut connected(responder.address())) {
            assert!(start.elapsed() < PATIENCE, "no place came free");
        }
    }

    #[test]
    fn silence_ends_at_the_limit() {
        let spec = RespondSpec { fifo_priority: None, ..RespondSpec::loopback(None) };
        let responder = Responder::with_limit(&spec, 1).unwrap();
        assert_eq!(connected(responder.address()).read(&mut [0; 1]).unwrap(), 0);
    }

    #[test]
    fn one_address_holds_few_places_and_all_together_no_more_than_there_are() {
        let places = Places::default();
        let peer = |n: usize| IpAddr::from([192, 0, 2, u8::try_from(n).unwrap()]);
        let mapped: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
        let mut own: Vec<Seat<'_>> = (0..MOST_OF_ONE).filter_map(|_| places.take(peer(1))).collect();
        assert_eq!(own.len(), MOST_OF_ONE);
        assert!(places.take(peer(1)).is_none() && places.take(mapped).is_none());
        let others: Vec<Seat<'_>> = (2..100).filter_map(|n| places.take(peer(n))).collect();
        assert_eq!(others.len(), MOST_CONNECTIONS - MOST_OF_ONE);
        own.pop();
        assert!(places.take(peer(1)).is_some());
    }
}

//! The first work after a sleep: the same piece of work twice, first when a pause has ended and then at once again.
//!
//! A wake-up latency ends where the woken thread runs. What it does then takes longer than it would have without the pause: caches, translations and
//! predictors hold what others left there, on a guest perhaps another guest's, and a clock may have to climb. How much longer depends on what the work
//! touches, so there are two pieces. One is what servers do most: a request of 300 bytes written to a TCP connection, read at its other end, and an answer of
//! 400 bytes back, all by one thread, so nobody is woken for it. The other is a transaction of `load steps`: 100 us of arithmetic over a table of 256 KiB.
//! The second follows at once, so it is the warm one of the same wake-up.

use super::gaps::Gaps;
use super::*;
use crate::table_work::{Work, units_for};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wakewatt_core::samples::state_cost::Piece;
use wakewatt_core::samples::waker::Pauses;
use wakewatt_core::stats::distribution::Recorder;
use wakewatt_host::{affinity::Pinned, clock, sched::MeasuringThread, sleep};

const REQUEST: usize = 300;
const ANSWER: usize = 400;
/// A connection to oneself is there at once.
const PATIENCE: Duration = Duration::from_secs(1);
/// What the other piece takes warm.
const TABLE_NS: u64 = 100_000;

/// What to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstWorkSpec {
    pub cpu: Cpu,
    /// The work.
    pub piece: Piece,
    /// Units of `Piece::Table`, as `units_on` counts them.
    pub n_units: u64,
    /// Pause before each piece of work.
    pub gap_ns: u64,
    /// Discarded first.
    pub warmup_ns: u64,
    /// Counted.
    pub duration_ns: u64,
}

/// How long the work took, in nanoseconds.
#[derive(Debug, Default)]
pub struct FirstWorkSlice {
    /// As the first thing after a pause.
    pub first: Recorder,
    /// At once again.
    pub again: Recorder,
}

/// Measures, until done or stopped.
pub fn first_work(spec: FirstWorkSpec, stop: &AtomicBool) -> Result<FirstWorkSlice, BenchError> {
    check_cpu(spec.cpu)?;
    check_gap(spec.gap_ns)?;
    let slice = std::thread::scope(|scope| scope.spawn(|| measure(spec, stop)).join());
    let slice = slice.map_err(|_| BenchError::Crashed)??;
    if slice.first.is_empty() { Err(BenchError::NoSamples) } else { Ok(slice) }
}

fn measure(spec: FirstWorkSpec, stop: &AtomicBool) -> Result<FirstWorkSlice, BenchError> {
    // As servers run: without a real-time priority.
    let _thread = MeasuringThread::enter(Some(spec.cpu), None)
        .map_err(|e| BenchError::system(format!("pinning a thread to CPU {}", spec.cpu), e))?;
    // Made by the thread that uses it, where it uses it.
    let mut work = Doing::new(spec.piece, spec.n_units)?;
    // What is done for the first time ever is another cold.
    work.once()?;
    let (mut slice, mut gaps) = (FirstWorkSlice::default(), Gaps::new(spec.gap_ns, Pauses::Fixed));
    let count_from_ns = clock::monotonic_ns() + spec.warmup_ns;
    let end_at_ns = count_from_ns + spec.duration_ns;
    loop {
        // From the end of the last work: the pause is what matters here.
        let until_ns = clock::monotonic_ns() + gaps.next_ns();
        if until_ns >= end_at_ns || stop.load(Ordering::Relaxed) {
            return Ok(slice);
        }
        if sleep::sleep_until(until_ns).is_err() {
            continue; // a signal: sleep on, or stop
        }
        let began_ns = clock::monotonic_ns();
        work.once()?;
        let between_ns = clock::monotonic_ns();
        work.once()?;
        let ended_ns = clock::monotonic_ns();
        if began_ns >= count_from_ns {
            slice.first.saturating_record((between_ns - began_ns).max(1));
            slice.again.saturating_record((ended_ns - between_ns).max(1));
        }
    }
}

/// Units of work over a table that take 100 us on this CPU when it is warm: half a second of work.
pub fn units_on(cpu: Cpu) -> Result<u64, BenchError> {
    let measured = move || {
        let _pin = Pinned::to(cpu).map_err(|e| BenchError::system(format!("pinning a thread to CPU {cpu}"), e))?;
        Ok(units_for(TABLE_NS, &[Work::new(1).cost_ns(clock::monotonic_ns)]))
    };
    std::thread::spawn(measured).join().map_err(|_| BenchError::Crashed)?
}

/// Who does it.
enum Doing {
    Trip(Box<Ends>),
    Table(Work, u64),
}

impl Doing {
    fn new(piece: Piece, n_units: u64) -> Result<Doing, BenchError> {
        match piece {
            Piece::Trip => Ends::new().map(|ends| Doing::Trip(Box::new(ends))).map_err(trip_failed),
            Piece::Table => Ok(Doing::Table(Work::new(1), n_units)),
        }
    }

    fn once(&mut self) -> Result<(), BenchError> {
        match self {
            Doing::Trip(ends) => ends.trip().map_err(trip_failed),
            Doing::Table(work, n_units) => {
                work.run(*n_units);
                Ok(())
            }
        }
    }
}

fn trip_failed(why: std::io::Error) -> BenchError {
    BenchError::system("a round trip over a TCP connection to 127.0.0.1", why)
}

/// Both ends of a connection.
struct Ends {
    client: TcpStream,
    server: TcpStream,
    bytes: [u8; ANSWER],
}

impl Ends {
    fn new() -> std::io::Result<Ends> {
        let door = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let client = TcpStream::connect_timeout(&door.local_addr()?, PATIENCE)?;
        let own = client.local_addr()?;
        // Somebody else may have been quicker at the door.
        let server = loop {
            let (server, who) = door.accept()?;
            if who == own {
                break server;
            }
        };
        for end in [&client, &server] {
            end.set_nodelay(true)?;
            // A firewall that takes the bytes must not end in waiting for ever.
            end.set_read_timeout(Some(PATIENCE))?;
        }
        Ok(Ends { client, server, bytes: [1; ANSWER] })
    }

    fn trip(&mut self) -> std::io::Result<()> {
        self.client.write_all(&self.bytes[..REQUEST])?;
        self.server.read_exact(&mut self.bytes[..REQUEST])?;
        self.server.write_all(&self.bytes)?;
        self.client.read_exact(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_host::affinity::allowed_cpus;

    #[test]
    fn every_pause_is_followed_by_two_pieces_of_work_and_a_stop_ends_it() {
        let cpu = allowed_cpus().unwrap().iter().next().unwrap();
        let spec = FirstWorkSpec {
            cpu,
            piece: Piece::Trip,
            n_units: 100,
            gap_ns: 100_000,
            warmup_ns: 0,
            duration_ns: 30_000_000,
        };
        for piece in [Piece::Trip, Piece::Table] {
            let slice = first_work(FirstWorkSpec { piece, ..spec }, &AtomicBool::new(false)).unwrap();
            assert!(!slice.first.is_empty() && slice.first.len() == slice.again.len());
            assert!(slice.first.len() <= 300, "{}", slice.first.len());
        }
        let stopped = first_work(spec, &AtomicBool::new(true));
        assert!(matches!(stopped, Err(BenchError::NoSamples)));
        let nowhere = first_work(FirstWorkSpec { cpu: 4000, ..spec }, &AtomicBool::new(false));
        assert!(matches!(nowhere, Err(BenchError::CpuNotAllowed { .. })));
    }
}

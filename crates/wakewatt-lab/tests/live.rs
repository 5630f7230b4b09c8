//! Every probe really runs, under a second each, on whatever machine the tests run on.
//!
//! The bounds are physical, not expectations, and a window that held too little is repeated with twice the length: a
//! machine that does everything else first must pass.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wakewatt_core::samples::network::Transport;
use wakewatt_core::samples::waker::Pauses;
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_core::source::Tree;
use wakewatt_lab::bench::*;

const NOW: u64 = 200_000_000;
/// Longer than the windows is a mistake of the clock; how long is up to the machine.
const PLAUSIBLE_NS: std::ops::Range<u64> = 500..LONGEST;
const LONGEST: u64 = 30_000_000_000;

/// Runs for 0.2 s, then for twice as long, until there is enough.
fn patiently<T: std::fmt::Debug>(
    mut run: impl FnMut(u64) -> Result<T, BenchError>,
    is_enough: impl Fn(&T) -> bool,
) -> Result<T, BenchError> {
    let mut length_ns = NOW;
    loop {
        match run(length_ns) {
            Ok(found) if is_enough(&found) || length_ns > LONGEST / 2 => return Ok(found),
            Err(why) if !matches!(why, BenchError::NoSamples) || length_ns > LONGEST / 2 => return Err(why),
            _ => length_ns *= 2,
        }
    }
}

fn two_cpus() -> Option<(u32, u32)> {
    let allowed = wakewatt_host::affinity::allowed_cpus().ok()?;
    let mut cpus = allowed.iter();
    Some((cpus.next()?, cpus.next()?))
}

fn go() -> AtomicBool {
    AtomicBool::new(false)
}

#[test]
fn timer_wakes_and_slices_pool() {
    let cpu = wakewatt_host::affinity::allowed_cpus().unwrap().first().unwrap();
    let spec = |ns| TimerSpec { pauses: Pauses::Exponential { seed: 1 }, ..TimerSpec::on(cpu, ns) };
    let is_enough = |slice: &WakeupSlice| slice.sample.latency.n > 50;
    let mut slice = patiently(|ns| timer(&spec(ns), &go(), &Tree::default()), is_enough).unwrap();
    let n = slice.sample.latency.n;
    assert!(n > 50, "{slice:?}");
    let more = patiently(|ns| timer(&TimerSpec::on(cpu, ns), &go(), &Tree::default()), is_enough).unwrap();
    let n_more = more.sample.latency.n;
    slice.absorb(more);
    assert_eq!(slice.sample.latency.n, n + n_more);
    assert!(PLAUSIBLE_NS.contains(&slice.sample.latency.p50_ns().unwrap()), "{:?}", slice.sample.latency);
    assert!(matches!(
        timer(&TimerSpec { cpu: 5000, ..spec(NOW) }, &go(), &Tree::default()),
        Err(BenchError::CpuNotAllowed { .. })
    ));
}

#[test]
fn remote_wakes() {
    let Some((from, to)) = two_cpus() else { return };
    for (kind, word) in [(RemoteKind::Futex, WakeKind::Futex), (RemoteKind::Eventfd, WakeKind::Eventfd)] {
        let run = |ns| remote(&RemoteSpec::between(kind, from, to, ns), &go(), &Tree::default());
        let slice = patiently(run, |slice| slice.sample.latency.n > 50).unwrap();
        assert_eq!(slice.sample.kind, word);
        // Every planned wake-up is a sample or is told as lost, however busy the machine; one may be under way at the end.
        let waker = slice.sample.waker.unwrap();
        let told = slice.sample.latency.n + waker.n_missed + waker.n_not_asleep;
        assert!(waker.n_planned.abs_diff(told) <= 1, "{waker:?} and {} samples", slice.sample.latency.n);
        assert!(slice.late.len() <= waker.n_planned && slice.sample.window.length_ns() > 0);
        assert!(slice.sample.latency.n > 50, "{slice:?}");
        assert!(PLAUSIBLE_NS.contains(&slice.sample.latency.p50_ns().unwrap()), "{:?}", slice.sample.latency);
    }
    let same = RemoteSpec::between(RemoteKind::Futex, to, to, NOW);
    assert!(matches!(remote(&same, &go(), &Tree::default()), Err(BenchError::SameCpu(_))));
}

#[test]
fn interrupts_return_or_the_refusal_says_what_to_try() {
    let Some((from, to)) = two_cpus() else { return };
    let run = |ns| ipi(&RemoteSpec::between(RemoteKind::Futex, from, to, ns), &go(), &Tree::default());
    match patiently(run, |slice| slice.sample.latency.n > 50) {
        Ok(slice) => assert!(PLAUSIBLE_NS.contains(&slice.sample.latency.p50_ns().unwrap()), "{slice:?}"),
        Err(BenchError::Unavailable(why)) => assert!(why.contains("perf_event_paranoid"), "{why}"),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn round_trips_split_and_sum_up() {
    let Some((here, there)) = two_cpus() else { return };
    let responder = Responder::start(&RespondSpec::loopback(Some(there))).unwrap();
    for transport in [Transport::Udp, Transport::Tcp] {
        let spec = |ns| NetworkSpec::to(transport, responder.address(), here, ns);
        let run = |ns| round_trip(&spec(ns), &go(), &Tree::default());
        let slice = patiently(run, |slice| slice.sample.round_trip.n > 20).unwrap();
        let sample = &slice.sample;
        assert!(sample.round_trip.n > 20 && sample.responder_cpu == Some(there), "{sample:?}");
        assert!(PLAUSIBLE_NS.contains(&sample.round_trip.p50_ns().unwrap()), "{sample:?}");
        let split = sample.split.as_ref().unwrap();
        assert!(split.wire.n + slice.n_unsplit == sample.round_trip.n);
        if sample.n_late_starts == 0 && slice.n_unsplit == 0 {
            let sum = split.requester.mean_ns + split.responder.mean_ns + split.wire.mean_ns;
            let off_ns = (sum - sample.round_trip.mean_ns).abs();
            // Histogram buckets are 0.1 % wide; the samples themselves sum up exactly.
            assert!(off_ns < 1000.0 + 0.002 * sample.round_trip.mean_ns, "{off_ns}");
        }
    }
}

#[test]
fn a_silent_or_foreign_peer_is_lost_replies_not_numbers() {
    let cpu = wakewatt_host::affinity::allowed_cpus().unwrap().first().unwrap();
    let foreign = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = foreign.local_addr().unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            foreign.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
            let mut buffer = [0; 100];
            // An echo of the request is not a reply.
            while !over.load(Ordering::Relaxed) {
                if let Ok((n, from)) = foreign.recv_from(&mut buffer) {
                    let _ = foreign.send_to(&buffer[..n], from);
                }
            }
        });
        let spec = |ns| NetworkSpec {
            timeout_ns: 60_000_000,
            warmup_ns: 0,
            ..NetworkSpec::to(Transport::Udp, address, cpu, ns)
        };
        let refused = patiently(|ns| round_trip(&spec(ns), &go(), &Tree::default()), |_| true).unwrap_err();
        over.store(true, Ordering::Relaxed);
        assert!(refused.to_string().contains("answered"), "{refused}");
    });
}

#[test]
fn a_stop_ends_a_long_run_soon() {
    let cpu = wakewatt_host::affinity::allowed_cpus().unwrap().first().unwrap();
    let stop = go();
    // Ten minutes: whoever waits for the end is seen, however busy the machine is.
    let spec = TimerSpec { gap_ns: 20_000_000, ..TimerSpec::on(cpu, 600_000_000_000) };
    let mut before_ms = 200;
    let took = loop {
        stop.store(false, Ordering::Relaxed);
        let (result, took) = std::thread::scope(|scope| {
            let run = scope.spawn(|| timer(&spec, &stop, &Tree::default()));
            std::thread::sleep(Duration::from_millis(before_ms));
            let since = Instant::now();
            stop.store(true, Ordering::Relaxed);
            (run.join().unwrap(), since.elapsed())
        });
        match result {
            Ok(slice) => {
                assert!(slice.sample.latency.n > 0);
                break took;
            }
            // Stopped before its first sample.
            Err(BenchError::NoSamples) if before_ms < 30_000 => before_ms *= 2,
            Err(why) => panic!("{why}"),
        }
    };
    assert!(took < Duration::from_secs(60), "{took:?}");
}

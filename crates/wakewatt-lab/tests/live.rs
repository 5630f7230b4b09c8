//! Every probe really runs, under a second each, on whatever machine the tests run on.
//!
//! The bounds are physical (half a microsecond to ten milliseconds), not expectations: a loaded CI host must pass.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wakewatt_core::samples::network::Transport;
use wakewatt_core::samples::wakeup::WakeKind;
use wakewatt_core::source::Tree;
use wakewatt_lab::bench::*;

const NOW: u64 = 200_000_000;
const PLAUSIBLE_NS: std::ops::Range<u64> = 500..10_000_000;

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
    let spec = TimerSpec { random_gap_seed: Some(1), ..TimerSpec::on(cpu, NOW) };
    let mut slice = timer(&spec, &go(), &Tree::default()).unwrap();
    let n = slice.sample.latency.n;
    assert!(n > 50, "{slice:?}");
    slice.absorb(timer(&TimerSpec::on(cpu, NOW), &go(), &Tree::default()).unwrap());
    assert!(slice.sample.latency.n >= n + 100);
    assert!(PLAUSIBLE_NS.contains(&slice.sample.latency.p50_ns().unwrap()), "{:?}", slice.sample.latency);
    assert!(matches!(
        timer(&TimerSpec { cpu: 5000, ..spec }, &go(), &Tree::default()),
        Err(BenchError::CpuNotAllowed { .. })
    ));
}

#[test]
fn remote_wakes() {
    let Some((from, to)) = two_cpus() else { return };
    for (kind, word) in [(RemoteKind::Futex, WakeKind::Futex), (RemoteKind::Eventfd, WakeKind::Eventfd)] {
        let slice = remote(&RemoteSpec::between(kind, from, to, NOW), &go(), &Tree::default()).unwrap();
        assert_eq!(slice.sample.kind, word);
        assert!(slice.sample.latency.n > 50, "{slice:?}");
        assert!(PLAUSIBLE_NS.contains(&slice.sample.latency.p50_ns().unwrap()), "{:?}", slice.sample.latency);
    }
    let same = RemoteSpec::between(RemoteKind::Futex, to, to, NOW);
    assert!(matches!(remote(&same, &go(), &Tree::default()), Err(BenchError::SameCpu(_))));
}

#[test]
fn interrupts_return_or_the_refusal_says_what_to_try() {
    let Some((from, to)) = two_cpus() else { return };
    match ipi(&RemoteSpec::between(RemoteKind::Futex, from, to, NOW), &go(), &Tree::default()) {
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
        let spec = NetworkSpec::to(transport, responder.address(), here, NOW);
        let slice = round_trip(&spec, &go(), &Tree::default()).unwrap();
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
    let echo = std::thread::spawn(move || {
        foreign.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let mut buffer = [0; 100];
        // An echo of the request is not a reply.
        while let Ok((n, from)) = foreign.recv_from(&mut buffer) {
            foreign.send_to(&buffer[..n], from).unwrap();
        }
    });
    let spec = NetworkSpec {
        timeout_ns: 60_000_000,
        warmup_ns: 0,
        ..NetworkSpec::to(Transport::Udp, address, cpu, 150_000_000)
    };
    let refused = round_trip(&spec, &go(), &Tree::default()).unwrap_err();
    assert!(refused.to_string().contains("answered"), "{refused}");
    echo.join().unwrap();
}

#[test]
fn a_stop_ends_a_long_run_soon() {
    let cpu = wakewatt_host::affinity::allowed_cpus().unwrap().first().unwrap();
    let stop = go();
    let took = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            timer(&TimerSpec { gap_ns: 20_000_000, ..TimerSpec::on(cpu, 60_000_000_000) }, &stop, &Tree::default())
        });
        std::thread::sleep(Duration::from_millis(200));
        let since = Instant::now();
        stop.store(true, Ordering::Relaxed);
        assert!(run.join().unwrap().unwrap().sample.latency.n > 0);
        since.elapsed()
    });
    assert!(took < Duration::from_millis(200), "{took:?}");
}

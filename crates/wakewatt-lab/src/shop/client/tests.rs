//! Clients against a shop in this process: who answers, who is late, who never answers. Structure, not speed.

use super::*;
use crate::shop::server::tests::Open;
use std::net::{SocketAddr, TcpListener};
use std::time::Instant;
use wakewatt_host::clock::monotonic_ns;

fn spec(at: SocketAddr, pace: Pace) -> GeneratorSpec {
    GeneratorSpec {
        target: Target { host: at.to_string(), at, prefix: String::new() },
        mix: Mix::own(100),
        pace,
        seed: 3,
        first_session: 1 << 44,
        timeout_ns: 300_000_000,
        cpus: CpuSet::new(),
        n_threads: 2,
    }
}

/// Runs it for so long, all of it recorded.
fn ran(spec: GeneratorSpec, for_ms: u64) -> Tally {
    let generator = Generator::start(spec).unwrap();
    generator.shared().recorded.begin(0);
    let end_at_ns = monotonic_ns() + for_ms * 1_000_000;
    std::thread::sleep(Duration::from_millis(for_ms));
    generator.shared().recorded.end(end_at_ns);
    generator.close();
    std::thread::sleep(Duration::from_millis(400));
    generator.halt().unwrap()
}

const FEW: Pace = Pace::Clients { n: 4, think_ns: 10_000_000, ramp_ns: 50_000_000 };

#[test]
fn clients_are_answered_and_think_between() {
    let shop = Open::shop();
    let tally = ran(spec(shop.at, FEW), 1_000);
    assert_eq!(tally.failures, std::collections::BTreeMap::new());
    // Four clients with 10 ms each would ask 400 times if answers took no time; a busy machine asks less.
    assert!((8..=600).contains(&tally.n_planned), "{}", tally.n_planned);
    let parts = tally.parts(&Mix::own(100).names());
    assert_eq!(parts.iter().map(|p| p.n_done).sum::<u64>(), tally.n_planned);
    let (latency, service) = (tally.latency().unwrap(), tally.service().unwrap());
    assert!(latency.n == tally.n_planned && latency.mean_ns >= service.mean_ns);
}

#[test]
fn arrivals_keep_their_rate() {
    let shop = Open::shop();
    let tally = ran(spec(shop.at, Pace::Rate { per_s: 100.0, most_open: 8 }), 1_000);
    assert!((50..=150).contains(&tally.n_planned), "{}: 100 ± 5 deviations", tally.n_planned);
    assert_eq!(tally.n_failed(), 0);
}

#[test]
fn a_rate_that_no_thread_can_plan_leaves_time_to_ask_and_to_halt() {
    let shop = Open::shop();
    let generator = Generator::start(spec(shop.at, Pace::Rate { per_s: 1e7, most_open: 2 })).unwrap();
    let start = Instant::now();
    while generator.shared().n_good.load(Relaxed) == 0 && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let n_good = generator.shared().n_good.load(Relaxed);
    drop(generator);
    assert!(n_good > 0 && start.elapsed() < Duration::from_secs(40), "{n_good} after {:?}", start.elapsed());
}

#[test]
fn cpus_that_cannot_be_had_are_counted_and_the_clients_ask_all_the_same() {
    let shop = Open::shop();
    let nowhere = GeneratorSpec { cpus: [100_000].into_iter().collect(), ..spec(shop.at, FEW) };
    let generator = Generator::start(nowhere).unwrap();
    let start = Instant::now();
    while generator.shared().n_good.load(Relaxed) == 0 && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!generator.is_broken() && generator.shared().n_good.load(Relaxed) > 0);
    assert_eq!(generator.shared().n_displaced.load(Relaxed), 2);
}

#[test]
fn a_server_that_never_answers_is_a_timeout_each_time_and_waiting_counts() {
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = deaf.local_addr().unwrap();
    let tally = ran(spec(at, Pace::Rate { per_s: 50.0, most_open: 2 }), 1_000);
    assert_eq!(tally.n_failed(), tally.n_planned, "nothing is dropped: {:?}", tally.failures);
    assert!(tally.failures.contains_key(&Failure::Timeout) && tally.failures.contains_key(&Failure::Unfinished));
    assert!(tally.late().max_ns > 100_000_000, "requests without a connection wait, and their time runs");
    assert_eq!((tally.n_answered, tally.latency()), (0, None));
}

#[test]
fn nobody_there_is_a_failure_and_halting_is_quick() {
    let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let tally = ran(spec(at, FEW), 200);
    assert!(tally.failures.contains_key(&Failure::Refused) && tally.n_answered == 0);
    let slow = Pace::Clients { n: 10, think_ns: 3_600_000_000_000, ramp_ns: 0 };
    let generator = Generator::start(spec(at, slow)).unwrap();
    let start = Instant::now();
    drop(generator);
    assert!(start.elapsed() < Duration::from_secs(2));
}

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

/// Longer than any test: nobody is late because the machine is.
const PATIENT_NS: u64 = 120_000_000_000;
const PATIENCE: Duration = Duration::from_secs(120);

fn wait_until(mut is_so: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !is_so() && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(2));
    }
    is_so()
}

/// Runs it until it has been answered (well or badly) so often, and no request is under way; all of it recorded.
fn ran_until(spec: GeneratorSpec, n: u64) -> Tally {
    let generator = Generator::start(spec).unwrap();
    let shared = generator.shared();
    shared.recorded.begin(0);
    assert!(wait_until(|| shared.n_good.load(Relaxed) + shared.n_bad.load(Relaxed) >= n));
    shared.recorded.end(monotonic_ns());
    generator.close();
    // What is asked at this moment is answered: looked at twice, since one may just begin.
    let is_over = || shared.n_under_way.load(Relaxed) == 0;
    assert!(wait_until(|| is_over() && {
        std::thread::sleep(Duration::from_millis(200));
        is_over()
    }));
    generator.halt().unwrap()
}

const FEW: Pace = Pace::Clients { n: 4, think_ns: 10_000_000, ramp_ns: 50_000_000 };

#[test]
fn clients_are_answered_and_think_between() {
    let shop = Open::shop();
    let start = Instant::now();
    let tally = ran_until(GeneratorSpec { timeout_ns: PATIENT_NS, ..spec(shop.at, FEW) }, 40);
    assert_eq!(tally.failures, std::collections::BTreeMap::new());
    // Four clients with 10 ms each would ask 400 times in a second if answers took no time; a busy machine asks less.
    let most = 4.0 + 600.0 * start.elapsed().as_secs_f64();
    assert!(tally.n_planned >= 40 && tally.n_planned as f64 <= most, "{} of {most}", tally.n_planned);
    let parts = tally.parts(&Mix::own(100).names());
    assert_eq!(parts.iter().map(|p| p.n_done).sum::<u64>(), tally.n_planned);
    let (latency, service) = (tally.latency().unwrap(), tally.service().unwrap());
    assert!(latency.n == tally.n_planned && latency.mean_ns >= service.mean_ns);
}

#[test]
fn arrivals_keep_their_rate() {
    let shop = Open::shop();
    let start = Instant::now();
    let rate = Pace::Rate { per_s: 100.0, most_open: 8 };
    let tally = ran_until(GeneratorSpec { timeout_ns: PATIENT_NS, ..spec(shop.at, rate) }, 100);
    // A busy machine plans fewer; more than the rate, and ten deviations, nobody may.
    let most = 100.0 * start.elapsed().as_secs_f64();
    assert!(tally.n_planned >= 100 && (tally.n_planned as f64) < most + 10.0 * most.sqrt(), "{}", tally.n_planned);
    assert_eq!(tally.n_failed(), 0);
}

#[test]
fn a_rate_that_no_thread_can_plan_leaves_time_to_ask_and_to_halt() {
    let shop = Open::shop();
    let generator = Generator::start(spec(shop.at, Pace::Rate { per_s: 1e7, most_open: 2 })).unwrap();
    assert!(wait_until(|| generator.shared().n_good.load(Relaxed) > 0), "nobody is answered");
    let start = Instant::now();
    drop(generator);
    assert!(start.elapsed() < PATIENCE, "halting took {:?}", start.elapsed());
}

#[test]
fn cpus_that_cannot_be_had_are_counted_and_the_clients_ask_all_the_same() {
    let shop = Open::shop();
    let nowhere = GeneratorSpec { cpus: [100_000].into_iter().collect(), ..spec(shop.at, FEW) };
    let generator = Generator::start(nowhere).unwrap();
    assert!(wait_until(|| generator.shared().n_good.load(Relaxed) > 0) && !generator.is_broken());
    assert_eq!(generator.shared().n_displaced.load(Relaxed), 2);
}

#[test]
fn a_server_that_never_answers_is_a_timeout_each_time_and_waiting_counts() {
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = deaf.local_addr().unwrap();
    let generator = Generator::start(spec(at, Pace::Rate { per_s: 50.0, most_open: 2 })).unwrap();
    let shared = generator.shared();
    shared.recorded.begin(0);
    // Some timed out, and some are under way when it ends.
    assert!(wait_until(|| shared.n_bad.load(Relaxed) >= 4 && shared.n_under_way.load(Relaxed) > 0));
    shared.recorded.end(monotonic_ns());
    let tally = generator.halt().unwrap();
    assert_eq!(tally.n_failed(), tally.n_planned, "nothing is dropped: {:?}", tally.failures);
    assert!(tally.failures.contains_key(&Failure::Timeout) && tally.failures.contains_key(&Failure::Unfinished));
    assert!(tally.late().max_ns > 100_000_000, "requests without a connection wait, and their time runs");
    let latency = tally.latency().unwrap();
    assert_eq!((tally.n_answered, latency.n), (0, tally.n_planned));
    assert_eq!(latency.censored.map(|c| c.n), Some(tally.n_planned), "each took at least the time-out: {latency:?}");
    assert!(latency.quantiles.iter().all(|q| latency.is_at_least(q.value_ns)));
}

#[test]
fn nobody_there_is_a_failure_and_halting_is_quick() {
    let at = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let tally = ran_until(spec(at, FEW), 4);
    assert!(tally.failures.contains_key(&Failure::Refused) && tally.n_answered == 0);
    let slow = Pace::Clients { n: 10, think_ns: 3_600_000_000_000, ramp_ns: 0 };
    let generator = Generator::start(spec(at, slow)).unwrap();
    let start = Instant::now();
    drop(generator);
    assert!(start.elapsed() < PATIENCE, "they think for an hour");
}

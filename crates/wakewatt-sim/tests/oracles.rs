//! The engine against what queueing theory knows exactly, within 1 %: formulas from Kleinrock, Queueing Systems (1975); M/G/1 with setup from
//! Welch (1964); staggered setup from Gandhi & Harchol-Balter, CMU-CS-09-166.

#![allow(clippy::unwrap_used)] // A server that is refused is a failed test.

use wakewatt_sim::law::{Family, Law};
use wakewatt_sim::outcome::Outcome;
use wakewatt_sim::server::{Arrivals, Hop, IdleState, Machine, Queues, Run, Server, Workload};
use wakewatt_sim::simulate;
use wakewatt_sim::span::Span;

fn server(machine: Machine, arrivals: Arrivals, service: Law) -> Server {
    // About 350,000 requests in each of eight replications: within 1 % at these loads.
    let per_s = arrivals.per_s.unwrap_or(5000.0);
    let workload = Workload { arrivals, hop: vec![Hop::of(service)], rounds: None, limit: None };
    let run = Run {
        duration: Some(seconds(350_000.0 / per_s)),
        warmup: Some(Span::ms(1000)),
        replications: 8,
        seed: 11,
        bins: 4,
    };
    Server { run, ..Server::of(machine, workload) }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn seconds(s: f64) -> Span {
    Span::ms((s * 1000.0) as u64)
}

fn run(server: &Server) -> Outcome {
    let outcome = simulate(server, 2).unwrap();
    laws_that_always_hold(server, &outcome);
    outcome
}

/// Little's law and the utilisation law, of every run.
fn laws_that_always_hold(server: &Server, o: &Outcome) {
    let little = o.done_per_s.value * o.mean_ns.value / 1e9;
    close("Little's law", o.in_system.value, little, 0.005);
    if server.machine[0].wake_cost.ns() == 0 && server.machine[0].hz == 0 {
        let demand = server.workload.hop[0].service.mean_ns() / 1e9;
        let used = o.done_per_s.value * demand / server.machine[0].n_cpus() as f64;
        close("the utilisation law", o.machines[0].use_ratio.value, used, 0.01);
    }
}

#[track_caller]
fn close(what: &str, found: f64, exact: f64, within: f64) {
    let off = found / exact - 1.0;
    assert!(off.abs() <= within, "{what}: {found} found, {exact} exact, {:.2} % off", off * 100.0);
}

const MS: f64 = 1e6;

/// Probability that an arrival waits (Erlang C), and the mean number in an M/M/c.
fn erlang_c(c: u32, load: f64) -> f64 {
    let mut inverse = 1.0; // Erlang B, by recursion.
    for k in 1..=c {
        inverse = 1.0 + f64::from(k) / load * inverse;
    }
    let b = 1.0 / inverse;
    let rho = load / f64::from(c);
    b / (1.0 - rho * (1.0 - b))
}

fn mmc_time(c: u32, rate: f64, service: f64) -> f64 {
    let load = rate * service;
    service + erlang_c(c, load) * service / (f64::from(c) - load)
}

#[test]
fn one_cpu_with_exponential_service_is_mm1() {
    let o = run(&server(Machine::bare(1), Arrivals::poisson(1400.0), Law::exponential(Span::us(500))));
    let exact = 0.5 * MS / (1.0 - 0.7);
    close("mean", o.mean_ns.value, exact, 0.01);
    // Times are exponential.
    close("p90", o.quantiles[1].ns.value, exact * 10f64.ln(), 0.01);
    close("p99", o.quantiles[2].ns.value, exact * 100f64.ln(), 0.015);
    // So are idle periods: whoever arrives next ends them.
    let idle = o.machines[0].idle_periods;
    close("idle periods", idle.mean_ns, 1e9 / 1400.0, 0.01);
    close("their variation", idle.cv, 1.0, 0.01);
}

#[test]
fn several_cpus_are_mmc_whether_they_share_a_queue_or_take_from_each_other() {
    let shared = server(Machine::bare(8), Arrivals::poisson(12_000.0), Law::exponential(Span::us(500)));
    let mut own = shared.clone();
    own.machine[0].queues = Queues::PerCpu;
    for server in [shared, own] {
        let o = run(&server);
        close("mean", o.mean_ns.value, mmc_time(8, 12_000.0, 0.5 * MS / 1e9) * 1e9, 0.01);
        // All idle at once: the next arrival ends it.
        let idle = o.machines[0].package_idle_periods;
        close("package idle", idle.mean_ns, 1e9 / 12_000.0, 0.03);
        close("its variation", idle.cv, 1.0, 0.03);
    }
}

#[test]
fn any_service_is_pollaczek_and_khinchine() {
    let rate = 1200.0;
    for (law, cv) in [
        (Law::fixed(Span::us(500)), 0.0),
        (Law::varied(Family::Gamma, Span::us(500), 0.5), 0.5),
        (Law::varied(Family::Lognormal, Span::us(500), 1.0), 1.0),
        (Law::varied(Family::Hyperexponential, Span::us(500), 2.0), 2.0),
    ] {
        let o = run(&server(Machine::bare(1), Arrivals::poisson(rate), law.clone()));
        let s = 5e-4;
        let exact = s + rate * s * s * (1.0 + cv * cv) / (2.0 * (1.0 - rate * s));
        close(&format!("{law:?}"), o.mean_ns.value, exact * 1e9, 0.01);
    }
}

#[test]
fn room_for_k_is_mm1k() {
    let (rate, k) = (2400.0, 5u8);
    let mut server = server(Machine::bare(1), Arrivals::poisson(rate), Law::exponential(Span::us(500)));
    server.workload.limit = Some(u64::from(k));
    let o = run(&server);
    let rho: f64 = rate * 5e-4;
    let weights: Vec<f64> = (0..=k).map(|n| rho.powi(i32::from(n))).collect();
    let all: f64 = weights.iter().sum();
    close("turned away", o.turned_away_ratio, weights[usize::from(k)] / all, 0.01);
    let number: f64 = weights.iter().enumerate().map(|(n, w)| n as f64 * w / all).sum();
    close("in system", o.in_system.value, number, 0.01);
}

#[test]
fn a_closed_loop_is_the_machine_repair_model() {
    let (n, c, think, service) = (20u32, 4u32, 2e-3, 5e-4);
    let arrivals = Arrivals::closed(u64::from(n), Law::exponential(Span::ms(2)));
    let o = run(&server(Machine::bare(c), arrivals, Law::exponential(Span::us(500))));
    // Birth and death: k at the server, n - k thinking.
    let mut weights = vec![1.0];
    for k in 1..=n {
        let came = f64::from(n - k + 1) / think;
        let went = f64::from(k.min(c)) / service;
        weights.push(weights[k as usize - 1] * came / went);
    }
    let all: f64 = weights.iter().sum();
    let busy: f64 = weights.iter().enumerate().map(|(k, w)| (k as f64).min(f64::from(c)) * w / all).sum();
    close("done per second", o.done_per_s.value, busy / service, 0.01);
    close("mean", o.mean_ns.value, (f64::from(n) * service / busy - think) * 1e9, 0.01);
}

/// A machine with one idle state that takes so long to leave.
fn with_setup(cores: u32, exit: Law) -> Machine {
    let mut machine = Machine::bare(cores);
    machine.idle.state = vec![IdleState { exit: Some(exit), ..IdleState::free() }];
    machine
}

#[test]
fn waking_up_is_mg1_with_setup() {
    // The worked example: 1.09545 ms.
    let law = Law::exponential(Span::us(500));
    let o = run(&server(with_setup(1, Law::fixed(Span::us(100))), Arrivals::poisson(1000.0), law.clone()));
    close("fixed setup", o.mean_ns.value, 1.09545 * MS, 0.01);
    let (rate, d) = (1000.0, 1e-3);
    let o = run(&server(with_setup(1, Law::exponential(Span::ms(1))), Arrivals::poisson(rate), law));
    let setup = (2.0 * d + rate * 2.0 * d * d) / (2.0 * (1.0 + rate * d));
    close("exponential setup", o.mean_ns.value, (1e-3 + setup) * 1e9, 0.01);
}

#[test]
fn one_cpu_waking_at_a_time_adds_the_mean_setup_to_mmk() {
    for (c, rate) in [(1, 1000.0), (4, 4000.0), (8, 12_000.0)] {
        let mut machine = with_setup(c, Law::exponential(Span::us(400)));
        machine.queues = Queues::Staggered;
        let o = run(&server(machine, Arrivals::poisson(rate), Law::exponential(Span::us(500))));
        let exact = mmc_time(c, rate, 5e-4) * 1e9 + 0.4 * MS;
        close(&format!("{c} CPUs"), o.mean_ns.value, exact, 0.01);
    }
}

/// The mean time of M/M/k/setup where the first free CPU takes a request, from its Markov chain: so many
/// CPUs at work, so many requests.
fn setup_time(k: usize, rate: f64, service: f64, setup: f64) -> f64 {
    const MOST: usize = 150;
    let (mu, alpha) = (1.0 / service, 1.0 / setup);
    let waking = |busy: usize, n: usize| (k - busy).min(n - busy) as f64 * alpha;
    let mut p = vec![vec![1.0; MOST + 1]; k + 1];
    for _ in 0..4000 {
        for n in 0..=MOST {
            for busy in 0..=k.min(n) {
                let out = rate * f64::from(u8::from(n < MOST)) + busy as f64 * mu + waking(busy, n);
                let mut into = 0.0;
                if n > busy {
                    into += p[busy][n - 1] * rate;
                }
                if busy > 0 {
                    into += p[busy - 1][n] * waking(busy - 1, n);
                }
                if n < MOST && busy > 0 {
                    // One of these is done, and takes the next that waits.
                    into += p[busy][n + 1] * busy as f64 * mu;
                }
                if n < MOST && busy < k && busy == n {
                    // Nothing waited: it sleeps.
                    into += p[busy + 1][n + 1] * (busy + 1) as f64 * mu;
                }
                p[busy][n] = into / out;
            }
        }
    }
    let states = || (0..=MOST).flat_map(|n| (0..=k.min(n)).map(move |busy| (busy, n)));
    let all: f64 = states().map(|(busy, n)| p[busy][n]).sum();
    states().map(|(busy, n)| p[busy][n] * n as f64).sum::<f64>() / all / rate
}

#[test]
fn a_request_that_the_first_free_cpu_takes_is_mmk_with_setup() {
    // One CPU: M/M/1 with setup, in closed form.
    assert!((setup_time(1, 1000.0, 5e-4, 1e-3) / 2e-3 - 1.0).abs() < 1e-6);
    for (k, rate) in [(1, 1000.0), (4, 4000.0), (8, 12_000.0)] {
        let mut machine = with_setup(k, Law::exponential(Span::ms(1)));
        machine.queues = Queues::Unbound;
        let o = run(&server(machine.clone(), Arrivals::poisson(rate), Law::exponential(Span::us(500))));
        let exact = setup_time(usize::try_from(k).unwrap(), rate, 5e-4, 1e-3) * 1e9;
        close(&format!("{k} CPUs"), o.mean_ns.value, exact, 0.01);
        machine.queues = Queues::Shared;
        let bound = run(&server(machine, Arrivals::poisson(rate), Law::exponential(Span::us(500))));
        assert!(k == 1 || bound.mean_ns.value > 1.05 * exact, "{k} CPUs: {} bound, {exact} not", bound.mean_ns.value);
    }
}

#[test]
fn a_slower_clock_is_a_longer_service() {
    // T = S x / (1 - rho x), x = beta ref / f + 1 - beta.
    let mut server = server(Machine::bare(1), Arrivals::poisson(1000.0), Law::exponential(Span::us(500)));
    server.workload.hop[0].cpu_bound = 0.8;
    let clock = &mut server.machine[0].clock;
    (clock.mhz, clock.max_mhz) = (vec![2000, 1250], Some(1250));
    let o = simulate(&server, 2).unwrap();
    let x = 0.8 * 1.6 + 0.2;
    close("mean", o.mean_ns.value, 0.5 * MS * x / (1.0 - 0.5 * x), 0.01);
    close("busy time", o.machines[0].use_ratio.value, 0.5 * x, 0.01);
    close("clock", o.machines[0].mhz.value, 1250.0, 1e-9);
}

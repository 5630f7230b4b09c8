//! Work takes CPU time, interrupts too, and a queue that grows is reported wherever it is.

#![allow(clippy::unwrap_used)] // A server that is refused is a failed test.

use proptest::prelude::*;
use wakewatt_core::stats::random::Random;
use wakewatt_sim::law::Law;
use wakewatt_sim::outcome::Outcome;
use wakewatt_sim::server::{Arrivals, Hop, Idle, Interrupt, Machine, Placement, Queues, Run, Server, Timers, Workload};
use wakewatt_sim::simulate;
use wakewatt_sim::span::Span;

fn server(machine: Machine, per_s: f64, hop: Vec<Hop>) -> Server {
    let workload = Workload { arrivals: Arrivals::poisson(per_s), hop, rounds: None, limit: None };
    let run = Run { duration: Some(Span::ms(4000)), warmup: Some(Span::ms(400)), replications: 4, seed: 3, bins: 4 };
    Server { run, ..Server::of(machine, workload) }
}

/// CPUs with queues of their own, and nothing else.
fn bare(cores: u32) -> Machine {
    Machine { queues: Queues::PerCpu, ..Machine::bare(cores) }
}

fn skylake(cores: u32) -> Machine {
    Machine { cores, idle: Idle { table: Some("SKX".into()), ..Idle::default() }, ..Machine::default() }
}

fn interrupt(work: Span, cpus: &str) -> Option<Interrupt> {
    Some(Interrupt { work, cpus: Some(cpus.into()) })
}

fn run(server: &Server) -> Outcome {
    simulate(server, 2).unwrap()
}

/// An interrupt waits for the interrupts before it: M/D/1, 100 us at 0.8 and 1 us of a task elsewhere.
#[test]
fn interrupts_on_one_cpu_are_pollaczek_and_khinchine() {
    let hop =
        Hop { cpus: Some("1".into()), interrupt: interrupt(Span::us(100), "0"), ..Hop::of(Law::fixed(Span::us(1))) };
    let mut server = server(bare(2), 8000.0, vec![hop]);
    server.run.duration = Some(Span::ms(20_000));
    let o = run(&server);
    assert!((o.mean_ns.value / 301e3 - 1.0).abs() < 0.02, "{} ns", o.mean_ns.value);
    assert!((o.machines[0].cpu_use[0] - 0.8).abs() < 0.01 && !o.is_saturated, "{:?}", o.machines[0].cpu_use);
}

/// The mean time of a request whose interrupts preempt tasks on one CPU, first come first served within
/// each, arrival by arrival.
fn preempted_ns(per_s: f64, irq_ns: f64, work_ns: f64) -> f64 {
    let (mut random, n) = (Random::new(9), 400_000);
    let mut drawn = |mean: f64| -(1.0 - random.unit()).ln() * mean;
    let (mut now, mut free_at) = (0.0, 0.0f64);
    let interrupts: Vec<[f64; 3]> = (0..n)
        .map(|_| {
            now += drawn(1e9 / per_s);
            let begins: f64 = free_at.max(now);
            free_at = begins + irq_ns;
            [now, begins, free_at]
        })
        .collect();
    let (mut at, mut next, mut sum) = (0.0f64, 0, 0.0);
    for [arrived, _, announced] in &interrupts {
        at = at.max(*announced);
        let mut left = drawn(work_ns);
        while let Some([_, begins, ends]) = interrupts.get(next).filter(|i| i[1] < at + left) {
            left -= (begins - at).max(0.0);
            at = at.max(*ends);
            next += 1;
        }
        at += left;
        sum += at - arrived;
    }
    sum / f64::from(n)
}

#[test]
fn interrupts_preempt_tasks_of_their_cpu() {
    let hop = Hop {
        cpus: Some("0".into()),
        interrupt: interrupt(Span::us(100), "0"),
        ..Hop::of(Law::exponential(Span::us(200)))
    };
    let mut server = server(bare(1), 2000.0, vec![hop]);
    server.run.duration = Some(Span::ms(60_000));
    let o = run(&server);
    let exact = preempted_ns(2000.0, 100e3, 200e3);
    assert!((o.mean_ns.value / exact - 1.0).abs() < 0.02, "{} simulated, {exact} by hand", o.mean_ns.value);
    assert!((o.machines[0].cpu_use[0] - 0.6).abs() < 0.01, "{:?}", o.machines[0].cpu_use);
}

#[test]
fn a_queue_that_grows_is_found_wherever_it_is() {
    let plain = |work| Hop::of(Law::exponential(Span::us(work)));
    let on = |cpus: &str, work| Hop { cpus: Some(cpus.into()), ..plain(work) };
    let irq = |work, cpus: &str| Hop { interrupt: interrupt(Span::us(work), cpus), ..plain(50) };
    let beside = |own: Hop| {
        let mut server = server(bare(4), 3000.0, vec![plain(50), Hop { machine: Some("db".into()), ..own }]);
        server.machine.push(Machine { name: "db".into(), ..bare(4) });
        server
    };
    let timers = Machine { timers: Some(Timers { every: Span::ms(1), work: Span::us(1100) }), ..bare(2) };
    let random = Machine { placement: Placement::Random, pull: false, cpus: Some("0,4-7".into()), ..bare(8) };
    let smt = Machine { threads: 2, smt_share: 0.6, ..bare(1) };
    for (name, server, at) in [
        ("interrupts of one CPU", server(skylake(16), 60_000.0, vec![irq(18, "0")]), Some("server, CPU 0")),
        ("interrupts of two CPUs", server(skylake(16), 60_000.0, vec![irq(36, "0-1")]), Some("server, CPU 0")),
        ("a pinned task", server(skylake(8), 3000.0, vec![on("0", 400)]), Some("server, CPU 0")),
        ("a cpuset", server(skylake(8), 6000.0, vec![on("0-1", 400)]), Some("server, CPUs 0-1")),
        ("exactly as much as it can do", server(bare(1), 2000.0, vec![plain(500)]), Some("server, CPU 0")),
        ("a little more", server(Machine::bare(8), 16_100.0, vec![plain(500)]), Some("server, all CPUs")),
        ("another machine", beside(on("2", 400)), Some("db, CPU 2")),
        ("its own timers", server(timers, 10.0, vec![plain(50)]), Some("server, CPU 0")),
        // CPU 0 takes what falls on CPU 0, the CPU 4 what falls on 1 to 4.
        ("uneven placement", server(random, 4000.0, vec![plain(520)]), Some("server, CPU 4")),
        ("a busy sibling", server(smt, 2500.0, vec![plain(500)]), Some("server, all CPUs")),
        ("interrupts that leave room", server(skylake(16), 40_000.0, vec![irq(18, "0")]), None),
        ("a cpuset that has room", server(skylake(8), 4000.0, vec![on("0-1", 400)]), None),
        ("a machine that has room", server(Machine::bare(8), 15_200.0, vec![plain(500)]), None),
    ] {
        let o = run(&server);
        assert_eq!(
            (o.is_saturated, o.bottleneck.as_deref()),
            (at.is_some(), at),
            "{name}: {:?}",
            o.machines[0].cpu_use
        );
    }
}

/// Each hop has its own devices: what one hop interrupts does not move the turn of another.
#[test]
fn interrupts_of_two_hops_take_turns_apart() {
    let hop = |work, cpus| Hop { interrupt: interrupt(Span::us(work), cpus), ..Hop::of(Law::fixed(Span::us(1))) };
    let o = run(&server(bare(4), 3000.0, vec![hop(1, "0"), hop(60, "0-3")]));
    let others = &o.machines[0].cpu_use[1..];
    let (least, most) = (others.iter().copied().fold(1.0, f64::min), others.iter().copied().fold(0.0, f64::max));
    assert!(most < 1.3 * least, "{others:?}");
}

/// Files of one machine with work of fixed lengths, some of it bound to CPUs.
fn any_server() -> impl Strategy<Value = Server> {
    let cpus =
        |cores: u32| prop_oneof![Just("0".to_string()), Just(format!("0-{}", cores - 1)), Just("0-1".to_string())];
    let hop = move |cores: u32| {
        (5u64..300, proptest::option::of(cpus(cores)), proptest::option::of((1u64..80, cpus(cores))), any::<bool>())
            .prop_map(|(work, cpus, irq, pinned)| Hop {
                pinned: pinned && cpus.is_some(),
                cpus,
                interrupt: irq.and_then(|(work, cpus)| interrupt(Span::us(work), &cpus)),
                ..Hop::of(Law::fixed(Span::us(work)))
            })
    };
    let rest = (any::<bool>(), any::<bool>(), proptest::option::of(1u64..1500), 100.0..30_000.0f64, any::<u64>());
    (2u32..6)
        .prop_flat_map(move |cores| (Just(cores), proptest::collection::vec(hop(cores), 1..3), rest.clone()))
        .prop_map(|(cores, hops, (sleeps, slices, timer, per_s, seed))| {
            let mut machine = if sleeps { skylake(cores) } else { bare(cores) };
            machine.slice = slices.then(|| Span::us(40));
            machine.timers = timer.map(|work| Timers { every: Span::ms(1), work: Span::us(work) });
            let mut server = server(machine, per_s, hops);
            server.run =
                Run { duration: Some(Span::ms(400)), warmup: Some(Span(0)), replications: 1, seed: seed >> 1, bins: 1 };
            server
        })
}

/// CPU time of a request, in nanoseconds, that only this CPU can give. Only the first hop is sure to cost a wake-up: a task that
/// goes on with its next hop wakes nobody.
fn bound_ns(server: &Server, cpu: usize) -> f64 {
    let n = usize::try_from(server.machine[0].n_cpus()).unwrap();
    let list = |text: &str| match text.split_once('-') {
        Some((low, high)) => (low.parse().unwrap()..=high.parse().unwrap()).collect::<Vec<usize>>(),
        None => vec![text.parse().unwrap()],
    };
    let hop = |(at, hop): (usize, &Hop)| {
        let wake_ns = if at == 0 { server.machine[0].wake_cost.ns() as f64 } else { 0.0 };
        let cpus = hop.cpus.as_deref().map_or((0..n).collect(), list);
        let own = if hop.pinned { &cpus[..1] } else { &cpus[..] };
        let work = if own == [cpu] { hop.service.mean_ns() + wake_ns } else { 0.0 };
        let irq = hop.interrupt.as_ref().map_or(0.0, |i| {
            let takers = i.cpus.as_deref().map(list).unwrap();
            if takers.contains(&cpu) { i.work.ns() as f64 / takers.len() as f64 } else { 0.0 }
        });
        work + irq
    };
    server.workload.hop.iter().enumerate().map(hop).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn work_done_on_a_cpu_is_no_more_than_its_time_and_more_than_that_is_saturation(server in any_server()) {
        let o = run(&server);
        let (per_s, ns) = (server.workload.arrivals.per_s.unwrap(), o.duration_ns as f64);
        let n_done = o.done_per_s.value * ns / 1e9;
        let m = &o.machines[0];
        let timer = server.machine[0].timers.as_ref().map_or(0.0, |t| t.work.seconds() / t.every.seconds());
        let mut worst: f64 = 0.0;
        for cpu in 0..m.cpu_use.len() {
            let bound = bound_ns(&server, cpu);
            // Interrupts that take turns: one more or less.
            let done = (n_done * bound - 4.0 * 80e3) / ns;
            prop_assert!(m.cpu_use[cpu] <= 1.0 && done <= m.cpu_use[cpu], "CPU {cpu}: {done} done, {:?}", m.cpu_use);
            worst = worst.max(per_s * bound / 1e9 + timer);
        }
        let wake = server.machine[0].wake_cost.ns() as f64;
        let irq = |h: &Hop| h.interrupt.as_ref().map_or(0.0, |i| i.work.ns() as f64);
        let least: f64 = wake + server.workload.hop.iter().map(|h| h.service.mean_ns() + irq(h)).sum::<f64>();
        let all = least + wake * (server.workload.hop.len() - 1) as f64;
        worst = worst.max(per_s * least / 1e9 / m.cpu_use.len() as f64 + timer);
        prop_assert!(worst < 1.0 || o.is_saturated, "{worst} offered, {:?}", m.cpu_use);
        // On one CPU it would still have room, whatever sleep adds to it.
        let most = per_s * (all + 60e3 * server.workload.hop.len() as f64) / 1e9 + timer;
        prop_assert!(most > 0.7 || !o.is_saturated, "{most} offered at most, {:?} at {:?}", m.cpu_use, o.bottleneck);
    }
}

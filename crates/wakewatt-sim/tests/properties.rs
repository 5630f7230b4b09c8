//! What must hold of every server, not only of those with a formula: GOVERNORS' acceptance tests, and that bad input is refused by name.

#![allow(clippy::unwrap_used)] // A server that is refused is a failed test.

use proptest::prelude::*;
use wakewatt_sim::law::Law;
use wakewatt_sim::outcome::Outcome;
use wakewatt_sim::server::{
    After, ArrivalKind, Arrivals, Clock, ClockGovernor, Hop, Idle, IdleGovernor, IdleState, Machine, Placement, Run,
    Server, Timers, Turbo, Workload,
};
use wakewatt_sim::simulate;
use wakewatt_sim::span::Span;

fn plain(per_s: f64, service_us: u64, cores: u32) -> Server {
    let machine = Machine {
        cores,
        idle: Idle {
            table: Some("SKX".into()),
            package_state: Some("C6".into()),
            package_exit: Span::us(50),
            ..Idle::default()
        },
        clock: Clock { mhz: vec![2800, 2000, 1200], ..Clock::default() },
        timers: Some(Timers { every: Span::ms(100), work: Span::us(10) }),
        ..Machine::default()
    };
    let hop = Hop::of(Law::exponential(Span::us(service_us)));
    let workload = Workload { arrivals: Arrivals::poisson(per_s), hop: vec![hop], rounds: None, limit: None };
    let run = Run { duration: Some(Span::ms(2000)), warmup: Some(Span::ms(200)), replications: 2, seed: 5, bins: 5 };
    Server { run, ..Server::of(machine, workload) }
}

fn run(server: &Server) -> Outcome {
    simulate(server, 2).unwrap()
}

fn any_server() -> impl Strategy<Value = Server> {
    let idle = prop_oneof![
        Just(IdleGovernor::Menu),
        Just(IdleGovernor::Teo),
        Just(IdleGovernor::Ladder),
        Just(IdleGovernor::Haltpoll),
        Just(IdleGovernor::Fixed)
    ];
    let clock = prop_oneof![
        Just(ClockGovernor::Performance),
        Just(ClockGovernor::Powersave),
        Just(ClockGovernor::Cpuspeed),
        Just(ClockGovernor::Ondemand),
        Just(ClockGovernor::Conservative),
        Just(ClockGovernor::OndemandOld),
        Just(ClockGovernor::ConservativeOld),
        Just(ClockGovernor::Schedutil),
        Just(ClockGovernor::IntelPstate),
        Just(ClockGovernor::Hwp)
    ];
    let place =
        prop_oneof![Just(Placement::Kernel), Just(Placement::Spread), Just(Placement::Pack), Just(Placement::Random)];
    let shape = (1u32..3, 1u32..5, 1u32..3, 1u32..3);
    let rest = (any::<bool>(), any::<bool>(), 1.0..20_000.0f64, 10u64..800, any::<u64>());
    (idle, clock, place, shape, rest).prop_map(
        |(idle, clock, place, (packages, cores, threads, hops), (waits, slices, per_s, service, seed))| {
            let mut server = plain(per_s, service, cores);
            let m = &mut server.machine[0];
            (m.packages, m.threads, m.placement) = (packages, threads, place);
            (m.idle.governor, m.clock.governor) = (idle, clock);
            m.slice = slices.then(|| Span::us(200));
            m.numa_penalty = 0.3;
            if slices {
                m.clock.turbo = vec![Turbo { cores: 1, mhz: 2800 }, Turbo { cores: 3, mhz: 2000 }];
            }
            if waits {
                server.workload.hop[0].wait = Some(Law::exponential(Span::us(300)));
                server.workload.hop[0].iowait = true;
            }
            server.workload.rounds = Some(hops);
            server.run = Run {
                duration: Some(Span::ms(120)),
                warmup: Some(Span::ms(20)),
                replications: 1,
                seed: seed >> 1,
                bins: 3,
            };
            server
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn times_energies_and_shares_are_never_negative_nor_too_large(server in any_server()) {
        let o = run(&server);
        let m = &o.machines[0];
        prop_assert!(o.mean_ns.value >= 0.0 && o.in_system.value >= 0.0 && o.wall_w.value >= 0.0 && m.cores_w.value >= 0.0);
        prop_assert!((0.0..=1.0).contains(&m.use_ratio.value), "{m:?}");
        prop_assert!((0.0..=1.0).contains(&m.system_ratio.value));
        prop_assert!((0.0..=1.0).contains(&m.package_asleep_ratio.value));
        // Idle states and work fill the time, but for wake-ups on their way at either end.
        let slept: f64 = m.states.iter().map(|s| s.time_ratio.value).sum();
        prop_assert!((slept + m.use_ratio.value - 1.0).abs() < 0.02, "{slept} asleep, {} at work", m.use_ratio.value);
        prop_assert!(o.series.iter().all(|b| b.wall_w >= 0.0 && b.use_ratio >= 0.0 && b.load >= 0.0));
        prop_assert!(o.quantiles.windows(2).all(|q| q[0].ns.value <= q[1].ns.value));
        // No faster than the work itself at the highest clock.
        let least = server.machine[0].power.deep_w();
        prop_assert!(m.cores_w.value >= least * 0.99, "{} W", m.cores_w.value);
    }

    #[test]
    fn equal_seeds_give_equal_numbers_on_any_number_of_threads(server in any_server()) {
        let mut server = server;
        server.run.replications = 3;
        let one = simulate(&server, 1).unwrap();
        prop_assert_eq!(&one, &simulate(&server, 3).unwrap());
        prop_assert_eq!(&one, &simulate(&server, 64).unwrap());
    }
}

#[test]
fn more_load_is_never_less_use_and_another_seed_other_numbers() {
    let used =
        [500.0, 1000.0, 2000.0, 4000.0, 8000.0].map(|per_s| run(&plain(per_s, 400, 4)).machines[0].use_ratio.value);
    assert!(used.windows(2).all(|w| w[0] < w[1]), "{used:?}");
    let mut other = plain(500.0, 400, 4);
    other.run.seed = 6;
    assert_ne!(run(&other).mean_ns, run(&plain(500.0, 400, 4)).mean_ns);
}

#[test]
fn polling_is_never_slower_than_sleeping_at_equal_clocks() {
    for per_s in [100.0, 1000.0, 5000.0] {
        for cores in [1, 4] {
            let sleeping = plain(per_s, 150, cores);
            let mut halting = sleeping.clone();
            halting.machine[0].idle.max_state = Some("C1".into());
            let mut polling = sleeping.clone();
            polling.machine[0].idle.max_latency = Some(Span(0));
            let [sleeping, halting, polling] = [sleeping, halting, polling].map(|s| run(&s));
            if !polling.is_saturated {
                let [s, h, p] = [&sleeping, &halting, &polling].map(|o| o.mean_ns.value);
                assert!(p <= h && h <= s, "{per_s}/s on {cores}: polling {p}, C1 {h}, all states {s}");
                // 1 % of work may come out as a rounding of its own.
                let [s, p] = [&sleeping, &polling].map(|o| o.machines[0].cpu_per_request_ns.value);
                assert!(p <= s * 1.001, "{per_s}/s on {cores}: {p} of CPU polling, {s} sleeping");
            }
        }
    }
}

/// Energy at equal work: all states take no more than C1 alone where idle periods are much longer than target residencies.
#[test]
fn deep_states_save_where_sleeps_are_long() {
    let deep = plain(20.0, 200, 4);
    let mut shallow = deep.clone();
    shallow.machine[0].idle.max_state = Some("C1".into());
    let [deep, shallow] = [deep, shallow].map(|s| run(&s));
    assert!(
        deep.wall_w.value < 0.8 * shallow.wall_w.value,
        "{} W, C1 alone {} W",
        deep.wall_w.value,
        shallow.wall_w.value
    );
    assert!(deep.machines[0].package_asleep_ratio.value > 0.5 && deep.machines[0].states[3].time_ratio.value > 0.9);
}

/// Busy time is the sum of the work at its clock.
#[test]
fn the_utilisation_law_holds_with_governors_clocks_and_wake_ups() {
    let mut server = plain(4000.0, 300, 4);
    server.machine[0].clock.max_mhz = Some(2000);
    server.machine[0].timers = None;
    server.machine[0].tick_cost = Span(0);
    (server.machine[0].idle.table, server.machine[0].idle.package_state) = (Some("C1".into()), None);
    server.run.duration = Some(Span::ms(20_000));
    let o = run(&server);
    let exact = o.done_per_s.value * (300e-6 + 5e-6) * 1.4 / 4.0;
    assert!(
        (o.machines[0].use_ratio.value / exact - 1.0).abs() < 0.01,
        "{} against {exact}",
        o.machines[0].use_ratio.value
    );
}

#[test]
fn more_than_it_can_do_is_said_and_ends() {
    let mut server = plain(50_000.0, 400, 2);
    server.run.duration = Some(Span::ms(500));
    let o = run(&server);
    assert!(o.is_saturated && o.machines[0].use_ratio.value > 0.99, "{}", o.machines[0].use_ratio.value);
    assert!(!run(&plain(2000.0, 400, 4)).is_saturated);
}

#[test]
fn a_tick_that_is_kept_shows_in_the_pairs() {
    // Polled time ends at its limit, ticks end sleeps; both ask the governor again and again.
    let mut server = plain(1000.0, 50, 1);
    server.machine[0].hz = 1000;
    let o = run(&server);
    let entries: f64 = o.machines[0].states.iter().map(|s| s.per_s).sum();
    assert!(
        entries > o.machines[0].wakes_per_s.value,
        "{entries} entries, {} wake-ups",
        o.machines[0].wakes_per_s.value
    );
}

#[test]
fn what_cannot_be_is_refused_with_its_field() {
    let base = "format = 1\nname = \"x\"\n[[machine]]\nname = \"m\"\ncores = 2\nidle = { table = \"SKX\" }\n[workload]\narrivals = { kind = \"poisson\", per_s = 100.0 }\n[[workload.hop]]\nservice = { law = \"fixed\", mean = \"1ms\" }\n";
    Server::parse(base).unwrap();
    let said = |set: &str| Server::parse_with(base, &[set.to_string()]).unwrap_err().to_string();
    for (set, field) in [
        ("machine.cores=0", "machine[0].cores"),
        ("machine.cores=1000000000", "machine[0].cores"),
        ("machine.packages=-1", "packages"),
        ("machine.hz=0", "machine[0].hz"),
        ("machine.smt_share=nan", "machine[0].smt_share"),
        ("machine.power.platform_w=-5", "machine[0].power.platform_w"),
        ("machine.power.core_leakage_w=inf", "machine[0].power.core_leakage_w"),
        ("machine.kernel=vista", "machine[0].kernel"),
        ("machine.clock.mhz=[]", "machine[0].clock.mhz"),
        ("machine.clock.mhz=[1000,2000]", "machine[0].clock.mhz"),
        ("machine.clock.min_mhz=3000", "machine[0].clock.min_mhz"),
        ("machine.idle.table=\"Z80\"", "machine[0].idle.table"),
        ("machine.idle.disable=[\"C9\"]", "machine[0].idle"),
        ("machine.idle.exit_share=0.9", "machine[0].idle.entry_share"),
        ("machine.cpus=0-9", "machine[0].cpus"),
        ("machine.cpus=0-4294967295", "machine[0].cpus"),
        ("workload.arrivals.per_s=nan", "workload.arrivals.per_s"),
        ("workload.arrivals.per_s=-1", "workload.arrivals.per_s"),
        (
            "workload.arrivals={ kind = \"closed\", clients = 1000000000, think = { law = \"fixed\", mean = \"1s\" } }",
            "workload.arrivals.clients",
        ),
        ("workload.arrivals={ kind = \"closed\", clients = 1 }", "workload.arrivals.think"),
        ("workload.arrivals={ kind = \"recorded\", at_us = [3.0, 1.0] }", "workload.arrivals.at_us"),
        ("workload.hop.0.service={ law = \"lognormal\", mean = \"1ms\" }", "workload.hop[0].service"),
        ("workload.hop.0.service={ law = \"fixed\", mean = \"2000s\" }", "workload.hop[0].service"),
        ("workload.hop.0.machine=db", "workload.hop[0].machine"),
        ("workload.hop.0.cpu_bound=1.5", "workload.hop[0].cpu_bound"),
        ("workload.hop=[]", "workload.hop"),
        ("run.duration=0s", "run.duration"),
        ("run.duration=90000s", ""),
        ("run.replications=0", "run.replications"),
        ("change={ at = \"1s\", setting = \"none\" }", "change.setting"),
    ] {
        if set == "run.duration=90000s" {
            // Long, but only a hundred requests a second.
            assert!(Server::parse_with(base, &[set.to_string()]).is_ok());
            assert!(Server::parse_with(base, &[set.to_string(), "workload.arrivals.per_s=1e8".into()]).is_err());
            continue;
        }
        let why = said(set);
        assert!(why.contains(field), "{set}: {why}");
    }
    // An inverted table.
    let states = "machine.idle={ state = [{ name = \"A\", exit_latency = \"9us\", target_residency = \"9us\" }, { name = \"B\", exit_latency = \"2us\", target_residency = \"20us\" }] }";
    assert!(said(states).starts_with("machine[0].idle.state[1].exit_latency"), "{}", said(states));
}

/// Turbo: one core awake goes at the first step's clock, all of them at the last's; and with the steps that do not apply it is as if there were none.
#[test]
fn clocks_follow_the_number_of_cores_awake() {
    let turbo = |cores, mhz| Turbo { cores, mhz };
    let run_with = |clients: u64, turbo: &[Turbo]| {
        let mut server = plain(1.0, 500, 4);
        server.workload.arrivals = Arrivals::closed(clients, Law::fixed(Span(0)));
        server.machine[0].timers = None;
        server.machine[0].clock =
            Clock { mhz: vec![3700, 3200, 2800], reference_mhz: Some(2800), turbo: turbo.to_vec(), ..Clock::default() };
        run(&server)
    };
    let steps = [turbo(1, 3700), turbo(2, 3200), turbo(4, 2800)];
    let mhz = |o: &Outcome| o.machines[0].mhz.value;
    for (clients, expected) in [(1, 3700.0), (2, 3200.0), (4, 2800.0)] {
        let o = run_with(clients, &steps);
        assert!((mhz(&o) / expected - 1.0).abs() < 0.02, "{clients} busy: {} MHz", mhz(&o));
    }
    // Work is done at the clock that is there.
    let [fast, slow] = [run_with(4, &[]), run_with(4, &steps)].map(|o| o.done_per_s.value);
    assert!((fast / slow / (3700.0 / 2800.0) - 1.0).abs() < 0.03, "{fast} and {slow} a second");
    // A step that is the highest clock limits nothing.
    assert_eq!(run_with(3, &[turbo(1, 3700)]), run_with(3, &[]));
}

/// intel_pstate asks for the share of time at work and a quarter more: all the way up when busy, at the bottom when hardly used.
#[test]
fn intel_pstate_follows_the_time_at_work() {
    let mhz = |clients: u64, think: Span| {
        let mut server = plain(1.0, 500, 4);
        server.workload.arrivals = Arrivals::closed(clients, Law::fixed(think));
        server.machine[0].clock = Clock {
            governor: ClockGovernor::IntelPstate,
            mhz: (12..=35).rev().map(|ratio| ratio * 100).collect(),
            reference_mhz: Some(2400),
            ..Clock::default()
        };
        run(&server).machines[0].mhz.value
    };
    let (busy, half, calm) = (mhz(8, Span(0)), mhz(4, Span::ms(1)), mhz(4, Span::ms(100)));
    assert!((busy / 3500.0 - 1.0).abs() < 0.02 && (calm / 1200.0 - 1.0).abs() < 0.02, "{busy} and {calm} MHz");
    // At 1500 MHz 0.8 ms of work and 1 ms of thought: 44 % of the time, of which the rule makes 18 or 19 steps.
    assert!((1400.0..2100.0).contains(&half), "{half} MHz");
}

/// Hardware-chosen clocks, as guessed: a preference of 0 stays at the top, a larger one is slower at part load and nobody when all is busy.
#[test]
fn hardware_chosen_clocks_follow_the_preference() {
    let mhz = |epp: u32, clients: u64, think: Span| {
        let mut server = plain(1.0, 500, 4);
        server.workload.arrivals = Arrivals::closed(clients, Law::fixed(think));
        server.machine[0].clock = Clock {
            governor: ClockGovernor::Hwp,
            mhz: (12..=35).rev().map(|ratio| ratio * 100).collect(),
            epp,
            ..Clock::default()
        };
        run(&server).machines[0].mhz.value
    };
    let calm = [0, 64, 128, 255].map(|epp| mhz(epp, 4, Span::ms(20)));
    assert!((calm[0] / 3500.0 - 1.0).abs() < 0.001 && calm.windows(2).all(|w| w[1] < w[0]), "{calm:?}");
    assert!(calm[3] >= 1200.0 && mhz(255, 8, Span(0)) > 3400.0);
}

#[test]
fn a_turbo_that_no_processor_has_is_refused() {
    let refused = |turbo: &[(u32, u32)]| {
        let mut server = plain(1.0, 500, 4);
        server.machine[0].clock.turbo = turbo.iter().map(|(cores, mhz)| Turbo { cores: *cores, mhz: *mhz }).collect();
        server.check().map_err(|e| e.field)
    };
    assert_eq!(refused(&[(1, 2800), (4, 1200)]), Ok(()));
    for wrong in [&[(0, 2800)][..], &[(1, 2000), (4, 2800)], &[(4, 2800), (1, 2000)], &[(1, 2700)]] {
        assert_eq!(refused(wrong), Err("machine[0].clock.turbo".into()), "{wrong:?}");
    }
}

#[test]
fn an_exit_grows_with_the_sleep_and_is_another_where_another_cpu_ends_it() {
    let row = |asleep, exit| After { asleep, exit };
    let sleeps = IdleState {
        exit: None,
        after: vec![row(Span::us(100), Span::us(10)), row(Span::ms(10), Span::us(30))],
        after_ipi: vec![row(Span::us(1), Span::us(40))],
        ..IdleState::claimed("sleep", Span(0), Span(0))
    };
    let idle = |state: &IdleState| Idle {
        governor: IdleGovernor::Fixed,
        table: None,
        entry_share: 0.0,
        state: vec![state.clone()],
        ..Idle::default()
    };
    let machine = |name: &str, state: &IdleState| Machine {
        name: name.into(),
        cores: 1,
        hz: 0,
        wake_cost: Span(0),
        idle: idle(state),
        ..Machine::default()
    };
    let mut server = Server::of(machine("shop", &sleeps), plain(1.0, 1, 1).workload);
    server.machine.push(machine("clients", &sleeps));
    let at = |machine: &str| Hop { machine: Some(machine.into()), ..Hop::of(Law::fixed(Span::us(5))) };
    server.workload.hop = vec![at("clients"), at("shop"), at("clients")];
    // One request a millisecond, none near another: a client's CPU sleeps 1 ms less 85 to 110 us.
    server.workload.arrivals =
        Arrivals { kind: ArrivalKind::Recorded, per_s: None, at_us: vec![1000.0], ..Arrivals::poisson(1.0) };
    server.run = Run { duration: Some(Span::ms(500)), warmup: Some(Span::ms(50)), replications: 2, ..Run::default() };
    let p50 = |server: &Server| run(server).quantiles.iter().find(|q| q.q == 0.5).unwrap().ns.value;
    let by_timer = 10.0 + 20.0 * (0.9f64.ln() - 0.1f64.ln()) / 100f64.ln();
    let said = p50(&server);
    assert!((said - (by_timer + 2.0 * 40.0 + 15.0) * 1e3).abs() < 2e3, "{said}");
    // CPU time that the kernel takes for a sleep, and that the shop takes to wake a client, delays neither.
    let cpu_us = |server: &Server| run(server).machines[0].cpu_per_request_ns.value / 1e3;
    assert!((cpu_us(&server) - 5.0).abs() < 0.1, "{}", cpu_us(&server));
    server.machine[0].idle.state[0].overhead = vec![row(Span::us(1), Span::us(7))];
    server.machine[1].idle.state[0].send = Span::us(3);
    assert!((cpu_us(&server) - 15.0).abs() < 0.1, "{}", cpu_us(&server));
    assert!((p50(&server) - said).abs() < 2e3, "{}", p50(&server));
    // The client's CPU woke it.
    server.machine[0].idle.state[0].overhead_ipi = vec![row(Span::us(1), Span::us(9))];
    assert!((cpu_us(&server) - 17.0).abs() < 0.1, "{}", cpu_us(&server));
    server.machine.iter_mut().for_each(|m| m.idle.state[0].after_ipi.clear());
    let said = p50(&server);
    assert!(said < 95e3, "{said}");
}

#[test]
fn haltpoll_spins_for_its_window_and_with_none_halts_at_once() {
    // Pauses of 95 us: after the first a window of 50 opens, then it halts for the other 45, which ask for no longer one.
    let spun = |halt_poll: Option<Span>| {
        let mut server = plain(1.0, 1, 1);
        server.machine[0].idle = Idle {
            governor: IdleGovernor::Haltpoll,
            table: None,
            state: vec![IdleState::poll(), IdleState::claimed("halt", Span::us(1), Span::us(1))],
            halt_poll,
            ..Idle::default()
        };
        server.workload.hop = vec![Hop::of(Law::fixed(Span::us(5)))];
        server.workload.arrivals =
            Arrivals { kind: ArrivalKind::Recorded, per_s: None, at_us: vec![100.0], ..Arrivals::poisson(1.0) };
        server.run =
            Run { duration: Some(Span::ms(500)), warmup: Some(Span::ms(50)), replications: 2, ..Run::default() };
        let states = run(&server).machines.remove(0).states;
        [states[0].time_ratio.value, states[1].time_ratio.value]
    };
    let [spinning, halted] = spun(None);
    assert!((0.45..0.55).contains(&spinning) && (0.35..0.5).contains(&halted), "as shipped: {spinning} {halted}");
    let [spinning, halted] = spun(Some(Span(0)));
    assert!(spinning == 0.0 && halted > 0.85, "never: {spinning} {halted}");
}

#[test]
fn cold_work_grows_with_the_time_since_the_last_request_whatever_the_cpu_did_for_itself() {
    let row = |asleep, exit| After { asleep, exit };
    let poll = IdleState {
        cold_after: vec![row(Span::us(100), Span::us(10)), row(Span::ms(10), Span::us(30))],
        ..IdleState::poll()
    };
    let mut server = plain(1.0, 1, 1);
    server.machine[0].wake_cost = Span(0);
    server.machine[0].idle = Idle { table: None, state: vec![poll], ..Idle::default() };
    server.workload.hop = vec![Hop::of(Law::fixed(Span::us(5)))];
    let every =
        |us: f64| Arrivals { kind: ArrivalKind::Recorded, per_s: None, at_us: vec![us], ..Arrivals::poisson(1.0) };
    server.run = Run { duration: Some(Span::ms(500)), warmup: Some(Span::ms(50)), replications: 2, ..Run::default() };
    let p50_us = |server: &Server| run(server).quantiles.iter().find(|q| q.q == 0.5).unwrap().ns.value / 1e3;
    // 1 ms is half way from 100 us to 10 ms by logarithm, less what the request takes.
    server.workload.arrivals = every(1000.0);
    let apart = p50_us(&server);
    assert!((apart - 25.0).abs() < 0.5, "{apart}");
    // Work of its own in between warms nothing: a sleep begins anew, the time without a request goes on.
    server.machine[0].timers = Some(Timers { every: Span::us(170), work: Span::us(1) });
    let beside = p50_us(&server);
    assert!((beside - 25.0).abs() < 2.5, "{beside}");
    server.workload.arrivals = every(20_000.0);
    let cold = p50_us(&server);
    assert!((cold - 35.0).abs() < 2.5, "{cold}");
}

#[test]
fn a_pause_that_kept_ticks_cut_costs_the_kernel_its_whole_length() {
    let row = |asleep, exit| After { asleep, exit };
    let overhead = vec![row(Span::ms(1), Span::us(5)), row(Span::ms(10), Span::us(50))];
    let mut server = plain(1.0, 1, 1);
    server.machine[0].wake_cost = Span(0);
    server.machine[0].idle = Idle {
        table: None,
        state: vec![
            IdleState { overhead, ..IdleState::poll() },
            IdleState { cold: Span::us(7), ..IdleState::claimed("C1", Span::us(2), Span::us(2)) },
        ],
        max_latency: Some(Span(0)),
        ..Idle::default()
    };
    server.workload.hop = vec![Hop::of(Law::fixed(Span::us(5)))];
    server.workload.arrivals =
        Arrivals { kind: ArrivalKind::Recorded, per_s: None, at_us: vec![10_000.0], ..Arrivals::poisson(1.0) };
    server.run = Run { duration: Some(Span::ms(900)), warmup: Some(Span::ms(100)), replications: 2, ..Run::default() };
    let cpu_us = |server: &Server| run(server).machines[0].cpu_per_request_ns.value / 1e3;
    // Some of the first request's is counted, and not it: one in ninety.
    assert!((cpu_us(&server) - 55.0).abs() < 4.0, "{}", cpu_us(&server));
    // A state without rows keeps its own cold work beside one that has some.
    server.machine[0].idle.state[0].cold_after = vec![row(Span::us(1), Span::us(1))];
    (server.machine[0].idle.max_latency, server.machine[0].idle.governor) = (None, IdleGovernor::Fixed);
    // 5 of work, 7 of cold work and a part of 2 to leave the state; 6 with the rows of the other.
    assert!((cpu_us(&server) - 13.0).abs() < 1.5, "{}", cpu_us(&server));
}

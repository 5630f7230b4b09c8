//! The simulator's own idle time, replayed: the recorded policy returns the recorded states (acceptance test 5 of the specification).

use super::Engine;
use crate::law::Law;
use crate::server::{Arrivals, Hop, Idle, IdleGovernor, Machine, Run, Server, Timers, Workload, table};
use crate::span::Span;
use wakewatt_core::record::wtrace::{Header, StateTable, TableState};
use wakewatt_core::samples::idle_choice::{IdleChoice, Outcome, TimersTold};
use wakewatt_models::idle::{Decision, Left, Moment};
use wakewatt_models::replay::Replay;

/// A governor was asked.
pub(super) fn asked(all: &mut Vec<Vec<IdleChoice>>, cpu: usize, moment: &Moment, said: Option<Decision>) {
    let Some(said) = said else { return };
    if all.len() <= cpu {
        all.resize(cpu + 1, Vec::new());
    }
    all[cpu].push(IdleChoice {
        cpu: cpu as u32,
        at_ns: moment.clock_ns.cast_unsigned(),
        answer: said.state as u8,
        stops_tick: Some(said.stop_tick),
        timers: Some(TimersTold { sleep_length_ns: moment.sleep_ns, next_event_ns: moment.next_event_ns }),
        is_tick_stopped: Some(moment.is_tick_stopped),
        n_iowait: u16::try_from(moment.n_iowait).ok(),
        latency_limit_ns: Some(moment.latency_limit_ns),
        ..IdleChoice::default()
    });
}

/// And heard what came of it.
pub(super) fn told(all: &mut [Vec<IdleChoice>], cpu: usize, left: &Left) {
    if let Some(choice) = all.get_mut(cpu).and_then(|of| of.last_mut()) {
        choice.outcome = Some(Outcome {
            state: left.state as u8,
            residency_ns: left.residency_ns,
            is_tick_fired: Some(left.is_tick_fired),
            is_poll_limit_hit: Some(left.is_poll_limit_hit),
        });
    }
}

const CPUS: u32 = 4;

fn recorded(governor: IdleGovernor, kernel: &str) -> Vec<Vec<IdleChoice>> {
    let machine = Machine {
        cores: CPUS,
        kernel: kernel.into(),
        idle: Idle { governor, table: Some("SKX".into()), ..Idle::default() },
        timers: Some(Timers { every: Span::ms(7), work: Span::us(20) }),
        ..Machine::default()
    };
    let hop =
        Hop { wait: Some(Law::exponential(Span::us(150))), iowait: true, ..Hop::of(Law::exponential(Span::us(60))) };
    let workload = Workload { arrivals: Arrivals::poisson(9000.0), hop: vec![hop], rounds: Some(2), limit: None };
    let run = Run { duration: Some(Span::ms(1500)), warmup: Some(Span::ms(100)), replications: 1, seed: 3, bins: 1 };
    let server = Server { run, ..Server::of(machine, workload) };
    let mut engine = Engine::of(&server, 0).unwrap();
    engine.start();
    engine.run();
    let mut choices = std::mem::take(&mut engine.choices);
    // The last of a CPU has no outcome yet.
    choices.iter_mut().for_each(|of| of.retain(|c| c.outcome.is_some()));
    choices
}

/// Identical decisions, decisions compared, and those that filled the memory.
fn replayed(choices: &[Vec<IdleChoice>], governor: &str, kernel: &str) -> (u64, u64, u64) {
    let states = table("SKX").unwrap().into_iter().zip(0..).map(|(s, index)| TableState {
        index,
        name: s.name,
        exit_latency_ns: Some(s.exit_latency.ns()),
        target_residency_ns: Some(s.target_residency.ns()),
        is_polling: s.polling,
        is_enabled: Some(true),
    });
    let header = Header {
        kernel: kernel.into(),
        governor: Some(governor.into()),
        tick_ns: Some(4_000_000),
        n_cpus: CPUS,
        tables: vec![StateTable { cpus: format!("0-{}", CPUS - 1), states: states.collect() }],
        ..Header::default()
    };
    let mut replay = Replay::new(&header, &[], &[]).unwrap();
    choices.iter().for_each(|of| replay.choices(of));
    let found = replay.finish();
    (found.n_identical, found.n_compared, found.n_warm_up)
}

#[test]
fn the_recorded_policy_returns_the_recorded_states() {
    for (governor, name) in [
        (IdleGovernor::Menu, "menu"),
        (IdleGovernor::Teo, "teo"),
        (IdleGovernor::Ladder, "ladder"),
        (IdleGovernor::Haltpoll, "haltpoll"),
    ] {
        for kernel in ["5.3.18", "6.1.192", "6.12.30", "6.18.2"] {
            let choices = recorded(governor, kernel);
            let n_all: u64 = choices.iter().map(|of| of.len() as u64).sum();
            let (n_same, n_compared, n_warm_up) = replayed(&choices, name, kernel);
            assert!(n_all > 10_000 && n_compared + n_warm_up == n_all, "{name} {kernel}: {n_compared} of {n_all}");
            assert_eq!(n_same, n_compared, "{name} of {kernel}");
        }
    }
}

#[test]
fn another_policy_returns_others() {
    let choices = recorded(IdleGovernor::Menu, "6.1.192");
    for (name, kernel) in [("menu", "6.18.2"), ("teo", "6.1.192")] {
        let (n_same, n_compared, _) = replayed(&choices, name, kernel);
        assert!(n_same < n_compared * 99 / 100, "{name} of {kernel}: {n_same} of {n_compared}");
    }
}

#[test]
fn what_waits_keeps_its_order_and_who_may_move_is_known() {
    let hop = Hop::of(Law::fixed(Span::us(1)));
    let workload = Workload { arrivals: Arrivals::poisson(1.0), hop: vec![hop], rounds: None, limit: None };
    let mut engine = Engine::of(&Server::of(Machine::bare(2), workload), 0).unwrap();
    let jobs: Vec<u32> = (0..4).map(|_| engine.new_job()).collect();
    engine.jobs[jobs[3] as usize].stage = super::OWN;
    assert_eq!((engine.first_waiting(1), engine.take_waiting(1)), (None, None));
    engine.wait_last(1, jobs[0]);
    engine.wait_last(1, jobs[1]);
    engine.wait_last(1, jobs[2]);
    engine.wait_last(1, jobs[3]);
    let host = |e: &Engine| (e.hosts[0].n_waiting, e.hosts[0].n_movable, e.hosts[0].waiting.has(1));
    assert_eq!((host(&engine), engine.first_waiting(1)), ((4, 3, true), Some(jobs[0])));
    let taken: Vec<u32> = std::iter::from_fn(|| engine.take_waiting(1)).collect();
    assert_eq!(taken, jobs);
    assert_eq!((host(&engine), engine.first_waiting(1)), ((0, 0, false), None));
}

//! Decisions per second of one core: `cargo bench -p wakewatt-models`. A decision is a choice and what came of it.
//!
//! Inputs are made before the clock starts, from a fixed seed: sleeps from a microsecond to a second, mostly ended early, as recordings
//! have them. `on_threads` asks whether cores get in each other's way: a governor a thread, nothing shared. Figures of a machine are kept in bench/runs.
#![allow(clippy::unwrap_used)]

use divan::counter::ItemsCount;
use wakewatt_models::idle::{Governor, Kind, Left, Moment};
use wakewatt_models::kernel::Kernel;
use wakewatt_models::table::{State, Table};
use wakewatt_models::tick::Tick;

const N: usize = 4096;

fn main() {
    divan::main();
}

/// Inputs and how long each sleep lasts.
fn life() -> Vec<(Moment, i64)> {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let mut clock_ns = 0;
    (0..N)
        .map(|_| {
            let sleep_ns = 1000i64 << (random() % 20);
            let lasted_ns = sleep_ns * i64::try_from(random() % 100).unwrap() / 100 + 700;
            clock_ns += lasted_ns + 5000;
            let moment = Moment {
                sleep_ns,
                next_event_ns: sleep_ns.min(4_000_000),
                latency_limit_ns: 2_000_000_000_000,
                n_iowait: u32::try_from(random() % 16 / 15).unwrap(),
                clock_ns,
                ..Moment::default()
            };
            (moment, lasted_ns)
        })
        .collect()
}

const ALL: &[&str] = &[
    "menu 5.3.1",
    "menu 6.1.192",
    "menu 6.6.9",
    "menu 6.12.117",
    "menu 6.18.2",
    "teo 6.1.192",
    "teo 6.6.9",
    "teo 6.12.0",
    "teo 6.18.2",
    "ladder 6.1.192",
    "haltpoll 6.18.2",
];

fn governor(name: &str) -> Governor {
    let (kind, kernel) = name.split_once(' ').unwrap();
    let release = Kernel::parse(kernel).unwrap().release;
    let rows = [(2, 2), (10, 20), (133, 600)].map(|(l, t)| State::sleeping_us(l, t));
    let table = Table::new(&[&[State::POLL], &rows[..]].concat()).unwrap();
    Governor::new(Kind::of_name(kind).unwrap(), release, table, Tick::of_hz(250).unwrap())
}

/// A whole life; the sum of its states, so that nothing is left out.
#[inline]
fn lived(governor: &mut Governor, life: &[(Moment, i64)]) -> usize {
    let mut sum = 0;
    for (moment, lasted_ns) in life {
        let said = governor.select(divan::black_box(moment));
        sum += said.state;
        governor.reflect(&Left {
            state: said.state,
            residency_ns: *lasted_ns,
            clock_ns: moment.clock_ns + lasted_ns,
            ..Left::default()
        });
    }
    sum
}

#[divan::bench(args = ALL)]
fn decide(bencher: divan::Bencher, name: &str) {
    let (mut governor, life) = (governor(name), life());
    bencher.counter(ItemsCount::new(N)).bench_local(|| lived(&mut governor, &life));
}

#[divan::bench(args = ["menu 6.1.192", "teo 6.12.0"], threads = [1, 2])]
fn on_threads(bencher: divan::Bencher, name: &str) {
    let life = life();
    bencher
        .counter(ItemsCount::new(N))
        .with_inputs(|| governor(name))
        .bench_values(|mut governor| lived(&mut governor, &life));
}

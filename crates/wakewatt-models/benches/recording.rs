//! Idle intervals per second of one core through a recording: packed, unpacked, and replayed whole: `cargo bench -p wakewatt-models --bench recording`.
//!
//! What a week of a large server would take is computed from these (docs/methods/replay.md). The intervals are a CPU's life under the model
//! of menu 6.18 from a fixed seed: events at exponential distances, timers beyond them, ticks as they come.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use divan::counter::{BytesCount, ItemsCount};
use wakewatt_core::record::wtrace::{Encoder, Header, Item, Reader, StateTable, TableState};
use wakewatt_core::samples::idle_pair::{IdlePair, WakeCause};
use wakewatt_core::stats::random::Random;
use wakewatt_models::replay::{Change, Replay};

const N: usize = 200_000;

fn main() {
    divan::main();
}

fn header() -> Header {
    let rows = [("POLL", 0, 0), ("C1", 2_000, 2_000), ("C1E", 10_000, 20_000), ("C6", 133_000, 600_000)];
    let states = (0u32..).zip(rows).map(|(index, (name, exit_ns, residency_ns))| TableState {
        index,
        name: name.into(),
        exit_latency_ns: Some(exit_ns),
        target_residency_ns: Some(residency_ns),
        is_polling: index == 0,
        is_enabled: Some(true),
    });
    Header {
        kernel: "6.18.2".into(),
        governor: Some("menu".into()),
        tick_ns: Some(4_000_000),
        unit_ns: Some(32),
        n_cpus: 1,
        tables: vec![StateTable { cpus: "0".into(), states: states.collect() }],
        ..Header::default()
    }
}

fn life() -> Vec<IdlePair> {
    let mut random = Random::new(20_261_122);
    let mut exponential = move |mean_ns: f64| (-mean_ns * (1.0 - random.unit()).ln()) as u64;
    let mut at_ns = 1_000_000_000_000u64;
    let of = |_| {
        let slept_ns = exponential(150e3) + 2_000;
        let timer_ns = slept_ns.cast_signed() + exponential(5e6).cast_signed();
        let to_tick_ns = (4_000_000 - at_ns % 4_000_000).cast_signed();
        let lag_ns = 400 + exponential(300.0);
        let pair = IdlePair {
            cpu: 0,
            enter_at_ns: at_ns,
            duration_ns: slept_ns,
            state: 1 + u8::from(slept_ns > 20_000) + u8::from(slept_ns > 600_000),
            sleep_length_ns: Some(timer_ns),
            next_event_ns: Some(timer_ns.min(to_tick_ns)),
            entry_lag_ns: Some(lag_ns),
            is_tick_stopped: Some(false),
            is_first: true,
            ended_by: WakeCause::Interrupt,
            is_tick_fired: Some(false),
            n_iowait: Some(0),
        };
        at_ns += slept_ns + 5_000 + exponential(20e3);
        pair
    };
    (0..N).map(of).collect()
}

fn packed(life: &[IdlePair]) -> Vec<u8> {
    let (mut encoder, mut bytes) = Encoder::start(&header());
    life.iter().for_each(|pair| bytes.extend(encoder.push(*pair).unwrap_or_default()));
    bytes.extend(encoder.end());
    bytes
}

#[divan::bench]
fn pack(bencher: divan::Bencher) {
    let life = life();
    bencher.counter(ItemsCount::new(N)).counter(BytesCount::new(packed(&life).len())).bench_local(|| packed(&life));
}

#[divan::bench]
fn unpack(bencher: divan::Bencher) {
    let bytes = packed(&life());
    bencher.counter(ItemsCount::new(N)).bench_local(|| Reader::new(&bytes).unwrap().count());
}

/// Unpacked, compared with the recorded kernel, and lived again twice: as recorded and as asked.
#[divan::bench(args = ["", "governor=teo", "max-latency=50us"])]
fn replay(bencher: divan::Bencher, set: &str) {
    let bytes = packed(&life());
    let sets: Vec<Change> =
        Some(set).filter(|s| !s.is_empty()).map(|s| Change::parse(s).unwrap()).into_iter().collect();
    bencher.counter(ItemsCount::new(N)).bench_local(|| {
        let mut reader = Reader::new(&bytes).unwrap();
        let header = reader.header.clone();
        let mut replay = Replay::new(&header, &sets, &[]).unwrap();
        for item in reader.by_ref() {
            if let Item::Pairs(pairs) = item {
                replay.pairs(&pairs);
            }
        }
        replay.finish().n_compared
    });
}

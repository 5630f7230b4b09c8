//! A replay's memory does not grow with the recording: counted by the allocator over recordings that are made and read piece by piece, and
//! never held.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, clippy::print_stdout)]

use cap::Cap;
use std::alloc::System;
use wakewatt_core::record::wtrace::{Encoder, Header, Item, Mark, StateTable, Stream, TableState};
use wakewatt_core::samples::idle_pair::{IdlePair, WakeCause};
use wakewatt_core::stats::random::Random;
use wakewatt_models::replay::{Change, Replay};

#[global_allocator]
static HEAP: Cap<System> = Cap::new(System, usize::MAX);

const N_CPUS: u32 = 8;

fn header() -> Header {
    let state = |index: u32, name: &str, us: u64, residency_us: u64| TableState {
        index,
        name: name.into(),
        exit_latency_ns: Some(us * 1000),
        target_residency_ns: Some(residency_us * 1000),
        is_polling: index == 0,
        is_enabled: Some(true),
    };
    Header {
        kernel: "6.1.158".into(),
        governor: Some("menu".into()),
        tick_ns: Some(4_000_000),
        n_cpus: N_CPUS,
        tables: vec![StateTable {
            cpus: format!("0-{}", N_CPUS - 1),
            states: vec![state(0, "POLL", 0, 0), state(1, "C1", 2, 2), state(2, "C6", 133, 600)],
        }],
        ..Header::default()
    }
}

/// Reads a recording of so many stays while it is made; the most that was held at once, above what there was before, and its length.
fn peak(n: u64) -> (usize, u64) {
    let before = HEAP.allocated();
    let mut most = 0;
    let mut n_bytes = 0;
    let header = header();
    let (mut encoder, first) = Encoder::start(&header);
    let mut random = Random::new(5);
    let (mut at, mut now, mut is_ended) = (0, 1_000_000u64, false);
    let mut waiting = Some(first);
    let mut stream = Stream::new(|into: &mut Vec<u8>| {
        let piece = waiting.take().unwrap_or_default();
        n_bytes += piece.len() as u64;
        into.extend(&piece);
        if piece.is_empty() && is_ended {
            return Ok(false);
        }
        // Some thousand stays at a time, which is some kilobytes.
        let mut next = Vec::new();
        for _ in 0..2_000.min(n - at) {
            let length = 1_000 * (1 + random.below(900));
            now += length + 2_000;
            let pair = IdlePair {
                cpu: u32::try_from(at % u64::from(N_CPUS)).unwrap(),
                enter_at_ns: now,
                duration_ns: length,
                state: u8::from(length > 3_000) + u8::from(length > 600_000),
                sleep_length_ns: Some(i64::try_from(2 * length).unwrap()),
                next_event_ns: Some(i64::try_from(2 * length).unwrap()),
                is_tick_stopped: Some(false),
                is_first: true,
                ended_by: WakeCause::Interrupt,
                ..IdlePair::default()
            };
            next.extend(encoder.push(pair).unwrap_or_default());
            at += 1;
        }
        if at == n && !is_ended {
            is_ended = true;
            next.extend(encoder.mark(&Mark::WindowClosed { at_ns: now, n_lost: 0 }));
            next.extend(encoder.end());
        }
        waiting = Some(next);
        Ok(true)
    })
    .unwrap();
    let read = stream.header.clone();
    let asked = [Change::parse("max-latency=50us").unwrap()];
    let mut replay = Replay::new(&read, &asked, &[]).unwrap();
    for item in stream.by_ref() {
        most = most.max(HEAP.allocated().saturating_sub(before));
        match item {
            Item::Pairs(pairs) => replay.pairs(&pairs),
            Item::Choices(choices) => replay.choices(&choices),
            Item::Mark(mark) => replay.mark(&mark),
        }
    }
    let replayed = replay.finish();
    assert_eq!(replayed.recorded.states.iter().map(|s| s.n).sum::<u64>(), n, "every stay was counted");
    drop(stream);
    (most, n_bytes)
}

#[test]
fn ten_times_the_recording_needs_the_same_memory() {
    let (short, long) = (peak(60_000), peak(600_000));
    println!("held at once, and recording: {short:?}, {long:?}");
    assert!(long.1 > 8 * short.1, "{short:?} {long:?}");
    assert!(long.0 < short.0 * 5 / 4 + (256 << 10), "{short:?} {long:?}");
    assert!((long.0 as u64) < long.1.max(2 << 20), "less than the recording itself: {long:?}");
}

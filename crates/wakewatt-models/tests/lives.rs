//! What holds of every replayed recording, whatever is in it, and of every CPU that lives: energy and time are never negative, time never goes
//! back, equal inputs give equal bytes, and `max_cstate=1` never makes a wake-up dearer.
//!
//! Recordings are of two kinds here: wild ones, with numbers no machine has, and plain ones, whose stays follow each other on a clock. What
//! a limit does to the mean of wake-ups is asked of plain ones only: two governors that learned from different sleeps may
//! differ on a single one, so what is compared is a life of thousands.
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use proptest::prelude::*;
use wakewatt_core::record::wtrace::{Encoder, Header, Item, Reader, StateTable, TableState};
use wakewatt_core::samples::idle_pair::{IdlePair, WakeCause};
use wakewatt_core::stats::random::Random;
use wakewatt_models::idle::Kind;
use wakewatt_models::replay::{Change, Replay, Replayed, Side};
use wakewatt_models::table::State;
use wakewatt_models::truth::cpu::Cpu;

const ROWS: [(&str, u64, u64); 4] =
    [("POLL", 0, 0), ("C1", 2_000, 2_000), ("C1E", 10_000, 20_000), ("C6", 133_000, 600_000)];

fn header(governor: &str, kernel: &str) -> Header {
    let states = (0u32..).zip(ROWS).map(|(index, (name, exit_ns, residency_ns))| TableState {
        index,
        name: name.into(),
        exit_latency_ns: Some(exit_ns),
        target_residency_ns: Some(residency_ns),
        is_polling: index == 0,
        is_enabled: Some(true),
    });
    Header {
        kernel: kernel.into(),
        governor: Some(governor.into()),
        tick_ns: Some(4_000_000),
        n_cpus: 2,
        tables: vec![StateTable { cpus: "0-1".into(), states: states.collect() }],
        ..Header::default()
    }
}

fn replayed(header: &Header, pairs: &[IdlePair], sets: &[&str]) -> Replayed {
    let sets: Vec<Change> = sets.iter().map(|text| Change::parse(text).unwrap()).collect();
    let mut replay = Replay::new(header, &sets, &[]).unwrap();
    for cpu in 0..2 {
        let mine: Vec<IdlePair> = pairs.iter().filter(|pair| pair.cpu == cpu).copied().collect();
        replay.pairs(&mine);
    }
    replay.finish()
}

/// Any numbers.
fn wild() -> impl Strategy<Value = IdlePair> {
    let times = (any::<u64>(), prop_oneof![30 => 0..9_000_000u64, 1 => any::<u64>()], any::<u8>(), any::<u32>());
    let known = (
        proptest::option::of(prop_oneof![0..9_000_000i64, any::<i64>()]),
        proptest::option::of(any::<i64>()),
        proptest::option::of(any::<u64>()),
        proptest::option::of(any::<bool>()),
        proptest::option::of(any::<u16>()),
    );
    (times, known, any::<bool>(), 0..6u32).prop_map(
        |((enter_at_ns, duration_ns, state, cpu), known, is_first, cause)| {
            let (sleep_length_ns, next_event_ns, entry_lag_ns, is_tick_stopped, n_iowait) = known;
            IdlePair {
                cpu: cpu % 2,
                enter_at_ns,
                duration_ns,
                state: state % 12,
                sleep_length_ns,
                next_event_ns,
                entry_lag_ns,
                is_tick_stopped,
                is_first,
                ended_by: WakeCause::of(cause),
                is_tick_fired: None,
                n_iowait,
            }
        },
    )
}

/// Thousands of stays of a CPU that sleeps for events with a timer beyond: lengths of a magnitude, from a seed.
fn plain(seed: u64, mean_ns: f64, least_ns: u64) -> Vec<IdlePair> {
    let mut random = Random::new(seed);
    let mut at_ns = 1_000_000_000u64;
    let mut pairs = Vec::new();
    for _ in 0..1_500 {
        let slept_ns = (-mean_ns * (1.0 - random.unit()).ln()) as u64 + least_ns;
        let to_timer_ns = slept_ns.cast_signed() + (random.unit() * 20e6) as i64;
        pairs.push(IdlePair {
            cpu: 0,
            enter_at_ns: at_ns,
            duration_ns: slept_ns,
            state: 1,
            sleep_length_ns: Some(to_timer_ns),
            next_event_ns: Some(to_timer_ns.min(4_000_000)),
            entry_lag_ns: Some(0),
            is_tick_stopped: Some(false),
            is_first: true,
            ended_by: WakeCause::Interrupt,
            is_tick_fired: Some(false),
            n_iowait: Some(0),
        });
        at_ns += slept_ns + 10_000;
    }
    pairs
}

fn sides(r: &Replayed) -> [&Side; 3] {
    [&r.recorded, &r.predicted, &r.recorded_again]
}

const SETS: [&[&str]; 5] = [
    &[],
    &["governor=teo"],
    &["max-state=1"],
    &["max-latency=50us", "kernel=6.18.2"],
    &["governor=haltpoll", "disable=C6"],
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn energy_and_time_are_never_negative_and_shares_never_more_than_one(
        pairs in prop::collection::vec(wild(), 0..40),
        governor in prop::sample::select(&["menu", "teo", "ladder", "haltpoll"][..]),
        sets in prop::sample::select(&SETS[..]),
    ) {
        let r = replayed(&header(governor, "6.1.192"), &pairs, sets);
        for side in sides(&r) {
            prop_assert!(side.modelled_energy_uj >= 0.0 && side.modelled_energy_uj.is_finite(), "{:?}", side);
            let share: f64 = side.states.iter().map(|s| s.time_ratio).sum();
            prop_assert!((0.0..1.0 + 1e-9).contains(&share), "{}", share);
            for s in &side.states {
                prop_assert!(s.n_above + s.n_below <= s.n && s.n_wakes <= s.n, "{:?}", s);
            }
        }
    }

    #[test]
    fn equal_recordings_give_equal_bytes(pairs in prop::collection::vec(wild(), 0..60)) {
        let header = header("menu", "6.12.117");
        let file = || {
            let (mut encoder, mut bytes) = Encoder::start(&header);
            pairs.iter().for_each(|pair| bytes.extend(encoder.push(*pair).unwrap_or_default()));
            bytes.extend(encoder.end());
            bytes
        };
        let bytes = file();
        prop_assert_eq!(&bytes, &file());
        let told = || {
            let mut reader = Reader::new(&bytes).unwrap();
            let header = reader.header.clone();
            let mut replay = Replay::new(&header, &[Change::Governor(Kind::Teo)], &[]).unwrap();
            for item in reader.by_ref() {
                if let Item::Pairs(pairs) = item {
                    replay.pairs(&pairs);
                }
            }
            serde_json::to_vec(&replay.finish()).unwrap()
        };
        prop_assert_eq!(told(), told());
    }

    // Where sleeps are so short that a free governor polls, it may poll more than one that has C1 alone: its memory differs. Beyond C1's
    // own exit nothing can come of that; where nobody polls, nothing at all.
    #[test]
    fn max_cstate_1_never_makes_a_wake_up_dearer(seed in any::<u64>(), magnitude in 3.0..7.0f64, polls in any::<bool>()) {
        let pairs = plain(seed, 10f64.powf(magnitude), if polls { 500 } else { 8_000 });
        for governor in ["menu", "teo", "ladder"] {
            for kernel in ["5.14.2", "6.1.192", "6.12.117", "6.18.2"] {
                let header = header(governor, kernel);
                let [free, held] = [&[][..], &["max-state=1"]].map(|sets| replayed(&header, &pairs, sets).predicted);
                let (cost, before) = (held.wake_cost, free.wake_cost);
                prop_assert!(cost.max_ns <= 1_000, "{governor} {kernel}: {:?}", cost);
                let is_polling = free.states[0].n > 0;
                prop_assert!(is_polling || cost.mean_ns <= before.mean_ns, "{governor} {kernel}: {} {}", cost.mean_ns, before.mean_ns);
            }
        }
    }

    #[test]
    fn time_never_goes_back(
        rows in prop::collection::vec((0..3_000i64, 0..5_000i64), 1..9),
        sleeps in prop::collection::vec((0..30_000_000i64, prop::option::of(0..30_000_000i64), 0..1_000_000i64), 1..60),
    ) {
        let rows: Vec<State> = rows.iter().map(|(exit, residency)| State::sleeping_us(*exit, *residency)).collect();
        let states = [&[State::POLL], &rows[..]].concat();
        for kind in Kind::ALL {
            for kernel in ["5.3.1", "6.1.192", "6.6.9", "6.12.117", "6.18.2"] {
                let mut cpu = Cpu::new(kind, kernel, &states, 250).unwrap();
                let mut ran_ns = 0;
                for (timer, event, run) in &sleeps {
                    cpu.run(*run);
                    ran_ns += run;
                    let before = cpu.now_ns();
                    let end = event.map_or(*timer, |event| event.min(*timer)) + before;
                    cpu.sleep(before + timer, event.map(|event| before + event), 0);
                    prop_assert!(cpu.now_ns() >= end && cpu.now_ns() >= before, "{:?} {}", kind, kernel);
                }
                // A kernel before 5.5 counts whole microseconds, cut off; nobody counts more than there was.
                let counted: u64 = cpu.counts().iter().map(|c| c.time_ns).sum();
                prop_assert!(i64::try_from(counted).unwrap() + ran_ns <= cpu.now_ns(), "{:?} {}", kind, kernel);
            }
        }
    }
}

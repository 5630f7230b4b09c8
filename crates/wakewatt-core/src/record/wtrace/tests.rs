//! Round trips, cuts at every byte, damage, and what a pair costs.

use super::*;
use crate::samples::idle_choice::IdleChoice;
use crate::samples::idle_pair::{IdlePair, WakeCause};
use crate::stats::random::Random;
use proptest::prelude::*;

fn header() -> Header {
    Header { kernel: "6.1".into(), n_cpus: 2, tick_ns: Some(4_000_000), ..Header::default() }
}

fn pair() -> impl Strategy<Value = IdlePair> {
    let times = (any::<u64>(), any::<u64>(), any::<u8>(), any::<bool>(), 0u32..6);
    let inputs = (
        proptest::option::of(any::<i64>()),
        proptest::option::of(any::<i64>()),
        proptest::option::of(any::<u64>()),
        proptest::option::of(any::<bool>()),
        proptest::option::of(any::<bool>()),
        proptest::option::of(any::<u16>()),
    );
    (0u32..3, times, inputs).prop_map(
        |(cpu, (enter, duration, state, first, cause), (sl, dt, lag, stopped, fired, io))| IdlePair {
            cpu,
            enter_at_ns: enter,
            duration_ns: duration,
            state,
            sleep_length_ns: sl,
            next_event_ns: dt,
            entry_lag_ns: lag,
            is_tick_stopped: stopped,
            is_first: first,
            ended_by: WakeCause::of(cause),
            is_tick_fired: fired,
            n_iowait: io,
        },
    )
}

/// A file of these pairs; each window's worth closed by a mark.
fn file(pairs: &[IdlePair], per_window: usize) -> Vec<u8> {
    let (mut encoder, mut bytes) = Encoder::start(&header());
    for window in pairs.chunks(per_window.max(1)) {
        for pair in window {
            bytes.extend(encoder.push(*pair).unwrap_or_default());
        }
        bytes.extend(encoder.mark(&Mark::WindowClosed { at_ns: 1, n_lost: 0 }));
    }
    bytes.extend(encoder.end());
    bytes
}

fn read(bytes: &[u8]) -> (Vec<IdlePair>, Option<Ending>) {
    let Ok(mut reader) = Reader::new(bytes) else { return (Vec::new(), None) };
    let items: Vec<Item> = reader.by_ref().collect();
    let pairs = items.into_iter().filter_map(|i| if let Item::Pairs(p) = i { Some(p) } else { None }).flatten();
    (pairs.collect(), reader.ending().cloned())
}

/// Per CPU order is kept; between CPUs it is the blocks'.
fn by_cpu(pairs: &[IdlePair]) -> Vec<Vec<IdlePair>> {
    (0..3).map(|cpu| pairs.iter().filter(|p| p.cpu == cpu).copied().collect()).collect()
}

proptest! {
    #[test]
    fn any_pairs_come_back(pairs in prop::collection::vec(pair(), 0..80), per_window in 1usize..40) {
        let (back, ending) = read(&file(&pairs, per_window));
        prop_assert_eq!(by_cpu(&back), by_cpu(&pairs));
        prop_assert_eq!(ending, Some(Ending::Complete));
    }

    #[test]
    fn times_are_rounded_to_the_units_and_no_more(pairs in prop::collection::vec(pair(), 0..80), unit_bits in 0u32..10, tick_ns in 0u64..5_000_000) {
        let header = Header { unit_ns: Some(1 << unit_bits), tick_ns: Some(tick_ns), ..header() };
        let grid = super::pairs::Grid::of(&header);
        let one_cpu: Vec<IdlePair> = pairs.iter().map(|p| IdlePair { cpu: 1, ..*p }).collect();
        let want: Vec<IdlePair> = one_cpu.iter().map(|p| super::pairs::rounded(p, grid)).collect();
        let back = super::pairs::decode(&super::pairs::encode(&one_cpu, grid), grid);
        prop_assert_eq!(back.unwrap_or_default(), want.clone());
        for (exact, rounded) in one_cpu.iter().zip(&want) {
            let off = |a: u64, b: u64| a.wrapping_sub(b).cast_signed().unsigned_abs();
            prop_assert!(off(exact.enter_at_ns, rounded.enter_at_ns) < 1 << unit_bits);
            prop_assert!(off(exact.duration_ns, rounded.duration_ns) < 1 << unit_bits);
            let exact_ns = exact.sleep_length_ns.map(i64::cast_unsigned);
            prop_assert!(exact_ns.zip(rounded.sleep_length_ns).is_none_or(|(a, b)| off(a, b.cast_unsigned()) < 1 << unit_bits));
        }
    }

    #[test]
    fn damage_never_panics_and_never_invents(pairs in prop::collection::vec(pair(), 1..40), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let good = file(&pairs, 7);
        let mut bad = good.clone();
        let at = at.index(bad.len());
        bad[at] ^= 1 << bit;
        let (back, _) = read(&bad);
        // What is read before the damage is a prefix of what was written.
        let (whole, _) = read(&good);
        prop_assert!(whole.starts_with(&back));
    }

    #[test]
    fn noise_never_panics(noise in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(&noise);
        let _ = read(&bytes);
        let _ = super::pairs::decode(&noise, super::pairs::Grid::of(&header()));
        let _ = super::pairs1::decode(&noise, 4_000_000);
    }
}

#[test]
fn choices_stand_before_their_pairs_and_a_reader_of_pairs_misses_nothing() {
    let pairs = realistic(5000);
    let (mut encoder, mut bytes) = Encoder::start(&header());
    for pair in &pairs {
        let asked =
            IdleChoice { cpu: pair.cpu, at_ns: pair.enter_at_ns - 500, answer: pair.state, ..IdleChoice::default() };
        bytes.extend(encoder.push_choice(asked).unwrap_or_default());
        bytes.extend(encoder.push(*pair).unwrap_or_default());
    }
    bytes.extend(encoder.end());
    let (mut n_asked, mut n_pairs) = (0, 0);
    for item in Reader::new(&bytes).unwrap() {
        match item {
            Item::Choices(choices) => n_asked += choices.len(),
            Item::Pairs(pairs) => {
                n_pairs += pairs.len();
                assert!(n_asked >= n_pairs);
            }
            Item::Mark(_) => {}
        }
    }
    assert_eq!((n_asked, n_pairs), (5000, 5000));
    assert_eq!(read(&bytes), (pairs, Some(Ending::Complete)));
}

/// Idle intervals as a lightly loaded server has them: half ended by a timer, the tick mostly stopped.
fn realistic(n: usize) -> Vec<IdlePair> {
    let mut random = Random::new(7);
    let mut at = 12_391_513_263_225u64;
    let mut timer = 0u64;
    let mut pairs = Vec::new();
    for _ in 0..n {
        at += 3_000 + random.below(60_000);
        let lag = 2_000 + random.below(15_000);
        if timer < at + 5_000 {
            timer = at + 20_000 + random.below(5_000_000);
            if random.below(2) == 0 {
                timer = (timer / 4_000_000 + 1) * 4_000_000;
            }
        }
        let is_timer = random.below(2) == 0;
        let duration =
            if is_timer { timer - at + 30_000 + random.below(40_000) } else { 2_000 + random.below(timer - at) };
        let reference = at - lag;
        pairs.push(IdlePair {
            cpu: 1,
            enter_at_ns: at,
            duration_ns: duration,
            state: u8::from(random.below(8) > 0),
            sleep_length_ns: Some((timer - reference).cast_signed()),
            next_event_ns: Some((timer - reference).cast_signed()),
            entry_lag_ns: Some(lag),
            is_tick_stopped: Some(random.below(4) > 0),
            is_first: random.below(3) > 0,
            ended_by: if is_timer { WakeCause::Timer } else { WakeCause::RemoteWake },
            is_tick_fired: Some(false),
            n_iowait: Some(0),
        });
        at += duration;
    }
    pairs
}

#[test]
fn a_cut_at_any_byte_leaves_a_prefix_and_says_where() {
    let pairs = realistic(60);
    let whole = file(&pairs, 20);
    for cut in 0..whole.len() {
        let (back, ending) = read(&whole[..cut]);
        assert!(pairs.starts_with(&back), "cut at {cut}");
        match ending {
            None => assert!(back.is_empty()),
            Some(Ending::Complete) => panic!("cut at {cut} and complete"),
            Some(
                Ending::Unfinished { at_byte }
                | Ending::Torn { at_byte }
                | Ending::Damaged { at_byte, .. }
                | Ending::Unreadable { at_byte, .. },
            ) => {
                assert!(at_byte <= cut as u64)
            }
        }
    }
    assert_eq!(read(&whole).0, pairs);
}

#[test]
fn a_pair_costs_a_few_bytes() {
    let pairs = realistic(50_000);
    let cost = |unit_ns: Option<u64>| {
        let (mut encoder, mut bytes) = Encoder::start(&Header { unit_ns, ..header() });
        pairs.iter().for_each(|pair| bytes.extend(encoder.push(*pair).unwrap_or_default()));
        bytes.extend(encoder.end());
        bytes.len() as f64 / pairs.len() as f64
    };
    // A pair is two events. Recorded figures are in docs/wtrace-format.md; these times are more random than a machine's.
    let (rounded, exact) = (cost(Some(UNIT_NS)), cost(None));
    assert!(rounded < 8.2 && exact < 10.5, "{rounded:.2} and {exact:.2} bytes a pair");
}

#[test]
fn a_recording_goes_on_after_its_last_good_block() {
    let pairs = realistic(40);
    let mut bytes = file(&pairs[..20], 20);
    bytes.truncate(bytes.len() - 3); // torn inside the end block
    let mut reader = Reader::new(&bytes).unwrap();
    reader.by_ref().for_each(drop);
    let (header, good) = (reader.header.clone(), reader.good_bytes());
    bytes.truncate(usize::try_from(good).unwrap());
    let mut encoder = Encoder::resume(&header);
    bytes.extend(encoder.mark(&Mark::Resumed { at_s: 9, is_same_boot: true }));
    for pair in &pairs[20..] {
        bytes.extend(encoder.push(*pair).unwrap_or_default());
    }
    bytes.extend(encoder.end());
    assert_eq!(read(&bytes), (pairs, Some(Ending::Complete)));
    assert_eq!(header.differs_from(&header), None);
    let other = Header { kernel: "6.2".into(), ..header.clone() };
    assert!(header.differs_from(&other).unwrap().contains("kernel"));
    let limits = vec![("all".to_string(), "poll".to_string())];
    let other = Header { governor: Some("menu".into()), limits, ..header.clone() };
    assert_eq!((header.differs_from(&other), header.settings_changed(&other, 5).len()), (None, 2));
    assert!(header.settings_changed(&header, 5).is_empty());
}

#[test]
fn foreign_files_are_refused_in_words() {
    assert_eq!(Reader::new(b"PAR1").unwrap_err(), WtraceError::NotOurs);
    assert_eq!(Reader::new(b"wakewatt-wtrace 3\nx").unwrap_err(), WtraceError::OtherVersion("3".into()));
    assert!(matches!(Reader::new(MAGIC).unwrap_err(), WtraceError::NoHeader(why) if why.contains("cut off")));
    let mut huge = MAGIC.to_vec();
    huge.extend([b'H', 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]);
    assert!(matches!(Reader::new(&huge).unwrap_err(), WtraceError::NoHeader(why) if why.contains("claims")));
}

/// A recording of a real machine in version 1, packed again as this version does it.
#[test]
fn a_recorded_event_costs_at_most_three_bytes() {
    let old = include_bytes!("../../../../../fixtures/traces/vm-haltpoll-6.18.wtrace");
    let mut reader = Reader::new(old).unwrap();
    assert!(reader.is_version_1());
    let header = Header { unit_ns: Some(UNIT_NS), ..reader.header.clone() };
    let (mut encoder, mut new) = Encoder::start(&header);
    let (mut n_pairs, mut n_text) = (0, new.len());
    for item in reader.by_ref() {
        match item {
            Item::Pairs(pairs) => {
                n_pairs += pairs.len();
                pairs.into_iter().for_each(|pair| new.extend(encoder.push(pair).unwrap_or_default()));
            }
            Item::Choices(_) => {}
            Item::Mark(mark) => {
                new.extend(encoder.mark(&mark));
                n_text += serde_json::to_vec(&mark).unwrap().len() + 9;
            }
        }
    }
    new.extend(encoder.end());
    let per_event = |bytes: usize| bytes as f64 / (2 * n_pairs) as f64;
    let (was, is, bare) = (per_event(old.len()), per_event(new.len()), per_event(new.len() - n_text));
    assert!(is < 3.0, "{was:.2} -> {is:.2} bytes an event, {bare:.2} without header and marks");
    eprintln!("{was:.2} -> {is:.2} bytes an event, {bare:.2} without header and marks, {n_pairs} pairs");
}

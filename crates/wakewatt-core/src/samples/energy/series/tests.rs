//! Series of every kind of meter that lies, stops, wraps or is late.

use super::*;
use crate::samples::energy::Covers;

const S: u64 = 1_000_000_000;
const W: i64 = 1_000_000;

fn series(kind: Kind, points: &[(u64, i64)]) -> Series {
    let channel = Channel { id: "x".into(), name: "x".into(), covers: Covers::Package, is_part: false, kind };
    let mut series = Series::new(channel, S);
    points.iter().for_each(|(at, value)| series.push(*at, Ok(*value)));
    series
}

fn power(watts: &[i64]) -> ChannelSample {
    let points: Vec<(u64, i64)> = watts.iter().enumerate().map(|(i, w)| (i as u64 * S, w * W)).collect();
    series(Kind::Power, &points).summary((watts.len() as u64 - 1) * S)
}

fn energy(range_uj: Option<u64>, joules: &[i64]) -> ChannelSample {
    let points: Vec<(u64, i64)> = joules.iter().enumerate().map(|(i, j)| (i as u64 * S, j * W)).collect();
    series(Kind::Energy { range_uj }, &points).summary((joules.len() as u64 - 1) * S)
}

#[test]
fn a_trapezoid_follows_the_times_of_the_readings() {
    // 100 W for 1 s, then up to 200 W in 2 s: 100 + 300 J, not the mean of the samples (133 W) times 3 s.
    let out = series(Kind::Power, &[(0, 100 * W), (S, 100 * W), (3 * S, 200 * W)]).summary(3 * S);
    assert_eq!((out.energy_uj, out.mean_uw), (Some(400_000_000), Some(133_333_333)));
    assert_eq!((out.min_uw, out.max_uw, out.n, out.n_gaps), (Some(100_000_000), Some(200_000_000), 3, 0));
    assert_eq!((out.covered_ns, out.label), (3 * S, Label::Measured));
}

#[test]
fn a_gap_of_a_power_meter_is_not_integrated_and_a_counter_keeps_it() {
    let points = [(0, 100 * W), (S, 100 * W), (11 * S, 100 * W), (12 * S, 100 * W)];
    let out = series(Kind::Power, &points).summary(12 * S);
    assert_eq!((out.n_gaps, out.covered_ns, out.energy_uj), (1, 2 * S, Some(200_000_000)));
    assert!(out.doubts.iter().any(|d| d.contains("only 16 %")), "{:?}", out.doubts);
    assert_eq!(out.silences, [Window { start_at_ns: S, end_at_ns: 11 * S }]);
    let points = [(0, 0), (S, 100 * W), (11 * S, 1100 * W), (12 * S, 1200 * W)];
    let out = series(Kind::Energy { range_uj: None }, &points).summary(12 * S);
    assert_eq!((out.n_gaps, out.covered_ns, out.mean_uw), (1, 12 * S, Some(100_000_000)));
}

#[test]
fn a_counter_wraps() {
    let out = energy(Some(1_000_000_000), &[900, 950, 0, 50]);
    assert_eq!((out.energy_uj, out.mean_uw, out.n_resets), (Some(150_000_000), Some(50_000_000), 0));
}

#[test]
fn a_jump_back_is_told_and_left_out() {
    let out = energy(None, &[900, 950, 10, 60]);
    assert_eq!((out.n_resets, out.covered_ns, out.mean_uw), (1, 2 * S, Some(50_000_000)));
    assert!(out.doubts.iter().any(|d| d.contains("jumped back")), "{:?}", out.doubts);
}

#[test]
fn dead_meters_are_dead_and_never_zero_watts() {
    for out in [energy(None, &[0, 0, 0]), power(&[0, 0, 0])] {
        assert_eq!((out.label, out.mean_uw, out.energy_uj), (Label::PresentButDead, None, None));
        assert_eq!(out.why.as_deref(), Some("present but constant zero"));
    }
    assert!(energy(None, &[7, 7, 7]).why.unwrap().contains("does not move"));
    let short = series(Kind::Energy { range_uj: None }, &[(0, 5), (1_000_000, 5)]).summary(1_000_000);
    assert_eq!(short.label, Label::Unavailable, "too short to call it dead");
}

#[test]
fn a_meter_that_stops_covers_nothing_from_there_on() {
    let out = energy(None, &[0, 100, 200, 200, 200, 200]);
    assert_eq!((out.mean_uw, out.covered_ns), (Some(100_000_000), 2 * S));
    assert!(out.doubts[0].contains("stopped moving 3s before the end"), "{:?}", out.doubts);
    let mut silent = series(Kind::Power, &[(0, 100 * W), (S, 100 * W)]);
    silent.push(2 * S, Err("Input/output error".into()));
    let out = silent.summary(9 * S);
    assert_eq!((out.n_failed, out.mean_uw), (1, Some(100_000_000)));
    assert!(out.doubts.iter().any(|d| d.contains("nothing in the last 8s")), "{:?}", out.doubts);
    assert!(out.doubts.iter().any(|d| d.contains("Input/output error")), "{:?}", out.doubts);
}

#[test]
fn lies_are_refused() {
    let out = power(&[100, -5, 100, 0, 100, 90_000_000]);
    assert_eq!((out.n, out.n_rejected, out.max_uw), (3, 3, Some(100_000_000)));
    let out = power(&[-5, -5]);
    assert_eq!(out.label, Label::Unavailable);
    assert!(out.why.unwrap().contains("no machine draws"));
    let short = power(&[120; 5]);
    assert!(short.doubts.iter().any(|d| d.contains("all 5 readings are equal")), "{:?}", short.doubts);
    assert!(power(&[120; 4]).doubts.is_empty() && power(&[120, 120, 121, 120, 120]).doubts.is_empty());
    let frozen = power(&[120; 40]);
    assert!(frozen.doubts.iter().any(|d| d.contains("all 40 readings are equal")), "{:?}", frozen.doubts);
    let jump = energy(None, &[0, 100, 99_000_000, 99_000_100]);
    assert_eq!((jump.n_rejected, jump.mean_uw), (1, Some(100_000_000)));
    let mut back = series(Kind::Power, &[(S, W), (2 * S, W)]);
    back.push(S, Ok(5 * W));
    assert_eq!(back.summary(2 * S).n_rejected, 1, "a time that went back");
}

#[test]
fn the_interval_covers_the_true_mean_of_noise() {
    let mut n_covered = 0;
    let mut state = 1u64;
    for _ in 0..400 {
        let watts: Vec<i64> = (0..60)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                90 + i64::try_from((state >> 33) % 21).unwrap()
            })
            .collect();
        let out = power(&watts);
        let (mean, half) = (out.mean_uw.unwrap(), out.uncertainty_uw.unwrap());
        n_covered += u32::from(mean.abs_diff(100_000_000) <= half);
    }
    assert!((360..=400).contains(&n_covered), "{n_covered} of 400 intervals hold the true mean");
    assert_eq!(power(&[1, 2, 3]).uncertainty_uw, None, "two stretches say nothing");
}

#[test]
fn nothing_read_says_why() {
    let mut none = series(Kind::Power, &[]);
    none.push(0, Err("Permission denied".into()));
    let out = none.summary(S);
    assert_eq!((out.label, out.why.as_deref(), out.n), (Label::Unavailable, Some("Permission denied"), 0));
    let one = series(Kind::Power, &[(0, 80 * W)]).summary(0);
    assert_eq!((one.mean_uw, one.energy_uj), (Some(80_000_000), None));
}

#[test]
fn energy_outside_the_window_is_cut_off() {
    let window = Window { start_at_ns: S / 2, end_at_ns: 2 * S + S / 2 };
    for (kind, points) in [
        (Kind::Power, [(0, 100 * W), (S, 100 * W), (2 * S, 100 * W), (3 * S, 100 * W)]),
        (Kind::Energy { range_uj: None }, [(0, 0), (S, 100 * W), (2 * S, 200 * W), (3 * S, 300 * W)]),
    ] {
        let out = series(kind, &points).within(window);
        assert_eq!((out.energy_uj, out.covered_ns, out.window), (Some(200_000_000), 2 * S, window));
    }
}

#[test]
fn a_silence_has_a_beginning_and_an_end_inside_the_window() {
    let mut points: Vec<(u64, i64)> = (0..=10).map(|s| (s * S, 100 * W)).collect();
    points.extend((20..=22).map(|s| (s * S, 100 * W)));
    let series = series(Kind::Power, &points);
    let at = |from: u64, to: u64| Window { start_at_ns: from * S, end_at_ns: to * S };
    assert_eq!(series.within(at(5, 15)).silences, [at(10, 15)], "the part of it that the window has");
    assert_eq!(series.within(at(0, 40)).silences, [at(10, 20), at(22, 40)], "it fell silent and stayed so");
    assert_eq!(series.within(at(0, 9)).silences, []);
    // A counter keeps what nobody read.
    let counted: Vec<(u64, i64)> =
        points.iter().map(|(at, _)| (*at, i64::try_from(at / S).unwrap() * 100 * W)).collect();
    assert_eq!(self::series(Kind::Energy { range_uj: None }, &counted).within(at(0, 22)).silences, []);
}

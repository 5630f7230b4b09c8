//! Intervals hold, or there is none and the reason. The long form, with 200 seeds and all loads, is `cargo
//! xtask bench coverage`.

#![allow(clippy::unwrap_used)] // A server that is refused is a failed test.

use wakewatt_sim::coverage::{Queue, coverage};
use wakewatt_sim::law::{Family, Law};
use wakewatt_sim::outcome::NoInterval;
use wakewatt_sim::server::{ArrivalKind, Arrivals};
use wakewatt_sim::simulate;
use wakewatt_sim::span::Span;

/// With a true coverage of 95 % fewer than 25 of 30 are rarer than one in a thousand; a p99 that held in
/// half of them gives 15.
#[test]
fn intervals_hold_at_high_load_and_with_recorded_arrivals() {
    for (queue, rho) in [(Queue::Mm1, 0.9), (Queue::Mm8, 0.9), (Queue::Recorded, 0.8)] {
        let found = coverage(queue, rho, 1..=30, 2).unwrap();
        assert!(found.n_shown == 30 && found.n_held.iter().all(|n| *n >= 25), "{} at {rho}: {found:?}", queue.name());
        assert!(found.bias_ratio.iter().all(|bias| bias.abs() < 0.05), "{} at {rho}: {found:?}", queue.name());
    }
}

#[test]
fn a_run_is_as_long_as_its_load_needs_unless_the_file_says_how_long() {
    let [calm, busy] = [0.3, 0.9].map(|rho| simulate(&Queue::Mm1.server(rho, 1), 2).unwrap());
    assert_eq!((calm.duration_ns, calm.warmup_ns, calm.no_interval), (10_000_000_000, 1_000_000_000, None));
    assert!(busy.duration_ns > 12_000_000_000 && busy.warmup_ns == busy.duration_ns / 10, "{}", busy.duration_ns);
    let mut short = Queue::Mm1.server(0.95, 1);
    short.run.duration = Some(Span::ms(4000));
    let refused = simulate(&short, 2).unwrap();
    let Some(NoInterval::TooShort { needed_ns }) = refused.no_interval else { panic!("{:?}", refused.no_interval) };
    assert!((10_000_000_000..400_000_000_000).contains(&needed_ns), "{needed_ns}");
    assert!(refused.mean_ns.half.is_none() && refused.quantiles.iter().all(|q| q.ns.half.is_none()));
    assert!(refused.wall_w.half.is_some() && !refused.is_saturated && refused.mean_ns.value > 1e6);
}

#[test]
fn a_recording_is_resampled_or_nothing_has_an_interval() {
    let at = |every_us: f64, n: u32| (1..=n).map(|i| f64::from(i) * every_us).collect::<Vec<f64>>();
    let recorded = |at_us| Arrivals { kind: ArrivalKind::Recorded, at_us, ..Arrivals::default() };
    let mut server = Queue::Mm1.server(0.5, 1);
    server.run.duration = Some(Span::ms(2000));
    server.workload.arrivals = recorded(at(1000.0, 500));
    let replayed = simulate(&server, 2).unwrap();
    assert_eq!((replayed.no_interval, replayed.offered_per_s.half), (Some(NoInterval::Replayed), None));
    assert!(replayed.mean_ns.half.is_none() && replayed.wall_w.half.is_none());
    // Half a second in which nobody comes and half a second full, many times: blocks keep that, so their
    // rates differ.
    let bursts = (0..40).flat_map(|s| (0..500).map(move |i| f64::from(s) * 1e6 + 5e5 + f64::from(i) * 1e3));
    server.workload.arrivals = recorded(bursts.collect());
    let resampled = simulate(&server, 2).unwrap();
    assert!((resampled.offered_per_s.value / 500.0 - 1.0).abs() < 0.2, "{:?}", resampled.offered_per_s);
    assert!(resampled.offered_per_s.half.unwrap() > 5.0, "{:?}", resampled.offered_per_s);
    // Two seconds of bursts that last half a second: too short, and said.
    assert!(matches!(resampled.no_interval, Some(NoInterval::TooShort { .. })), "{:?}", resampled.no_interval);
    // At a load near 1 the recording says too little, however long it is played.
    server.workload.arrivals = Queue::Recorded.server(0.95, 3).workload.arrivals;
    server.workload.arrivals.at_us.truncate(5000);
    server.run.duration = None;
    let short = simulate(&server, 2).unwrap();
    assert!(matches!(short.no_interval, Some(NoInterval::RecordingTooShort { .. })), "{:?}", short.no_interval);
}

/// The mean of a run that happened to hold no long work is wrong, and looks sure: the law says how many requests it takes.
#[test]
fn a_heavy_tail_needs_more_requests_or_has_no_interval() {
    let of = |family, cv| {
        let mut server = Queue::Mm1.server(0.5, 1);
        server.workload.hop[0].service = Law::varied(family, Span::us(500), cv);
        simulate(&server, 2).unwrap().no_interval
    };
    assert_eq!(of(Family::Hyperexponential, 3.0), None);
    assert_eq!(of(Family::Gamma, 2.0), None);
    let Some(NoInterval::TooShort { needed_ns }) = of(Family::Lognormal, 5.0) else { panic!("an interval") };
    // 676 squared over a hundredth, at a thousand a second in eight replications, and a quarter more.
    assert!((4e12..8e12).contains(&(needed_ns as f64)), "{needed_ns}");
}

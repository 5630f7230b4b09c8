//! Medians of short measurements that machines made while nothing was changed, in the order of time: noise as it is.
//!
//! A file has a line per run, nanoseconds; lines with `#` say what machine. `cargo xtask bench verdict-aa` leaves such lines in
//! target/verdict-noise.txt.

use std::fmt::Write as _;
use wakewatt_core::stats::random::Random;
use wakewatt_core::stats::sequential::{Decision, Looks, StopReason};
use wakewatt_core::stats::signed_rank;

use super::noise::on_all_cpus;

const FILES: [(&str, &str); 3] = [
    ("EPYC guest, alone", include_str!("epyc-guest-alone.txt")),
    ("EPYC guest, beside a loop at 50 % of a CPU", include_str!("epyc-guest-beside-a-loop.txt")),
    ("emulated arm64 machine, busy host", include_str!("arm64-emulated.txt")),
];
const N_RUNS: u64 = 2_000;
/// Half a point, and what 2,000 runs leave open (two standard errors of 5 % are one point).
const FALSE_LIMIT: f64 = 0.05 + 0.005;
/// A true ratio that a full run has to find, and one that is too small to matter.
const EFFECT: f64 = 1.10;
const SMALL: f64 = 1.02;

/// Logarithms of the medians of all runs, one after the other.
fn series(text: &str) -> Vec<f64> {
    let numbers = text.lines().filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace);
    numbers.map(|ns| ns.parse::<f64>().expect("medians are numbers").ln()).collect()
}

/// One run of up to 500 rounds: from a random place of the series, forwards, its end joined to its start.
fn play(series: &[f64], log_ratio: f64, seed: u64) -> (StopReason, bool) {
    let mut random = Random::new(seed);
    let looks = Looks::short();
    let mut at = random.index(series.len());
    let mut next = || {
        at = (at + 1) % series.len();
        series[at]
    };
    let mut d = Vec::new();
    loop {
        let (first, second) = (next(), next());
        // The order within a round is drawn.
        d.push(log_ratio + if random.below(2) == 0 { first - second } else { second - first });
        if let Decision::Stop(why) = looks.decide_size(d.len(), &d) {
            let p = signed_rank::p_above(&d, log_ratio).min(signed_rank::p_below(&d, log_ratio));
            return (why, 2.0 * p <= looks.judge(d.len()).level);
        }
    }
}

/// Shares of runs.
struct Rates {
    is_called: f64,
    is_equal: f64,
    is_missed: f64,
}

fn rates(series: &[f64], ratio: f64) -> Rates {
    let runs: Vec<(StopReason, bool)> = (0..N_RUNS).map(|seed| play(series, ratio.ln(), seed)).collect();
    let share =
        |is: &dyn Fn(&(StopReason, bool)) -> bool| runs.iter().filter(|run| is(run)).count() as f64 / N_RUNS as f64;
    Rates {
        is_called: share(&|(why, _)| *why == StopReason::EffectProven),
        is_equal: share(&|(why, _)| *why == StopReason::NoDifference),
        is_missed: share(&|(_, is_missed)| *is_missed),
    }
}

/// The section of the page, and what exceeds its limit.
pub(crate) fn section(page: &mut String, too_much: &mut Vec<String>) {
    let _ = writeln!(
        page,
        "\n## Noise recorded from machines\n\nMedians of short measurements of wake-ups while nothing was changed \
         (crates/wakewatt-core/tests/recorded). {N_RUNS} runs each of up to 500 rounds start at random places of a series; the order within \
         a round is drawn. *Scatter* is that of one log ratio, by its quartiles. At most 5 % may be called or missed.\n\n\
         | noise | medians | scatter | nothing: called | missed | {EFFECT:.2}: found | missed | {SMALL:.2}: called | \"no difference\" |\n\
         |---|---|---|---|---|---|---|---|---|"
    );
    let rows: Vec<(&str, Vec<f64>, f64)> =
        FILES.iter().flat_map(|(name, text)| [1.0, EFFECT, SMALL].map(|ratio| (*name, series(text), ratio))).collect();
    let all = on_all_cpus(&rows, |(_, series, ratio)| rates(series, *ratio));
    for (of, rates) in rows.chunks(3).zip(all.chunks(3)) {
        let ((name, series, _), [nothing, effect, small]) = (&of[0], rates) else { unreachable!("three ratios each") };
        let is_found = !name.ends_with("alone") || (effect.is_called >= 0.9 && small.is_equal >= 0.9);
        if nothing.is_called.max(nothing.is_missed).max(effect.is_missed) > FALSE_LIMIT || !is_found {
            too_much.push(format!(
                "{name}: called {}, missed {}, {}",
                nothing.is_called, nothing.is_missed, effect.is_missed
            ));
        }
        let cells =
            [nothing.is_called, nothing.is_missed, effect.is_called, effect.is_missed, small.is_called, small.is_equal];
        let cells = cells.map(|rate| format!("{:.1} %", 100.0 * rate)).join(" | ");
        let _ = writeln!(page, "| {name} | {} | {:.1} % | {cells} |", series.len(), 100.0 * scatter(series));
    }
}

/// The standard deviation of a round's log ratio if it were normal: half the range of the middle half over 0.6745.
fn scatter(series: &[f64]) -> f64 {
    let mut ratios: Vec<f64> = series.chunks_exact(2).map(|pair| pair[1] - pair[0]).collect();
    ratios.sort_by(f64::total_cmp);
    (ratios[3 * ratios.len() / 4] - ratios[ratios.len() / 4]) / (2.0 * 0.6745)
}

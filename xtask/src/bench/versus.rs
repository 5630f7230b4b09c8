//! Ours against a peer, round by round: ours, the peer, the peer again, in an order drawn anew for each round.
//!
//! A slow or busy machine slows all three of a round, so the ratio within rounds is what is judged, with its interval over
//! rounds. How far the peer is from itself says what a difference can mean here. A goal is met where the ratio is within
//! it and the interval within twice of it, missed where the whole interval lies outside; between the two this machine was
//! too restless to say. A spread of our own is no miss where the peer's, on the same machine, is as great.

use super::median;
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use wakewatt_core::samples::experiment::Effect;
use wakewatt_core::samples::memory::Spread;
use wakewatt_core::stats::paired::Judge;
use wakewatt_core::stats::random::Random;

const SEED: u64 = 20_261_121;

/// One run: a value per figure.
type Figures = Vec<f64>;

/// Some rounds of both.
pub(crate) struct Rounds {
    peer: String,
    rounds: Vec<[Figures; 3]>,
    csv: String,
}

/// Runs them. Each closure measures once and gives one value per figure, in the order of their names (with unit).
pub(crate) fn rounds(
    n: usize,
    what: &str,
    peer: &str,
    figures: &[&str],
    ours: &dyn Fn() -> Result<Figures>,
    theirs: &dyn Fn() -> Result<Figures>,
) -> Result<Rounds> {
    let mut random = Random::new(SEED);
    let mut done = Rounds { peer: peer.into(), rounds: Vec::new(), csv: String::new() };
    for round in 0..n {
        let mut order = [0, 1, 2];
        random.shuffle(&mut order);
        let mut values = [Figures::new(), Figures::new(), Figures::new()];
        for who in order {
            values[who] = if who == 0 { ours()? } else { theirs()? };
            ensure!(values[who].len() == figures.len(), "{what}: {:?} for {figures:?}", values[who]);
        }
        let order: String = order.iter().map(ToString::to_string).collect();
        for (who, values) in ["wakewatt", peer, "peer again"].iter().zip(&values) {
            for (figure, value) in figures.iter().zip(values) {
                let _ = writeln!(done.csv, "{what},{round},{order},{who},{figure},{value:.3}");
            }
        }
        done.rounds.push(values);
    }
    Ok(done)
}

/// The first line of a file of [`Rounds::csv`].
pub(crate) const CSV_HEAD: &str = "what,round,order,who,figure,value\n";

impl Rounds {
    /// Every value, as CSV without its first line.
    pub(crate) fn csv(&self) -> &str {
        &self.csv
    }

    /// One figure of both.
    pub(crate) fn figure(&self, at: usize) -> Result<Versus> {
        let judge = Judge::default();
        let effect = |who: usize, name: &str| {
            let pairs: Vec<(f64, f64)> = self.rounds.iter().map(|r| (r[who][at], r[1][at])).collect();
            judge.effect("figure", name, &self.peer, &pairs).context("no rounds, or a figure that is not above zero")
        };
        let of = |who: usize| -> Vec<f64> { self.rounds.iter().map(|r| r[who][at]).collect() };
        Ok(Versus {
            peer: self.peer.clone(),
            ours: median(&of(0)),
            theirs: median(&of(1)),
            cv_ratio: Spread::of(&of(0)).map_or(f64::NAN, |s| s.cv_ratio),
            peer_cv_ratio: Spread::of(&of(1)).map_or(f64::NAN, |s| s.cv_ratio),
            effect: effect(0, "wakewatt")?,
            itself: effect(2, "peer")?,
            n: self.rounds.len(),
        })
    }
}

/// One figure compared.
pub(crate) struct Versus {
    peer: String,
    /// Ours, the median over rounds.
    pub(crate) ours: f64,
    /// Theirs.
    pub(crate) theirs: f64,
    /// Our spread over rounds: standard deviation by mean.
    pub(crate) cv_ratio: f64,
    /// Theirs.
    pub(crate) peer_cv_ratio: f64,
    effect: Effect,
    itself: Effect,
    n: usize,
}

impl Versus {
    /// The ratio with its interval, and the peer's to itself.
    pub(crate) fn ratio(&self) -> String {
        let shown = |e: &Effect| format!("{:.3} [{:.3}, {:.3}]", e.ratio, e.ratio_low, e.ratio_high);
        format!("ratio {} over {} rounds; {} to itself {}", shown(&self.effect), self.n, self.peer, shown(&self.itself))
    }

    /// Not farther from the peer than this share, above or below.
    pub(crate) fn is_within(&self, share: f64) -> Option<bool> {
        is_between(&self.effect, 1.0 - share, 1.0 + share)
    }

    /// Not farther below the peer than this share: for what is better when it is higher.
    pub(crate) fn is_not_below(&self, share: f64) -> Option<bool> {
        is_between(&self.effect, 1.0 - share, f64::INFINITY)
    }

    /// Is our own spread at most this? Missed beyond half as much again, unless the peer's is as great.
    pub(crate) fn is_steady(&self, goal: f64) -> Option<bool> {
        is_steady(self.cv_ratio, self.peer_cv_ratio, goal)
    }
}

fn is_between(effect: &Effect, low: f64, high: f64) -> Option<bool> {
    // Infinite stays infinite.
    let (wide_low, wide_high) = (1.0 - 2.0 * (1.0 - low), 1.0 + 2.0 * (high - 1.0));
    if effect.ratio_low > high || effect.ratio_high < low {
        Some(false)
    } else if (low..=high).contains(&effect.ratio) && effect.ratio_low >= wide_low && effect.ratio_high <= wide_high {
        Some(true)
    } else {
        None
    }
}

fn is_steady(ours: f64, theirs: f64, goal: f64) -> Option<bool> {
    if ours <= goal {
        Some(true)
    } else if ours > goal * 1.5 && theirs < ours {
        Some(false)
    } else {
        None
    }
}

/// All goals of a row: met when each is, missed when one is.
pub(crate) fn all_met(goals: &[Option<bool>]) -> Option<bool> {
    if goals.contains(&Some(false)) {
        Some(false)
    } else {
        goals.iter().copied().collect::<Option<Vec<_>>>().map(|_| true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_constant_difference_is_found_and_judged() {
        let calls = Cell::new(0u32);
        let next = |scale: f64| {
            calls.set(calls.get() + 1);
            Ok(vec![scale * (100.0 + f64::from(calls.get() % 7) / 10.0), 5.0])
        };
        let done = rounds(8, "x", "peer", &["a_ns", "b"], &|| next(0.9), &|| next(1.0)).unwrap();
        assert_eq!((calls.get(), done.csv().lines().count()), (24, 48));
        let first = done.figure(0).unwrap();
        assert!((0.89..0.91).contains(&first.effect.ratio), "{}", first.ratio());
        assert_eq!((first.is_within(0.05), first.is_within(0.15)), (Some(false), Some(true)));
        assert_eq!(first.is_not_below(0.03), Some(false));
        let second = done.figure(1).unwrap();
        assert_eq!((second.ours, second.theirs, second.is_within(0.01)), (5.0, 5.0, Some(true)));
        assert!(rounds(1, "x", "peer", &["a"], &|| Ok(vec![]), &|| Ok(vec![1.0])).is_err());
    }

    #[test]
    fn a_wide_interval_is_neither_met_nor_missed() {
        let figure = |percent: u32| {
            let calls = Cell::new(0u32);
            // Ours differs from the peer by this, up and down from round to round.
            let swing = f64::from(percent) / 100.0;
            let ours = || {
                calls.set(calls.get() + 1);
                Ok(vec![100.0 * (1.0 + if calls.get().is_multiple_of(2) { swing } else { -swing })])
            };
            rounds(8, "x", "peer", &["a_ns"], &ours, &|| Ok(vec![100.0])).unwrap().figure(0).unwrap()
        };
        assert_eq!((figure(1).is_within(0.05), figure(1).is_not_below(0.03)), (Some(true), Some(true)));
        let wide = figure(40);
        assert_eq!((wide.is_within(0.05), wide.is_not_below(0.03)), (None, None), "{}", wide.ratio());
    }

    #[test]
    fn a_spread_is_missed_only_where_the_peer_is_steadier() {
        assert_eq!(is_steady(0.009, 0.5, 0.01), Some(true));
        assert_eq!(is_steady(0.014, 0.001, 0.01), None);
        assert_eq!(is_steady(0.02, 0.01, 0.01), Some(false));
        assert_eq!(is_steady(0.02, 0.03, 0.01), None);
        assert_eq!(is_steady(f64::NAN, 0.0, 0.01), None);
    }

    #[test]
    fn one_miss_is_a_miss_and_one_doubt_a_doubt() {
        assert_eq!(all_met(&[Some(true), Some(true)]), Some(true));
        assert_eq!(all_met(&[Some(true), None]), None);
        assert_eq!(all_met(&[None, Some(false)]), Some(false));
    }
}

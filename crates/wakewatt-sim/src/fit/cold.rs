//! How cold a CPU is for the work of a request, by the pause: one law for all idle states.
//!
//! Others empty caches, translations and predictors while a CPU waits, so much of what is left each moment: the work after a pause t takes longer by
//! C (1 - exp(-t / T)). What is cold is cold, so C is the same in every state; how soon, T, is not: asleep, a guest's CPU runs something else.
//! C and each T are those that lie nearest to what was measured of a piece of work. A load's own work may be more or less of it (its C is fitted), and may grow cold
//! sooner (all T are divided by one fitted number).

use super::inputs::ExitAfter;

/// From a tenth of a millisecond to a second, in steps of a tenth.
const SHORTEST_NS: f64 = 1e5;
const N_STEPS: i32 = 97;
/// The ceiling may lie so far above what was measured: in steps of a tenth up to 2.6 times.
const N_CEILINGS: i32 = 11;
const STEP: f64 = 1.1;
/// Pauses that the law is told at, each half as long again: from 50 us to 220 ms.
const FIRST_NS: f64 = 50_000.0;
const N_PAUSES: i32 = 21;

/// The law of one piece of work.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cold {
    /// What the coldest pause adds, in nanoseconds.
    pub(super) most_ns: f64,
    /// Of each state, in nanoseconds; none of one that was not measured.
    soon_ns: Vec<Option<f64>>,
}

fn part(pause_ns: f64, soon_ns: f64) -> f64 {
    -(-pause_ns / soon_ns).exp_m1()
}

impl Cold {
    /// From what was measured in each state; none where nothing was, or nothing grew.
    pub(super) fn of<'a>(states: impl IntoIterator<Item = &'a [ExitAfter]>) -> Option<Cold> {
        let states: Vec<&[ExitAfter]> = states.into_iter().collect();
        let most = states.iter().flat_map(|rows| rows.iter()).map(|row| row.ns).max().filter(|ns| *ns > 0)? as f64;
        let with = |most_ns: f64| {
            // A tenth of the most is as much as a row may be off before it counts fully.
            let far = |row: &ExitAfter, soon_ns: f64| {
                let ns = most_ns * part(row.asleep_ns as f64, soon_ns);
                ((ns - row.ns as f64) / (row.ns as f64 + most / 10.0)).powi(2)
            };
            let best = |rows: &[ExitAfter]| {
                let all = (0..N_STEPS).map(|i| SHORTEST_NS * STEP.powi(i));
                let of = |soon_ns: f64| (rows.iter().map(|row| far(row, soon_ns)).sum::<f64>(), soon_ns);
                all.map(of).min_by(|a, b| a.0.total_cmp(&b.0)).filter(|_| !rows.is_empty())
            };
            let found: Vec<_> = states.iter().map(|rows| best(rows)).collect();
            let off: f64 = found.iter().flatten().map(|(off, _)| off).sum();
            (off, Cold { most_ns, soon_ns: found.into_iter().map(|one| one.map(|(_, soon)| soon)).collect() })
        };
        (0..N_CEILINGS).map(|i| with(most * STEP.powi(i))).min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, cold)| cold)
    }

    /// What a pause in a state adds to work that loses `most_ns` at most and grows cold `sooner` times as soon; empty where that is not known.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Not negative, far below 2^64.
    pub(super) fn rows(&self, state: usize, most_ns: f64, sooner: f64) -> Vec<ExitAfter> {
        let Some(soon_ns) = self.soon_ns.get(state).copied().flatten() else { return Vec::new() };
        let row = |i: i32| {
            let pause_ns = FIRST_NS * 1.5f64.powi(i);
            ExitAfter { asleep_ns: pause_ns as u64, ns: (most_ns * part(pause_ns * sooner, soon_ns)) as u64 }
        };
        (0..N_PAUSES).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    // Made-up numbers of known size.
    #![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    use super::*;

    fn rows(most_ns: f64, soon_ns: f64) -> Vec<ExitAfter> {
        let row = |asleep_ns: u64| ExitAfter { asleep_ns, ns: (most_ns * part(asleep_ns as f64, soon_ns)) as u64 };
        [300_000, 1_000_000, 4_000_000, 12_000_000, 25_000_000].map(row).to_vec()
    }

    #[test]
    fn a_law_comes_back_with_a_ceiling_that_one_state_alone_does_not_show() {
        // While it polls it gets to 47 % of it in the longest pause.
        let (polling, asleep) = (rows(60_000.0, 4e7), rows(60_000.0, 1e7));
        let cold = Cold::of([polling.as_slice(), &[], asleep.as_slice()]).unwrap();
        assert!((cold.most_ns / 60_000.0 - 1.0).abs() < 0.08, "{cold:?}");
        assert!((cold.soon_ns[0].unwrap() / 4e7 - 1.0).abs() < 0.15, "{cold:?}");
        assert!((cold.soon_ns[2].unwrap() / 1e7 - 1.0).abs() < 0.15 && cold.soon_ns[1].is_none(), "{cold:?}");
        assert_eq!(cold.rows(1, 60_000.0, 1.0), []);
        // Four times as soon: what took 40 ms takes 10, and at the end both states are as cold.
        let at = |state: usize, sooner: f64, ms: f64| {
            let rows = cold.rows(state, 100_000.0, sooner);
            rows.iter().min_by_key(|row| (row.asleep_ns as f64 - ms * 1e6).abs() as u64).unwrap().ns as f64
        };
        assert!((at(0, 4.0, 10.0) / at(2, 1.0, 10.0) - 1.0).abs() < 0.12, "{} {}", at(0, 4.0, 10.0), at(2, 1.0, 10.0));
        assert!(at(0, 4.0, 200.0) > 99_000.0 && at(2, 4.0, 200.0) > 99_000.0);
        assert!(at(0, 1.0, 1.0) < 5_000.0);
    }

    #[test]
    fn nothing_measured_or_nothing_grown_is_no_law() {
        assert_eq!(Cold::of([]), None);
        assert_eq!(Cold::of([[].as_slice(), &[]]), None);
        assert_eq!(Cold::of([rows(0.0, 1e7).as_slice()]), None);
        let odd = [ExitAfter { asleep_ns: 0, ns: 5 }, ExitAfter { asleep_ns: u64::MAX, ns: u64::MAX }];
        let cold = Cold::of([odd.as_slice()]).unwrap();
        assert!(cold.rows(0, 1e7, 32.0).iter().all(|row| row.ns <= 10_000_000), "{cold:?}");
    }
}

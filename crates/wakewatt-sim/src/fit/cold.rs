//! How cold a CPU is for the work of a request, by the pause: one law for all idle states, where what was measured shows its ceiling.
//!
//! Others empty caches, translations and predictors while a CPU waits, so much of what is left each moment: the work after a pause t takes longer by
//! C (1 - exp(-t / T)). What is cold is cold, so C is the same in every state; how soon, T, is not: asleep, a guest's CPU runs something else.
//! C and each T are those that lie nearest to what was measured of a piece of work. A load's own work may be more or less of it (its C is fitted), and may grow cold
//! sooner (all T are divided by one fitted number). Where the best C is the highest that is tried, the piece was still growing colder after the longest pause that was
//! measured, by no such law perhaps: then its shape is taken as measured, and only its size is fitted.

use super::by_length::ExitAfter;
use serde::{Deserialize, Serialize};

/// From a tenth of a millisecond to a second, in steps of a tenth.
const SHORTEST_NS: f64 = 1e5;
const N_STEPS: i32 = 97;
/// The ceiling may lie so far above what was measured: in steps of a tenth up to 2.6 times.
const N_CEILINGS: i32 = 11;
const STEP: f64 = 1.1;
/// Pauses that the law is told at, each half as long again: from 50 us to 220 ms.
const FIRST_NS: f64 = 50_000.0;
const N_PAUSES: i32 = 21;

/// How one piece of work grows cold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cold {
    /// What a pause adds to the piece at most, in nanoseconds: the ceiling C, or what was measured after the coldest.
    pub most_ns: f64,
    /// T of each idle state, in nanoseconds, in the order of `exits`; null of one that was not measured. None where no ceiling was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soon_ns: Option<Vec<Option<f64>>>,
    /// As it was measured in each state.
    #[serde(skip)]
    measured: Vec<Vec<ExitAfter>>,
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
            (off, most_ns, found.into_iter().map(|one| one.map(|(_, soon)| soon)).collect::<Vec<_>>())
        };
        let (at, (_, most_ns, soon_ns)) =
            (0..N_CEILINGS).map(|i| (i, with(most * STEP.powi(i)))).min_by(|(_, a), (_, b)| a.0.total_cmp(&b.0))?;
        let is_reached = at + 1 < N_CEILINGS;
        Some(Cold {
            most_ns: if is_reached { most_ns } else { most },
            soon_ns: is_reached.then_some(soon_ns),
            measured: states.into_iter().map(<[ExitAfter]>::to_vec).collect(),
        })
    }

    /// What a pause in a state adds to work that loses `most_ns` at most and, by the law, grows cold `sooner` times as soon; empty of a state that was not measured.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Not negative, far below 2^64.
    pub(super) fn rows(&self, state: usize, most_ns: f64, sooner: f64) -> Vec<ExitAfter> {
        let Some(all) = &self.soon_ns else {
            let share = most_ns / self.most_ns;
            let row = |row: &ExitAfter| ExitAfter { ns: (row.ns as f64 * share) as u64, ..*row };
            return self.measured.get(state).into_iter().flatten().map(row).collect();
        };
        let Some(soon_ns) = all.get(state).copied().flatten() else { return Vec::new() };
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
        let soon_ns = cold.soon_ns.clone().unwrap();
        assert!((soon_ns[0].unwrap() / 4e7 - 1.0).abs() < 0.15, "{cold:?}");
        assert!((soon_ns[2].unwrap() / 1e7 - 1.0).abs() < 0.15 && soon_ns[1].is_none(), "{cold:?}");
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
    fn what_never_reached_its_ceiling_is_taken_as_it_was_measured() {
        // As a transaction of `steps` did on a guest: it grows faster than its pauses.
        let rows = |ns: [u64; 5]| {
            let after = |(asleep_ns, ns)| ExitAfter { asleep_ns, ns };
            [300_000, 1_000_000, 4_000_000, 12_000_000, 25_000_000].into_iter().zip(ns).map(after).collect::<Vec<_>>()
        };
        let (polling, asleep) =
            (rows([1_900, 4_850, 19_500, 114_000, 288_000]), rows([4_370, 15_000, 52_600, 226_000, 407_000]));
        let cold = Cold::of([polling.as_slice(), &asleep]).unwrap();
        assert_eq!((cold.most_ns, &cold.soon_ns), (407_000.0, &None));
        // Twice as sensitive work loses twice as much; how soon says nothing here.
        let twice = cold.rows(0, 814_000.0, 5.0);
        assert_eq!((twice.len(), twice[4].asleep_ns, twice[4].ns), (5, 25_000_000, 576_000));
        assert!(cold.rows(7, 814_000.0, 1.0).is_empty());
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

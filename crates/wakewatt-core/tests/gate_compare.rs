//! The gate of `compare`: pairs of runs between which nothing differs but the noise of the machine. At most 5 % of the pairs
//! may be called different, whatever the noise, however few the windows, and where runs differ from hour to hour, as soon as
//! there are several on a side. The table is docs/methods/gate-compare.md; `UPDATE_EXPECT=1` writes it anew.

mod noise;

use noise::{NOISES, Noise, State};
use std::fmt::Write as _;
use wakewatt_core::compare::runs::compare_runs;
use wakewatt_core::evidence::Evidence;
use wakewatt_core::samples::Samples;
use wakewatt_core::samples::experiment::{Better, Verdict};
use wakewatt_core::samples::load::{Ask, Figure, Level, LoadRun};
use wakewatt_core::stats::random::Random;
use wakewatt_core::stats::sessions::{self, NEIGHBOURS};

const N_PAIRS: u64 = 4_000;
/// Of pairs that differ, to show what can be found.
const N_FOUND: u64 = 1_000;
/// What may be called different: 5 %, and half a point for the error of so many pairs.
const LIMIT: f64 = 0.055;
/// Runs an hour apart differ by this much of themselves where it is said so: as blocks of a guest do.
const SESSION_NOISE: f64 = 0.08;
/// Windows before the first one, so that no run begins at a special place.
const N_BEFORE: usize = 20;

/// Runs and windows on each side, and whether runs differ of themselves.
struct Plan {
    n_runs: usize,
    n_windows: usize,
    is_apart: bool,
}

const PLANS: [Plan; 7] = [
    Plan { n_runs: 1, n_windows: 3, is_apart: false },
    Plan { n_runs: 1, n_windows: 4, is_apart: false },
    Plan { n_runs: 1, n_windows: 8, is_apart: false },
    Plan { n_runs: 1, n_windows: 20, is_apart: false },
    Plan { n_runs: 2, n_windows: 4, is_apart: true },
    Plan { n_runs: 3, n_windows: 4, is_apart: true },
    Plan { n_runs: 5, n_windows: 8, is_apart: true },
];

/// Windows of one run: logarithms.
fn run(plan: &Plan, noise: Noise, random: &mut Random) -> Vec<f64> {
    let mut state = State::default();
    (0..N_BEFORE).for_each(|_| _ = noise(random, &mut state));
    // The drift of a machine that warms up is the same in each run; where it stands is not.
    let by_itself = if plan.is_apart { SESSION_NOISE * random.normal() } else { 0.0 };
    (0..plan.n_windows).map(|_| by_itself + noise(random, &mut state)).collect()
}

fn side(plan: &Plan, noise: Noise, random: &mut Random) -> Vec<Vec<f64>> {
    (0..plan.n_runs).map(|_| run(plan, noise, random)).collect()
}

/// Of pairs on nothing the share that is called different, and of pairs that differ by half the share that is found.
fn shares(plan: &Plan, noise: Noise) -> (f64, f64) {
    let called = |by: f64, n_pairs: u64| {
        let pairs = (0..n_pairs).filter(|seed| {
            let mut random = Random::new(*seed);
            let (a, mut b) = (side(plan, noise, &mut random), side(plan, noise, &mut random));
            b.iter_mut().flatten().for_each(|window| *window += by);
            // As `compare` decides; the other test here goes through all of it.
            sessions::shift(&a, &b, NEIGHBOURS).is_some_and(|s| {
                let is_small = s.low >= -1.05f64.ln() && s.high <= 1.05f64.ln();
                !is_small && (s.low > 0.0 || s.high < 0.0)
            })
        });
        pairs.count() as f64 / n_pairs as f64
    };
    (called(0.0, N_PAIRS), called(1.5f64.ln(), N_FOUND))
}

#[test]
fn runs_of_the_same_are_rarely_called_different() {
    let mut page = format!(
        "# The gate of compare: runs of the same, simulated\n\nMade by `UPDATE_EXPECT=1 cargo test --workspace --test gate_compare`; the test fails where more than 5.5 % are called \
         different.\n{N_PAIRS} pairs a row, seeds 0 to {}. *Called*: pairs between which nothing differs, called different. *Found*: of {N_FOUND} pairs that differ by \
         half.\nWhere there are several runs on a side they differ from each other by {SESSION_NOISE} (a standard deviation of logarithms) of themselves.\n\n\
         | runs a side | windows a run | noise | called | found, 1.50 |\n|---|---|---|---|---|\n",
        N_PAIRS - 1
    );
    let mut too_much = Vec::new();
    for plan in &PLANS {
        for (name, noise) in NOISES {
            let (called, found) = shares(plan, noise);
            let line = format!(
                "| {} | {} | {name} | {:.1} % | {:.1} % |",
                plan.n_runs,
                plan.n_windows,
                100.0 * called,
                100.0 * found
            );
            if called > LIMIT {
                too_much.push(line.clone());
            }
            let _ = writeln!(page, "{line}");
        }
    }
    assert!(too_much.is_empty(), "{too_much:#?}");
    // Another machine's logarithms may differ in the last digit; the limit above holds everywhere.
    if cfg!(target_arch = "x86_64") {
        expect_test::expect_file!["../../../docs/methods/gate-compare.md"].assert_eq(&page);
    }
}

/// A load run of one level for each window.
fn evidence(windows: &[f64]) -> Evidence {
    let level = |log: &f64| Level {
        ask: Ask::Run,
        figure: Some(Figure { value: 100.0 * log.exp(), better: Better::Higher }),
        ..Level::default()
    };
    let load =
        windows.iter().map(|log| LoadRun { title: "steps".into(), levels: vec![level(log)], ..LoadRun::default() });
    Evidence::of(Samples { load: load.collect(), ..Samples::default() })
}

/// The same through everything that `compare` does, with run files' own types.
#[test]
fn whole_comparisons_of_the_same_are_rarely_called_different() {
    let plan = Plan { n_runs: 1, n_windows: 6, is_apart: false };
    let (_, noise) = NOISES[3];
    let different = (0..300u64).filter(|seed| {
        let mut random = Random::new(*seed);
        let mut one = || vec![evidence(&run(&plan, noise, &mut random))];
        let found = compare_runs(&one(), &one()).runs.unwrap();
        let figure = found.samples.iter().find(|d| d.id.ends_with("figure")).unwrap();
        matches!(figure.verdict, Verdict::Higher | Verdict::Lower)
    });
    let n = different.count();
    assert!(n <= 24, "{n} of 300: 5 % and two standard errors");
}

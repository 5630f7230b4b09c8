//! Sessions: what may be said of a machine from several times of measuring it, and what of two of them when nothing pairs them.
//!
//! A session holds windows (blocks, rounds, repetitions); the datum is one number each, as its logarithm. Between sessions
//! lie a boot, a neighbour, where memory happened to be: what no number of windows in one session shows. So where there are
//! several sessions, the session is the unit, and its windows only say how well it is known (Kalibera & Jones, "Rigorous
//! benchmarking in reasonable time", ISMM 2013: the interval comes from the topmost level alone, Student's t over session
//! centres; "Quantifying performance changes with effect size confidence intervals", 2012, for the ratio of two).
//!
//! With one session on each side its windows have to stand for all that varies, and they resemble each other. Four windows
//! cannot tell how much, so it is assumed: neighbours correlate by [`NEIGHBOURS`], as in the worst noise of the gate. The
//! windows' variance is then exactly so much too small, and known with so many degrees of freedom fewer (Satterthwaite 1946).

use super::normal::{student_point, student_tail};
use super::paired::hodges_lehmann;
use crate::covers::Covers;
use serde::{Deserialize, Serialize};

/// Fewer windows on either side are too few to speak of how a run varies.
pub const MIN_WINDOWS: usize = 4;
/// How much a window of one session resembles the next one. An assumption: fewer than fifty windows cannot refute it.
pub const NEIGHBOURS: f64 = 0.8;
/// Rounds of an experiment: their order is drawn, and what lasts longer than a round is not in their ratio.
pub const ROUNDS: f64 = 0.0;
/// The error rate of every interval here.
pub const LEVEL: f64 = 0.05;
/// More windows than this add nothing but time.
const MAX_WINDOWS: usize = 200;

/// What second sessions differ by from first ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The estimate.
    pub shift: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Two-sided, of the same t as the interval.
    pub p_value: f64,
    /// These two runs, or the machines behind several.
    pub covers: Covers,
}

/// None with too few windows on a side, or with values that are no numbers. A side of one session beside one of several is
/// taken to vary from session to session as the other does.
pub fn shift(a: &[Vec<f64>], b: &[Vec<f64>], neighbours: f64) -> Option<Shift> {
    let n_windows = |side: &[Vec<f64>]| side.iter().map(Vec::len).sum::<usize>();
    let is_whole = |side: &[Vec<f64>]| side.iter().flatten().all(|v| v.is_finite());
    if n_windows(a).min(n_windows(b)) < MIN_WINDOWS || !is_whole(a) || !is_whole(b) {
        return None;
    }
    let sessions = |side: &[Vec<f64>]| centres(side);
    let (a_centres, b_centres) = (sessions(a), sessions(b));
    let (n_a, n_b) = (a_centres.len() as f64, b_centres.len() as f64);
    if n_a + n_b > 2.0 {
        let freedom = n_a + n_b - 2.0;
        let scatter = (squares(&a_centres) + squares(&b_centres)) / freedom;
        let error = (scatter * (1.0 / n_a + 1.0 / n_b)).sqrt();
        return Some(around(mean(&b_centres) - mean(&a_centres), error, freedom, Covers::Machine));
    }
    let (a, b) = (Alike::of(a.first()?, neighbours), Alike::of(b.first()?, neighbours));
    let variance = a.variance + b.variance;
    // Welch and Satterthwaite; whole degrees of freedom, rounded down.
    let parts = a.variance.powi(2) / a.freedom + b.variance.powi(2) / b.freedom;
    let freedom = if parts > 0.0 { (variance.powi(2) / parts).floor().max(1.0) } else { 1.0 };
    Some(around(b.mean - a.mean, variance.sqrt(), freedom, Covers::Run))
}

fn around(shift: f64, error: f64, freedom: f64, covers: Covers) -> Shift {
    let half = student_point(LEVEL / 2.0, freedom) * error;
    let p_value = match (error > 0.0, shift == 0.0) {
        (true, _) => 2.0 * student_tail(shift.abs() / error, freedom),
        (false, true) => 1.0,
        (false, false) => 0.0,
    };
    Shift { shift, low: shift - half, high: shift + half, p_value, covers }
}

/// The mean of windows that resemble each other, and how well it is known.
struct Alike {
    mean: f64,
    /// Of the mean.
    variance: f64,
    freedom: f64,
}

impl Alike {
    fn of(windows: &[f64], neighbours: f64) -> Alike {
        let windows = &windows[..windows.len().min(MAX_WINDOWS)];
        let n = windows.len() as f64;
        let (own, of_mean, freedom) = correlated(windows.len(), neighbours);
        let scatter = squares(windows) / (n - 1.0);
        Alike { mean: mean(windows), variance: scatter / own * of_mean, freedom }
    }
}

/// Of n windows of variance 1 whose neighbours correlate by rho, those k apart by rho to the k: the variance that their
/// scatter shows, the variance of their mean, and the degrees of freedom of the scatter.
fn correlated(n: usize, rho: f64) -> (f64, f64, f64) {
    let at = |i: usize, j: usize| rho.powi(i32::try_from(i.abs_diff(j)).unwrap_or(i32::MAX));
    let row = |i: usize| (0..n).map(|j| at(i, j)).sum::<f64>() / n as f64;
    let rows: Vec<f64> = (0..n).map(row).collect();
    let of_mean = rows.iter().sum::<f64>() / n as f64;
    let centred = |i: usize, j: usize| at(i, j) - rows[i] - rows[j] + of_mean;
    let trace: f64 = (0..n).map(|i| centred(i, i)).sum();
    let of_square: f64 = (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| centred(i, j).powi(2)).sum();
    (trace / (n as f64 - 1.0), of_mean, trace.powi(2) / of_square)
}

/// What several sessions of the same say together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Joined {
    /// Mean of the sessions' centres, a logarithm.
    pub centre_ln: f64,
    /// Lower end of the 95 % interval over sessions, a logarithm; none with one session.
    pub low_ln: Option<f64>,
    /// Upper end of that interval.
    pub high_ln: Option<f64>,
    /// Standard deviation of logarithms from session to session, beyond what their windows explain; none with one session.
    pub between_ln: Option<f64>,
    /// Standard deviation of logarithms from window to window within a session; none where none has two.
    pub within_ln: Option<f64>,
    /// Of the variance of the sessions' centres, the share that more windows in each would not take away, 0 to 1.
    pub between_share: Option<f64>,
}

/// Joins them: each session is one number, the middle of its windows. None of nothing.
pub fn join(sessions: &[Vec<f64>]) -> Option<Joined> {
    let sessions: Vec<Vec<f64>> =
        sessions.iter().filter(|s| !s.is_empty() && s.iter().all(|v| v.is_finite())).cloned().collect();
    let centres = centres(&sessions);
    let n = centres.len() as f64;
    if centres.is_empty() {
        return None;
    }
    let centre_ln = mean(&centres);
    let freedom = sessions.iter().map(|s| s.len() as f64 - 1.0).sum::<f64>();
    let pooled = (freedom > 0.0).then(|| sessions.iter().map(|s| squares(s)).sum::<f64>() / freedom);
    let mut joined = Joined {
        centre_ln,
        low_ln: None,
        high_ln: None,
        between_ln: None,
        within_ln: pooled.map(f64::sqrt),
        between_share: None,
    };
    if centres.len() > 1 {
        let scatter = squares(&centres) / (n - 1.0);
        let explained = pooled.map_or(0.0, |v| sessions.iter().map(|s| v / s.len() as f64).sum::<f64>() / n);
        let between = (scatter - explained).max(0.0);
        // Two sessions may agree by chance better than their windows know them.
        let found = around(centre_ln, (scatter.max(explained) / n).sqrt(), n - 1.0, Covers::Machine);
        (joined.low_ln, joined.high_ln) = (Some(found.low), Some(found.high));
        joined.between_ln = Some(between.sqrt());
        joined.between_share = (scatter > 0.0).then(|| between / scatter);
    }
    Some(joined)
}

/// One number for each session.
fn centres(sessions: &[Vec<f64>]) -> Vec<f64> {
    sessions.iter().filter(|s| !s.is_empty()).map(|s| hodges_lehmann(&s[..s.len().min(MAX_WINDOWS)])).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|v| (v - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;
    use proptest::prelude::*;

    fn one(values: &[f64]) -> Vec<Vec<f64>> {
        vec![values.to_vec()]
    }

    #[test]
    fn windows_that_do_not_resemble_each_other_are_students_t() {
        let (own, of_mean, freedom) = correlated(6, 0.0);
        assert!((own - 1.0).abs() < 1e-12 && (of_mean - 1.0 / 6.0).abs() < 1e-12 && (freedom - 5.0).abs() < 1e-9);
        let (own, of_mean, freedom) = correlated(4, 0.8);
        assert!((own - 0.301).abs() < 0.001 && (of_mean - 0.774).abs() < 0.001 && freedom < 2.5, "{own} {of_mean}");
    }

    #[test]
    fn a_shift_needs_four_windows_a_side_and_says_what_it_covers() {
        let a = [4.0, 4.01, 4.02, 4.03];
        let b = a.map(|x| x + 0.5);
        let found = shift(&one(&a), &one(&b), NEIGHBOURS).unwrap();
        assert!((found.shift - 0.5).abs() < 1e-9 && found.low > 0.3 && found.high < 0.7, "{found:?}");
        assert!(found.covers == Covers::Run && found.p_value < 0.05);
        assert_eq!(shift(&one(&a[..3]), &one(&b), NEIGHBOURS), None);
        assert_eq!(shift(&one(&[1.0, f64::NAN, 1.0, 1.0]), &one(&b), NEIGHBOURS), None);
        let sessions = |by: f64| vec![vec![4.0 + by, 4.01 + by], vec![4.02 + by, 4.03 + by], vec![4.01 + by]];
        let several = shift(&sessions(0.0), &sessions(0.5), NEIGHBOURS).unwrap();
        assert!(several.covers == Covers::Machine && several.low > 0.45 && several.high < 0.55, "{several:?}");
        // One new run beside three: what the three vary by is all that is known.
        let new = shift(&sessions(0.0), &one(&b), NEIGHBOURS).unwrap();
        assert!(new.covers == Covers::Machine && new.high - new.low > several.high - several.low);
        let same = shift(&one(&[1.0; 4]), &one(&[1.0; 4]), NEIGHBOURS).unwrap();
        assert_eq!((same.p_value, same.low), (1.0, 0.0));
    }

    #[test]
    fn sessions_that_differ_among_themselves_make_a_wide_interval() {
        let mut random = Random::new(5);
        let mut draw = |centre: f64| (0..8).map(|_| centre + 0.01 * random.normal()).collect::<Vec<f64>>();
        let apart = join(&[draw(0.5), draw(0.8), draw(0.65)]).unwrap();
        assert!(apart.between_share.unwrap() > 0.9 && apart.low_ln.unwrap() < 0.4, "{apart:?}");
        let alike = join(&[draw(0.5), draw(0.5), draw(0.5)]).unwrap();
        assert!(alike.low_ln.unwrap() > 0.47 && alike.high_ln.unwrap() < 0.53, "{alike:?}");
        let single = join(&[draw(0.5)]).unwrap();
        assert!(single.low_ln.is_none() && single.within_ln.is_some());
        assert_eq!(join(&[]), None);
        let two = join(&[draw(0.5), draw(0.52)]).unwrap();
        assert!(two.high_ln.unwrap() - two.low_ln.unwrap() > 0.05, "12.7 times the error: {two:?}");
    }

    /// Three sessions of eight rounds; the machine's own centre varies from session to session.
    #[test]
    fn the_joined_interval_holds_the_machine_nineteen_times_in_twenty() {
        let mut random = Random::new(23);
        let n_held = (0..2000).filter(|_| {
            let sessions: Vec<Vec<f64>> = (0..3)
                .map(|_| {
                    let centre = 0.1 * random.normal();
                    (0..8).map(|_| centre + 0.05 * random.normal()).collect()
                })
                .collect();
            join(&sessions).is_some_and(|j| j.low_ln.is_some_and(|l| l <= 0.0) && j.high_ln.is_some_and(|h| h >= 0.0))
        });
        let n_held = n_held.count();
        assert!((1870..=1930).contains(&n_held), "{n_held} of 2000");
    }

    proptest! {
        #[test]
        fn swapping_the_sides_changes_the_sign(a in prop::collection::vec(-2.0f64..2.0, 4..9), b in prop::collection::vec(-2.0f64..2.0, 4..9)) {
            let (there, back) = (shift(&one(&a), &one(&b), NEIGHBOURS).unwrap(), shift(&one(&b), &one(&a), NEIGHBOURS).unwrap());
            prop_assert!((there.shift + back.shift).abs() < 1e-9 && (there.p_value - back.p_value).abs() < 1e-9);
            prop_assert!(there.low <= there.high && (0.0..=1.0).contains(&there.p_value));
            // Interval and test cannot disagree.
            prop_assert_eq!(there.p_value < 0.049, there.p_value < 0.049 && (there.low > 0.0 || there.high < 0.0));
        }
    }
}

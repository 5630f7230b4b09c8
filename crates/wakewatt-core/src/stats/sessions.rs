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
//! The same is assumed of sessions that follow each other within ten minutes: three runs now and three runs next are two moods
//! of a machine, whatever lay between them. Half an hour apart, or with the sides taking turns, they say more.

use super::normal::{student_point, student_tail};
use super::paired::hodges_lehmann;
use crate::arrange::Arrange as _;
use crate::covers::Covers;
use serde::{Deserialize, Serialize};

/// Fewer windows on either side are too few to speak of how a run varies.
pub const MIN_WINDOWS: usize = 4;
/// How much a window of one session resembles the next one. An assumption: fewer than fifty windows cannot refute it.
pub const NEIGHBOURS: f64 = 0.8;
/// Rounds of an experiment: their order is drawn, and what lasts longer than a round is not in their ratio.
pub const ROUNDS: f64 = 0.0;
/// Sessions that begin further apart than this are taken not to resemble each other.
pub const APART_NS: u64 = 600_000_000_000;
/// Places between them.
const FAR: f64 = 1_000.0;
/// The error rate of every interval here.
pub const LEVEL: f64 = 0.05;
/// More windows than this add nothing but time.
const MAX_WINDOWS: usize = 200;

/// What second sessions differ by from first ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Where the first ones lie.
    pub from: f64,
    /// Where the second ones lie, by the same estimator.
    pub to: f64,
    /// The estimate: from one to the other.
    pub shift: f64,
    /// Its standard error.
    pub error: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Two-sided, of the same t as the interval.
    pub p_value: f64,
    /// Degrees of freedom of that t: whole, and at least one.
    pub freedom: f64,
    /// These two runs; of several the machines where the sides took turns, else the hours.
    pub covers: Covers,
}

impl Shift {
    /// The interval of another error rate.
    pub fn at(&self, level: f64) -> (f64, f64) {
        let half = student_point(level / 2.0, self.freedom) * self.error;
        (self.shift - half, self.shift + half)
    }
}

/// One time of measuring.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// One number for each window, a logarithm.
    pub windows: Vec<f64>,
    /// When it began, by any clock that all of them share; none where that is not known.
    pub at_ns: Option<u64>,
}

/// None with too few windows on a side, or with values that are no numbers. A side of one session beside one of several is
/// taken to vary from session to session as the other does.
pub fn shift(a: &[Session], b: &[Session], neighbours: f64) -> Option<Shift> {
    let n_windows = |side: &[Session]| side.iter().map(|s| s.windows.len()).sum::<usize>();
    let is_whole = |side: &[Session]| side.iter().flat_map(|s| &s.windows).all(|v| v.is_finite());
    if n_windows(a).min(n_windows(b)) < MIN_WINDOWS || !is_whole(a) || !is_whole(b) {
        return None;
    }
    if let ([a], [b]) = (a, b) {
        let (a, b) = (Alike::of(&a.windows, neighbours), Alike::of(&b.windows, neighbours));
        let variance = a.variance + b.variance;
        // Welch and Satterthwaite; whole degrees of freedom, rounded down.
        let parts = a.variance.powi(2) / a.freedom + b.variance.powi(2) / b.freedom;
        let freedom = if parts > 0.0 { variance.powi(2) / parts } else { 1.0 };
        return Some(around((a.mean, b.mean), variance.sqrt(), freedom, Covers::Run));
    }
    let (of_a, of_b) = (centres(a), centres(b));
    let (n_a, n_b) = (of_a.len() as f64, of_b.len() as f64);
    let scatter = (squares(&of_a) + squares(&of_b)) / (n_a + n_b - 2.0);
    let all: Vec<&Session> = a.iter().chain(b).filter(|s| !s.windows.is_empty()).collect();
    let weight = |at: usize| if at < of_a.len() { -1.0 / n_a } else { 1.0 / n_b };
    let known = weakest(&places(&all), &|at| usize::from(at >= of_a.len()), &weight);
    Some(around(
        (mean(&of_a), mean(&of_b)),
        (scatter * known.of_contrast / known.own).sqrt(),
        known.freedom,
        if take_turns(&all, of_a.len()) { Covers::Machine } else { Covers::Hours },
    ))
}

/// Do the sides, of which the first has so many sessions, take turns? A machine that drifts from hour to hour moves sides that do not
/// apart. In order of time the side has to change as often as the smaller one has sessions, and twice at least: ABAB, ABBA, and not
/// AABB. What has no time takes no turns.
fn take_turns(all: &[&Session], n_first: usize) -> bool {
    let times: Option<Vec<u64>> = all.iter().map(|s| s.at_ns).collect();
    let Some(times) = times else { return false };
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.arrange_by_key(|at| times[*at]);
    let n_changes = order.windows(2).filter(|pair| (pair[0] < n_first) != (pair[1] < n_first)).count();
    n_changes >= n_first.min(all.len() - n_first).max(2)
}

fn around((from, to): (f64, f64), error: f64, freedom: f64, covers: Covers) -> Shift {
    let shift = to - from;
    let freedom = (freedom + 1e-9).floor().max(1.0);
    let half = student_point(LEVEL / 2.0, freedom) * error;
    let p_value = match (error > 0.0, shift == 0.0) {
        (true, _) => 2.0 * student_tail(shift.abs() / error, freedom),
        (false, true) => 1.0,
        (false, false) => 0.0,
    };
    Shift { from, to, shift, error, low: shift - half, high: shift + half, p_value, freedom, covers }
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
        let n = windows.len();
        let in_a_row: Vec<f64> = (0..n).map(|at| at as f64).collect();
        let known = Correlated::of(&in_a_row, neighbours, &|_| 0, &|_| 1.0 / n as f64);
        let scatter = squares(windows) / (n as f64 - 1.0);
        Alike { mean: mean(windows), variance: scatter / known.own * known.of_contrast, freedom: known.freedom }
    }
}

/// Where sessions lie in time, as places whose neighbours resemble each other; those far apart do not.
fn places(sessions: &[&Session]) -> Vec<f64> {
    let times: Option<Vec<u64>> = sessions.iter().map(|s| s.at_ns).collect();
    let Some(times) = times else { return (0..sessions.len()).map(|at| at as f64).collect() };
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.arrange_by_key(|at| times[*at]);
    let (mut places, mut place) = (vec![0.0; times.len()], 0.0);
    for pair in order.windows(2) {
        place += if times[pair[1]] - times[pair[0]] < APART_NS { 1.0 } else { FAR };
        places[pair[1]] = place;
    }
    places
}

/// Values of variance 1 that lie at places, in groups with a mean each: what their scatter shows, and what a weighted sum of
/// them varies by.
#[derive(Clone, Copy)]
struct Correlated {
    /// The variance that the scatter within the groups shows.
    own: f64,
    /// The variance of the sum.
    of_contrast: f64,
    /// Degrees of freedom of the scatter.
    freedom: f64,
}

impl Correlated {
    /// Those so far apart correlate by rho to that power.
    fn of(places: &[f64], rho: f64, group: &dyn Fn(usize) -> usize, weight: &dyn Fn(usize) -> f64) -> Correlated {
        let n = places.len();
        let at = |i: usize, j: usize| if i == j { 1.0 } else { rho.powf((places[i] - places[j]).abs()) };
        let groups: Vec<usize> = (0..n).map(group).collect();
        let n_groups = groups.iter().max().map_or(0, |last| last + 1);
        let members = |g: usize| (0..n).filter(|i| groups[*i] == g).collect::<Vec<_>>();
        let members: Vec<Vec<usize>> = (0..n_groups).map(members).collect();
        // Means over the group of the row's value, of the column's, and of both.
        let of_row = |i: usize, g: usize| members[g].iter().map(|j| at(i, *j)).sum::<f64>() / members[g].len() as f64;
        let rows: Vec<Vec<f64>> = (0..n).map(|i| (0..n_groups).map(|g| of_row(i, g)).collect()).collect();
        let of_both =
            |g: usize, h: usize| members[g].iter().map(|i| rows[*i][h]).sum::<f64>() / members[g].len() as f64;
        let both: Vec<Vec<f64>> = (0..n_groups).map(|g| (0..n_groups).map(|h| of_both(g, h)).collect()).collect();
        let centred = |i: usize, j: usize| {
            let (g, h) = (groups[i], groups[j]);
            at(i, j) - rows[i][h] - rows[j][g] + both[g][h]
        };
        let pairs = || (0..n).flat_map(|i| (0..n).map(move |j| (i, j)));
        let trace: f64 = (0..n).map(|i| centred(i, i)).sum();
        let of_square: f64 = pairs().map(|(i, j)| centred(i, j).powi(2)).sum();
        Correlated {
            own: trace / (n - n_groups) as f64,
            of_contrast: pairs().map(|(i, j)| weight(i) * at(i, j) * weight(j)).sum(),
            freedom: trace.powi(2) / of_square,
        }
    }
}

/// Of sessions that resemble each other and sessions that do not, what says less: which of both it is, nobody knows.
fn weakest(places: &[f64], group: &dyn Fn(usize) -> usize, weight: &dyn Fn(usize) -> f64) -> Correlated {
    let alike = Correlated::of(places, NEIGHBOURS, group, weight);
    let strangers = Correlated::of(places, 0.0, group, weight);
    let error = |c: &Correlated| c.of_contrast / c.own;
    let more = if error(&alike) > error(&strangers) { alike } else { strangers };
    Correlated { freedom: alike.freedom.min(strangers.freedom), ..more }
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
pub fn join(sessions: &[Session]) -> Option<Joined> {
    let is_whole = |s: &&Session| !s.windows.is_empty() && s.windows.iter().all(|v| v.is_finite());
    let whole: Vec<&Session> = sessions.iter().filter(is_whole).collect();
    let places = places(&whole);
    let sessions: Vec<Session> = whole.into_iter().cloned().collect();
    let centres = centres(&sessions);
    let n = centres.len() as f64;
    if centres.is_empty() {
        return None;
    }
    let centre_ln = mean(&centres);
    let freedom = sessions.iter().map(|s| s.windows.len() as f64 - 1.0).sum::<f64>();
    let pooled = (freedom > 0.0).then(|| sessions.iter().map(|s| squares(&s.windows)).sum::<f64>() / freedom);
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
        let explained = pooled.map_or(0.0, |v| sessions.iter().map(|s| v / s.windows.len() as f64).sum::<f64>() / n);
        let between = (scatter - explained).max(0.0);
        // Two sessions may agree by chance better than their windows know them.
        let known = weakest(&places, &|_| 0, &|_| 1.0 / n);
        let error = (scatter.max(explained) / known.own * known.of_contrast).sqrt();
        let found = around((0.0, centre_ln), error, known.freedom, Covers::Machine);
        (joined.low_ln, joined.high_ln) = (Some(found.low), Some(found.high));
        joined.between_ln = Some(between.sqrt());
        joined.between_share = (scatter > 0.0).then(|| between / scatter);
    }
    Some(joined)
}

/// One number for each session.
fn centres(sessions: &[Session]) -> Vec<f64> {
    let windows = sessions.iter().map(|s| &s.windows).filter(|w| !w.is_empty());
    windows.map(|w| hodges_lehmann(&w[..w.len().min(MAX_WINDOWS)])).collect()
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

    fn one(values: &[f64]) -> Vec<Session> {
        vec![Session { windows: values.to_vec(), at_ns: None }]
    }

    /// Sessions an hour apart.
    fn hourly(all: impl IntoIterator<Item = Vec<f64>>) -> Vec<Session> {
        let hour = |(at, windows): (u64, Vec<f64>)| Session { windows, at_ns: Some(at * 6 * APART_NS) };
        (0..).zip(all).map(hour).collect()
    }

    fn known(n: usize, rho: f64) -> Correlated {
        let places: Vec<f64> = (0..n).map(|at| at as f64).collect();
        Correlated::of(&places, rho, &|_| 0, &|_| 1.0 / n as f64)
    }

    #[test]
    fn windows_that_do_not_resemble_each_other_are_students_t() {
        let six = known(6, 0.0);
        assert!((six.own - 1.0).abs() < 1e-12 && (six.of_contrast - 1.0 / 6.0).abs() < 1e-12);
        assert!((six.freedom - 5.0).abs() < 1e-9);
        let four = known(4, 0.8);
        assert!((four.own - 0.301).abs() < 0.001 && (four.of_contrast - 0.774).abs() < 0.001 && four.freedom < 2.5);
    }

    #[test]
    fn sessions_in_a_row_say_less_than_sessions_hours_apart_or_taking_turns() {
        let draw = |by: f64| [0.0, 0.02, 0.01].map(|x| vec![4.0 + x + by, 4.01 + x + by]);
        let at = |all: [Vec<f64>; 3], times: [u64; 3]| -> Vec<Session> {
            all.into_iter().zip(times).map(|(windows, s)| Session { windows, at_ns: Some(s * 1_000_000_000) }).collect()
        };
        let width = |a: [u64; 3], b: [u64; 3]| {
            let found = shift(&at(draw(0.0), a), &at(draw(0.1), b), NEIGHBOURS).unwrap();
            found.high - found.low
        };
        let in_a_row = width([0, 10, 20], [30, 40, 50]);
        let in_turns = width([0, 20, 40], [10, 30, 50]);
        let apart = width([0, 3600, 7200], [10_000, 14_000, 20_000]);
        assert!(in_a_row > 1.3 * in_turns && in_turns >= apart, "{in_a_row} {in_turns} {apart}");
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
        let sessions = |by: f64, from: u64| {
            let mut all = hourly([vec![4.0 + by, 4.01 + by], vec![4.02 + by, 4.03 + by], vec![4.01 + by]]);
            all.iter_mut().for_each(|s| s.at_ns = s.at_ns.map(|at| at + from * APART_NS));
            all
        };
        let several = shift(&sessions(0.0, 0), &sessions(0.5, 100), NEIGHBOURS).unwrap();
        assert!(several.covers == Covers::Hours && several.low > 0.45 && several.high < 0.55, "{several:?}");
        // One new run beside three: what the three vary by is all that is known.
        let mut later = one(&b);
        later[0].at_ns = Some(900 * APART_NS);
        let new = shift(&sessions(0.0, 0), &later, NEIGHBOURS).unwrap();
        assert!(new.covers == Covers::Hours && new.high - new.low > several.high - several.low);
        let same = shift(&one(&[1.0; 4]), &one(&[1.0; 4]), NEIGHBOURS).unwrap();
        assert_eq!((same.p_value, same.low), (1.0, 0.0));
    }

    /// Only sides that took turns speak of the machine: drift from hour to hour moves others apart.
    #[test]
    fn sides_one_after_the_other_speak_of_their_hours_only() {
        let covers = |order: &str| {
            let side = |letter: char| -> Vec<Session> {
                let hours = order.chars().enumerate().filter(|(_, c)| *c == letter);
                let session = |(at, _): (usize, char)| Session {
                    windows: [1.0, 1.01, 1.02, 1.01].map(|x| x + 0.01 * at as f64).to_vec(),
                    at_ns: Some(at as u64 * 6 * APART_NS),
                };
                hours.map(session).collect()
            };
            shift(&side('A'), &side('B'), NEIGHBOURS).unwrap().covers
        };
        for order in ["ABAB", "ABBA", "BAAB", "ABABAB", "ABBAAB", "BAB", "AABABB"] {
            assert_eq!(covers(order), Covers::Machine, "{order}");
        }
        for order in ["AABB", "BBAA", "AAABBB", "AAABBBB", "AABBAABB", "AAB", "ABB"] {
            assert_eq!(covers(order), Covers::Hours, "{order}");
        }
        let untimed = |by: f64| -> Vec<Session> {
            (0..3).map(|_| Session { windows: vec![by, by + 0.01], at_ns: None }).collect()
        };
        assert_eq!(shift(&untimed(0.0), &untimed(0.1), NEIGHBOURS).unwrap().covers, Covers::Hours);
    }

    #[test]
    fn both_places_and_the_shift_are_one_estimate() {
        let mut random = Random::new(3);
        for n_sessions in [1u64, 3] {
            let mut side = |by: f64| -> Vec<Session> {
                (0..n_sessions)
                    .map(|at| Session {
                        windows: (0..5).map(|_| by + (random.unit() - 0.3).powi(3)).collect(),
                        at_ns: Some(at * 6 * APART_NS),
                    })
                    .collect()
            };
            let found = shift(&side(0.0), &side(0.2), NEIGHBOURS).unwrap();
            assert!((found.to - found.from - found.shift).abs() < 1e-12, "{found:?}");
            let (low, high) = found.at(LEVEL);
            assert!((low - found.low).abs() < 1e-9 && (high - found.high).abs() < 1e-9);
            assert!(found.at(0.001).0 < found.low && found.at(0.001).1 > found.high);
        }
    }

    #[test]
    fn sessions_that_differ_among_themselves_make_a_wide_interval() {
        let mut random = Random::new(5);
        let mut draw = |centre: f64| (0..8).map(|_| centre + 0.01 * random.normal()).collect::<Vec<f64>>();
        let apart = join(&hourly([draw(0.5), draw(0.8), draw(0.65)])).unwrap();
        assert!(apart.between_share.unwrap() > 0.9 && apart.low_ln.unwrap() < 0.4, "{apart:?}");
        let alike = join(&hourly([draw(0.5), draw(0.5), draw(0.5)])).unwrap();
        assert!(alike.low_ln.unwrap() > 0.47 && alike.high_ln.unwrap() < 0.53, "{alike:?}");
        let single = join(&hourly([draw(0.5)])).unwrap();
        assert!(single.low_ln.is_none() && single.within_ln.is_some());
        assert_eq!(join(&[]), None);
        let two = join(&hourly([draw(0.5), draw(0.52)])).unwrap();
        assert!(two.high_ln.unwrap() - two.low_ln.unwrap() > 0.05, "12.7 times the error: {two:?}");
    }

    /// Three sessions of eight rounds; the machine's own centre varies from session to session.
    #[test]
    fn the_joined_interval_holds_the_machine_nineteen_times_in_twenty() {
        let mut random = Random::new(23);
        let n_held = (0..2000).filter(|_| {
            let mut session = || {
                let centre = 0.1 * random.normal();
                (0..8).map(|_| centre + 0.05 * random.normal()).collect::<Vec<f64>>()
            };
            join(&hourly([session(), session(), session()]))
                .is_some_and(|j| j.low_ln.is_some_and(|l| l <= 0.0) && j.high_ln.is_some_and(|h| h >= 0.0))
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

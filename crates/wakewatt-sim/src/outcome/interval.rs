//! Whether a run is long enough for its intervals, and how long it would have to be.
//!
//! Requests that wait behind each other take alike, so a run says only as much as it has stretches that
//! know nothing of each other. The duration is cut into 128 parts, and the correlation of neighbouring
//! parts over all replications (about the mean of all, so that a trend shows) says how many of them that
//! is. At most a quarter: a part is then longer than two and a half times the time over which the past is
//! felt, and a run longer than 340 times. A warm-up that is a tenth of that has forgotten its empty start.
//! Asked of the number of requests in the machines and of the squares of their times, which the long ones
//! decide. Work with a heavy tail needs more requests than correlation shows: the law of the work says how many.

use super::{Counted, Spread};
use crate::engine::{PARTS, Part};
use crate::server::{ArrivalKind, Server};
use serde::{Deserialize, Serialize};
use wakewatt_core::units::rough_ns;

/// Neighbouring parts of a run that is long enough are correlated by this much at most.
const MOST_CORRELATED: f64 = 0.25;
/// The same of a recording. An interval that allows for the recording is that of one replication, three
/// times as wide, and holds with less.
const MOST_CORRELATED_RECORDED: f64 = 0.5;

/// The tail of the work may leave the time of a request uncertain by this much at most.
const MOST_ERROR: f64 = 0.1;

/// Why times have no interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", tag = "reason")]
pub enum NoInterval {
    /// Times of a saturated run grow with its duration.
    Saturated,
    /// There is one replication.
    OneReplication,
    /// The run is too short at this load.
    TooShort {
        /// About the duration that is long enough, in nanoseconds.
        needed_ns: u64,
    },
    /// The recording of arrivals is too short at this load.
    RecordingTooShort {
        /// About the length that is long enough, in nanoseconds.
        needed_ns: u64,
    },
    /// The recording has too few arrivals to resample: every replication has the same.
    Replayed,
}

impl std::fmt::Display for NoInterval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NoInterval::Saturated => f.write_str("more arrives than can be done"),
            NoInterval::OneReplication => f.write_str("one replication has none; give run.replications = 8"),
            NoInterval::TooShort { needed_ns } => {
                write!(
                    f,
                    "the run is too short at this load; give run.duration of about {}",
                    rough_ns(*needed_ns as f64)
                )
            }
            NoInterval::RecordingTooShort { needed_ns } => {
                let needed = rough_ns(*needed_ns as f64);
                write!(f, "the recording of arrivals is too short at this load; about {needed} are needed")
            }
            NoInterval::Replayed => {
                f.write_str("fewer than 2000 recorded arrivals are replayed as they are, not resampled")
            }
        }
    }
}

impl NoInterval {
    /// Of a server's replications; none where times have intervals.
    pub(super) fn of(server: &Server, runs: &[Counted], is_saturated: bool) -> Option<NoInterval> {
        let arrivals = &server.workload.arrivals;
        let is_recorded = arrivals.kind == ArrivalKind::Recorded;
        if is_saturated {
            return Some(NoInterval::Saturated);
        }
        if runs.len() < 2 {
            return Some(NoInterval::OneReplication);
        }
        if is_recorded && !arrivals.is_resampled() {
            return Some(NoInterval::Replayed);
        }
        // What is asked of a change in mid-run is its duration's, and no steady state.
        if server.change.is_some() {
            return None;
        }
        let duration_ns = runs.first().map_or(0, |r| r.ns);
        let most = if is_recorded { MOST_CORRELATED_RECORDED } else { MOST_CORRELATED };
        let least_ns = least_ns(runs, duration_ns, most).max(tail_ns(server, runs, duration_ns));
        // A quarter more, so that another seed finds it long enough, too.
        let needed_ns = least_ns.saturating_add(least_ns / 4);
        if is_recorded && least_ns > recorded_ns(server) {
            return Some(NoInterval::RecordingTooShort { needed_ns });
        }
        (least_ns > duration_ns).then_some(NoInterval::TooShort { needed_ns })
    }
}

impl Spread {
    /// What separates a server's replications.
    pub(super) fn among(server: &Server) -> Spread {
        let arrivals = &server.workload.arrivals;
        match arrivals.kind {
            ArrivalKind::Recorded if !arrivals.is_resampled() => Spread::SameArrivals,
            ArrivalKind::Recorded => {
                let length_ns = recorded_ns(server).max(1) as f64;
                Spread::Recording(server.run.counted().ns() as f64 / length_ns)
            }
            _ => Spread::Independent,
        }
    }
}

/// Length of the recording of arrivals, in nanoseconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Checked: 0 to 1e11 us.
pub(crate) fn recorded_ns(server: &Server) -> u64 {
    server.workload.arrivals.at_us.last().map_or(0, |us| (us * 1e3) as u64)
}

/// The duration at which neighbouring parts are correlated by no more than `most`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Positive, and `as` saturates.
fn least_ns(runs: &[Counted], duration_ns: u64, most: f64) -> u64 {
    let in_system = correlation(runs, |part| part.in_system_ns);
    let long = correlation(runs, |part| part.sum_squares);
    (duration_ns as f64 * lengths(most) / lengths(in_system.max(long))) as u64
}

/// The duration with enough requests to estimate the second moment of the work, and so the wait, to within [`MOST_ERROR`] of the
/// time of a request. Computed from the law: a run that drew no long work would look long enough.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Positive, and `as` saturates.
fn tail_ns(server: &Server, runs: &[Counted], duration_ns: u64) -> u64 {
    let rounds = f64::from(server.workload.rounds.unwrap_or(1));
    let hops = &server.workload.hop;
    let work_ns: f64 = rounds * hops.iter().map(|hop| hop.service.mean_ns()).sum::<f64>();
    let n: f64 = runs.iter().map(|run| run.n_done as f64).sum();
    let mean_ns = runs.iter().map(|run| run.sum_ns).sum::<f64>() / n.max(1.0);
    // The part of a request's time that is not its own work.
    let waited = (1.0 - work_ns / mean_ns.max(1.0)).clamp(0.0, 1.0);
    let variation = hops.iter().map(|hop| hop.service.square_variation()).fold(1.0, f64::max);
    let needed = variation * (waited / MOST_ERROR).powi(2) / rounds;
    (duration_ns as f64 * needed / n.max(1.0)) as u64
}

/// Correlation of neighbouring parts, about the mean of all replications.
fn correlation(runs: &[Counted], of: impl Fn(&Part) -> f64) -> f64 {
    let all: Vec<Vec<f64>> = runs.iter().map(|r| r.parts.iter().map(&of).collect()).collect();
    let n = all.iter().map(Vec::len).sum::<usize>() as f64;
    let mean = all.iter().flatten().sum::<f64>() / n.max(1.0);
    let square: f64 = all.iter().flatten().map(|x| (x - mean).powi(2)).sum();
    let product: f64 = all.iter().flat_map(|x| x.windows(2)).map(|x| (x[0] - mean) * (x[1] - mean)).sum();
    let parts = f64::from(PARTS);
    if square > 0.0 { product / square * parts / (parts - 1.0) } else { 0.0 }
}

/// Length of a part, in times over which the past is felt, at which neighbours are so correlated: of means
/// of a process whose correlation falls exponentially, solved by halving.
fn lengths(correlation: f64) -> f64 {
    let of = |x: f64| (1.0 - (-x).exp()).powi(2) / (2.0 * (x - 1.0 + (-x).exp()));
    let (mut low, mut high) = (1e-3, 20.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if of(middle) > correlation { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_known_correlation_has_its_length_back() {
        for x in [0.1, 0.5, 1.0, 2.7, 6.0] {
            let correlation = (1.0 - f64::exp(-x)).powi(2) / (2.0 * (x - 1.0 + f64::exp(-x)));
            assert!((lengths(correlation) - x).abs() < 1e-6, "{x}");
        }
        assert!((2.6..2.8).contains(&lengths(MOST_CORRELATED)) && lengths(-0.1) > 19.0 && lengths(1.0) < 0.01);
    }
}

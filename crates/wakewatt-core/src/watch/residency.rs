//! Where one CPU's time went in a window: busy, stolen, each idle state, and still asleep.
//!
//! The kernel adds a stay in an idle state when the CPU leaves it. So a CPU that slept through the whole window shows
//! no entry and no time, and one that wakes after ten seconds shows ten seconds at once. Both are put right here: the
//! part of the window that neither ticks nor states explain is *still asleep* (the stay is not booked yet; it also
//! holds what ticks of 10 ms cannot see), and time beyond the window belongs to earlier ones and is cut off the longest
//! stay, told as `late_ns`.

use super::reading::{Reading, Why};

/// Ticks of 10 ms at both ends: below this, more time than the window holds is a rounding error.
const TICK_ERROR_NS: f64 = 20e6;

/// The split.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Residency {
    /// Share of each state, in the order given.
    pub shares: Vec<Reading<f64>>,
    /// Asleep at the end of the window, in a stay that is not booked yet.
    pub asleep_ratio: Reading<f64>,
    /// Time booked in this window that belongs to earlier ones.
    pub late_ns: u64,
}

/// Splits a window. `taken_ratio` is busy and stolen together; `times_ns` what each state's counter gained.
pub fn split(window_ns: u64, taken_ratio: Reading<f64>, times_ns: &[Reading<u64>]) -> Residency {
    let why = times_ns.iter().find_map(Reading::why);
    let mut times: Vec<Option<f64>> = times_ns.iter().map(|t| t.get().map(|ns| ns as f64)).collect();
    let window = window_ns as f64;
    if window_ns == 0 || times.is_empty() {
        let gone = Reading::Missing(why.unwrap_or(if times.is_empty() { Why::Absent } else { Why::First }));
        return Residency { shares: vec![gone; times.len()], asleep_ratio: gone, late_ns: 0 };
    }
    let total: f64 = times.iter().flatten().sum();
    let room = window * (1.0 - taken_ratio.get().unwrap_or(0.0)).clamp(0.0, 1.0);
    let excess = total - room;
    let mut late = 0.0;
    if excess > TICK_ERROR_NS || total > window {
        late = excess.max(total - window).max(0.0);
        let mut left = late;
        // The stay that spans the border is the longest.
        while left > 0.5 {
            let Some(longest) = times.iter_mut().flatten().max_by(|a, b| a.total_cmp(b)).filter(|t| **t > 0.0) else {
                break;
            };
            let cut = left.min(*longest);
            *longest -= cut;
            left -= cut;
        }
    }
    let shares: Vec<Reading<f64>> = times
        .iter()
        .zip(times_ns)
        .map(|(ns, raw)| match ns {
            Some(ns) => Reading::Known((ns / window).clamp(0.0, 1.0)),
            None => Reading::Missing(raw.why().unwrap_or_default()),
        })
        .collect();
    let explained: f64 = shares.iter().filter_map(Reading::get).sum();
    let asleep_ratio = match (why, taken_ratio) {
        (Some(why), _) | (_, Reading::Missing(why)) => Reading::Missing(why),
        (None, Reading::Known(taken)) => Reading::Known((1.0 - taken - explained).clamp(0.0, 1.0)),
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive, and below the counters' own range
    let late_ns = late as u64;
    Residency { shares, asleep_ratio, late_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn shown(taken: f64, times: &[u64]) -> (Vec<u32>, u32, u64) {
        let times: Vec<Reading<u64>> = times.iter().map(|t| Reading::Known(*t)).collect();
        let found = split(S, Reading::Known(taken), &times);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let percent = |r: &Reading<f64>| (r.get().unwrap() * 100.0).round() as u32;
        (found.shares.iter().map(percent).collect(), percent(&found.asleep_ratio), found.late_ns / 1_000_000)
    }

    #[test]
    fn a_cpu_that_never_woke_is_asleep_not_busy_and_not_nothing() {
        assert_eq!(shown(0.0, &[0, 0]), (vec![0, 0], 100, 0));
        assert_eq!(shown(0.25, &[0, S / 2]), (vec![0, 50], 25, 0));
    }

    #[test]
    fn a_long_sleep_booked_at_once_does_not_overflow_the_window() {
        assert_eq!(shown(0.5, &[S / 10, 10 * S]), (vec![10, 40], 0, 9600));
        assert_eq!(shown(0.0, &[10 * S]), (vec![100], 0, 9000));
    }

    #[test]
    fn tick_rounding_is_left_alone() {
        assert_eq!(shown(0.05, &[960_000_000]), (vec![96], 0, 0));
    }

    #[test]
    fn what_is_not_known_stays_unknown() {
        let found = split(S, Reading::Known(0.1), &[Reading::Missing(Why::Offline), Reading::Known(5)]);
        assert_eq!(found.asleep_ratio, Reading::Missing(Why::Offline));
        assert_eq!(found.shares[0], Reading::Missing(Why::Offline));
        assert!(split(0, Reading::Known(0.1), &[Reading::Known(5)]).shares[0].get().is_none());
        assert_eq!(split(S, Reading::Known(0.1), &[]).asleep_ratio, Reading::Missing(Why::Absent));
    }
}

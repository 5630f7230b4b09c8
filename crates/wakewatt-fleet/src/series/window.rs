//! Time in windows of equal length, and windows in pieces that one question may cover.

use crate::table::Window;

/// Prometheus refuses a range of more points a series than this.
pub const MOST_POINTS: usize = 11_000;

/// The windows that end at a moment; the last one ends there, on a whole second.
pub fn windows(until_ms: u64, length_s: u64, n: usize) -> Vec<Window> {
    let (end_s, length_s) = (until_ms / 1000, length_s.max(1));
    let of = |back: u64| {
        let to_s = end_s.saturating_sub(back.saturating_mul(length_s));
        Window { from_ms: to_s.saturating_sub(length_s) * 1000, to_ms: to_s * 1000 }
    };
    (0..n as u64).rev().map(of).filter(|w| w.from_ms < w.to_ms).collect()
}

/// The same in runs of at most so many.
pub(super) fn pieces(n_windows: usize, most: usize) -> Vec<(usize, usize)> {
    let most = most.clamp(1, MOST_POINTS);
    (0..n_windows).step_by(most).map(|from| (from, (from + most).min(n_windows))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_touch_and_end_where_asked() {
        let all = windows(1_000_000_500, 3600, 3);
        assert_eq!(all.last().unwrap().to_ms, 1_000_000_000);
        assert!(all.windows(2).all(|w| w[0].to_ms == w[1].from_ms) && all.len() == 3);
        assert!(windows(0, 60, 5).is_empty() && windows(u64::MAX, u64::MAX, 2).len() <= 2);
        assert_eq!(windows(90_000, 60, 5).len(), 2, "nothing before 1970");
    }

    #[test]
    fn no_piece_is_longer_than_a_store_allows() {
        assert_eq!(pieces(5, 2), [(0, 2), (2, 4), (4, 5)]);
        assert_eq!(pieces(30_000, usize::MAX).len(), 3);
        assert_eq!((pieces(0, 5).len(), pieces(2, 0).len()), (0, 2));
    }
}

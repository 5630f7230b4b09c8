//! The middle of a list, with its doubt: for lists too short or too fine for a histogram.
//!
//! The interval is the distribution-free one of [`crate::distribution`]: the order statistics at n/2 ± 0.98 sqrt(n)
//! bracket the median with 95 % (Hahn & Meeker, Statistical Intervals, ch. 5). Below six values no such pair exists: what stands
//! for it is the range, which holds the median with 1 - 2 / 2^n (five values: 94 %, three: 75 %), and is called the range.

/// With fewer values the interval is their range and has no 95 %.
pub const MIN_FOR_INTERVAL: usize = 6;

/// A median with its 95 % interval, or the range of fewer than six values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Middle {
    /// The median.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The smallest value.
    pub least: f64,
    /// Are the ends those of the list, because there are too few values for 95 %?
    pub is_range: bool,
}

/// The middle of some values, none if there are none. Sorts them.
pub fn middle(values: &mut [f64]) -> Option<Middle> {
    values.sort_by(f64::total_cmp);
    let (n, least) = (values.len(), *values.first()?);
    let half = 0.98 * (n as f64).sqrt();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped to the list
    let at = |rank: f64| values[(rank.clamp(0.0, n as f64 - 1.0)) as usize];
    let median = if n % 2 == 0 { (values[n / 2 - 1] + values[n / 2]) / 2.0 } else { values[n / 2] };
    let (low, high) = (at((n as f64 / 2.0 - half).floor()), at((n as f64 / 2.0 + half).ceil()));
    Some(Middle { median, low, high, least, is_range: n < MIN_FOR_INTERVAL })
}

/// The median alone.
pub fn median(values: &mut [f64]) -> Option<f64> {
    middle(values).map(|m| m.median)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::Random;

    #[test]
    fn the_interval_covers_the_true_median_as_often_as_it_says() {
        assert_eq!(middle(&mut []), None);
        assert_eq!(middle(&mut [3.0]).map(|m| (m.low, m.median, m.high)), Some((3.0, 3.0, 3.0)));
        let of = |n: u8| middle(&mut (0..n).map(f64::from).collect::<Vec<_>>()).map(|m| (m.low, m.high, m.is_range));
        assert_eq!((of(5), of(6)), (Some((0.0, 4.0, true)), Some((0.0, 5.0, false))), "1 - 2 / 2^6 is above 95 %");
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), Some(2.5));
        let mut random = Random::new(5);
        let covers = (0..2000).filter(|_| {
            let mut values: Vec<f64> = (0..99).map(|_| random.normal()).collect();
            middle(&mut values).is_some_and(|m| m.low <= 0.0 && m.high >= 0.0)
        });
        assert!((1880..=1960).contains(&covers.count()), "95 % of 2000");
    }
}

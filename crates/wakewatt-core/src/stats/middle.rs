//! The middle of a list, with its doubt: for lists too short or too fine for a histogram.
//!
//! The interval is the distribution-free one of [`crate::distribution`]: the order statistics at n/2 ± 0.98 sqrt(n)
//! bracket the median with 95 % (Hahn & Meeker, Statistical Intervals, ch. 5). Below six values no such pair exists, and
//! the ends of the list stand for it.

/// A median with its 95 % interval.
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
}

/// The middle of some values, none if there are none. Sorts them.
pub fn middle(values: &mut [f64]) -> Option<Middle> {
    values.sort_by(f64::total_cmp);
    let (n, least) = (values.len(), *values.first()?);
    let half = 0.98 * (n as f64).sqrt();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped to the list
    let at = |rank: f64| values[(rank.clamp(0.0, n as f64 - 1.0)) as usize];
    let median = if n % 2 == 0 { (values[n / 2 - 1] + values[n / 2]) / 2.0 } else { values[n / 2] };
    Some(Middle { median, low: at((n as f64 / 2.0 - half).floor()), high: at((n as f64 / 2.0 + half).ceil()), least })
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
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), Some(2.5));
        let mut random = Random::new(5);
        let covers = (0..2000).filter(|_| {
            let mut values: Vec<f64> = (0..99).map(|_| random.normal()).collect();
            middle(&mut values).is_some_and(|m| m.low <= 0.0 && m.high >= 0.0)
        });
        assert!((1880..=1960).contains(&covers.count()), "95 % of 2000");
    }
}

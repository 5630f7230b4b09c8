//! A logarithmic axis and its ticks: 1, 2, 5 times powers of ten, thinned to what the width can carry.

/// Values from `low` to `high` on pixels from `from` to `to`.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogAxis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogAxis {
    /// Around these values with a little air; `at_least` is the smallest factor the axis spans.
    pub(super) fn around(values: impl IntoIterator<Item = f64>, at_least: f64, from: f64, to: f64) -> LogAxis {
        let values: Vec<f64> = values.into_iter().filter(|v| v.is_finite() && *v > 0.0).collect();
        let mut low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let mut high = values.iter().copied().fold(0.0, f64::max);
        if !low.is_finite() {
            (low, high) = (0.5, 2.0);
        }
        let air = (high / low).powf(0.06).max(1.06);
        (low, high) = (low / air, high * air);
        let missing = (at_least / (high / low)).max(1.0).sqrt();
        LogAxis { low: low / missing, high: high * missing, from, to }
    }

    /// The pixel of a value; outside values stay at the edge.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value.max(1e-300) / self.low).ln() / (self.high / self.low).ln();
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values inside the axis, at most about `n`.
    pub(super) fn ticks(&self, n: usize) -> Vec<f64> {
        let exponents = |f: f64| f.log10().floor();
        let (first, last) = (exponents(self.low), exponents(self.high));
        let make = |steps: &[f64]| -> Vec<f64> {
            let mut out = Vec::new();
            let mut e = first;
            while e <= last {
                out.extend(steps.iter().map(|s| s * 10f64.powf(e)).filter(|v| *v >= self.low && *v <= self.high));
                e += 1.0;
            }
            out
        };
        let candidates =
            [make(&[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0]), make(&[1.0, 2.0, 5.0]), make(&[1.0, 3.0]), make(&[1.0])];
        let fitting = candidates.iter().find(|c| c.len() <= n);
        fitting.or(candidates.last()).cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_inside_and_few() {
        let axis = LogAxis::around([6_000.0, 60_000.0], 2.0, 0.0, 100.0);
        let ticks: Vec<f64> = axis.ticks(6).iter().map(|t| t.round()).collect();
        assert_eq!(ticks, [10_000.0, 20_000.0, 50_000.0]);
        assert!(axis.at(6_000.0) < axis.at(60_000.0) && axis.at(1.0) >= 0.0 && axis.at(1e12) <= 100.0);
        assert!(LogAxis::around([], 2.0, 0.0, 1.0).at(1.0).is_finite());
    }
}

//! Axes and their ticks, thinned to what the width can carry: logarithmic ones (1, 2, 5 times powers of ten, or powers of two
//! for sizes of memory) and linear ones.

use super::super::data::Show;

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
        let values = values.into_iter().filter(|v| v.is_finite() && *v > 0.0);
        let values: Vec<f64> = values.map(|v| v.clamp(1.0 / MOST_LOG, MOST_LOG)).collect();
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

    /// Powers of two inside the axis, at most `n`.
    fn binary_ticks(&self, n: usize) -> Vec<f64> {
        let (first, last) = (self.low.log2().ceil(), self.high.log2().floor());
        let step = ((last - first + 1.0) / n.max(1) as f64).ceil().max(1.0);
        let count = if step > 1.0 { n } else { n.min(64) };
        (0..=count).map(|i| first + step * i as f64).filter(|e| *e <= last).map(f64::exp2).collect()
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
        thin(fitting.or(candidates.last()).cloned().unwrap_or_default(), n)
    }
}

/// Every k-th, so that at most `n` stay.
fn thin(ticks: Vec<f64>, n: usize) -> Vec<f64> {
    let every = ticks.len().div_ceil(n.max(1)).max(1);
    ticks.into_iter().step_by(every).collect()
}

/// The same for a logarithmic axis: ratios of larger ones would overflow.
const MOST_LOG: f64 = 1e100;
/// Beyond this a value is drawn at the edge: differences of larger ones would overflow.
const MOST: f64 = 1e300;

/// Values from `low` to `high`, evenly.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinearAxis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LinearAxis {
    /// Around these values; with `has_zero` it begins there.
    pub(super) fn around(values: &[f64], has_zero: bool, from: f64, to: f64) -> LinearAxis {
        let values = values.iter().filter(|v| v.is_finite()).map(|v| v.clamp(-MOST, MOST));
        let mut low = values.clone().fold(f64::INFINITY, f64::min);
        let mut high = values.fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if has_zero {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        if high - low < 1e-9 * high.abs().max(1e-280) {
            let half = (high.abs() * 0.5).max(1e-9);
            (low, high) = (if has_zero && low >= 0.0 { 0.0 } else { low - half }, high + half);
        }
        let air = (high - low) * 0.04;
        let low = if has_zero && low == 0.0 { 0.0 } else { low - air };
        LinearAxis { low, high: high + air, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        let share = (value.clamp(-MOST, MOST) - self.low) / (self.high - self.low);
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    fn ticks(&self, n: usize) -> Vec<f64> {
        let span = self.high - self.low;
        let least = span / n.max(1) as f64;
        let ten = 10f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|s| s * ten).into_iter().find(|s| *s >= least).unwrap_or(span);
        let first = (self.low / step).ceil();
        let ticks = (0..=n + 1).map(|i| (first + i as f64) * step);
        ticks.filter(|t| t.is_finite() && *t >= self.low - step * 1e-6 && *t <= self.high).collect()
    }
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::report) enum Scale {
    /// Linear, from zero.
    Zero,
    /// Linear, around the values.
    Fit,
    /// Logarithmic.
    Log,
    /// Logarithmic with powers of two.
    Binary,
}

impl Scale {
    /// Can the value be drawn?
    pub(super) fn has(self, value: f64) -> bool {
        value.is_finite() && (matches!(self, Scale::Zero | Scale::Fit) || value > 0.0)
    }
}

/// What an axis is about.
#[derive(Clone, Debug)]
pub(in crate::report) struct AxisSpec {
    /// What stands at its end; the unit is in the ticks.
    pub(in crate::report) title: String,
    /// Its unit.
    pub(in crate::report) show: Show,
    /// Its division.
    pub(in crate::report) scale: Scale,
}

impl AxisSpec {
    pub(in crate::report) fn new(title: impl Into<String>, show: Show, scale: Scale) -> AxisSpec {
        AxisSpec { title: title.into(), show, scale }
    }

    /// The axis for these values.
    pub(super) fn around(&self, values: &[f64], from: f64, to: f64) -> Axis {
        match self.scale {
            Scale::Zero | Scale::Fit => Axis::Linear(LinearAxis::around(values, self.scale == Scale::Zero, from, to)),
            Scale::Log => Axis::Log(LogAxis::around(values.iter().copied(), 2.0, from, to), false),
            Scale::Binary => Axis::Log(LogAxis::around(values.iter().copied(), 2.0, from, to), true),
        }
    }
}

/// Either.
#[derive(Clone, Copy, Debug)]
pub(super) enum Axis {
    /// Linear.
    Linear(LinearAxis),
    /// Logarithmic; with powers of two?
    Log(LogAxis, bool),
}

impl Axis {
    pub(super) fn at(&self, value: f64) -> f64 {
        match self {
            Axis::Linear(axis) => axis.at(value),
            Axis::Log(axis, _) => axis.at(value),
        }
    }

    pub(super) fn ticks(&self, n: usize) -> Vec<f64> {
        match self {
            Axis::Linear(axis) => axis.ticks(n),
            Axis::Log(axis, true) => axis.binary_ticks(n),
            Axis::Log(axis, false) => axis.ticks(n),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_and_binary_ticks_are_round_too() {
        let axis = LinearAxis::around(&[0.0, 437.0], true, 0.0, 100.0);
        assert_eq!(axis.ticks(5), [0.0, 100.0, 200.0, 300.0, 400.0]);
        assert_eq!(
            (axis.at(0.0), axis.at(f64::NAN).is_nan()),
            (0.0, true),
            "not-a-number is the caller's to leave out"
        );
        let sizes = AxisSpec::new("", Show::Bytes, Scale::Binary).around(&[4096.0, 268_435_456.0], 0.0, 100.0);
        assert_eq!(sizes.ticks(6).iter().map(|t| t.log2()).collect::<Vec<_>>(), [12.0, 15.0, 18.0, 21.0, 24.0, 27.0]);
        for values in [vec![], vec![5.0], vec![1e308, -1e308], vec![f64::NAN, f64::INFINITY], vec![0.0; 9]] {
            for has_zero in [true, false] {
                let axis = LinearAxis::around(&values, has_zero, 0.0, 100.0);
                assert!(axis.at(3.0).is_finite() && axis.ticks(5).len() <= 7, "{values:?}");
            }
        }
        let wide = LogAxis::around([1e-300, 1e300], 2.0, 0.0, 1.0);
        assert!(wide.ticks(6).len() <= 6 && wide.binary_ticks(6).len() <= 7);
    }

    #[test]
    fn ticks_are_round_inside_and_few() {
        let axis = LogAxis::around([6_000.0, 60_000.0], 2.0, 0.0, 100.0);
        let ticks: Vec<f64> = axis.ticks(6).iter().map(|t| t.round()).collect();
        assert_eq!(ticks, [10_000.0, 20_000.0, 50_000.0]);
        assert!(axis.at(6_000.0) < axis.at(60_000.0) && axis.at(1.0) >= 0.0 && axis.at(1e12) <= 100.0);
        assert!(LogAxis::around([], 2.0, 0.0, 1.0).at(1.0).is_finite());
    }
}

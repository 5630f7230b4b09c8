//! A number with the interval that replications give it.

use serde::{Deserialize, Serialize};
use wakewatt_core::stats::normal::student_point;

/// A number of all replications with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The estimate, in the unit of its field.
    pub value: f64,
    /// Half the width of the 95 % interval; none of fewer than two replications.
    pub half: Option<f64>,
}

/// What separates the values of replications.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Spread {
    /// Random numbers of their own.
    Independent,
    /// Resampling of one recording, which is this many times shorter than a replication: it may itself be
    /// far from what it was taken of.
    Recording(f64),
    /// All have the same arrivals.
    SameArrivals,
}

impl Spread {
    /// The mean of values of replications; those that are no number are left out.
    pub(super) fn of(self, values: impl IntoIterator<Item = f64>) -> Estimate {
        let values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        if values.is_empty() {
            return Estimate::default();
        }
        self.about(values.iter().sum::<f64>() / values.len() as f64, &values, 0.025)
    }

    /// A time of all replications together, with an interval from each one's distance to it. Times of a
    /// queue have long tails on the right, where Student's t at 95 % holds in less than that; so it is
    /// taken at 97.5 %, and at 99 % for quantiles within the tail.
    pub(super) fn time(self, together: f64, each: &[f64], is_tail: bool) -> Estimate {
        self.about(together, each, if is_tail { 0.005 } else { 0.0125 })
    }

    fn about(self, value: f64, each: &[f64], tail: f64) -> Estimate {
        let n = each.len() as f64;
        let variance = each.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (n - 1.0);
        let of_mean = match self {
            Spread::Independent => Some(1.0 / n),
            Spread::Recording(ratio) => Some(1.0 / n + ratio),
            Spread::SameArrivals => None,
        };
        let half =
            of_mean.filter(|_| each.len() > 1).map(|part| student_point(tail, n - 1.0) * (variance * part).sqrt());
        Estimate { value, half }
    }
}

impl Estimate {
    /// Lower end of the interval.
    pub fn low(&self) -> f64 {
        self.value - self.half.unwrap_or(0.0)
    }

    /// Upper end.
    pub fn high(&self) -> f64 {
        self.value + self.half.unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_students() {
        let e = Spread::Independent.of([1.0, 2.0, 3.0]);
        // t of 2 degrees of freedom is 4.303; the deviation is 1.
        assert!((e.value - 2.0).abs() < 1e-12 && (e.half.unwrap() - 4.303 / 3f64.sqrt()).abs() < 1e-3, "{e:?}");
        // A recording as long as a replication: its own doubt is that of one.
        let wide = Spread::Recording(1.0).of([1.0, 2.0, 3.0]).half.unwrap();
        assert!((wide / e.half.unwrap() - 2.0).abs() < 1e-9, "{wide}");
        assert_eq!(Spread::SameArrivals.of([1.0, 3.0]), Estimate { value: 2.0, half: None });
        assert_eq!(Spread::Independent.of([5.0]), Estimate { value: 5.0, half: None });
        assert_eq!(Spread::Independent.of([f64::NAN]), Estimate::default());
    }
}

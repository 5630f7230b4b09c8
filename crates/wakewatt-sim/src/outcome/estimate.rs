//! A number with the interval that replications give it.

use serde::{Deserialize, Serialize};
use wakewatt_core::stats::normal::student_point;

/// A mean over replications with its 95 % interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Estimate {
    /// The mean of the replications' values.
    pub value: f64,
    /// Half the width of the 95 % interval; none of fewer than two replications.
    pub half: Option<f64>,
}

impl Estimate {
    /// Of values of independent replications; those that are no number are left out.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Estimate {
        let values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        let n = values.len() as f64;
        if values.is_empty() {
            return Estimate::default();
        }
        let value = values.iter().sum::<f64>() / n;
        let half = (values.len() > 1).then(|| {
            let variance = values.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (n - 1.0);
            student_point(0.025, n - 1.0) * (variance / n).sqrt()
        });
        Estimate { value, half }
    }

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
        let e = Estimate::of([1.0, 2.0, 3.0]);
        // t of 2 degrees of freedom is 4.303; the deviation is 1.
        assert!((e.value - 2.0).abs() < 1e-12 && (e.half.unwrap() - 4.303 / 3f64.sqrt()).abs() < 1e-3, "{e:?}");
        assert_eq!(Estimate::of([5.0]), Estimate { value: 5.0, half: None });
        assert_eq!(Estimate::of([f64::NAN]), Estimate::default());
    }
}

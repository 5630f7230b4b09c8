//! The false discovery rate (Benjamini & Hochberg 1995): of what is called odd, at most this share is called so by chance.

use wakewatt_core::arrange::Arrange as _;

/// The smallest rate at which each would be called, in the order given. What is no number is never called.
pub(super) fn adjusted(p_values: &[f64]) -> Vec<f64> {
    let n = p_values.len();
    let p = |i: usize| if p_values[i].is_finite() { p_values[i].clamp(0.0, 1.0) } else { 1.0 };
    let mut order: Vec<usize> = (0..n).collect();
    order.arrange_by(|a, b| p(*b).total_cmp(&p(*a)));
    let mut out = vec![1.0; n];
    let mut least: f64 = 1.0;
    for (below, i) in order.into_iter().enumerate() {
        least = least.min(p(i) * n as f64 / (n - below) as f64);
        out[i] = least;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of their paper's table 1: 15 p-values, four discoveries at 5 %.
    #[test]
    fn as_in_the_paper() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
            0.7590, 1.0,
        ];
        assert_eq!(adjusted(&p).iter().filter(|q| **q <= 0.05).count(), 4);
        assert_eq!(adjusted(&[f64::NAN, 0.01]), [1.0, 0.02]);
        assert!(adjusted(&[]).is_empty());
    }
}

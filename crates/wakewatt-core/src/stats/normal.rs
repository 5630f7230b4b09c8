//! The normal curve's tails and Student's, for what is not counted exactly.

/// P(Z <= z), by the complementary error function's rational form (Abramowitz & Stegun 26.2.17, error below 7.5e-8).
pub fn below(z: f64) -> f64 {
    if z > 0.0 { 1.0 - above(z) } else { above(-z) }
}

/// P(Z > z) for z of 0 and more.
pub(super) fn above(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let poly = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_53];
    let sum = poly.iter().fold(0.0, |acc, c| (acc + c) * t);
    (sum * (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt()).max(0.0)
}

/// The t above which this much of the distribution lies.
pub fn student_point(tail: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..90 {
        let mid = (low + high) / 2.0;
        if student_tail(mid, freedom) > tail { low = mid } else { high = mid }
    }
    low
}

/// P(T > t), by the finite series for whole degrees of freedom (Abramowitz & Stegun 26.7.3 and 26.7.4).
pub fn student_tail(t: f64, freedom: f64) -> f64 {
    let theta = (t / freedom.sqrt()).atan();
    let (sin, cos) = theta.sin_cos();
    let is_odd = freedom % 2.0 == 1.0;
    let mut k = if is_odd { 3.0 } else { 2.0 };
    let mut term = if is_odd { cos } else { 1.0 };
    let mut sum = if is_odd && freedom < 2.0 { 0.0 } else { term };
    while k < freedom {
        term *= cos * cos * (k - 1.0) / k;
        sum += term;
        k += 2.0;
    }
    let inside = if is_odd { (theta + sin * sum) * std::f64::consts::FRAC_2_PI } else { sin * sum };
    (1.0 - inside) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_match_the_tables() {
        for (t, freedom) in [(2.570_58, 5.0), (2.262_16, 9.0), (2.446_91, 6.0), (12.706_2, 1.0)] {
            assert!((student_tail(t, freedom) - 0.025).abs() < 1e-5, "{t}");
        }
        assert!((above(1.959_964) - 0.025).abs() < 1e-6 && (below(1.959_964) - 0.975).abs() < 1e-6);
        // Far out, as the smallest of seventy p-values is asked for.
        for (tail, freedom, t) in [(0.000_05, 1.0, 6_366.2), (0.000_35, 2.0, 37.78), (0.000_5, 9.0, 4.781)] {
            assert!((student_point(tail, freedom) / t - 1.0).abs() < 1e-3, "{tail}");
        }
        assert!((below(-1.0) - 0.158_655).abs() < 1e-6);
    }
}

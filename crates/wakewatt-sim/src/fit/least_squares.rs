//! Least squares of a function that only a simulation knows: Levenberg's damped Gauss-Newton steps with differences for derivatives.
//!
//! Levenberg 1944, Marquardt 1963. Parameters are never negative: a step that would go below zero stops there. Steps of 5 % for the derivatives, because
//! a simulated median is a step function at small ones; the same seeds are used throughout, so differences are of the parameters alone.

/// Steps at most.
const STEPS: usize = 12;
/// A parameter moves by so much for its derivative.
const PART: f64 = 0.05;
/// Below this a parameter moves as if it were this.
const LEAST: f64 = 500.0;
/// Gains below this part end it.
const ENOUGH: f64 = 1e-4;

fn squares(r: &[f64]) -> f64 {
    r.iter().map(|x| x * x).sum()
}

/// The parameters with the least squares found from here.
pub(super) fn least<E>(from: &[f64], residuals: impl Fn(&[f64]) -> Result<Vec<f64>, E>) -> Result<Vec<f64>, E> {
    let mut theta = from.to_vec();
    let mut now = residuals(&theta)?;
    let mut damping = 1e-2;
    for _ in 0..STEPS {
        let mut columns = Vec::with_capacity(theta.len());
        for i in 0..theta.len() {
            let step = PART * theta[i].max(LEAST);
            let mut moved = theta.clone();
            moved[i] += step;
            let there = residuals(&moved)?;
            columns.push(there.iter().zip(&now).map(|(a, b)| (a - b) / step).collect::<Vec<f64>>());
        }
        let (before, mut is_better) = (squares(&now), false);
        // More damping until a step gains something.
        for _ in 0..6 {
            let Some(step) = step(&columns, &now, damping) else { break };
            let tried: Vec<f64> = theta.iter().zip(&step).map(|(t, s)| (t + s).max(0.0)).collect();
            let there = residuals(&tried)?;
            if squares(&there) < before {
                (theta, now, is_better) = (tried, there, true);
                damping = (damping / 5.0).max(1e-9);
                break;
            }
            damping *= 5.0;
        }
        if !is_better || before - squares(&now) < ENOUGH * before {
            break;
        }
    }
    Ok(theta)
}

/// Solves (J'J + damping diag(J'J)) x = -J'r; none where nothing depends on anything.
fn step(columns: &[Vec<f64>], r: &[f64], damping: f64) -> Option<Vec<f64>> {
    let n = columns.len();
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(x, y)| x * y).sum::<f64>();
    let scale = columns.iter().map(|c| product(c, c)).fold(0.0, f64::max);
    if scale <= 0.0 || !scale.is_finite() {
        return None;
    }
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            let mut row: Vec<f64> = (0..n).map(|j| product(&columns[i], &columns[j])).collect();
            // A parameter that nothing depends on stays where it is.
            row[i] += damping * row[i] + 1e-12 * scale;
            row.push(-product(&columns[i], r));
            row
        })
        .collect();
    for i in 0..n {
        let pivot = (i..n).max_by(|a, b| rows[*a][i].abs().total_cmp(&rows[*b][i].abs()))?;
        rows.swap(i, pivot);
        if rows[i][i] == 0.0 {
            return None;
        }
        let top = rows[i].clone();
        for row in &mut rows[i + 1..] {
            let factor = row[i] / top[i];
            row.iter_mut().zip(&top).for_each(|(x, above)| *x -= factor * above);
        }
    }
    let mut x = vec![0.0; n];
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| rows[i][j] * x[j]).sum();
        x[i] = (rows[i][n] - known) / rows[i][i];
    }
    x.iter().all(|v| v.is_finite()).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_gets_its_numbers_back() {
        let truth = [90_000.0, 4_000.0, 20_000.0];
        let curve = |t: &[f64], x: f64| t[0] / (1.0 - 0.8 * x) + t[1] * (1.0 - x) + t[2] * x * x;
        let points: Vec<f64> = (1..9).map(|i| f64::from(i) / 10.0).collect();
        let residuals =
            |t: &[f64]| Ok::<_, ()>(points.iter().map(|x| curve(t, *x) / curve(&truth, *x) - 1.0).collect());
        let found = least(&[50_000.0, 10_000.0, 1_000.0], residuals).unwrap();
        for (found, truth) in found.iter().zip(truth) {
            assert!((found / truth - 1.0).abs() < 0.02, "{found} {truth}");
        }
    }

    #[test]
    fn nothing_goes_below_zero_and_nothing_moves_what_does_not_matter() {
        let residuals = |t: &[f64]| Ok::<_, ()>(vec![(t[0] + 5_000.0) / 1_000.0]);
        let found = least(&[2_000.0, 700.0], residuals).unwrap();
        assert!(found[0].abs() < 1e-6 && (found[1] - 700.0).abs() < 1e-6, "{found:?}");
        assert_eq!(least(&[1.0], |_| Err::<Vec<f64>, _>("no")), Err("no"));
        let flat = least(&[1.0, 2.0], |_| Ok::<_, ()>(vec![1.0, 1.0])).unwrap();
        assert_eq!(flat, [1.0, 2.0]);
    }
}

//! A line through many classes: one slope of load, one height per class, and outliers that pull with a bounded force.
//!
//! Iteratively reweighted least squares. With one slope and a height per class the normal equations fall apart: the slope
//! is the weighted covariance within classes over the weighted variance, a height the weighted mean of what is left. So a
//! round is one pass, and a million observations are no matrix. The first round takes classes' medians for heights: from
//! there a class of which a third is odd still finds its many.

use super::median::median_of;

/// Beyond this many scales an observation pulls no harder (Huber's k for 95 % efficiency).
const BEND: f64 = 1.345;
const MOST_ROUNDS: usize = 30;
/// A slope is asked for only where the load within classes differs by this at least (standard deviation of its logarithm).
const LEAST_LOAD_SPREAD: f64 = 0.02;

/// One node in one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Which node.
    pub node: usize,
    /// Its hardware class.
    pub class: usize,
    /// Which window of time.
    pub window: usize,
    /// Logarithm of the load.
    pub load: f64,
    /// Logarithm of the cost.
    pub cost: f64,
}

/// What cost a class has at a load.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Change of the cost's logarithm with the load's: -0.3 says that twice the load costs 19 % less per piece.
    pub slope: f64,
    /// Logarithm of the cost at load 0, by class.
    pub heights: Vec<f64>,
}

impl Fit {
    /// What an observation lies above its class at its load.
    pub fn residual(&self, o: &Observation) -> f64 {
        o.cost - self.slope * o.load - self.heights.get(o.class).copied().unwrap_or(0.0)
    }
}

/// Weighted sums of a class.
#[derive(Clone, Copy, Default)]
struct Sums {
    w: f64,
    wx: f64,
    wy: f64,
}

/// Fits; an observation that is not finite is not asked. Empty without observations.
pub(super) fn fit(all: &[Observation], n_classes: usize) -> Fit {
    let mut fit = Fit { slope: 0.0, heights: medians(all, n_classes) };
    let mut weights = vec![1.0; all.len()];
    let has_slope = load_spread(all, n_classes) >= LEAST_LOAD_SPREAD;
    let mut left: Vec<f64> = Vec::with_capacity(all.len());
    for _ in 0..MOST_ROUNDS {
        left.clear();
        left.extend(all.iter().map(|o| fit.residual(o).abs()));
        let Some(scale) = median_of(&mut left.clone()).map(|m| (m * 1.4826).max(1e-9)) else { break };
        for (weight, off) in weights.iter_mut().zip(&left) {
            *weight = if *off <= BEND * scale { 1.0 } else { BEND * scale / off };
        }
        let next = weighted(all, &weights, n_classes, has_slope);
        let moved = next.heights.iter().zip(&fit.heights).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        let is_still = moved < 1e-7 && (next.slope - fit.slope).abs() < 1e-7;
        fit = next;
        if is_still {
            break;
        }
    }
    fit
}

fn medians(all: &[Observation], n_classes: usize) -> Vec<f64> {
    let mut by_class: Vec<Vec<f64>> = vec![Vec::new(); n_classes];
    for o in all {
        if let Some(class) = by_class.get_mut(o.class) {
            class.push(o.cost);
        }
    }
    by_class.iter_mut().map(|costs| median_of(costs).unwrap_or(0.0)).collect()
}

/// Weighted means of every class.
fn sums(all: &[Observation], weights: &[f64], n_classes: usize) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); n_classes];
    for (o, w) in all.iter().zip(weights) {
        if let Some(s) = sums.get_mut(o.class) {
            s.w += w;
            s.wx += w * o.load;
            s.wy += w * o.cost;
        }
    }
    sums
}

fn weighted(all: &[Observation], weights: &[f64], n_classes: usize, has_slope: bool) -> Fit {
    let sums = sums(all, weights, n_classes);
    let (mut covariance, mut variance) = (0.0, 0.0);
    for (o, w) in all.iter().zip(weights) {
        let Some(s) = sums.get(o.class).filter(|s| s.w > 0.0) else { continue };
        let x = o.load - s.wx / s.w;
        covariance += w * x * (o.cost - s.wy / s.w);
        variance += w * x * x;
    }
    let slope = if has_slope && variance > 0.0 { covariance / variance } else { 0.0 };
    let height = |s: &Sums| if s.w > 0.0 { (s.wy - slope * s.wx) / s.w } else { 0.0 };
    Fit { slope, heights: sums.iter().map(height).collect() }
}

fn load_spread(all: &[Observation], n_classes: usize) -> f64 {
    let sums = sums(all, &vec![1.0; all.len()], n_classes);
    let squares = all.iter().filter_map(|o| {
        let s = sums.get(o.class).filter(|s| s.w > 0.0)?;
        Some((o.load - s.wx / s.w).powi(2))
    });
    (squares.sum::<f64>() / all.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::stats::random::Random;

    #[test]
    fn slope_and_heights_are_found_though_a_fifth_is_odd() {
        let mut random = Random::new(3);
        let all: Vec<Observation> = (0..400)
            .map(|i| {
                let (node, class) = (i / 10, (i / 10) % 2);
                let load = 1.0 + 0.3 * random.normal();
                let odd = if node % 5 == 0 { 0.7 } else { 0.0 };
                let cost = 2.0 + class as f64 - 0.3 * load + odd + 0.03 * random.normal();
                Observation { node, class, window: i % 10, load, cost }
            })
            .collect();
        let fit = fit(&all, 2);
        assert!((fit.slope + 0.3).abs() < 0.05, "{fit:?}");
        assert!((fit.heights[1] - fit.heights[0] - 1.0).abs() < 0.15, "{fit:?}");
        assert_eq!(super::fit(&[], 0), Fit { slope: 0.0, heights: vec![] });
    }

    #[test]
    fn one_load_has_no_slope() {
        let at = |node: usize, cost: f64| Observation { node, class: 0, window: 0, load: 1.0, cost };
        assert_eq!(fit(&[at(0, 1.0), at(1, 1.1), at(2, 1.2)], 1).slope, 0.0);
    }
}

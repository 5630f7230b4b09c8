//! Do two groups of numbers differ, where the labels were drawn? Wilcoxon's rank sum.
//!
//! If the label of each value was drawn at random and means nothing, every choice of k of the n ranks is as likely as any
//! other. For small groups the choices with a sum so far out are counted; above, the sum is normal to more digits than are
//! printed. Ties share their middle rank.

/// Up to so many values in both groups together, all choices are counted.
const EXACT_UP_TO: usize = 40;

/// Two-sided p-value; 1 where a group is empty.
pub fn p_value(a: &[f64], b: &[f64]) -> f64 {
    if a.is_empty() || b.is_empty() || a.iter().chain(b).any(|x| !x.is_finite()) {
        return 1.0;
    }
    let mut all: Vec<(f64, bool)> = a.iter().map(|x| (*x, true)).chain(b.iter().map(|x| (*x, false))).collect();
    all.sort_by(|x, y| x.0.total_cmp(&y.0));
    // Twice the middle rank, so that it is whole.
    let rank = |x: f64| {
        let (below, upto) = (all.partition_point(|y| y.0 < x), all.partition_point(|y| y.0 <= x));
        below + upto + 1
    };
    let ranks: Vec<usize> = all.iter().map(|(x, _)| rank(*x)).collect();
    let observed: usize = all.iter().zip(&ranks).filter(|((_, is_a), _)| *is_a).map(|(_, rank)| rank).sum();
    if all.len() > EXACT_UP_TO {
        return by_normal(&ranks, a.len(), observed);
    }
    // ways[k][s]: the share of what is chosen so far with k values that add up to s.
    let (k, most): (usize, usize) = (a.len(), ranks.iter().sum());
    let mut ways = vec![vec![0.0f64; most + 1]; k + 1];
    ways[0][0] = 1.0;
    for rank in &ranks {
        for chosen in (1..=k).rev() {
            let (below, here) = ways.split_at_mut(chosen);
            for sum in (*rank..=most).rev() {
                here[0][sum] += below[chosen - 1][sum - rank];
            }
        }
    }
    let n_all: f64 = ways[k].iter().sum();
    let (low, high): (f64, f64) = (ways[k][..=observed].iter().sum(), ways[k][observed..].iter().sum());
    (2.0 * low.min(high) / n_all).min(1.0)
}

/// By the normal curve, with the variance that ties leave.
fn by_normal(doubled_ranks: &[usize], k: usize, observed: usize) -> f64 {
    let (n, k) = (doubled_ranks.len() as f64, k as f64);
    let mean = doubled_ranks.iter().sum::<usize>() as f64 / n;
    let variance = doubled_ranks.iter().map(|r| (*r as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let deviation = (k * (n - k) / n * variance).sqrt();
    if deviation == 0.0 {
        return 1.0;
    }
    // Ranks are doubled, so one step of the sum is 2: half of it is the correction for continuity.
    let distance = ((observed as f64 - k * mean).abs() - 1.0).max(0.0);
    (2.0 * super::normal::below(-distance / deviation)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_tail_is_counted() {
        let (low, high) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
        assert!((p_value(&low, &high) - 2.0 / 70.0).abs() < 1e-12, "one of 70 choices on each side");
        assert!((p_value(&low[..3], &high[..2]) - 2.0 / 10.0).abs() < 1e-12);
        assert_eq!((p_value(&low, &[]), p_value(&[1.0; 5], &[1.0; 5]), p_value(&[f64::NAN], &low)), (1.0, 1.0, 1.0));
    }

    #[test]
    fn counting_and_the_normal_curve_agree_where_one_takes_over_from_the_other() {
        let (a, b): (Vec<f64>, Vec<f64>) = (0..40u32).map(f64::from).partition(|x| (x * 7.0) % 5.0 < 2.0);
        let shifted: Vec<f64> = a.iter().map(|x| x + 9.5).collect();
        let exact = p_value(&shifted, &b);
        let more: Vec<f64> = shifted.iter().copied().chain([1e9]).collect();
        let normal = p_value(&more, &b);
        assert!(exact < 0.05 && (exact - normal).abs() < 0.02, "{exact} {normal}");
        let many: Vec<f64> = (0..250u32).map(f64::from).collect();
        let moved: Vec<f64> = many.iter().map(|x| x + 40.0).collect();
        assert!(p_value(&many, &many) > 0.99 && p_value(&many, &moved) < 1e-6);
        assert_eq!(p_value(&[1.0; 30], &[1.0; 30]), 1.0);
    }

    proptest! {
        #[test]
        fn groups_may_be_swapped_and_p_is_a_probability(a in prop::collection::vec(-2i8..3, 1..9), b in prop::collection::vec(-2i8..3, 1..9)) {
            let (a, b): (Vec<f64>, Vec<f64>) = (a.iter().map(|x| f64::from(*x)).collect(), b.iter().map(|x| f64::from(*x)).collect());
            let (there, back) = (p_value(&a, &b), p_value(&b, &a));
            prop_assert!((there - back).abs() < 1e-9 && there > 0.0 && there <= 1.0);
        }
    }
}

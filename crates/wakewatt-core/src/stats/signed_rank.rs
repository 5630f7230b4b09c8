//! Wilcoxon's signed rank turned into an estimate, an interval and a test that cannot disagree.
//!
//! Of n values that scatter symmetrically around an unknown centre, take the n (n + 1) / 2 Walsh averages: every value and
//! every mean of two. How many of them lie at or below a guess is the signed-rank statistic of that guess (Tukey 1949), and
//! if the guess is right its distribution is known exactly, whatever the scatter looks like: each sign is as likely as its
//! opposite. So
//! - the estimate is the middle Walsh average (Hodges & Lehmann 1963);
//! - the interval is cut off so many averages from either end (Hollander, Wolfe & Chicken, "Nonparametric Statistical
//!   Methods", 3.3): between it and the test there is no difference, since it holds the guesses that the test does not reject;
//! - nothing is drawn, so nothing depends on a seed.
//!
//! Ties and zeros count against whoever claims a difference, which makes test and interval cautious with coarse clocks.
//! The order of two settings within a round is drawn at random, so the signs are exchangeable by design and the test stays
//! exact while a machine drifts.

use std::sync::OnceLock;

/// Up to here the distribution is counted; above, the normal curve is right to more digits than anybody prints.
const EXACT_UP_TO: usize = 200;

/// Where the centre lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How often such an interval holds the centre: 0.969 for six values and 95 % asked for, because ranks come in steps.
    /// Below what was asked for where there are too few values: then it is their range.
    pub confidence: f64,
}

impl Interval {
    /// Does it hold at this error rate?
    pub fn is_at(&self, level: f64) -> bool {
        self.confidence >= 1.0 - level - 1e-12
    }
}

/// The means of all pairs, each value with itself included.
pub(super) fn walsh(values: &[f64]) -> Vec<f64> {
    let mut means = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (i, a) in values.iter().enumerate() {
        means.extend(values[i..].iter().map(|b| (a + b) / 2.0));
    }
    means
}

/// The interval of the centre at an error rate of 0.05 or whatever part of it may be used. Everything, with no confidence,
/// below two values.
pub fn interval(values: &[f64], level: f64) -> Interval {
    let n = values.len();
    if n < 2 {
        return Interval { low: f64::NEG_INFINITY, high: f64::INFINITY, confidence: 0.0 };
    }
    let mut means = walsh(values);
    let tail = Tail::of(n);
    // The last rank whose tail may be cut off, and at least the first.
    let (mut cut, mut beyond) = (0, means.len() / 2);
    while beyond - cut > 1 {
        let rank = usize::midpoint(cut, beyond);
        if 2.0 * tail.at(rank) <= level + 1e-12 { cut = rank } else { beyond = rank }
    }
    let confidence = (1.0 - 2.0 * tail.at(cut)).max(0.0);
    let last = means.len() - 1 - cut;
    let (low, high) = (nth(&mut means, cut), nth(&mut means, last));
    Interval { low, high, confidence }
}

fn nth(values: &mut [f64], at: usize) -> f64 {
    *values.select_nth_unstable_by(at, f64::total_cmp).1
}

/// Two-sided p-value of "the centre is 0"; 1 of nothing. At its least 2 / 2^n.
pub fn p_value(values: &[f64]) -> f64 {
    (2.0 * p_above(values, 0.0).min(p_below(values, 0.0))).min(1.0)
}

/// One-sided p-value against "the centre is at or below the limit".
pub fn p_above(values: &[f64], limit: f64) -> f64 {
    one_sided(values.len(), n_means(values, |mean| mean <= limit))
}

/// One-sided p-value against "the centre is at or above the limit".
pub fn p_below(values: &[f64], limit: f64) -> f64 {
    let n_all = values.len() * (values.len() + 1) / 2;
    one_sided(values.len(), n_all - n_means(values, |mean| mean < limit))
}

fn one_sided(n_values: usize, n_against: usize) -> f64 {
    if n_values == 0 { 1.0 } else { Tail::of(n_values).at(n_against) }
}

/// Counts the Walsh averages below a bound, in n log n steps: among sorted values the last partner that still keeps the
/// mean below the bound only moves left.
fn n_means(values: &[f64], is_below: impl Fn(f64) -> bool) -> usize {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (mut n, mut end) = (0, sorted.len());
    for (at, a) in sorted.iter().enumerate() {
        while end > at && !is_below((a + sorted[end - 1]) / 2.0) {
            end -= 1;
        }
        n += end.saturating_sub(at);
    }
    n
}

/// P(W <= w) of the signed-rank statistic of n values.
#[derive(Clone, Copy)]
enum Tail {
    Counted(&'static [f64]),
    Normal { mean: f64, deviation: f64 },
}

/// Asked for again and again with the same n.
static COUNTED: [OnceLock<Vec<f64>>; EXACT_UP_TO + 1] = [const { OnceLock::new() }; EXACT_UP_TO + 1];

impl Tail {
    fn of(n: usize) -> Tail {
        match COUNTED.get(n) {
            Some(place) => Tail::Counted(place.get_or_init(|| counted(n))),
            None => Tail::normal(n),
        }
    }

    fn normal(n: usize) -> Tail {
        let n = n as f64;
        let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0;
        Tail::Normal { mean: n * (n + 1.0) / 4.0, deviation: variance.sqrt() }
    }

    fn at(self, w: usize) -> f64 {
        match self {
            Tail::Counted(sums) => sums.get(w).copied().unwrap_or(1.0),
            Tail::Normal { mean, deviation } => super::normal::below((w as f64 + 0.5 - mean) / deviation),
        }
    }
}

/// Each rank is in the sum or is not, with even chances.
fn counted(n: usize) -> Vec<f64> {
    let mut chance = vec![0.0; n * (n + 1) / 2 + 1];
    chance[0] = 1.0;
    for rank in 1..=n {
        for w in (0..=rank * (rank + 1) / 2).rev() {
            let with = if w >= rank { chance[w - rank] } else { 0.0 };
            chance[w] = (chance[w] + with) / 2.0;
        }
    }
    let mut sum = 0.0f64;
    chance.iter_mut().for_each(|c| {
        sum += *c;
        *c = sum.min(1.0);
    });
    chance
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::paired::hodges_lehmann;
    use crate::stats::random::Random;
    use proptest::prelude::*;

    #[test]
    fn tails_match_the_published_table() {
        // Hollander, Wolfe & Chicken, table A.4: P(W+ >= x) = P(W+ <= n(n+1)/2 - x).
        for (n, w, chance) in
            [(5, 0, 0.031), (6, 0, 0.016), (8, 3, 0.020), (8, 5, 0.039), (10, 8, 0.024), (12, 13, 0.021)]
        {
            let found = Tail::of(n).at(w);
            assert!((found - chance).abs() < 6e-4, "n {n}, w {w}: {found}");
        }
        let (counted, normal) = (Tail::of(200).at(8500), Tail::normal(200).at(8500));
        assert!((counted - normal).abs() < 2e-4, "{counted} {normal}");
    }

    #[test]
    fn few_values_say_how_far_they_may_be_trusted() {
        let six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(p_value(&six), 2.0 / 64.0);
        assert_eq!(interval(&six, 0.05), Interval { low: 1.0, high: 6.0, confidence: 1.0 - 2.0 / 64.0 });
        let eight: Vec<f64> = (1..=8).map(f64::from).collect();
        assert!((interval(&eight, 0.01).confidence - 0.992).abs() < 1e-3);
        let range = interval(&six[..3], 0.05);
        assert_eq!((range.low, range.high, range.confidence, range.is_at(0.05)), (1.0, 3.0, 0.75, false));
        assert_eq!((p_value(&[]), p_value(&[0.0; 9]), interval(&[1.0], 0.05).confidence), (1.0, 1.0, 0.0));
    }

    #[test]
    fn counting_in_order_finds_as_many_means_as_counting_all_pairs() {
        let mut random = Random::new(4);
        for n in [1, 2, 7, 60] {
            // Coarse values, so that there are ties.
            let d: Vec<f64> = (0..n).map(|_| (random.normal() * 4.0).round()).collect();
            for limit in [-3.0, -0.5, 0.0, 1.0] {
                let counted = walsh(&d).into_iter().filter(|mean| *mean <= limit).count();
                assert_eq!(n_means(&d, |mean| mean <= limit), counted, "{d:?} {limit}");
            }
        }
    }

    #[test]
    fn one_sided_claims_are_at_the_margin_wrong_once_in_twenty_times() {
        let mut random = Random::new(9);
        let n = (0..2000)
            .filter(|_| {
                let d: Vec<f64> = (0..10).map(|_| 0.05 + 0.02 * random.normal()).collect();
                p_below(&d, 0.05) <= 0.05
            })
            .count();
        assert!((60..=115).contains(&n), "{n} of 2000; the exact level is 4.2 %");
    }

    proptest! {
        #[test]
        fn interval_and_test_agree(d in prop::collection::vec(-2.0f64..2.0, 2..14), level in 0.001f64..0.3, shift in -1.0f64..1.0) {
            let d: Vec<f64> = d.iter().map(|x| x + shift).collect();
            let found = interval(&d, level);
            let excludes = (found.low > 0.0 || found.high < 0.0) && found.is_at(level);
            prop_assert_eq!(excludes, p_value(&d) <= level + 1e-12);
            let middle = hodges_lehmann(&d);
            prop_assert!(found.low <= middle && middle <= found.high);
        }

        #[test]
        fn signs_and_scales_do_not_matter(d in prop::collection::vec(-2.0f64..2.0, 2..40), scale in 0.1f64..10.0) {
            let turned: Vec<f64> = d.iter().map(|x| -x * scale).collect();
            let (p, q) = (p_value(&d), p_value(&turned));
            prop_assert!((p - q).abs() < 1e-9 && p > 0.0 && p <= 1.0);
            let (a, b) = (interval(&d, 0.05), interval(&turned, 0.05));
            prop_assert!((a.low * scale + b.high).abs() < 1e-6 && (a.confidence - b.confidence).abs() < 1e-12);
        }
    }
}

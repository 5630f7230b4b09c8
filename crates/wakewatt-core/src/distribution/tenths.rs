//! The tenths of a window: how much its samples resemble their neighbours, and what that makes of an interval.
//!
//! In each tenth, the share of samples below the window's quantile is one number. Their scatter holds all that lasts
//! shorter than a tenth of the window; what lasts longer only another window can tell. (Batch means: Fishman & Yarberry,
//! "An implementation of the batch means method", 1997; a quantile by the share below it: Hahn & Meeker, ch. 5.)

use super::recorder::upto_ns;
use serde::{Deserialize, Serialize};

/// Enough for a scatter, and long enough to hold what a machine does for a while.
pub const N_TENTHS: usize = 10;
/// Student's t of nine degrees of freedom, 95 %.
const STUDENT_9: f64 = 2.262;
/// Of independent samples.
const NORMAL: f64 = 1.96;
/// A share of fewer samples is mostly noise of its own.
const MIN_IN_A_TENTH: usize = 10;

/// A tenth of a window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tenth {
    /// Samples in it.
    pub n: u64,
    /// Their median, to a part in 128.
    pub p50_ns: u64,
    /// Their 99th percentile, to a part in 128; none with fewer than ten samples beyond it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
}

/// Each part by itself; the parts are sorted.
pub(super) fn of(parts: &[Vec<u16>]) -> Vec<Tenth> {
    if !is_enough(parts) {
        return Vec::new();
    }
    let at = |part: &Vec<u16>, q: f64| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a rank within the list
        let rank = (q * part.len() as f64) as usize;
        part.get(rank.min(part.len() - 1)).map_or(0, |code| upto_ns(*code))
    };
    let has_tail = |part: &Vec<u16>| part.len() >= 1000;
    let one = |part: &Vec<u16>| Tenth {
        n: part.len() as u64,
        p50_ns: at(part, 0.5),
        p99_ns: has_tail(part).then(|| at(part, 0.99)),
    };
    parts.iter().map(one).collect()
}

fn is_enough(parts: &[Vec<u16>]) -> bool {
    parts.len() == N_TENTHS && parts.iter().all(|part| part.len() >= MIN_IN_A_TENTH)
}

/// Variance of the share below the quantile, over what it is for independent samples.
pub(super) fn design_effect(parts: &[Vec<u16>], q: f64, value_ns: u64) -> Option<f64> {
    if !is_enough(parts) {
        return None;
    }
    let shares: Vec<f64> = parts
        .iter()
        .map(|part| part.partition_point(|code| upto_ns(*code) <= value_ns) as f64 / part.len() as f64)
        .collect();
    let k = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / k;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (k - 1.0);
    let n: usize = parts.iter().map(Vec::len).sum();
    Some(variance / k * n as f64 / (q * (1.0 - q)))
}

/// Half the interval, in ranks.
pub(super) fn half_width(n: u64, q: f64, design_effect: Option<f64>) -> f64 {
    let independent = (n as f64 * q * (1.0 - q)).sqrt();
    let measured = design_effect.map_or(0.0, |d| STUDENT_9 * d.sqrt() * independent);
    measured.max(NORMAL * independent)
}

#[cfg(test)]
mod tests {
    use crate::distribution::{Distribution, Quantile};
    use crate::stats::random::Random;

    /// Latencies around 50 us whose neighbours resemble each other by this much.
    fn window(rho: f64, n: usize, random: &mut Random) -> Vec<u64> {
        let mut last = random.normal();
        (0..n)
            .map(|_| {
                last = rho * last + (1.0 - rho * rho).sqrt() * random.normal();
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // made up, positive
                let ns = (50_000.0 * (0.1 * last).exp()) as u64;
                ns
            })
            .collect()
    }

    #[test]
    fn an_interval_of_correlated_samples_holds_the_truth_where_the_binomial_one_does_not() {
        let holds = |q: Option<Quantile>| q.is_some_and(|q| (q.low_ns..=q.high_ns).contains(&50_000));
        let mut random = Random::new(17);
        let (mut n_ours, mut n_plain, mut n_independent) = (0, 0, 0);
        for _ in 0..400 {
            let samples = window(0.98, 5_000, &mut random);
            n_ours += u32::from(holds(Distribution::from_ns_in_order(samples.clone()).quantile(0.5)));
            n_plain += u32::from(holds(Distribution::from_ns(samples).quantile(0.5)));
            let independent = window(0.0, 5_000, &mut random);
            n_independent += u32::from(holds(Distribution::from_ns_in_order(independent).quantile(0.5)));
        }
        assert!(n_plain < 160, "{n_plain} of 400: the old interval");
        assert!((360..=400).contains(&n_ours), "{n_ours} of 400");
        assert!(n_independent >= 372, "{n_independent} of 400");
    }

    #[test]
    fn tenths_are_kept_in_order_and_say_how_much_a_sample_is_worth() {
        let slow_end: Vec<u64> =
            (0..20_000u64).map(|i| if i < 12_000 { 10_000 + i % 100 } else { 90_000 + i % 100 }).collect();
        let found = Distribution::from_ns_in_order(slow_end.clone());
        let medians: Vec<u64> = found.tenths.iter().map(|t| t.p50_ns / 10_000).collect();
        assert_eq!(medians, [1, 1, 1, 1, 1, 1, 9, 9, 9, 9]);
        assert!(found.tenths[0].n == 2000 && found.tenths[0].p99_ns.is_some());
        let median = found.quantile(0.5).unwrap();
        assert!(median.design_effect.is_some_and(|d| d > 100.0), "{median:?}");
        assert!(median.high_ns > 80_000, "four tenths lie up there: {median:?}");
        let unordered = Distribution::from_ns(slow_end);
        assert!(unordered.tenths.is_empty() && unordered.quantile(0.5).unwrap().design_effect.is_none());
        assert!(Distribution::from_ns_in_order(1..=50).tenths.is_empty(), "five samples are no tenth");
    }
}

//! A latency distribution as it travels: counts, quantiles with confidence intervals, and the buckets to draw it.
//!
//! Recording is HDR histogram (three significant digits, no range to guess). The interval of a quantile is the
//! distribution-free one: the number of samples below the true q-quantile is binomial(n, q), so the order statistics
//! at n·q ± 1.96·sqrt(n·q·(1-q)) bracket it with 95 % (Hahn & Meeker, Statistical Intervals, ch. 5). That holds for
//! independent samples. Where their order is known ([`Recorder`]) the window is cut into tenths, and how the share below the
//! quantile varies from tenth to tenth takes the place of the binomial's guess (batch means; Student's t of nine), unless it
//! is less. Either way the interval covers this window: of the next one a single window knows nothing. A quantile with
//! fewer than ten samples beyond it is not printed at all: the maximum is not a p99.9.

mod recorder;
mod tenths;

pub use recorder::Recorder;
pub use tenths::{N_TENTHS, Tenth};

use crate::covers::Covers;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The quantiles every distribution carries when it has the data.
pub const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

/// A quantile with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantile {
    /// Which quantile, 0 to 1: 0.99 for the 99th percentile.
    pub q: f64,
    /// The estimate: so many of the samples took at most this long.
    pub value_ns: u64,
    /// Lower end of the 95 % interval.
    pub low_ns: u64,
    /// Upper end of the 95 % interval.
    pub high_ns: u64,
    /// What the interval covers.
    #[serde(default)]
    pub covers: Covers,
    /// How many times the variance of independent samples the tenths of the window showed: so many samples count as one. The
    /// interval is made with it, where it is above 1. None where the order of the samples is not known: the interval is then
    /// that of independent samples, which is a least width.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub design_effect: Option<f64>,
}

/// So many samples up to this value (and above the bucket before).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Bucket {
    /// Upper edge of the bucket, inclusive; the lower one is the edge of the bucket before.
    pub upto_ns: u64,
    /// How many samples fell into the bucket.
    pub n: u64,
}

/// A measured latency distribution.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// How many samples were counted.
    pub n: u64,
    /// The shortest sample.
    pub min_ns: u64,
    /// Arithmetic mean of all samples.
    pub mean_ns: f64,
    /// The longest sample. With few samples it says little about the tail.
    pub max_ns: u64,
    /// Quantiles the sample size supports.
    pub quantiles: Vec<Quantile>,
    /// Log-linear buckets (non-empty ones).
    pub buckets: Vec<Bucket>,
    /// Each tenth of the window by itself, in order of time; none where the order of the samples is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenths: Vec<Tenth>,
    /// Samples among these that never came to their end; none where all did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub censored: Option<Censored>,
}

/// Samples that never came to their end, as requests that failed or were given up. Each is counted at the time it is known
/// to have taken at least: left out they would make a server look faster the more it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Censored {
    /// Number of samples in the window.
    pub n: u64,
    /// The least of the times they are counted at: a quantile from here on is at least what it says, and may be more.
    pub from_ns: u64,
}

impl Censored {
    /// One more, counted at this time.
    pub fn and(censored: Option<Censored>, at_ns: u64) -> Option<Censored> {
        Censored::joined(censored, Some(Censored { n: 1, from_ns: at_ns }))
    }

    /// Those of two distributions.
    pub fn joined(one: Option<Censored>, other: Option<Censored>) -> Option<Censored> {
        match (one, other) {
            (Some(a), Some(b)) => Some(Censored { n: a.n.saturating_add(b.n), from_ns: a.from_ns.min(b.from_ns) }),
            (one, other) => one.or(other),
        }
    }
}

/// An HDR histogram of nanoseconds: three digits, resizing.
pub fn histogram() -> Histogram<u64> {
    // Bounds are static and valid: 1 ns to 1 hour with 3 digits.
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap_or_else(|_| unreachable!("static bounds are valid"))
}

impl Distribution {
    /// From recorded nanoseconds.
    pub fn of(hist: &Histogram<u64>) -> Distribution {
        Distribution::cut(hist, &[])
    }

    /// From samples whose order is known.
    pub fn recorded(recorder: &Recorder) -> Distribution {
        Distribution::in_parts(recorder, recorder.parts(N_TENTHS))
    }

    /// From a histogram and the codes of each tenth of its window ([`Recorder::parts`]).
    pub fn in_parts(hist: &Histogram<u64>, mut parts: Vec<Vec<u16>>) -> Distribution {
        parts.iter_mut().for_each(|part| part.sort_unstable());
        Distribution::cut(hist, &parts)
    }

    fn cut(hist: &Histogram<u64>, parts: &[Vec<u16>]) -> Distribution {
        let n = hist.len();
        if n == 0 {
            return Distribution::default();
        }
        let at_rank = |rank: f64| hist.value_at_quantile((rank / n as f64).clamp(0.0, 1.0));
        let quantiles = QUANTILES
            .iter()
            .filter(|q| n as f64 * (1.0 - **q) >= 10.0 || (**q <= 0.5 && n >= 10))
            .map(|&q| {
                let value_ns = hist.value_at_quantile(q);
                let design_effect = tenths::design_effect(parts, q, value_ns);
                let half = tenths::half_width(n, q, design_effect);
                Quantile {
                    q,
                    value_ns,
                    low_ns: at_rank(n as f64 * q - half),
                    high_ns: at_rank(n as f64 * q + half + 1.0),
                    covers: Covers::Window,
                    design_effect,
                }
            })
            .collect();
        // 16 linear steps per doubling: enough to draw, few enough to ship.
        let mut buckets: Vec<Bucket> = Vec::new();
        for value in hist.iter_recorded() {
            let (low, count) = (value.value_iterated_to(), value.count_at_value());
            let step = (low.max(16).ilog2() - 4).min(58);
            let upto_ns = ((low >> step) + 1) << step;
            match buckets.last_mut() {
                Some(last) if last.upto_ns == upto_ns => last.n += count,
                _ => buckets.push(Bucket { upto_ns, n: count }),
            }
        }
        Distribution {
            n,
            min_ns: hist.min(),
            mean_ns: hist.mean(),
            max_ns: hist.max(),
            quantiles,
            buckets,
            tenths: tenths::of(parts),
            censored: None,
        }
    }

    /// From a plain list.
    pub fn from_ns(samples: impl IntoIterator<Item = u64>) -> Distribution {
        let mut hist = histogram();
        for ns in samples {
            hist.saturating_record(ns.max(1));
        }
        Distribution::of(&hist)
    }

    /// From a plain list in the order of time.
    pub fn from_ns_in_order(samples: impl IntoIterator<Item = u64>) -> Distribution {
        let mut recorder = Recorder::default();
        for ns in samples {
            recorder.saturating_record(ns.max(1));
        }
        Distribution::recorded(&recorder)
    }

    /// The same, of which so many never came to their end.
    pub fn with_censored(self, censored: Option<Censored>) -> Distribution {
        Distribution { censored, ..self }
    }

    /// Is a value of this distribution only known to be at least so long?
    pub fn is_at_least(&self, value_ns: u64) -> bool {
        self.censored.is_some_and(|c| value_ns >= c.from_ns)
    }

    /// The quantile, if the sample size supports it.
    pub fn quantile(&self, q: f64) -> Option<Quantile> {
        self.quantiles.iter().copied().find(|x| (x.q - q).abs() < 1e-9)
    }

    /// The median in nanoseconds.
    pub fn p50_ns(&self) -> Option<u64> {
        self.quantile(0.5).map(|q| q.value_ns)
    }

    /// The 99th percentile in nanoseconds.
    pub fn p99_ns(&self) -> Option<u64> {
        self.quantile(0.99).map(|q| q.value_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ended_is_counted_and_quantiles_beyond_it_are_bounds() {
        let censored = Censored::and(Censored::and(None, 6_000_000), 5_000_000);
        assert_eq!(censored, Some(Censored { n: 2, from_ns: 5_000_000 }));
        assert_eq!(Censored::joined(censored, None), censored);
        // 3 % of the requests failed: the median is known, the 99th percentile is not.
        let samples = (0..1940u64).map(|i| 1000 + i).chain((0..60).map(|_| 5_000_000));
        let d = Distribution::from_ns(samples).with_censored(Some(Censored { n: 60, from_ns: 5_000_000 }));
        assert!(d.is_at_least(d.p99_ns().unwrap()) && !d.is_at_least(d.p50_ns().unwrap()));
        assert!(d.is_at_least(d.max_ns) && !d.clone().with_censored(None).is_at_least(d.max_ns));
    }

    #[test]
    fn a_tail_without_data_is_not_printed() {
        let few = Distribution::from_ns(1..=100);
        assert!(few.p50_ns().is_some_and(|v| (49..=51).contains(&v)));
        assert!(few.p99_ns().is_none(), "one sample beyond p99 is not a p99");
        let many = Distribution::from_ns((1..=100_000).map(|i| i % 1000 + 1));
        assert!(many.p99_ns().is_some_and(|v| (985..=995).contains(&v)));
        let q = many.quantile(0.5).unwrap();
        assert!(q.low_ns <= q.value_ns && q.value_ns <= q.high_ns && q.high_ns - q.low_ns < 20);
        assert_eq!(many.buckets.iter().map(|b| b.n).sum::<u64>(), 100_000);
        assert_eq!(Distribution::from_ns([]), Distribution::default());
    }
}

//! How long something takes: the distributions of service, waiting and thinking, and how numbers are drawn from them.
//!
//! Gamma by Marsaglia & Tsang (ACM TOMS 26, 2000); the hyperexponential has two phases of balanced means, the usual choice where only
//! mean and variation are known (Whitt, "Approximating a point process", 1982). A histogram is drawn uniformly within its buckets.

use crate::span::Span;
use crate::ziggurat::exponential;
use serde::{Deserialize, Serialize};
use wakewatt_core::stats::random::Random;

/// Which family of distributions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Always the mean.
    #[default]
    Fixed,
    /// Exponential, by its mean.
    Exponential,
    /// Lognormal, by mean and coefficient of variation.
    Lognormal,
    /// Gamma, by mean and coefficient of variation.
    Gamma,
    /// Hyperexponential of two phases, by mean and coefficient of variation (at least 1).
    Hyperexponential,
    /// Drawn from buckets, as measured.
    Histogram,
}

/// A bucket of a measured histogram.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LawBucket {
    /// Upper edge of the bucket; the lower one is the edge of the bucket before.
    pub upto: Span,
    /// How many samples, or their share.
    pub n: f64,
}

/// A distribution of times.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Law {
    /// Which family: `fixed`, `exponential`, `lognormal`, `gamma`, `hyperexponential` or `histogram`.
    pub law: Family,
    /// The mean; of a histogram it follows from the buckets, or scales them where given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<Span>,
    /// Coefficient of variation: standard deviation over mean, of the families that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cv: Option<f64>,
    /// Buckets of a histogram, rising.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<LawBucket>,
}

impl Law {
    /// Always as long.
    pub fn fixed(mean: Span) -> Law {
        Law { law: Family::Fixed, mean: Some(mean), ..Law::default() }
    }

    /// Exponential with this mean.
    pub fn exponential(mean: Span) -> Law {
        Law { law: Family::Exponential, mean: Some(mean), ..Law::default() }
    }

    /// One of the families that have a coefficient of variation.
    pub fn varied(law: Family, mean: Span, cv: f64) -> Law {
        Law { law, mean: Some(mean), cv: Some(cv), buckets: Vec::new() }
    }

    /// Why it cannot be drawn from.
    pub fn check(&self) -> Result<(), String> {
        let has_cv = matches!(self.law, Family::Lognormal | Family::Gamma | Family::Hyperexponential);
        let name = || format!("{:?}", self.law).to_lowercase();
        match (self.cv, has_cv) {
            (Some(cv), true) => {
                let least = if self.law == Family::Hyperexponential { 1.0 } else { 0.01 };
                if !(least..=100.0).contains(&cv) {
                    return Err(format!("cv = {cv}: give {least} to 100 for {}", name()));
                }
            }
            (None, true) => return Err(format!("cv: {} needs one", name())),
            (Some(_), false) => return Err(format!("cv: {} takes none", name())),
            (None, false) => {}
        }
        if self.law != Family::Histogram {
            if !self.buckets.is_empty() {
                return Err(format!("buckets: {} takes none", name()));
            }
            let mean = self.mean.ok_or_else(|| format!("mean: {} needs one", name()))?;
            return if mean.ns() <= MOST_NS { Ok(()) } else { Err(format!("mean = {mean}: give at most 1000s")) };
        }
        if self.buckets.is_empty() {
            return Err("buckets: a histogram needs some".into());
        }
        let mut before = None;
        for bucket in &self.buckets {
            if before.is_some_and(|b| bucket.upto <= b) || bucket.upto.ns() > MOST_NS {
                return Err(format!("buckets: upto = {} does not rise, or is above 1000s", bucket.upto));
            }
            if !bucket.n.is_finite() || bucket.n < 0.0 {
                return Err(format!("buckets: n = {}: give 0 or more", bucket.n));
            }
            before = Some(bucket.upto);
        }
        let total: f64 = self.buckets.iter().map(|b| b.n).sum();
        if total > 0.0 && total.is_finite() { Ok(()) } else { Err("buckets: all of them are empty".into()) }
    }

    /// Variation of the squared draw, E[S^4] / E[S^2]^2: 1 for a fixed time, 6 for an exponential one. The mean wait grows
    /// with E[S^2] (Pollaczek and Khinchine), which n draws estimate with a relative error of sqrt(this / n).
    pub fn square_variation(&self) -> f64 {
        let moments = match Drawn::of(self) {
            Drawn::Fixed(_) => return 1.0,
            Drawn::Exponential(_) => return 6.0,
            Drawn::Lognormal(_, deviation) => return (4.0 * deviation.powi(2)).exp(),
            Drawn::Gamma(shape, _) => return (shape + 2.0) * (shape + 3.0) / (shape * (shape + 1.0)),
            Drawn::Hyper(p, first, other) => {
                let of = |power: i32| p * first.powi(power) + (1.0 - p) * other.powi(power);
                (2.0 * of(2), 24.0 * of(4))
            }
            Drawn::Histogram(edges) => {
                let mut before = 0.0;
                edges.iter().fold((0.0, 0.0), |(second, fourth), (share, low, high)| {
                    let of = |power: i32| {
                        let wide = f64::from(power + 1) * (high - low);
                        if wide > 0.0 { (high.powi(power + 1) - low.powi(power + 1)) / wide } else { low.powi(power) }
                    };
                    let weight = share - std::mem::replace(&mut before, *share);
                    (second + weight * of(2), fourth + weight * of(4))
                })
            }
        };
        if moments.0 > 0.0 { moments.1 / (moments.0 * moments.0) } else { 1.0 }
    }

    /// The mean in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        match (self.mean, self.law) {
            (Some(mean), _) => mean.ns() as f64,
            (None, Family::Histogram) => bucket_mean(&self.buckets),
            (None, _) => 0.0,
        }
    }
}

/// Longest mean: 1000 seconds.
const MOST_NS: u64 = 1_000_000_000_000;

fn bucket_mean(buckets: &[LawBucket]) -> f64 {
    let (mut low, mut sum, mut n) = (0.0, 0.0, 0.0);
    for bucket in buckets {
        let high = bucket.upto.ns() as f64;
        sum += bucket.n * (low + high) / 2.0;
        n += bucket.n;
        low = high;
    }
    if n > 0.0 { sum / n } else { 0.0 }
}

/// A law made ready to be drawn from, in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) enum Drawn {
    Fixed(f64),
    Exponential(f64),
    /// Mean and deviation of the logarithm.
    Lognormal(f64, f64),
    /// Shape and scale.
    Gamma(f64, f64),
    /// Share of the first phase, its mean, the other's.
    Hyper(f64, f64, f64),
    /// Rising shares, with the edges below and above.
    Histogram(Vec<(f64, f64, f64)>),
}

impl Drawn {
    /// Of a law that was checked.
    pub(crate) fn of(law: &Law) -> Drawn {
        let mean = law.mean_ns();
        let square = law.cv.unwrap_or(1.0).powi(2);
        match law.law {
            Family::Fixed => Drawn::Fixed(mean),
            Family::Exponential => Drawn::Exponential(mean),
            _ if mean <= 0.0 => Drawn::Fixed(0.0),
            Family::Lognormal => {
                let deviation = (1.0 + square).ln();
                Drawn::Lognormal(mean.ln() - deviation / 2.0, deviation.sqrt())
            }
            Family::Gamma => Drawn::Gamma(1.0 / square, mean * square),
            Family::Hyperexponential => {
                let p = (1.0 + ((square - 1.0) / (square + 1.0)).max(0.0).sqrt()) / 2.0;
                Drawn::Hyper(p, mean / (2.0 * p), mean / (2.0 * (1.0 - p)))
            }
            Family::Histogram => {
                let own = bucket_mean(&law.buckets);
                let scale = if own > 0.0 { mean / own } else { 1.0 };
                let total: f64 = law.buckets.iter().map(|b| b.n).sum();
                let (mut low, mut share) = (0.0, 0.0);
                let edges = law.buckets.iter().map(|b| {
                    let high = b.upto.ns() as f64 * scale;
                    share += b.n / total;
                    let edge = (share, low, high);
                    low = high;
                    edge
                });
                Drawn::Histogram(edges.collect())
            }
        }
    }

    /// Draws, in nanoseconds, 0 or more.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> f64 {
        match self {
            Drawn::Fixed(ns) => *ns,
            Drawn::Exponential(mean) => exponential(random) * mean,
            Drawn::Lognormal(mean, deviation) => (mean + deviation * random.normal()).exp(),
            Drawn::Gamma(shape, scale) => gamma(*shape, random) * scale,
            Drawn::Hyper(p, first, other) => {
                let mean = if random.unit() < *p { first } else { other };
                exponential(random) * mean
            }
            Drawn::Histogram(edges) => {
                let at = random.unit();
                let found = edges.partition_point(|(share, _, _)| *share <= at).min(edges.len().saturating_sub(1));
                let Some((_, low, high)) = edges.get(found) else { return 0.0 };
                low + (high - low) * random.unit()
            }
        }
    }
}

fn gamma(shape: f64, random: &mut Random) -> f64 {
    if shape < 1.0 {
        // One shape higher, and a power of a uniform number.
        let u = 1.0 - random.unit();
        return gamma(shape + 1.0, random) * u.powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = random.normal();
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && (1.0 - random.unit()).ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(law: &Law) -> (f64, f64) {
        let drawn = Drawn::of(law);
        let mut random = Random::new(7);
        let n = 400_000;
        let all: Vec<f64> = (0..n).map(|_| drawn.draw(&mut random)).collect();
        let mean = all.iter().sum::<f64>() / f64::from(n);
        let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / f64::from(n);
        (mean, variance.sqrt() / mean)
    }

    /// The formula against two million draws. For lognormal work with cv 5 (26^4) no sample is large enough.
    #[test]
    fn squares_vary_as_drawn() {
        let ms = Span::ms(1);
        let bucket = |us, n| LawBucket { upto: Span::us(us), n };
        let histogram =
            Law { law: Family::Histogram, buckets: vec![bucket(100, 3.0), bucket(400, 1.0)], ..Law::default() };
        for law in [
            Law::fixed(ms),
            Law::exponential(ms),
            Law::varied(Family::Lognormal, ms, 0.5),
            Law::varied(Family::Gamma, ms, 1.5),
            Law::varied(Family::Hyperexponential, ms, 2.0),
            histogram,
        ] {
            let (drawn, mut random) = (Drawn::of(&law), Random::new(11));
            let squares = (0..2_000_000).map(|_| drawn.draw(&mut random).powi(2));
            let (second, fourth) = squares.fold((0.0, 0.0), |(second, fourth), x| (second + x, fourth + x * x));
            let found = fourth * 2e6 / (second * second);
            assert!((found / law.square_variation() - 1.0).abs() < 0.1, "{law:?}: {found} {}", law.square_variation());
        }
        let heavy = Law::varied(Family::Lognormal, ms, 5.0).square_variation();
        assert!((heavy / 26f64.powi(4) - 1.0).abs() < 1e-9, "{heavy}");
    }

    #[test]
    fn laws_have_the_mean_and_variation_asked_for() {
        let ms = Span::ms(1);
        for (law, cv) in [
            (Law::fixed(ms), 0.0),
            (Law::exponential(ms), 1.0),
            (Law::varied(Family::Lognormal, ms, 0.7), 0.7),
            (Law::varied(Family::Gamma, ms, 0.5), 0.5),
            (Law::varied(Family::Gamma, ms, 2.0), 2.0),
            (Law::varied(Family::Hyperexponential, ms, 2.0), 2.0),
        ] {
            assert_eq!(law.check(), Ok(()));
            let (mean, varied) = moments(&law);
            assert!((mean / 1e6 - 1.0).abs() < 0.015, "{law:?}: mean {mean}");
            assert!((varied - cv).abs() < 0.03 * cv.max(0.1), "{law:?}: cv {varied}");
        }
    }

    #[test]
    fn a_histogram_gives_its_mean_back_or_is_scaled_to_another() {
        let buckets = vec![LawBucket { upto: Span::us(100), n: 3.0 }, LawBucket { upto: Span::us(300), n: 1.0 }];
        let law = Law { law: Family::Histogram, buckets, ..Law::default() };
        assert_eq!(law.check(), Ok(()));
        assert!((law.mean_ns() - 87_500.0).abs() < 1e-6);
        assert!((moments(&law).0 / 87_500.0 - 1.0).abs() < 0.01);
        let scaled = Law { mean: Some(Span::ms(1)), ..law };
        assert!((moments(&scaled).0 / 1e6 - 1.0).abs() < 0.01);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused_by_name() {
        let ms = Span::ms(1);
        let said = |law: Law| law.check().unwrap_err();
        assert!(said(Law::varied(Family::Gamma, ms, f64::NAN)).starts_with("cv = NaN"));
        assert!(said(Law::varied(Family::Hyperexponential, ms, 0.5)).contains("give 1 to 100"));
        assert!(said(Law::varied(Family::Fixed, ms, 0.5)).contains("takes none"));
        assert!(said(Law { law: Family::Exponential, ..Law::default() }).starts_with("mean"));
        assert!(said(Law { law: Family::Histogram, ..Law::default() }).starts_with("buckets"));
        let bucket = |us, n| LawBucket { upto: Span::us(us), n };
        let histogram = |buckets| Law { law: Family::Histogram, buckets, ..Law::default() };
        assert!(said(histogram(vec![bucket(5, 1.0), bucket(5, 1.0)])).contains("does not rise"));
        assert!(said(histogram(vec![bucket(5, 0.0)])).contains("empty"));
        assert!(said(Law::fixed(Span(u64::MAX))).contains("at most"));
    }
}

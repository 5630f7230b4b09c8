//! What a request of many hops pays: the distribution of its added latency from that of one hop.
//!
//! One hop adds nothing, where it finds a CPU awake, or what leaving an idle state costs. Hops are taken to be independent. In series their delays add
//! up (a convolution, by Fourier transform); of parallel ones the slowest counts (the largest of n is below t with the n-th power of one's
//! probability: order statistics). Everything is computed on a lattice of equal steps. Where the costs have a common measure that
//! is fine enough, the lattice is exact; else a cost between two points is shared out so that its mean stays.

use super::fourier::{Complex, transform};
use super::shape::Shape;

/// Points of the lattice at most.
const MOST_POINTS: u64 = 1 << 18;

/// A delay and its probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Atom {
    /// Added latency in nanoseconds.
    pub ns: u64,
    /// Probability, 0 to 1.
    pub probability: f64,
}

/// Added latency of whole requests: the probability of each multiple of a step.
#[derive(Clone, Debug)]
pub struct Added {
    /// Step of the lattice in nanoseconds.
    pub step_ns: u64,
    /// Are all costs multiples of it, so that nothing was rounded?
    pub is_exact: bool,
    /// Probability that it is at most so many steps.
    upto: Vec<f64>,
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Added {
    /// Of requests of this shape whose hops cost so. Atoms that are no probabilities count as none.
    pub fn of(shape: &Shape, hop: &[Atom]) -> Added {
        let atoms: Vec<Atom> =
            hop.iter().copied().filter(|a| a.probability.is_finite() && a.probability > 0.0).collect();
        let most = atoms.iter().map(|a| a.ns).max().unwrap_or(0);
        let in_series = shape.in_series();
        // The longest sum has to fit, or it would wrap around.
        let longest = u128::from(most) * u128::from(in_series);
        let measure = atoms.iter().fold(0, |all, a| gcd(all, a.ns)).max(1);
        let coarse = u64::try_from(longest.div_ceil(u128::from(MOST_POINTS / 2))).unwrap_or(u64::MAX).max(1);
        let is_exact = coarse <= measure;
        let step_ns = if is_exact { measure } else { coarse };
        let n_steps = u64::try_from(longest / u128::from(step_ns)).unwrap_or(MOST_POINTS) + u64::from(in_series) + 2;
        let n = usize::try_from(n_steps.next_power_of_two().min(2 * MOST_POINTS)).unwrap_or(1 << 19);
        let one = on_lattice(&atoms, step_ns, n);
        let mut product = vec![Complex::ONE; n];
        for stage in &shape.stages {
            let mut values = one.clone();
            sum(&mut values, stage.chain);
            largest(&mut values, stage.parallel);
            transform(&mut values, false);
            for (whole, part) in product.iter_mut().zip(&values) {
                *whole = whole.times(part.power(stage.times));
            }
        }
        transform(&mut product, true);
        let mut below = 0.0;
        let mut add = |v: &Complex| {
            below += v.re.max(0.0);
            below
        };
        Added { step_ns, is_exact, upto: product.iter().map(&mut add).collect() }
    }

    /// The least added latency that this share of requests does not exceed, in nanoseconds.
    pub fn quantile_ns(&self, q: f64) -> u64 {
        let all = self.upto.last().copied().unwrap_or(0.0);
        // What the transforms rounded must not push a percentile one step up.
        let wanted = q * all - 1e-10;
        let at = self.upto.partition_point(|p| *p < wanted).min(self.upto.len().saturating_sub(1));
        (at as u64).saturating_mul(self.step_ns)
    }
}

/// The atoms on multiples of the step; one between two is shared out, so that its mean stays.
fn on_lattice(atoms: &[Atom], step_ns: u64, n: usize) -> Vec<Complex> {
    let mut out = vec![Complex::default(); n];
    let whole: f64 = atoms.iter().map(|a| a.probability).sum();
    for atom in atoms {
        let low = usize::try_from(atom.ns / step_ns).unwrap_or(n).min(n - 1);
        let above = (atom.ns % step_ns) as f64 / step_ns as f64;
        let share = atom.probability / whole;
        out[low].re += share * (1.0 - above);
        if above > 0.0 {
            out[(low + 1).min(n - 1)].re += share * above;
        }
    }
    out
}

/// The sum of n of them.
fn sum(values: &mut [Complex], n: u32) {
    if n == 1 {
        return;
    }
    transform(values, false);
    values.iter_mut().for_each(|v| *v = v.power(n));
    transform(values, true);
}

/// The largest of n of them.
fn largest(values: &mut [Complex], n: u32) {
    if n == 1 {
        return;
    }
    let (mut below, mut before) = (0.0f64, 0.0f64);
    for value in values {
        below += value.re.max(0.0);
        let power = below.min(1.0).powf(f64::from(n));
        *value = Complex { re: (power - before).max(0.0), im: 0.0 };
        before = power;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::stats::random::Random;

    fn atoms(all: &[(u64, f64)]) -> Vec<Atom> {
        all.iter().map(|(ns, probability)| Atom { ns: *ns, probability: *probability }).collect()
    }

    fn shape(text: &str) -> Shape {
        Shape::parse(text).unwrap()
    }

    /// So many requests drawn hop by hop, the fastest first.
    fn simulated(shape: &Shape, hop: &[Atom], n: usize, random: &mut Random) -> Vec<u64> {
        let mut one = || {
            let mut at = random.bits() as f64 / u64::MAX as f64;
            let found = hop.iter().find(|a| {
                at -= a.probability;
                at <= 0.0
            });
            found.or(hop.last()).map_or(0, |a| a.ns)
        };
        let mut request = || {
            let mut stage = |s: &super::super::shape::Stage| -> u64 {
                let mut branch = || (0..s.chain).map(|_| one()).sum::<u64>();
                (0..s.times).map(|_| (0..s.parallel).map(|_| branch()).max().unwrap_or(0)).sum()
            };
            shape.stages.iter().map(&mut stage).sum()
        };
        let mut all: Vec<u64> = (0..n).map(|_| request()).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn small_cases_by_hand() {
        let hop = atoms(&[(0, 0.9), (100_000, 0.1)]);
        // Of ten in series none finds a sleeper in 0.9^10 = 35 %, at most one in 74 %, at most two in 93 %, three in 98.7 %, four in 99.8 %.
        let series = Added::of(&shape("10 hops"), &hop);
        assert_eq!([0.3, 0.5, 0.9, 0.99].map(|q| series.quantile_ns(q)), [0, 100_000, 200_000, 400_000]);
        assert!(series.is_exact && series.step_ns == 100_000);
        // Of forty in parallel one sleeper is enough: 98.5 %.
        let parallel = Added::of(&shape("40 parallel hops"), &hop);
        assert_eq!([0.01, 0.5, 0.9999].map(|q| parallel.quantile_ns(q)), [0, 100_000, 100_000]);
        let none = Added::of(&shape("7 hops"), &[]);
        assert_eq!((none.quantile_ns(0.99), none.step_ns), (0, 1));
        let always = Added::of(&shape("3 hops + 2 x 5 parallel hops"), &atoms(&[(7, 1.0)]));
        assert_eq!([0.5, 1.0].map(|q| always.quantile_ns(q)), [35, 35]);
    }

    #[test]
    fn what_is_computed_is_what_a_simulation_finds() {
        let hop = atoms(&[(0, 0.35), (1_000, 0.2), (66_500, 0.4), (445_000, 0.05)]);
        // Measured costs have no common measure, and claims of server tables have.
        let odd = atoms(&[(0, 0.5), (2_347, 0.3), (61_713, 0.15), (403_199, 0.05)]);
        let mut random = Random::new(20_261_122);
        for hop in [&hop, &odd] {
            for text in [
                "40 hops",
                "40 parallel hops",
                "8 hops + 40 parallel hops",
                "5 x 8 parallel hops",
                "6 parallel chains of 7 hops",
            ] {
                let shape = shape(text);
                let added = Added::of(&shape, hop);
                let n = 20_000;
                let requests = simulated(&shape, hop, n, &mut random);
                for q in [0.5, 0.9, 0.99] {
                    // The simulation's own doubt: the order statistics four deviations to each side.
                    let half = 4.0 * (n as f64 * q * (1.0 - q)).sqrt();
                    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a rank
                    let at = |rank: f64| requests[(rank.max(0.0) as usize).min(n - 1)];
                    let (low, high) = (at(n as f64 * q - half - 1.0), at(n as f64 * q + half + 1.0));
                    let (got, step) = (added.quantile_ns(q), if added.is_exact { 0 } else { added.step_ns });
                    assert!(low <= got + step && got <= high + step, "{text} q {q}: {low} <= {got} <= {high}");
                }
            }
        }
    }

    #[test]
    fn any_cost_and_any_shape_is_some_number() {
        for hop in [&[(u64::MAX, 1.0)][..], &[(1, f64::NAN), (2, -1.0)], &[(0, 1.0)], &[(3, 1e300), (5, 1e300)]] {
            for text in ["1 hop", "10000 hops", "10000 parallel hops", "100 x 100 parallel chains of 100 hops"] {
                let added = Added::of(&shape(text), &atoms(hop));
                let (half, most) = (added.quantile_ns(0.5), added.quantile_ns(1.0));
                assert!(half <= most, "{text}");
            }
        }
    }

    #[test]
    fn ten_thousand_hops_keep_their_mean() {
        let hop = atoms(&[(1, 0.5), (99_999, 0.5)]);
        let added = Added::of(&shape("10000 hops"), &hop);
        // Half a second on average; the median of so many lies there.
        let median = added.quantile_ns(0.5) as f64;
        assert!(!added.is_exact && (median / 5e8 - 1.0).abs() < 1e-4, "{median}");
    }
}

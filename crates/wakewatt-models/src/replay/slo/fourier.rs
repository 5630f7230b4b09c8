//! The discrete Fourier transform: sums of many independent delays without adding them one by one.
//!
//! The distribution of a sum of n independent values is the n-fold convolution of theirs, and a convolution is a product of transforms. So one
//! transform, a power and one transform back do for any n. Radix two, in place (Cooley & Tukey 1965). With 2^18 points the error stays
//! below 1e-12 of a probability, far below any percentile asked for.

/// A complex number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Complex {
    pub(super) re: f64,
    pub(super) im: f64,
}

impl Complex {
    pub(super) const ONE: Complex = Complex { re: 1.0, im: 0.0 };

    pub(super) fn times(self, other: Complex) -> Complex {
        Complex { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }

    /// To a whole power, by squaring.
    pub(super) fn power(self, mut n: u32) -> Complex {
        let (mut base, mut out) = (self, Complex::ONE);
        while n > 0 {
            if n & 1 == 1 {
                out = out.times(base);
            }
            base = base.times(base);
            n >>= 1;
        }
        out
    }
}

/// Transforms in place; the length is a power of two, and anything else is left as it is.
pub(super) fn transform(values: &mut [Complex], is_back: bool) {
    let n = values.len();
    if n < 2 || !n.is_power_of_two() {
        return;
    }
    let bits = n.ilog2();
    for at in 0..n {
        let mirrored = at.reverse_bits() >> (usize::BITS - bits);
        if at < mirrored {
            values.swap(at, mirrored);
        }
    }
    let sign = if is_back { 1.0 } else { -1.0 };
    // Turns are computed, not multiplied up: errors would add.
    let turn = |k: usize| {
        let angle = sign * std::f64::consts::TAU * k as f64 / n as f64;
        Complex { re: angle.cos(), im: angle.sin() }
    };
    let turns: Vec<Complex> = (0..n / 2).map(turn).collect();
    let mut half = 1;
    while half < n {
        let step = n / (2 * half);
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                let turned = b.times(turns[k * step]);
                (*a, *b) = (
                    Complex { re: a.re + turned.re, im: a.im + turned.im },
                    Complex { re: a.re - turned.re, im: a.im - turned.im },
                );
            }
        }
        half *= 2;
    }
    if is_back {
        let scale = 1.0 / n as f64;
        values.iter_mut().for_each(|v| (v.re, v.im) = (v.re * scale, v.im * scale));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_is_where_it_was() {
        let values: Vec<Complex> = (0..1024).map(|i| Complex { re: f64::from(i % 37), im: f64::from(i % 5) }).collect();
        let mut turned = values.clone();
        transform(&mut turned, false);
        transform(&mut turned, true);
        assert!(values.iter().zip(&turned).all(|(a, b)| (a.re - b.re).abs() < 1e-9 && (a.im - b.im).abs() < 1e-9));
    }

    #[test]
    fn a_power_is_a_convolution() {
        // Two dice: 1/36 for the 2, 6/36 for the 7.
        let mut die = vec![Complex::default(); 16];
        (1..=6).for_each(|face| die[face].re = 1.0 / 6.0);
        transform(&mut die, false);
        die.iter_mut().for_each(|v| *v = v.power(2));
        transform(&mut die, true);
        assert!((die[2].re - 1.0 / 36.0).abs() < 1e-15 && (die[7].re - 6.0 / 36.0).abs() < 1e-15);
        assert_eq!(Complex { re: 0.0, im: 1.0 }.power(3), Complex { re: -0.0, im: -1.0 });
    }
}

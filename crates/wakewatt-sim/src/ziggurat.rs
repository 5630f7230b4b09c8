//! Exponential random numbers without a logarithm in nearly all of them: the ziggurat of Marsaglia & Tsang (J. Stat. Software 5(8), 2000).
//!
//! The area below exp(-x) is cut into 256 layers of equal area. One random number names a layer and a place in it; in 98.9 % of cases that place is
//! below the curve whatever the height, and is the answer. Else the height is drawn, or, in the lowest layer, the tail, which is exponential
//! itself. The distribution is exact; a simulation draws two such numbers for each request, and a logarithm each was a tenth of its time.

use wakewatt_core::stats::random::Random;

const LAYERS: usize = 256;
/// Where the tail begins, and the area of each layer, for 256 of them.
const TAIL: f64 = 7.697_117_470_131_05;
const AREA: f64 = 0.003_949_659_822_581_557;

/// Right edge of each layer, widest first, and the curve's height there.
struct Layers {
    edge: [f64; LAYERS + 1],
    height: [f64; LAYERS + 1],
    /// The edge, of a place in 53 bits.
    step: [f64; LAYERS],
}

/// Made with the program: a table that is made at its first use is asked for at every use.
static TABLE: Layers = layers();

const fn layers() -> Layers {
    let mut t = Layers { edge: [0.0; LAYERS + 1], height: [1.0; LAYERS + 1], step: [0.0; LAYERS] };
    // The lowest layer has the tail's area too: as a rectangle it would be this wide.
    t.edge[0] = AREA / falling(TAIL);
    t.edge[1] = TAIL;
    let mut i = 0;
    while i < LAYERS {
        if i > 1 {
            let height = AREA / t.edge[i - 1] + t.height[i - 1];
            t.edge[i] = where_it_is(height, t.edge[i - 1]);
        }
        t.height[i] = falling(t.edge[i]);
        t.step[i] = t.edge[i] / (1u64 << 53) as f64;
        i += 1;
    }
    t
}

/// exp(-x) for x from 0 to 10, where the compiler has no exponential: a series for a small part of x, squared.
const fn falling(x: f64) -> f64 {
    let (part, mut term, mut sum, mut k) = (x / 1024.0, 1.0, 1.0, 1);
    while k < 12 {
        term = -term * part / k as f64;
        sum += term;
        k += 1;
    }
    let mut squared = 0;
    while squared < 10 {
        sum = sum * sum;
        squared += 1;
    }
    sum
}

/// Where exp(-x) is so high, by Newton's method from a place to the right.
const fn where_it_is(height: f64, from: f64) -> f64 {
    let (mut x, mut turn) = (from, 0);
    while turn < 30 {
        x += 1.0 - height / falling(x);
        turn += 1;
    }
    x
}

/// Exponential with mean 1.
#[inline]
pub(crate) fn exponential(random: &mut Random) -> f64 {
    let bits = random.bits();
    #[allow(clippy::cast_possible_truncation)] // The lowest eight bits; the place takes the highest 53.
    let layer = (bits & 0xff) as usize;
    let x = (bits >> 11) as f64 * TABLE.step[layer];
    if x < TABLE.edge[layer + 1] { x } else { rarely(layer, x, random) }
}

/// Beside the inner part of its layer.
#[cold]
fn rarely(layer: usize, x: f64, random: &mut Random) -> f64 {
    if layer == 0 {
        return TAIL - (1.0 - random.unit()).ln();
    }
    let (low, high) = (TABLE.height[layer], TABLE.height[layer + 1]);
    if low + (high - low) * random.unit() < (-x).exp() { x } else { exponential(random) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_have_one_area_and_end_at_the_top() {
        let t = &TABLE;
        for i in 1..LAYERS {
            let area = t.edge[i] * (t.height[i + 1] - t.height[i]);
            assert!((area / AREA - 1.0).abs() < 1e-9, "layer {i}: {area}");
            assert!((t.height[i] / (-t.edge[i]).exp() - 1.0).abs() < 1e-11, "layer {i}");
        }
        assert_eq!((t.edge[LAYERS], t.height[LAYERS]), (0.0, 1.0));
        // The lowest: a rectangle and the tail.
        assert!((TAIL * t.height[1] + t.height[1] - AREA).abs() < 1e-12);
    }

    #[test]
    fn every_part_of_the_distribution_has_its_share() {
        let mut random = Random::new(11);
        let n = 2_000_000;
        let edges = [0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 7.0, 7.697, 8.5, 10.0];
        let mut below = [0u32; 11];
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..n {
            let x = exponential(&mut random);
            assert!(x >= 0.0);
            (sum, squares) = (sum + x, squares + x * x);
            edges.iter().zip(&mut below).for_each(|(edge, n)| *n += u32::from(x < *edge));
        }
        for (edge, found) in edges.iter().zip(below) {
            let share = 1.0 - (-edge).exp();
            // Five standard deviations of a binomial.
            let doubt = 5.0 * (share * (1.0 - share) / f64::from(n)).sqrt();
            assert!((f64::from(found) / f64::from(n) - share).abs() < doubt, "below {edge}: {found}, not {share}");
        }
        let mean = sum / f64::from(n);
        assert!((mean - 1.0).abs() < 0.004 && (squares / f64::from(n) - 2.0).abs() < 0.02, "{mean}");
    }
}

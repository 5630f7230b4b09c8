//! A histogram of the eBPF programs as Prometheus wants it: native (exponential) buckets, and twenty classic ones beside them.
//!
//! The kernel side counts in buckets of at most 12.5 % that begin and end at multiples of 16 ns (core's `kernel_histogram`). Count and sum are exact in
//! both forms. Classic bounds are 1.024 us times powers of two, which are edges of the kernel's buckets, so their counts are exact
//! too. Native buckets of schema 3 (8 per doubling of a second) have other edges: a kernel bucket goes where its geometric middle lies, so a value
//! may stand one bucket (9 %) beside its own.

use wakewatt_core::samples::kernel_histogram::{KernelHistogram, N_BUCKETS, edges_ns};

/// Buckets per doubling are two to the power of this.
pub const SCHEMA: i32 = 3;
/// Values below count as zero: the unit of the kernel's buckets.
pub const ZERO_BELOW_S: f64 = 16e-9;
/// The least classic bound.
const FIRST_BOUND_NS: u64 = 1024;
/// Classic buckets but for the last one, which holds everything.
const N_CLASSIC: u32 = 20;

/// Counted values, ready for a format.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Values.
    pub n: u64,
    /// Their sum in seconds.
    pub sum_s: f64,
    /// Upper bound in seconds and how many values lie at or below; the bound without end is left to the format.
    pub classic: Vec<(f64, u64)>,
    /// Values below [`ZERO_BELOW_S`].
    pub n_zero: u64,
    /// Native buckets that hold something: index and count, ascending.
    pub native: Vec<(i32, u64)>,
}

impl Histogram {
    /// From what the kernel counted.
    pub fn of(counted: &KernelHistogram) -> Histogram {
        let used = || counted.buckets.iter().enumerate().filter(|(_, n)| **n > 0);
        let bounds = (0..N_CLASSIC).map(|k| FIRST_BOUND_NS << k);
        let below = |bound_ns: u64| {
            let whole = used().filter(|(at, _)| *at + 1 < N_BUCKETS && edges_ns(*at).1 <= bound_ns);
            whole.map(|(_, n)| n).sum()
        };
        let mut found = Histogram {
            n: counted.n,
            sum_s: counted.sum_ns as f64 / 1e9,
            classic: bounds.map(|bound_ns| (bound_ns as f64 / 1e9, below(bound_ns))).collect(),
            ..Histogram::default()
        };
        for (at, &n) in used() {
            let (low_ns, high_ns) = edges_ns(at);
            if low_ns == 0 {
                found.n_zero += n;
                continue;
            }
            let middle_s = (low_ns as f64 * high_ns as f64).sqrt() / 1e9;
            let index = native_index(middle_s);
            match found.native.last_mut() {
                Some((last, count)) if *last == index => *count += n,
                _ => found.native.push((index, n)),
            }
        }
        found
    }
}

/// The native bucket whose range holds a value: (2^((i-1)/8), 2^(i/8)] seconds.
fn native_index(seconds: f64) -> i32 {
    let per_doubling = f64::from(1 << SCHEMA);
    // Between 2^-26 and 2^6 seconds.
    #[allow(clippy::cast_possible_truncation)]
    let index = (seconds.log2() * per_doubling).ceil() as i32;
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_sums_are_exact_and_places_near() {
        let mut counted = KernelHistogram::default();
        for ns in [3, 40, 900, 1_024, 1_500, 33_000, 2_000_000, 700_000_000, 40_000_000_000] {
            counted.add(ns);
        }
        let found = Histogram::of(&counted);
        assert_eq!((found.n, found.n_zero), (9, 1));
        assert!((found.sum_s - 40.702_036_467).abs() < 1e-9, "{}", found.sum_s);
        assert_eq!(found.n_zero + found.native.iter().map(|(_, n)| n).sum::<u64>(), 9);
        assert_eq!(found.classic.len(), 20);
        assert_eq!(found.classic[0], (1.024e-6, 3), "1024 ns begin the next bucket");
        assert_eq!((found.classic[5].1, found.classic[6].1), (5, 6), "33 us lie above 32.8: {:?}", found.classic);
        assert!(found.classic.windows(2).all(|w| w[0].1 <= w[1].1 && w[0].0 < w[1].0));
        assert!(found.native.windows(2).all(|w| w[0].0 < w[1].0));
    }

    #[test]
    fn a_value_is_at_most_one_native_bucket_away() {
        for ns in (16..5_000_000u64).step_by(997) {
            let mut counted = KernelHistogram::default();
            counted.add(ns);
            let at = Histogram::of(&counted).native[0].0;
            let own = native_index(ns as f64 / 1e9);
            assert!((at - own).abs() <= 1 || ns < 128, "{ns} ns: bucket {at}, own {own}");
        }
    }
}

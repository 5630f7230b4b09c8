//! A level's window in parts, so that CPU time per operation gets an interval.
//!
//! CPU time is one number per window, and neighbouring operations are alike: a burst, a clock change or a neighbour moves
//! hundreds of them. Batch means (Law and Carson 1979) take parts of the window: ten of them, each with its own CPU time over
//! its own operations, and the interval is that of ten numbers (Walsh averages). What lasts longer than a part is not in it.
//! Latencies have the same from the tenths of their distribution.

use wakewatt_core::samples::load::Range;
use wakewatt_core::stats::signed_rank;

/// Parts of a window.
pub const N_PARTS: usize = 10;
/// /proc/stat counts in ticks of 10 ms: a shorter part would be rounding.
const LEAST_PART_NS: u64 = 1_000_000_000;
const LEVEL: f64 = 0.05;

/// An operation ended: counts it in the part of the window that this moment lies in, if any.
pub fn count_ended(parts: &mut [u64], (from_ns, to_ns): (u64, u64), at_ns: u64) {
    if (from_ns..to_ns).contains(&at_ns) {
        let place = u128::from(at_ns - from_ns) * parts.len() as u128 / u128::from(to_ns - from_ns);
        if let Some(part) = usize::try_from(place).ok().and_then(|place| parts.get_mut(place)) {
            *part += 1;
        }
    }
}

/// Of several threads.
pub fn sum_parts<'a>(threads: impl IntoIterator<Item = &'a [u64]>) -> Vec<u64> {
    let mut all = Vec::new();
    for thread in threads {
        all.resize(all.len().max(thread.len()), 0u64);
        all.iter_mut().zip(thread).for_each(|(sum, n)| *sum += n);
    }
    all
}

/// Where CPU time per operation lies; `cpu_ns` is that of each part, where it was read, and the window so long.
pub fn cpu_per_op(ended: &[u64], cpu_ns: &[u64], window_ns: u64) -> Option<Range> {
    let is_known = ended.len() == N_PARTS && cpu_ns.len() == N_PARTS && window_ns / N_PARTS as u64 >= LEAST_PART_NS;
    let of = |(n, cpu_ns): (&u64, &u64)| (*n > 0).then(|| *cpu_ns as f64 / *n as f64);
    let all: Vec<f64> = ended.iter().zip(cpu_ns).filter(|_| is_known).map(of).collect::<Option<_>>()?;
    let found = signed_rank::interval(&all, LEVEL);
    found.is_at(LEVEL).then_some(Range { low_ns: found.low, high_ns: found.high, confidence: found.confidence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn ten_parts_have_an_interval_and_a_window_too_short_has_none() {
        let ended = vec![2000; N_PARTS];
        let cpu_ns: Vec<u64> = (0..N_PARTS as u64).map(|part| 2000 * (50_000 + part * 100)).collect();
        let cpu = cpu_per_op(&ended, &cpu_ns, 10 * S).unwrap();
        assert!((50_000.0..50_450.0).contains(&cpu.low_ns) && (50_450.0..51_000.0).contains(&cpu.high_ns), "{cpu:?}");
        assert!(cpu.confidence >= 0.95);
        assert_eq!(cpu_per_op(&ended, &cpu_ns, S), None, "ticks");
        assert_eq!(cpu_per_op(&ended, &cpu_ns[..9], 10 * S), None);
        assert_eq!(cpu_per_op(&[0; N_PARTS], &cpu_ns, 10 * S), None, "nothing ended");
        assert_eq!(sum_parts([&[1, 2][..], &[], &[3, 4]]), [4, 6]);
    }

    proptest! {
        #[test]
        fn every_moment_of_a_window_has_one_part(from in 0u64..1000, length in 1u64..100_000, at in 0u64..200_000) {
            let mut parts = [0; N_PARTS];
            count_ended(&mut parts, (from, from + length), at);
            prop_assert_eq!(parts.iter().sum::<u64>() == 1, at >= from && at < from + length);
        }
    }
}

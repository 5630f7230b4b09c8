//! When requests are planned: think times of clients, and arrivals that depend on nobody.
//!
//! A client's next request is planned when its answer came plus a think time; an arrival is planned after the arrival before
//! it. Either is a moment on the clock, and latency counts from that moment, however late the client was woken: a client
//! that starts its stopwatch only when it gets to run hides what the machine did to everybody (coordinated omission).
//! Times between are exponential (SPECpower's and TPC-W's choice): even spacing would let an idle governor foresee every
//! sleep. Seeds make the same plan again, so that two settings can be compared under the same one.

use wakewatt_core::stats::random::Random;

/// Longer than this many means is cut; of 22 000 think times one is. A client that sleeps for minutes is no client.
const MOST_MEANS: f64 = 10.0;

/// An exponential time with this mean.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Not negative, at most ten means.
pub fn exponential_ns(random: &mut Random, mean_ns: f64) -> u64 {
    (-(1.0 - random.unit()).ln()).min(MOST_MEANS).mul_add(mean_ns, 0.5) as u64
}

/// The stream of one client or one generator thread: independent of the others, the same for the same seed.
pub fn stream(seed: u64, at: u32) -> Random {
    Random::new(seed ^ (u64::from(at) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Where in the ramp a client comes in: evenly, so that load grows steadily.
pub fn joins_after_ns(at: u32, n: u32, ramp_ns: u64) -> u64 {
    let share = f64::from(at) / f64::from(n.max(1));
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Within the ramp.
    let ns = (ramp_ns as f64 * share) as u64;
    ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn think_times_are_exponential() {
        let mut random = stream(7, 3);
        let times: Vec<u64> = (0..100_000).map(|_| exponential_ns(&mut random, 1e9)).collect();
        let mean = times.iter().map(|t| *t as f64).sum::<f64>() / times.len() as f64;
        assert!((mean / 1e9 - 1.0).abs() < 0.02, "{mean}");
        // Memoryless: of those longer than the mean (1/e), as many are longer than two means.
        let longer = |ns: u64| times.iter().filter(|t| **t > ns).count() as f64 / times.len() as f64;
        for k in 1..4u32 {
            let expected = (-f64::from(k)).exp();
            assert!((longer(u64::from(k) * 1_000_000_000) - expected).abs() < 0.01, "{k}");
        }
        assert!(times.iter().all(|t| *t <= 10_000_000_001));
    }

    #[test]
    fn streams_repeat_and_differ() {
        let draw = |seed, at| (0..4).map(|_| exponential_ns(&mut stream(seed, at), 1e9)).collect::<Vec<_>>();
        assert_eq!(draw(1, 0), draw(1, 0));
        assert!(draw(1, 0) != draw(1, 1) && draw(1, 0) != draw(2, 0));
    }

    #[test]
    fn clients_come_in_evenly() {
        let all: Vec<u64> = (0..4).map(|at| joins_after_ns(at, 4, 1000)).collect();
        assert_eq!(all, [0, 250, 500, 750]);
        assert_eq!(joins_after_ns(0, 0, 1000), 0);
    }
}

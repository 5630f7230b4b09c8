//! intel_pstate in active mode without hardware control, policy "powersave": the driver's own rule, unchanged from 5.3 to 6.18.
//!
//! At most every 10 ms it asks how much of the time the core ran (MPERF against TSC) and takes that share of the highest ratio and a
//! quarter more; where the core ran faster than that of late, it meets it halfway. Policy "performance" is the highest ratio
//! and nothing else. With hardware control the kernel chooses no clock (`hwp.rs`). Read, not held against
//! compiled code.

/// Least time between two samples, in nanoseconds.
pub const SAMPLE_NS: u64 = 10_000_000;
/// One, in shares of eight bits.
const ONE: u64 = 256;
/// First boost of a task that waited for I/O.
const BOOST_START: u32 = 32;

/// Ratios of a core: multiples of the bus clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratios {
    /// Lowest.
    pub min: u32,
    /// Without turbo: MPERF and TSC count at this.
    pub base: u32,
    /// Highest in use: turbo's, or the base where turbo is off.
    pub top: u32,
    /// Lowest that the limits allow.
    pub limit_min: u32,
    /// Highest that the limits allow.
    pub limit_max: u32,
}

/// A sample of the counters: what passed since the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Cycles run at the real clock.
    pub aperf: u64,
    /// Cycles run at the base clock.
    pub mperf: u64,
    /// Cycles of the base clock.
    pub tsc: u64,
}

/// The ratio after a sample; the lowest where the counters stood still.
pub fn next_ratio(ratios: Ratios, sample: Sample, boost: u32) -> u32 {
    let share = |part: u64, whole: u64, by: u64| {
        let wide = u128::from(part) * u128::from(by) / u128::from(whole.max(1));
        u64::try_from(wide).unwrap_or(u64::MAX)
    };
    let busy = share(sample.mperf, sample.tsc, ONE).max(u64::from(boost));
    let top = u64::from(ratios.top) + u64::from(ratios.top >> 2);
    let mut target = (top.saturating_mul(busy) / ONE).max(u64::from(ratios.min));
    let ran_at = share(sample.aperf, sample.mperf, u64::from(ratios.base));
    if ran_at > target {
        target += (ran_at - target) / 2;
    }
    let held = target.max(u64::from(ratios.limit_min)).min(u64::from(ratios.limit_max));
    u32::try_from(held).unwrap_or(ratios.limit_max)
}

/// The boost after a sample: `is_recent` if the last was within a tick.
pub fn next_boost(boost: u32, is_iowait_wake: bool, is_recent: bool) -> u32 {
    match (is_iowait_wake, is_recent) {
        (true, false) => BOOST_START,
        (true, true) => boost.saturating_mul(2).clamp(BOOST_START, 256),
        (false, true) => boost / 2,
        (false, false) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATIOS: Ratios = Ratios { min: 12, base: 24, top: 35, limit_min: 12, limit_max: 35 };

    fn said(busy_percent: u64, real_to_base_percent: u64, boost: u32) -> u32 {
        let mperf = busy_percent * 1000;
        let sample = Sample { aperf: mperf * real_to_base_percent / 100, mperf, tsc: 100_000 };
        next_ratio(RATIOS, sample, boost)
    }

    #[test]
    fn busy_cores_get_their_share_and_meet_the_past_halfway() {
        assert_eq!([said(40, 125, 0), said(5, 50, 0), said(90, 140, 0), said(10, 60, 128)], [23, 12, 35, 21]);
        assert_eq!(next_ratio(RATIOS, Sample { aperf: 0, mperf: 0, tsc: 0 }, 0), 12);
    }

    #[test]
    fn boosts_double_and_fade() {
        assert_eq!(
            [next_boost(0, true, false), next_boost(32, true, true), next_boost(256, true, true)],
            [32, 64, 256]
        );
        assert_eq!([next_boost(64, false, true), next_boost(64, false, false), next_boost(0, true, true)], [32, 0, 32]);
    }
}

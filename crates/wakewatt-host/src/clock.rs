//! Clocks in nanoseconds, and what one reading costs.
//!
//! CLOCK_MONOTONIC is the clock of plans and latencies: timers run on it, and stamps of different CPUs of one machine
//! may be compared (on the development VM within ±150 ns). CLOCK_REALTIME is only used where the kernel stamps
//! packets with it; differences are taken within one host and within microseconds, so its slewing does not matter,
//! and its jumps are rejected by the caller.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// CLOCK_MONOTONIC.
pub fn monotonic_ns() -> u64 {
    ns_of(clock_gettime(ClockId::Monotonic))
}

/// CLOCK_REALTIME, the clock of the kernel's packet stamps.
pub fn realtime_ns() -> u64 {
    ns_of(clock_gettime(ClockId::Realtime))
}

/// CLOCK_BOOTTIME: runs on in suspend.
pub fn boottime_ns() -> u64 {
    ns_of(clock_gettime(ClockId::Boottime))
}

/// Sleeps until the boot clock shows this, suspended time included; no step of the wall clock moves it.
pub fn sleep_until_boottime(until_ns: u64) {
    let part = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let until = Timespec { tv_sec: part(until_ns / 1_000_000_000), tv_nsec: part(until_ns % 1_000_000_000) };
    while boottime_ns() < until_ns {
        let _ = rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Boottime, &until);
    }
}

/// CPU time this process has used.
pub fn own_cpu_ns() -> u64 {
    ns_of(clock_gettime(ClockId::ProcessCPUTime))
}

/// CPU time the calling thread has used. A system call, unlike the clocks above.
pub fn thread_cpu_ns() -> u64 {
    ns_of(clock_gettime(ClockId::ThreadCPUTime))
}

/// Cost of one CLOCK_MONOTONIC read: the median over 21 batches of 100, so an interrupt in one does not count.
pub fn read_cost_ns() -> u64 {
    let mut batches = [0u64; 21];
    for batch in &mut batches {
        let start = monotonic_ns();
        for _ in 0..99 {
            std::hint::black_box(monotonic_ns());
        }
        *batch = (monotonic_ns() - start) / 100;
    }
    batches.sort_unstable();
    batches[batches.len() / 2]
}

pub(crate) fn ns_of(t: Timespec) -> u64 {
    // Clocks count up from zero or 1970: neither part is negative.
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0)
}

pub(crate) fn timespec_of(ns: u64) -> Timespec {
    // At most 10^9 - 1, and 584 years: both fit.
    let part = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    Timespec { tv_sec: part(ns / 1_000_000_000), tv_nsec: part(ns % 1_000_000_000) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_forward_and_a_read_is_cheap() {
        let (a, b) = (monotonic_ns(), monotonic_ns());
        assert!(b >= a);
        assert!((1..50_000).contains(&read_cost_ns()));
        assert_eq!(ns_of(timespec_of(1_234_567_890_123)), 1_234_567_890_123);
    }
}

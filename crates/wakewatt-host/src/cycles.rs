//! Core cycles of the calling thread, by perf_event_open: over clock time, the effective frequency.
//!
//! The counter belongs to the thread and runs on whatever CPU it is on, so reading it wakes nobody (APERF and MPERF of
//! another CPU would be an interrupt to it). A guest without a virtual PMU has none; `perf_event_paranoid` of 2 allows
//! user-mode cycles only, which for a loop that makes no system call is nearly all.

use crate::ipi::open;
use rustix::fd::OwnedFd;
use std::io;

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_COUNT_HW_CPU_CYCLES: u64 = 0;
/// Bits of the flags word: kernel and hypervisor left out.
const EXCLUDE_KERNEL_AND_HV: u64 = 1 << 5 | 1 << 6;

/// A running counter.
#[derive(Debug)]
pub struct Cycles(OwnedFd);

impl Cycles {
    /// Of the calling thread, from now on.
    pub fn of_this_thread() -> io::Result<Cycles> {
        let with = |flags| open(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, flags, 0, -1);
        with(0).or_else(|_| with(EXCLUDE_KERNEL_AND_HV)).map(Cycles)
    }

    /// Cycles so far.
    pub fn read(&self) -> io::Result<u64> {
        let mut value = [0u8; 8];
        rustix::io::read(&self.0, &mut value)?;
        Ok(u64::from_ne_bytes(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_count_up_or_are_refused() {
        if let Ok(cycles) = Cycles::of_this_thread() {
            let before = cycles.read().unwrap();
            assert!(cycles.read().unwrap() >= before);
        }
    }
}

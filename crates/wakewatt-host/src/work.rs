//! Cycles and instructions of one CPU, whoever runs there: two hardware counters by perf_event_open.
//!
//! Reading them from elsewhere interrupts that CPU once each, so they are read at the start and the end of a window and not
//! in between. Needs CAP_PERFMON or perf_event_paranoid of 0 or less, and a PMU, which most guests do not have. Where other
//! users of the PMU leave too few counters the kernel takes turns. The two are one group, so they are counted in the same
//! turns and read at the same moment: their ratio is right whatever part of the time they had, and both are zero if none.

use crate::ipi::open_in_group;
use rustix::fd::OwnedFd;
use std::io;
use wakewatt_core::units::Cpu;

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_COUNT_HW_CPU_CYCLES: u64 = 0;
const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;

/// Both counters of a CPU, running.
#[derive(Debug)]
pub struct WorkCounters {
    leader: OwnedFd,
    _instructions: OwnedFd,
}

impl WorkCounters {
    /// From now on, on this CPU.
    pub fn on(cpu: Cpu) -> io::Result<WorkCounters> {
        let leader = open_in_group(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, cpu, None)?;
        let instructions = open_in_group(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, cpu, Some(&leader))?;
        Ok(WorkCounters { leader, _instructions: instructions })
    }

    /// Cycles and instructions so far.
    pub fn read(&self) -> io::Result<(u64, u64)> {
        // How many values, then these, the leader's first (perf_event_open(2), PERF_FORMAT_GROUP).
        let mut bytes = [0u8; 24];
        let n_bytes = rustix::io::read(&self.leader, &mut bytes)?;
        let mut words = bytes.chunks_exact(8).map(|w| w.try_into().map_or(0, u64::from_ne_bytes));
        match (n_bytes, words.next(), words.next(), words.next()) {
            (24, Some(2), Some(n_cycles), Some(n_instructions)) => Ok((n_cycles, n_instructions)),
            _ => Err(io::Error::other(format!("a group of two counters was read as {n_bytes} bytes"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_count_up_or_are_refused() {
        if let Ok(counters) = WorkCounters::on(0) {
            let before = counters.read().unwrap();
            let after = counters.read().unwrap();
            assert!(after.0 >= before.0 && after.1 >= before.1);
        }
    }
}

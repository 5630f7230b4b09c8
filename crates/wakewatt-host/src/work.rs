//! Cycles and instructions of one CPU, whoever runs there: two hardware counters by perf_event_open.
//!
//! Reading them from elsewhere interrupts that CPU once each, so they are read at the start and the end of a window and not
//! in between. Needs CAP_PERFMON or perf_event_paranoid of 0 or less, and a PMU, which most guests do not have. Where other
//! users of the PMU leave too few counters the kernel takes turns; two counters are nearly always to be had.

use crate::ipi::RemoteCounter;
use std::io;
use wakewatt_core::units::Cpu;

const PERF_TYPE_HARDWARE: u32 = 0;
const PERF_COUNT_HW_CPU_CYCLES: u64 = 0;
const PERF_COUNT_HW_INSTRUCTIONS: u64 = 1;

/// Both counters of a CPU, running.
#[derive(Debug)]
pub struct WorkCounters {
    cycles: RemoteCounter,
    instructions: RemoteCounter,
}

impl WorkCounters {
    /// From now on, on this CPU.
    pub fn on(cpu: Cpu) -> io::Result<WorkCounters> {
        Ok(WorkCounters {
            cycles: RemoteCounter::of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, cpu)?,
            instructions: RemoteCounter::of(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, cpu)?,
        })
    }

    /// Cycles and instructions so far.
    pub fn read(&self) -> io::Result<(u64, u64)> {
        Ok((self.cycles.read()?, self.instructions.read()?))
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

//! How busy CPUs were between two moments, by /proc/stat.
//!
//! Ticks of 10 ms (USER_HZ is 100 on every architecture that matters): over a window of a minute that is exact enough, over
//! a tenth of a second it is not. Guest time is inside user time already. The moment of reading is taken beside the ticks,
//! because under full load the reader itself waits for a CPU.

use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::load::{CpuTime, between, cpu_times, parse_average};
use wakewatt_core::samples::load::CpuUse;
use wakewatt_core::source::Source;

/// Of one tick.
const TICK_NS: u64 = 10_000_000;
/// MSR_SMI_COUNT of Intel's processors.
const SMI_COUNT: u32 = 0x34;
/// The load average forgets with this time constant.
const AVERAGED_NS: u64 = 60_000_000_000;
/// Said where a level has none.
pub const NO_LOAD_AVERAGE: &str = "no load average: it is one of a minute, and ramp and recording together are shorter";

/// Times of some CPUs at one moment.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    at_ns: u64,
    cpus: Vec<CpuTime>,
}

/// What happened between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Used {
    /// Per CPU.
    pub cpus: Vec<CpuUse>,
    /// Busy time of all.
    pub cpu_ns: u64,
    /// The part of it in the kernel.
    pub system_ns: u64,
}

impl Usage {
    /// Reads these CPUs; what cannot be read stays out.
    pub fn read(src: &dyn Source, cpus: &CpuSet, at_ns: u64) -> Usage {
        Usage { at_ns, cpus: cpu_times(src, cpus) }
    }

    /// Since an earlier reading.
    pub fn since(&self, before: &Usage) -> Used {
        let window_ns = self.at_ns.saturating_sub(before.at_ns);
        let passed = between(&self.cpus, &before.cpus);
        let sum = |of: fn(&CpuTime) -> u64| passed.iter().map(of).fold(0, u64::saturating_add);
        Used {
            cpus: passed.iter().filter_map(|cpu| CpuUse::of(cpu, window_ns)).collect(),
            cpu_ns: sum(CpuTime::busy_ns),
            system_ns: sum(CpuTime::kernel_ns),
        }
    }
}

/// The one-minute load average, where the load had been on for a minute: before that it is mostly what was before.
pub fn load_average(src: &dyn Source, loaded_ns: u64) -> Option<f64> {
    if loaded_ns < AVERAGED_NS {
        return None;
    }
    let bytes = src.read("/proc/loadavg").ok()?;
    Some(parse_average(&String::from_utf8_lossy(&bytes)).ok()?.over_1min)
}

/// System-management interrupts so far: one CPU stands for all; on machines without the register, or without the right to
/// read it, there is none.
pub fn n_smis(src: &dyn Source, cpus: &CpuSet) -> Option<u64> {
    src.msr(cpus.first()?, SMI_COUNT).ok()
}

/// CPU time of some processes so far, by the ticks of their `stat`; of those that are gone none.
pub fn cpu_ns_of(src: &dyn Source, pids: &[u32]) -> u64 {
    let of = |pid: &u32| {
        let bytes = src.read(&format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        // The name in parentheses may hold anything, so what follows the last one is read.
        let (_, rest) = text.rsplit_once(')')?;
        let number = |nth: usize| rest.split_whitespace().nth(nth)?.parse::<u64>().ok();
        Some(number(11)?.saturating_add(number(12)?).saturating_mul(TICK_NS))
    };
    pids.iter().filter_map(of).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn ticks_become_shares_of_the_window() {
        let cpus = CpuSet::parse("0-2").unwrap();
        let read = |text: &str, at_ns| Usage::read(&Tree::from_text(&format!("//- /proc/stat\n{text}")), &cpus, at_ns);
        let before =
            read("cpu 1 1 1 1 1 1 1 1\ncpu0 10 0 0 0 0 0 0 0 0 0\ncpu1 5 5 5 5 5 5 5 5 0 0\ncpu3 0 0 0 0 0 0 0 0\n", 0);
        let after =
            read("cpu0 60 10 20 0 0 3 2 1 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\ncpu2 1 0 0 0 0 0 0 0\n", 1_000_000_000);
        let used = after.since(&before);
        assert_eq!(used.cpus.len(), 2, "a CPU that came or went has no difference");
        assert_eq!((used.cpu_ns, used.system_ns), (850_000_000, 250_000_000));
        assert!((used.cpus[0].user_ratio - 0.6).abs() < 1e-9 && (used.cpus[0].steal_ratio - 0.01).abs() < 1e-9);
        assert_eq!(used.cpus[1].busy_ratio(), 0.0, "counters that ran backwards are no time");
        let short = read("cpu0 18 1 0 0 0 0 0 0 0 0\n", 50_000_000).since(&before);
        assert!((short.cpus[0].busy_ratio() - 1.0).abs() < 1e-9, "90 ms of ticks in 50 ms");
        assert_eq!(read("cpu0 x\ncpu9999999999 1\n", 5).since(&before).cpus, []);
    }

    #[test]
    fn the_name_of_a_process_may_hold_anything() {
        let tree = Tree::from_text("//- /proc/7/stat\n7 (a) b (c)) S 1 1 1 0 -1 4 1 0 0 0 30 12 0 0 20 0 3\n");
        assert_eq!(cpu_ns_of(&tree, &[7, 8]), 420_000_000);
        let tree = Tree::from_text("//- /proc/loadavg\n0.52 0.1 0.1 1/2 3\n");
        assert_eq!((load_average(&tree, AVERAGED_NS), load_average(&tree, AVERAGED_NS - 1)), (Some(0.52), None));
        assert_eq!(load_average(&Tree::from_text("//- /proc/loadavg\nNaN\n"), AVERAGED_NS), None);
    }
}

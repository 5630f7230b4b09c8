//! What CPUs get done per cycle while the machine does its own work: counters at the start, counters at the end.
//!
//! Nothing runs in between, so the window can be that of another look (the trace). A CPU whose counters are refused is
//! left out; if all are, the first refusal says why.

use super::BenchError;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::load::{CpuTime, parse_stat};
use wakewatt_core::samples::Window;
use wakewatt_core::samples::work::{CpuWork, WorkSample};
use wakewatt_core::source::Source;
use wakewatt_core::units::Cpu;
use wakewatt_host::clock;
use wakewatt_host::work::WorkCounters;

/// A window under way.
pub struct WorkWatch {
    start_at_ns: u64,
    counters: Vec<(Cpu, WorkCounters)>,
    times: Vec<CpuTime>,
}

impl WorkWatch {
    /// Starts counting on these CPUs.
    pub fn start(src: &dyn Source, cpus: &CpuSet) -> Result<WorkWatch, BenchError> {
        let mut counters = Vec::with_capacity(cpus.len());
        let mut refusal = None;
        for cpu in cpus.iter() {
            match WorkCounters::on(cpu) {
                Ok(counter) => counters.push((cpu, counter)),
                Err(why) => refusal = refusal.or(Some((cpu, why))),
            }
        }
        match refusal {
            Some((cpu, why)) if counters.is_empty() => {
                let what = format!(
                    "counting instructions on CPU {cpu} (a guest without a virtual PMU, or perf_event_paranoid above 0)"
                );
                Err(BenchError::system(what, why))
            }
            _ => Ok(WorkWatch { start_at_ns: clock::monotonic_ns(), counters, times: times(src) }),
        }
    }

    /// How long it has been counting.
    pub fn length_ns(&self) -> u64 {
        clock::monotonic_ns() - self.start_at_ns
    }

    /// Reads everything once more.
    pub fn stop(self, src: &dyn Source) -> WorkSample {
        let window = Window { start_at_ns: self.start_at_ns, end_at_ns: clock::monotonic_ns() };
        let now = times(src);
        let busy = |cpu: Cpu| {
            let of = |all: &[CpuTime]| all.iter().find(|t| t.cpu == Some(cpu)).cloned();
            let spent = of(&now)?.since(&of(&self.times)?);
            spent.ratio(spent.busy_ns())
        };
        let one = |(cpu, counters): &(Cpu, WorkCounters)| {
            let (n_cycles, n_instructions) = counters.read().ok()?;
            Some(CpuWork { cpu: *cpu, busy_ratio: busy(*cpu)?, n_cycles, n_instructions })
        };
        WorkSample { window, cpus: self.counters.iter().filter_map(one).collect() }
    }
}

fn times(src: &dyn Source) -> Vec<CpuTime> {
    let text = src.read("/proc/stat").unwrap_or_default();
    parse_stat(&String::from_utf8_lossy(&text)).map_or_else(|_| Vec::new(), |stat| stat.cpus)
}

//! The machine left alone, and what happened on it all the same: how often its CPUs left idle, how many interrupts and switches
//! there were, and how much CPU time was used.
//!
//! Nothing is done but to read counters at both ends (`/proc/stat`, cpuidle), so that whatever is counted is somebody's else:
//! that is how an agent's own cost is seen. Where there are no idle states to count, that number is missing. CPU time is
//! counted in ticks, so a block should last some seconds.

use crate::bench::IdleBaseline;
use crate::experiment::{Workload, Yield};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::load::{CpuTime, between, cpu_times};
use wakewatt_core::samples::experiment::{Better, Metric, Unit};
use wakewatt_core::source::Source;
use wakewatt_core::units::Cpu;
use wakewatt_host::clock::{monotonic_ns, own_cpu_ns};

/// How often the stop flag is looked at: rarely, because looking is a wake-up.
const STOP_LOOK: Duration = Duration::from_millis(500);

/// The workload that does nothing.
pub struct Alone<'a> {
    src: &'a dyn Source,
    cpus: CpuSet,
    duration_ns: u64,
}

/// At one moment.
struct Counters {
    idle: IdleBaseline,
    cpus: Vec<CpuTime>,
    interrupts: Option<u64>,
    switches: Option<u64>,
    own_ns: u64,
    at_ns: u64,
}

impl<'a> Alone<'a> {
    /// Counting on these CPUs, for so long.
    pub fn new(src: &'a dyn Source, cpus: CpuSet, duration_ns: u64) -> Alone<'a> {
        Alone { src, cpus, duration_ns }
    }

    fn read(&self) -> Counters {
        let cpus: Vec<Cpu> = self.cpus.iter().collect();
        let text = self.src.read("/proc/stat").unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let counter = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        Counters {
            idle: IdleBaseline::read(self.src, &cpus),
            cpus: cpu_times(self.src, &self.cpus),
            interrupts: counter("intr "),
            switches: counter("ctxt "),
            own_ns: own_cpu_ns(),
            at_ns: monotonic_ns(),
        }
    }

    /// What passed between then and now.
    fn since(&self, before: &Counters) -> Yield {
        let now = self.read();
        let seconds = now.at_ns.saturating_sub(before.at_ns).max(1) as f64 / 1e9;
        let idle = before.idle.since(self.src);
        let per_s = |n: u64| n as f64 / seconds;
        let wakes: u64 = idle.iter().flat_map(|d| &d.states).map(|s| s.n_usage).fold(0, u64::saturating_add);
        let counted = |now: Option<u64>, before: Option<u64>| Some(per_s(now?.checked_sub(before?)?));
        let busy = between(&now.cpus, &before.cpus).iter().map(CpuTime::busy_ns).fold(0, u64::saturating_add);
        let others_ns = busy.saturating_sub(now.own_ns.saturating_sub(before.own_ns));
        let values = vec![
            counted(now.switches, before.switches),
            (!idle.is_empty()).then(|| per_s(wakes)),
            counted(now.interrupts, before.interrupts),
            (!now.cpus.is_empty()).then(|| per_s(others_ns)),
        ];
        Yield { values, idle, ..Yield::default() }
    }
}

/// Its metrics, known before anything is counted.
pub fn metrics_of() -> Vec<Metric> {
    let metric = |id: &str, title: &str, unit| Metric {
        clock_bound_ns: None,
        id: format!("alone.{id}"),
        title: title.into(),
        unit,
        better: Better::Lower,
    };
    vec![
        metric("switches", "context switches, machine left alone", Unit::PerSecond),
        metric("wakeups", "wake-ups from idle, machine left alone", Unit::PerSecond),
        metric("interrupts", "interrupts, machine left alone", Unit::PerSecond),
        metric("cpu", "CPU time used in a second, machine left alone", Unit::Nanoseconds),
    ]
}

impl Workload for Alone<'_> {
    fn metrics(&self) -> Vec<Metric> {
        metrics_of()
    }

    fn cpus(&self) -> CpuSet {
        self.cpus.clone()
    }

    fn warm_up(&mut self, duration_ns: u64, stop: &AtomicBool) {
        wait(duration_ns, stop);
    }

    fn measure(&mut self, stop: &AtomicBool) -> Result<Yield, String> {
        let before = self.read();
        wait(self.duration_ns, stop);
        // An interrupt cuts a block short; it is then rejected, not an error.
        Ok(if stop.load(Ordering::Relaxed) { Yield::default() } else { self.since(&before) })
    }
}

fn wait(duration_ns: u64, stop: &AtomicBool) {
    let end_ns = monotonic_ns().saturating_add(duration_ns);
    while !stop.load(Ordering::Relaxed) {
        match end_ns.saturating_sub(monotonic_ns()) {
            0 => return,
            left_ns => std::thread::sleep(Duration::from_nanos(left_ns).min(STOP_LOOK)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    #[test]
    fn what_passed_is_per_second_and_what_is_not_told_is_none() {
        let tree = |text: &str| Tree::from_text(text);
        let (cpus, second_ns) = (CpuSet::parse("0-1").unwrap(), 1_000_000_000);
        let now = tree("//- /proc/stat\ncpu0 150 0 0 0\nintr 5000 1 2\nctxt 9000\n");
        let before = tree("//- /proc/stat\ncpu0 50 0 0 0\nintr 1000 1 2\nctxt 1000\n");
        let mut first = Alone::new(&before, cpus.clone(), 1).read();
        // Two seconds ago, and nothing of it was ours.
        (first.at_ns, first.own_ns) = (monotonic_ns() - 2 * second_ns, own_cpu_ns());
        let found = Alone::new(&now, cpus.clone(), 1).since(&first);
        let near = |value: Option<f64>, wanted: f64| value.is_some_and(|v| (v / wanted - 1.0).abs() < 0.05);
        assert!(near(found.values[0], 4000.0) && near(found.values[2], 2000.0), "{:?}", found.values);
        assert_eq!(found.values[1], None, "no idle states, no wake-ups");
        assert!(near(found.values[3], 0.5e9), "half a CPU: {:?}", found.values);
        let empty = tree("//- /proc/version\nx\n");
        let nothing = Alone::new(&empty, cpus, 1);
        assert_eq!(nothing.since(&nothing.read()).values, [None; 4]);
    }
}

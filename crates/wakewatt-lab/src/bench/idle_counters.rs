//! What the idle counters of some CPUs did during a measurement: did they really sleep, and how deep?
//!
//! `cpuidle/stateK/{name,usage,time}` before and after; `time` is in whole microseconds. A state still in progress
//! when the file is read is not counted yet. The window includes the probe's warm-up. A CPU without the folder (no
//! idle driver) gives no delta; that is absence, not zero.

use std::collections::BTreeMap;
use wakewatt_core::fact::{Fact, fact, parse};
use wakewatt_core::samples::{IdleDelta, StateDelta};
use wakewatt_core::source::Source;
use wakewatt_core::units::Cpu;

type Counters = BTreeMap<u32, (String, u64, u64)>;

/// Counters at the start of a window.
#[derive(Clone, Debug)]
pub struct IdleBaseline(Vec<(Cpu, Counters)>);

impl IdleBaseline {
    /// Reads them now.
    pub fn read(src: &dyn Source, cpus: &[Cpu]) -> IdleBaseline {
        IdleBaseline(cpus.iter().map(|&cpu| (cpu, counters(src, cpu))).collect())
    }

    /// Reads again: one delta for each CPU that has states, in the order asked for.
    pub fn since(&self, src: &dyn Source) -> Vec<IdleDelta> {
        let mut deltas = Vec::new();
        for (cpu, before) in &self.0 {
            let states: Vec<StateDelta> = counters(src, *cpu)
                .into_iter()
                .filter_map(|(index, (name, n_usage, time_ns))| {
                    let (_, usage_before, time_before) = before.get(&index)?;
                    // A counter that ran backwards was reset (hotplug): no delta rather than a wrong one.
                    let n_usage = n_usage.checked_sub(*usage_before)?;
                    Some(StateDelta { index, name, n_usage, time_ns: time_ns.checked_sub(*time_before)? })
                })
                .collect();
            if !states.is_empty() {
                deltas.push(IdleDelta { cpu: *cpu, states });
            }
        }
        deltas
    }
}

/// Adds the counts of a later window to an earlier one's.
pub fn add(total: &mut Vec<IdleDelta>, more: Vec<IdleDelta>) {
    for delta in more {
        match total.iter_mut().find(|t| t.cpu == delta.cpu) {
            None => total.push(delta),
            Some(known) => {
                for state in delta.states {
                    match known.states.iter_mut().find(|s| s.index == state.index) {
                        None => known.states.push(state),
                        Some(s) => {
                            s.n_usage += state.n_usage;
                            s.time_ns += state.time_ns;
                        }
                    }
                }
            }
        }
    }
}

fn counters(src: &dyn Source, cpu: Cpu) -> Counters {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
    let mut found = Counters::new();
    for entry in src.list(&folder).unwrap_or_default() {
        let Some(index) = entry.strip_prefix("state").and_then(|n| n.parse().ok()) else { continue };
        let file = |name: &str| format!("{folder}/{entry}/{name}");
        let name = fact(src, &file("name"), parse::word).get().cloned().unwrap_or_else(|| entry.clone());
        let usage = fact(src, &file("usage"), parse::number);
        let time = fact(src, &file("time"), parse::us_to_ns);
        if let (Fact::Known(n_usage), Fact::Known(time_ns)) = (usage, time) {
            found.insert(index, (name, n_usage, time_ns));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::source::Tree;

    fn host(usage: u32, time: u32) -> Tree {
        let root = "/sys/devices/system/cpu/cpu1/cpuidle/state1";
        Tree::from_text(&format!("//- {root}/name\nC1\n//- {root}/usage\n{usage}\n//- {root}/time\n{time}\n"))
    }

    #[test]
    fn counters_become_deltas_and_a_reset_is_no_delta() {
        let baseline = IdleBaseline::read(&host(10, 100), &[0, 1]);
        let mut deltas = baseline.since(&host(15, 900));
        let state = StateDelta { index: 1, name: "C1".into(), n_usage: 5, time_ns: 800_000 };
        assert_eq!(deltas, [IdleDelta { cpu: 1, states: vec![state] }]);
        assert!(baseline.since(&host(2, 900)).is_empty());
        add(&mut deltas, baseline.since(&host(11, 101)));
        assert_eq!((deltas[0].states[0].n_usage, deltas[0].states[0].time_ns), (6, 801_000));
    }
}

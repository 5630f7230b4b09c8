//! What a probe counted, under the names that states had while it counted.
//!
//! The kernel's tracepoint tells an index. Which state that is changes with the idle driver, and a probe that is read for months lives through that: what was
//! counted before keeps its names, and what comes is told under the new ones. A probe is made for so many states, one of which spins; a driver for which it is not
//! made is not counted, and that is said.

use super::names::Names;
use std::collections::BTreeMap;
use wakewatt_core::samples::kernel_histogram::KernelHistogram;
use wakewatt_core::samples::wakes::{Counted, WakeClass, WakeCounters};

/// Wake-ups by name and index of the state they left, and by class.
pub(super) type Latencies = BTreeMap<(String, u32, WakeClass), KernelHistogram>;

/// Names, and what was counted under others.
#[derive(Debug, Default)]
pub(super) struct Named {
    /// As they are now.
    pub names: Names,
    n_states: u32,
    polling: Option<u32>,
    /// When the names were others last, if ever.
    since: Option<WakeCounters>,
    before: Latencies,
    stale: Option<String>,
}

impl Named {
    /// Of a probe that is made for these.
    pub(super) fn of(names: Names) -> Named {
        let (n_states, polling) = (names.n_states(), names.polling());
        Named { names, n_states, polling, ..Named::default() }
    }

    /// Why nothing is counted now.
    pub(super) fn stale_because(&self) -> Option<&str> {
        self.stale.as_deref()
    }

    /// Takes other names; false where they are the same. `now` was read just before.
    pub(super) fn rename(&mut self, names: Names, now: &WakeCounters) -> bool {
        if self.names.is_same(&names) {
            return false;
        }
        self.before = self.latencies(now);
        let is_made_for = names.n_states() <= self.n_states && names.polling() == self.polling;
        self.stale = (!is_made_for).then(|| {
            let driver = names.driver().unwrap_or("none");
            format!("the idle driver is {driver} now, whose states the probe is not made for; start the agent again")
        });
        (self.names, self.since) = (names, Some(now.clone()));
        true
    }

    /// Everything since the probe was attached, of wake-ups whose state is known.
    pub(super) fn latencies(&self, now: &WakeCounters) -> Latencies {
        let mut all = self.before.clone();
        if self.stale.is_some() {
            return all;
        }
        let later = self.since.as_ref().map(|since| now.since(since));
        for cpu in &later.as_ref().unwrap_or(now).cpus {
            for ((state, kind), histogram) in &cpu.cells {
                if let (Some(state), Counted::Wake(class)) = (state, kind) {
                    let key = (self.names.of_state(cpu.cpu, *state), *state, *class);
                    all.entry(key).or_default().merge(histogram);
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wakewatt_core::facts::Snapshot;
    use wakewatt_core::samples::wakes::CpuCounters;
    use wakewatt_core::source::Tree;

    const CPU: &str = "/sys/devices/system/cpu";

    fn names(states: &[&str]) -> Names {
        let mut text = format!("//- {CPU}/present\n0\n//- {CPU}/online\n0\n");
        for (index, name) in states.iter().enumerate() {
            text += &format!("//- {CPU}/cpu0/cpuidle/state{index}/name\n{name}\n");
        }
        Names::of(&Snapshot::read(&Tree::from_text(&text), |topic| topic == "idle"))
    }

    fn counted(n: u64) -> WakeCounters {
        let mut hist = KernelHistogram::default();
        (0..n).for_each(|_| hist.add(100));
        let cells = [((Some(1), Counted::Wake(WakeClass::Remote)), hist)].into_iter().collect();
        WakeCounters { cpus: vec![CpuCounters { cells, ..CpuCounters::default() }], ..WakeCounters::default() }
    }

    #[test]
    fn what_was_counted_keeps_its_name() {
        let mut named = Named::of(names(&["C1", "haltpoll"]));
        let told = |named: &Named, n: u64| -> Vec<(String, u64)> {
            named.latencies(&counted(n)).into_iter().map(|((name, ..), hist)| (name, hist.n)).collect()
        };
        assert!(!named.rename(names(&["C1", "haltpoll"]), &counted(3)));
        assert_eq!(told(&named, 5), [("haltpoll".into(), 5)]);
        assert!(named.rename(names(&["C1", "C6"]), &counted(6)));
        let both = [("C6".to_string(), 2), ("haltpoll".into(), 6)];
        assert_eq!(told(&named, 8), both);
        // One more state than there is room for: what it does is nobody's.
        assert!(named.rename(names(&["C1", "C1E", "C6"]), &counted(8)));
        assert_eq!(told(&named, 20), both);
        assert!(named.stale_because().unwrap().contains("start the agent again"));
        assert!(named.rename(names(&["C1", "C6"]), &counted(20)));
        assert_eq!(told(&named, 21), [("C6".to_string(), 3), ("haltpoll".into(), 6)]);
        assert_eq!(named.stale_because(), None);
    }
}

//! Names of idle states by CPU and index, and what must be known about them when a trace is read.

use std::collections::BTreeMap;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::source::Source;
use wakewatt_core::units::LatencyLimit;

/// What governors look at.
pub(super) fn settings(src: &dyn Source) -> Snapshot {
    Snapshot::read(src, |topic| matches!(topic, "idle" | "qos"))
}

/// Names by (CPU, index).
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    by_cpu: BTreeMap<(u32, u32), String>,
    polling: Option<u32>,
    driver: Option<String>,
    limits: Vec<String>,
}

impl Names {
    pub(super) fn of(facts: &Snapshot) -> Names {
        let mut names = Names { driver: facts.idle.driver.get().cloned(), ..Names::default() };
        for (cpus, table) in facts.idle.tables() {
            for row in table {
                if row.is_polling() && names.polling.is_none() {
                    names.polling = Some(row.index);
                }
                for cpu in cpus.iter() {
                    names.by_cpu.insert((cpu, row.index), row.name.clone());
                }
            }
        }
        if let Some(limit) = facts.qos.global.get().filter(|l| **l != LatencyLimit::None) {
            let holders = facts.holders.of_latency_limit().unwrap_or_default();
            let who: Vec<String> =
                holders.iter().map(|h| format!("{} ({})", h.comm.as_deref().unwrap_or("?"), h.pid)).collect();
            let by = if who.is_empty() { String::new() } else { format!(", held by {}", who.join(", ")) };
            names.limits.push(format!("a latency limit is in force on all CPUs: {limit}{by}"));
        }
        for (cpus, limit) in facts.qos.per_cpu.known().filter(|(_, l)| **l != LatencyLimit::None) {
            names.limits.push(format!("a latency limit is in force on CPUs {cpus}: {limit}"));
        }
        names
    }

    /// Without a driver the kernel's own idle routine is traced as state 1.
    pub(super) fn of_state(&self, cpu: u32, state: u32) -> String {
        match (self.by_cpu.get(&(cpu, state)), self.by_cpu.is_empty()) {
            (Some(name), _) => name.clone(),
            (None, true) => "default idle".into(),
            (None, false) => format!("state{state}"),
        }
    }

    /// States of the CPU that has most.
    pub(super) fn n_states(&self) -> u32 {
        self.by_cpu.keys().map(|(_, state)| state + 1).max().unwrap_or(2)
    }

    /// Are states called the same?
    pub(super) fn is_same(&self, other: &Names) -> bool {
        (&self.by_cpu, self.polling, &self.driver) == (&other.by_cpu, other.polling, &other.driver)
    }

    /// The idle driver.
    pub(super) fn driver(&self) -> Option<&str> {
        self.driver.as_deref()
    }

    /// The state that spins.
    pub(super) fn polling(&self) -> Option<u32> {
        self.polling
    }

    /// What a reader must know.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = self.limits.clone();
        if self.by_cpu.is_empty() {
            remarks.push("no idle driver: the kernel's default idle routine is all there is".into());
        }
        if self.driver.as_deref() == Some("haltpoll") {
            remarks.push(
                "this is a virtual machine: leaving HLT includes the hypervisor scheduling the CPU back in".into(),
            );
        }
        remarks
    }
}

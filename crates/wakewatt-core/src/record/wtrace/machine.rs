//! What a recording says of its machine, as the tree of files that facts are read from: so a replay that is saved names the machine that was
//! recorded, and never the one that replays.

use super::header::Header;
use crate::cpuset::CpuSet;
use crate::source::Tree;

/// CPUs whose files are made at most; a list of a billion is no machine.
const MOST_CPUS: usize = 1 << 14;
const CPU: &str = "/sys/devices/system/cpu";

impl Header {
    /// Kernel, driver, governor and idle states by CPU. Everything else was not looked at.
    pub fn machine(&self) -> Tree {
        let mut tree = Tree { is_recording: true, is_partial: true, name: "recording".into(), ..Tree::default() };
        let mut put = |path: String, text: &str| {
            tree.files.insert(path, Ok(format!("{text}\n").into_bytes()));
        };
        put("/proc/sys/kernel/osrelease".into(), &self.kernel);
        put("/proc/sys/kernel/arch".into(), &self.arch);
        if let Some(driver) = &self.driver {
            put(format!("{CPU}/cpuidle/current_driver"), driver);
        }
        if let Some(governor) = &self.governor {
            put(format!("{CPU}/cpuidle/current_governor"), governor);
        }
        let mut all: Vec<u32> = Vec::new();
        for table in &self.tables {
            let cpus = CpuSet::parse(&table.cpus).unwrap_or_default();
            for cpu in cpus.iter().take(MOST_CPUS.saturating_sub(all.len())) {
                all.push(cpu);
                for state in &table.states {
                    let at = format!("{CPU}/cpu{cpu}/cpuidle/state{}", state.index);
                    put(format!("{at}/name"), &state.name);
                    let us = |ns: Option<u64>| ns.map(|ns| (ns / 1000).to_string());
                    us(state.exit_latency_ns).iter().for_each(|text| put(format!("{at}/latency"), text));
                    us(state.target_residency_ns).iter().for_each(|text| put(format!("{at}/residency"), text));
                    state.is_enabled.iter().for_each(|on| put(format!("{at}/disable"), if *on { "0" } else { "1" }));
                }
            }
        }
        let cpus = all.into_iter().collect::<CpuSet>().to_string();
        for list in ["online", "present"] {
            put(format!("{CPU}/{list}"), &cpus);
        }
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Snapshot;
    use crate::record::wtrace::{StateTable, TableState};

    #[test]
    fn facts_are_read_from_a_recordings_head() {
        let state = |index: u32, name: &str, ns: u64| TableState {
            index,
            name: name.into(),
            exit_latency_ns: Some(ns),
            target_residency_ns: Some(2 * ns),
            is_polling: index == 0,
            is_enabled: Some(true),
        };
        let header = Header {
            kernel: "6.1.0-49-amd64".into(),
            governor: Some("menu".into()),
            tables: vec![StateTable { cpus: "0-3".into(), states: vec![state(0, "POLL", 0), state(1, "C6", 133_000)] }],
            ..Header::default()
        };
        let facts = Snapshot::read(&header.machine(), |_| true);
        assert_eq!(facts.kernel.release.get().map(String::as_str), Some("6.1.0-49-amd64"));
        let (cpus, rows) = facts.idle.tables().into_iter().next().unwrap();
        assert_eq!((cpus.to_string().as_str(), rows.len(), rows[1].exit_latency_ns), ("0-3", 2, Some(133_000)));
        let hostile = Header {
            tables: vec![StateTable { cpus: "0-999999999".into(), states: vec![state(0, "POLL", 0)] }],
            ..Header::default()
        };
        assert!(hostile.machine().files.len() < 100_000);
    }
}

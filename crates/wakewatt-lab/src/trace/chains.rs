//! Who woke whom, with names: paths of cgroups from the hierarchy, functions of timers from /proc/kallsyms.
//!
//! Where one of them is hidden the chain stays, with what is known of it, and the trace says what was hidden.

use super::folders::Folders;
use std::collections::BTreeSet;
use wakewatt_core::samples::chains::{ChainNames, Chains};
use wakewatt_core::samples::wakes::{WakeCounters, WakerKind};

/// What is known of those who were woken.
#[derive(Debug)]
pub(super) struct Wakers {
    folders: Result<Folders, String>,
}

impl Wakers {
    /// Looks at the cgroups that are there.
    pub(super) fn start() -> Wakers {
        Wakers { folders: Folders::start() }
    }

    /// Looks for folders of numbers that came up.
    pub(super) fn learn(&mut self, counters: &WakeCounters) {
        if let Ok(folders) = &mut self.folders {
            folders.learn(counters.chains.iter().map(|chain| chain.key.cgroup));
        }
    }

    /// The chains, and what a reader must know of them.
    pub(super) fn chains(&self, counters: &WakeCounters, state_of: &dyn Fn(u32) -> String) -> (Chains, Vec<String>) {
        let timers = counters.chains.iter().filter(|chain| chain.key.kind == WakerKind::Timer);
        let timers: BTreeSet<u64> = timers.map(|chain| chain.key.waker).collect();
        let functions = wakewatt_probes::names_of(&timers);
        let path_of = |id: u64| self.folders.as_ref().ok().and_then(|folders| folders.path(id)).map(String::from);
        let function_of = |at: u64| functions.get(&at).cloned();
        let chains = Chains::of(counters, &ChainNames { state_of, path_of: &path_of, function_of: &function_of });
        let mut remarks = Vec::new();
        remarks.extend(self.folders.as_ref().err().map(|why| format!("who woke whom, without cgroups: {why}")));
        if functions.is_empty() && !timers.is_empty() {
            remarks.push(
                "who woke whom, without names of timers: /proc/kallsyms hides them (kernel.kptr_restrict)".into(),
            );
        }
        (chains, remarks)
    }
}

//! One idle state allowed at a time, on one core: the arms of `measure idle`.
//!
//! A sleeping state: every other state is disabled (`idle.state.NAME`) and a per-CPU latency limit that somebody left is
//! lifted (`qos.cpu`), so the governor has one choice. Polling: the per-CPU limit is set to zero latency instead, because
//! every governor obeys that and haltpoll does not look at `disable` at all. SMT siblings share the core's state, which
//! is the shallower of the two requests, so they get the same settings. All states share one [`Session`], so the journal
//! names every file before the first write, the guard puts them back after a kill, and dropping does too.
//!
//! A state found disabled is left alone unless it is asked for by name: somebody, or the driver, had a reason.

use std::collections::BTreeSet;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::idle::TableRow;
use wakewatt_core::facts::pm_qos::{GLOBAL, cpu_limit_path};
use wakewatt_core::units::{Cpu, LatencyLimit};
use wakewatt_tune::request::{Place, Request};
use wakewatt_tune::session::{Session, SettingSet};

/// The states of one CPU, each of which can be made the only one.
pub struct StateArms<'a> {
    cpus: CpuSet,
    states: Vec<TableRow>,
    session: Session<'a>,
}

/// The idle table of a CPU.
pub fn table_of(facts: &Snapshot, cpu: Cpu) -> Vec<TableRow> {
    let mut tables = facts.idle.tables();
    let at = tables.iter().position(|(cpus, _)| cpus.contains(cpu));
    at.map_or_else(Vec::new, |at| tables.swap_remove(at).1)
}

/// What makes each of these states the only one of the table on these CPUs; they must have names of their own.
pub fn sets(table: &[TableRow], states: &[TableRow], cpus: &CpuSet) -> Result<Vec<SettingSet>, String> {
    let mut names = BTreeSet::new();
    if let Some(twice) = table.iter().find(|row| !names.insert(&row.name)) {
        return Err(format!(
            "two idle states of CPUs {cpus} are called {}: one cannot be told from the other",
            twice.name
        ));
    }
    let set = |only: &TableRow| {
        let is_allowed = |row: &TableRow| only.is_polling() || row.index == only.index;
        let switch = |row: &TableRow| {
            let to = if is_allowed(row) { "on" } else { "off" };
            Request::new(format!("idle.state.{}", row.name), Place::Cpus(cpus.clone()), to)
        };
        let limit = if only.is_polling() { LatencyLimit::Poll } else { LatencyLimit::None };
        let limit = Request::new("qos.cpu", Place::Cpus(cpus.clone()), &limit.to_string());
        SettingSet { requests: table.iter().map(switch).chain([limit]).collect(), command: None }
    };
    Ok(states.iter().map(set).collect())
}

impl<'a> StateArms<'a> {
    /// With the session of their [`sets`]; nothing is changed yet. `cpus` are the CPUs of the core.
    pub fn new(states: Vec<TableRow>, cpus: CpuSet, session: Session<'a>) -> StateArms<'a> {
        StateArms { cpus, states, session }
    }

    /// The states to measure, in the order of the table.
    pub fn states(&self) -> &[TableRow] {
        &self.states
    }

    /// Makes this state the only one.
    pub fn enter(&mut self, index: usize) -> Result<(), String> {
        self.session.enter(index).map_err(|why| format!("{}: {why}", self.states[index].name))
    }

    /// What [`StateArms::enter`] writes, in words.
    pub fn words(&self, index: usize) -> String {
        let (only, cpus) = (&self.states[index], &self.cpus);
        if only.is_polling() {
            return format!("latency limit n/a (zero) on CPUs {cpus} ({})", cpu_limit_path(0).replace("cpu0", "cpuN"));
        }
        format!("all other states disabled on CPUs {cpus}")
    }

    /// Why a state may not have been entered although it was the only one: what is known from the facts.
    pub fn why_not(&self, index: usize, facts: &Snapshot) -> String {
        let only = &self.states[index];
        let limit = facts.qos.global.get().copied().unwrap_or(LatencyLimit::None);
        if only.exit_latency_ns.is_some_and(|ns| !limit.allows(ns)) {
            return format!("{GLOBAL} is held at {limit} by another process (wakewatt inspect holders)");
        }
        match facts.idle.governor.get().map(String::as_str) {
            Some("haltpoll") => "governor haltpoll chooses states 0 and 1 whatever is disabled".into(),
            Some("ladder") => {
                "under governor ladder a disabled lighter state hides the deeper ones; try menu or teo".into()
            }
            _ => "the driver or the firmware chose otherwise, or something kept the CPU awake".into(),
        }
    }

    /// Puts everything back; what is left, in words.
    pub fn leave(self) -> Vec<String> {
        self.session.end().remains()
    }
}

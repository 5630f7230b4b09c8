//! One idle state allowed at a time, on one core: the arms of `measure idle`.
//!
//! A sleeping state: every other state is disabled (`cpuidle/stateK/disable`) and a per-CPU latency limit that somebody
//! left is lifted, so the governor has one choice. Polling: the per-CPU limit is set to zero latency instead, because
//! every governor obeys that and haltpoll does not look at `disable` at all. SMT siblings share the core's state, which
//! is the shallower of the two requests, so they get the same settings. All is declared in one [`Transaction`], so the
//! journal names every file before the first write, the guard puts them back after a kill, and dropping does too.
//!
//! A state found disabled is left alone unless it is asked for by name: somebody, or the driver, had a reason.

use std::path::Path;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::cpus::ROOT;
use wakewatt_core::facts::idle::TableRow;
use wakewatt_core::facts::pm_qos::{GLOBAL, cpu_limit_path};
use wakewatt_core::units::{Cpu, LatencyLimit};
use wakewatt_host::sink::Sink;
use wakewatt_tune::guard::GuardCommand;
use wakewatt_tune::knobs::qos_cpu;
use wakewatt_tune::knobs::qos_global;
use wakewatt_tune::lock::LockError;
use wakewatt_tune::transaction::{Setting, Transaction, TuneError};

/// Why the states of a CPU cannot be told apart here.
#[derive(Debug, thiserror::Error)]
pub enum StateArmsError {
    /// Another wakewatt is at it.
    #[error("{0}")]
    Busy(String),
    /// Not here, not for this user, or not now.
    #[error("{0}")]
    Refused(String),
}

/// The states of one CPU, each of which can be made the only one.
pub struct StateArms<'a> {
    cpus: CpuSet,
    states: Vec<TableRow>,
    others: Vec<TableRow>,
    transaction: Transaction<'a>,
    _experiment: qos_global::Lock,
}

/// The idle table of a CPU.
pub fn table_of(facts: &Snapshot, cpu: Cpu) -> Vec<TableRow> {
    let mut tables = facts.idle.tables();
    let at = tables.iter().position(|(cpus, _)| cpus.contains(cpu));
    at.map_or_else(Vec::new, |at| tables.swap_remove(at).1)
}

impl<'a> StateArms<'a> {
    /// Journals what is there; nothing is changed yet. `states` are rows of the CPU's table, `cpus` the CPUs of its core.
    pub fn prepare(
        facts: &Snapshot,
        cpu: Cpu,
        cpus: &CpuSet,
        states: Vec<TableRow>,
        sink: &'a dyn Sink,
        state_dir: &Path,
        guard: Option<&GuardCommand>,
    ) -> Result<Self, StateArmsError> {
        let refused = |e: &dyn std::fmt::Display| StateArmsError::Refused(e.to_string());
        let experiment = qos_global::Lock::take().map_err(|e| match e {
            qos_global::HoldError::Busy => StateArmsError::Busy(e.to_string()),
            other => refused(&other),
        })?;
        let table = table_of(facts, cpu);
        let limits = [LatencyLimit::None, LatencyLimit::Poll];
        let mut declared = qos_cpu::settings(cpus, &limits);
        for cpu in cpus.iter() {
            let switch =
                |row: &TableRow| Setting { path: switch(cpu, row.index), values: vec!["0".into(), "1".into()] };
            declared.extend(table.iter().map(switch));
        }
        let transaction = Transaction::begin(sink, Path::new("/"), state_dir, "measure idle", &declared, guard)
            .map_err(|e| match e {
                // It holds the lock of all who change settings; taking it here as well would be waiting for ourselves.
                TuneError::Lock(LockError::Busy(_)) => StateArmsError::Busy(e.to_string()),
                other => refused(&other),
            })?;
        Ok(StateArms { cpus: cpus.clone(), states, others: table, transaction, _experiment: experiment })
    }

    /// The states to measure, in the order of the table.
    pub fn states(&self) -> &[TableRow] {
        &self.states
    }

    /// Makes this state the only one.
    pub fn enter(&self, index: usize) -> Result<(), String> {
        let only = &self.states[index];
        let fail = |e: &dyn std::fmt::Display| format!("{}: {e}", only.name);
        if only.is_polling() {
            self.switch_all(|_| true).map_err(|e| fail(&e))?;
            return qos_cpu::set(&self.transaction, &self.cpus, LatencyLimit::Poll).map_err(|e| fail(&e));
        }
        qos_cpu::set(&self.transaction, &self.cpus, LatencyLimit::None).map_err(|e| fail(&e))?;
        self.switch_all(|row| row.index == only.index).map_err(|e| fail(&e))
    }

    /// The allowed ones first, so that there is never none.
    fn switch_all(&self, is_allowed: impl Fn(&TableRow) -> bool) -> Result<(), wakewatt_tune::transaction::TuneError> {
        for wanted in [true, false] {
            for row in self.others.iter().filter(|row| is_allowed(row) == wanted) {
                for cpu in self.cpus.iter() {
                    self.transaction.set(&switch(cpu, row.index), if wanted { "0" } else { "1" })?;
                }
            }
        }
        Ok(())
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
        self.transaction.undo().remains()
    }
}

fn switch(cpu: Cpu, index: u32) -> String {
    format!("{ROOT}/cpu{cpu}/cpuidle/state{index}/disable")
}

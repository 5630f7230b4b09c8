//! The arms of the idle experiment: the machine as found, shallow idle only, no sleep at all.
//!
//! `found`: nothing is held. `shallow`: the global limit is held at the exit latency of the shallowest real state, so
//! only that one and polling remain; it is an arm only where deeper states exist. `poll`: the limit is held at zero.
//! Where somebody left per-CPU limits, `lifted` removes them for its blocks (journaled, guarded, put back): otherwise
//! "as found" would already be polling and the experiment would find nothing.

use crate::experiment::Arms;
use std::path::Path;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::facts::Snapshot;
use wakewatt_core::facts::pm_qos::{GLOBAL, cpu_limit_path};
use wakewatt_core::samples::IdleDelta;
use wakewatt_core::samples::experiment::Arm;
use wakewatt_core::units::{LatencyLimit, show_ns};
use wakewatt_host::sink::Sink;
use wakewatt_tune::guard::GuardCommand;
use wakewatt_tune::knobs::qos_cpu;
use wakewatt_tune::knobs::qos_global::{GlobalLimit, Lock};
use wakewatt_tune::transaction::Transaction;

/// A share of entries into forbidden states above this contradicts the arm.
const MAX_FORBIDDEN_RATIO: f64 = 0.05;

enum Setting {
    Found,
    Limit(LatencyLimit),
    Lifted,
}

/// The idle arms of this machine.
pub struct IdleArms<'a> {
    arms: Vec<(Arm, Setting)>,
    held: Option<GlobalLimit>,
    transaction: Option<Transaction<'a>>,
    limited_cpus: CpuSet,
    sink: &'a dyn Sink,
    /// Exit latency of each state index, to judge idle counters.
    latencies_ns: Vec<(u32, String, u64)>,
    _lock: Lock,
}

impl<'a> IdleArms<'a> {
    /// Prepares the arms; nothing is changed yet. `cpus` are those the workload runs on.
    pub fn prepare(
        facts: &Snapshot,
        cpus: &CpuSet,
        sink: &'a dyn Sink,
        state_dir: &Path,
        guard: Option<&GuardCommand>,
    ) -> Result<Self, String> {
        let lock = Lock::take().map_err(|e| e.to_string())?;
        let found = facts.qos.global.get().copied();
        if matches!(found, Some(LatencyLimit::Poll)) {
            return Err(format!(
                "{GLOBAL} is already held at 0 by another process, so this machine polls and there is nothing to compare; stop the holder first (wakewatt inspect holders)"
            ));
        }
        let mut arms = vec![(
            Arm { id: "found".into(), title: "as found".into(), settings: vec!["nothing is written".into()] },
            Setting::Found,
        )];
        let states = real_states(facts, cpus);
        if let [shallowest, .., deepest] = &states[..] {
            if deepest.2 > shallowest.2 {
                let limit = LatencyLimit::AtMostNs(shallowest.2.max(1000));
                let title = format!("{} only", shallowest.1);
                arms.push((limit_arm("shallow", &title, limit), Setting::Limit(limit)));
            }
        }
        arms.push((limit_arm("poll", "no sleep (polling)", LatencyLimit::Poll), Setting::Limit(LatencyLimit::Poll)));
        let limited_cpus = facts.qos.per_cpu.cpus_where(|l| *l != LatencyLimit::None).and(cpus);
        let mut transaction = None;
        if !limited_cpus.is_empty() {
            let declared = qos_cpu::settings(&limited_cpus, &[LatencyLimit::None]);
            let opened =
                Transaction::begin(sink, Path::new("/"), state_dir, "doctor: idle experiment", &declared, guard);
            transaction = Some(opened.map_err(|e| e.to_string())?);
            let settings =
                vec![format!("{} = 0 (no limit) on CPUs {limited_cpus}", cpu_limit_path(0).replace("cpu0", "cpuN"))];
            arms.push((Arm { id: "lifted".into(), title: "per-CPU limits lifted".into(), settings }, Setting::Lifted));
        }
        Ok(IdleArms { arms, held: None, transaction, limited_cpus, sink, latencies_ns: all_states(facts), _lock: lock })
    }

    fn restore_cpus(&self) -> Result<(), String> {
        self.transaction
            .as_ref()
            .map_or(Ok(()), |t| qos_cpu::set_found(t, &self.limited_cpus))
            .map_err(|e| e.to_string())
    }
}

fn limit_arm(id: &str, title: &str, limit: LatencyLimit) -> Arm {
    let text = format!("{GLOBAL} held open at {} us (binary s32), released after the block", limit.as_global_us());
    Arm { id: id.into(), title: title.into(), settings: vec![text] }
}

/// Enabled non-polling states of the CPUs, shallowest first.
fn real_states(facts: &Snapshot, cpus: &CpuSet) -> Vec<(u32, String, u64)> {
    let tables = facts.idle.tables();
    let table = tables.iter().find(|(on, _)| cpus.first().is_some_and(|cpu| on.contains(cpu)));
    let rows = table.into_iter().flat_map(|(_, rows)| rows).filter(|r| !r.is_polling() && r.is_enabled != Some(false));
    let mut states: Vec<(u32, String, u64)> =
        rows.filter_map(|r| Some((r.index, r.name.clone(), r.exit_latency_ns?))).collect();
    states.sort_by_key(|s| s.2);
    states
}

/// Exit latency of each state index.
pub(crate) fn all_states(facts: &Snapshot) -> Vec<(u32, String, u64)> {
    let state = |s: &wakewatt_core::facts::idle::IdleState| {
        Some((s.index, s.label(), *s.exit_latency_ns.known().map(|(_, ns)| ns).max()?))
    };
    facts.idle.states.iter().filter_map(state).collect()
}

impl Arms for IdleArms<'_> {
    fn arms(&self) -> Vec<Arm> {
        self.arms.iter().map(|(arm, _)| arm.clone()).collect()
    }

    fn enter(&mut self, index: usize) -> Result<(), String> {
        self.held = None;
        self.restore_cpus()?;
        match &self.arms[index].1 {
            Setting::Found => {}
            Setting::Limit(limit) => {
                let held = GlobalLimit::hold(*limit).map_err(|e| e.to_string())?;
                let effective = held.effective().map_err(|e| e.to_string())?;
                if effective > *limit {
                    return Err(format!("{GLOBAL}: asked for {limit}, {effective} is in force"));
                }
                self.held = Some(held);
            }
            Setting::Lifted => {
                if let Some(transaction) = &self.transaction {
                    qos_cpu::set(transaction, &self.limited_cpus, LatencyLimit::None).map_err(|e| e.to_string())?;
                }
            }
        }
        Ok(())
    }

    fn leave(&mut self) -> Result<(), String> {
        self.held = None;
        match self.transaction.take().map(Transaction::undo) {
            Some(report) if !report.remains().is_empty() => Err(report.remains().join("; ")),
            _ => Ok(()),
        }
    }

    fn state(&self) -> Vec<(String, String)> {
        let global = self
            .held
            .as_ref()
            .map_or_else(read_global, |h| h.effective().map_or_else(|e| e.to_string(), |l| l.to_string()));
        let mut state = vec![(GLOBAL.to_string(), format!("effective limit {global}"))];
        for cpu in self.limited_cpus.iter() {
            let path = cpu_limit_path(cpu);
            let value = self.sink.read(&path).unwrap_or_else(|e| e.to_string());
            state.push((path, value));
        }
        state
    }

    fn contradiction(&self, index: usize, idle: &[IdleDelta]) -> Option<String> {
        let Setting::Limit(limit) = self.arms[index].1 else { return None };
        entered_above(limit, &self.latencies_ns, idle)
    }
}

/// Were states entered that this limit forbids?
pub(crate) fn entered_above(
    limit: LatencyLimit,
    latencies_ns: &[(u32, String, u64)],
    idle: &[IdleDelta],
) -> Option<String> {
    for delta in idle {
        let total: u64 = delta.states.iter().map(|s| s.n_usage).sum();
        let is_forbidden = |at: u32| latencies_ns.iter().any(|(i, _, ns)| *i == at && !limit.allows(*ns));
        let forbidden: u64 = delta.states.iter().filter(|s| is_forbidden(s.index)).map(|s| s.n_usage).sum();
        if total >= 20 && forbidden as f64 > total as f64 * MAX_FORBIDDEN_RATIO {
            return Some(format!(
                "CPU {} entered states above {} {forbidden} times of {total}: the setting did not take",
                delta.cpu,
                show_limit(limit)
            ));
        }
    }
    None
}

fn show_limit(limit: LatencyLimit) -> String {
    match limit {
        LatencyLimit::AtMostNs(ns) => show_ns(ns),
        other => other.to_string(),
    }
}

fn read_global() -> String {
    // Reading through a request of "no limit" changes nothing: the minimum of all requests stays what it is.
    GlobalLimit::hold(LatencyLimit::None).and_then(|h| h.effective()).map_or_else(|e| e.to_string(), |l| l.to_string())
}

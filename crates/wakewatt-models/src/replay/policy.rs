//! Who decides on a CPU, and from what: governor, kernel, idle table, limit and switched-off states, as recorded or as asked.

use super::change::Change;
use super::exits::{Exit, Exits};
use crate::idle::{Governor, Kind};
use crate::kernel::{Kernel, Release};
use crate::table::{Disabled, MOST_STATES, State, Table};
use crate::tick::Tick;
use std::collections::BTreeSet;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::record::wtrace::{Header, StateTable, TableState};
use wakewatt_core::units::LatencyLimit;

/// No limit, as the kernel has it: 2000 seconds.
const NO_LIMIT_NS: i64 = 2_000_000_000_000;

/// Why a recording cannot be replayed, or not so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The recorded kernel or governor has no model.
    #[error("the recording's {what} is {value}, which has no model; name one with --set {what}=…")]
    NoModel {
        /// `governor` or `kernel`.
        what: &'static str,
        /// What the recording says.
        value: String,
    },
    /// The length of a tick is not in the file.
    #[error(
        "the recording does not say how long a tick is; give it with --recorded hz=250 or what CONFIG_HZ says there"
    )]
    NoTick,
    /// A state that is asked for by name and is not there.
    #[error("no idle state `{asked}` in the table; it has {known}")]
    NoState {
        /// As asked.
        asked: String,
        /// Names there are.
        known: String,
    },
    /// A table that no kernel could have.
    #[error("the idle table cannot be used: {0}")]
    Table(String),
}

/// What decides on the CPUs that share an idle table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Which governor.
    pub kind: Kind,
    /// Whose rules.
    pub release: Release,
    /// Why that is not certain; none where the kernel's name says it.
    pub assumed: Option<String>,
    /// Length of its tick.
    pub tick: Tick,
    /// Idle states.
    pub table: Table,
    /// Their names.
    pub names: Vec<String>,
    /// Those that may not be chosen.
    pub disabled: Disabled,
    /// The strictest limit, in nanoseconds.
    pub limit_ns: i64,
    /// Longest window of haltpoll in nanoseconds; none as shipped.
    pub halt_poll_ns: Option<u64>,
    /// What leaving each state is taken to cost, in nanoseconds.
    pub exit_ns: [i64; MOST_STATES],
    /// The same with its worst case, and where it is from.
    pub exits: [Exit; MOST_STATES],
    /// What was measured and is of another state than its name says.
    pub not_used: Vec<String>,
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

impl Policy {
    /// As recorded on these CPUs, with changes on top; unchanged for none.
    pub fn of(header: &Header, cpus: &StateTable, changes: &[Change]) -> Result<Policy, ReplayError> {
        let asked_kind =
            changes.iter().rev().find_map(|c| if let Change::Governor(kind) = c { Some(*kind) } else { None });
        let recorded_kind = header.governor.as_deref().and_then(Kind::of_name);
        let kind = asked_kind.or(recorded_kind).ok_or_else(|| ReplayError::NoModel {
            what: "governor",
            value: header.governor.clone().unwrap_or_else(|| "none".into()),
        })?;
        let asked_kernel =
            changes.iter().rev().find_map(|c| if let Change::Kernel(k) = c { Some(k.clone()) } else { None });
        let kernel = match asked_kernel {
            Some(kernel) => kernel,
            None => Kernel::of(&header.kernel, header.kernel_build.as_deref())
                .map_err(|_| ReplayError::NoModel { what: "kernel", value: header.kernel.clone() })?,
        };
        let asked_hz = changes.iter().rev().find_map(|c| if let Change::Hz(hz) = c { Tick::of_hz(*hz) } else { None });
        let tick = asked_hz.or_else(|| Tick::of_ns(header.tick_ns?)).ok_or(ReplayError::NoTick)?;
        let asked_table =
            changes.iter().rev().find_map(|c| if let Change::Table(rows) = c { Some(rows) } else { None });
        let rows = asked_table.unwrap_or(&cpus.states);
        let (table, names, off) = table_of(rows)?;
        let limit_ns = limit_ns(header, &cpus.cpus);
        let mut policy = Policy {
            kind,
            release: kernel.release,
            assumed: kernel.assumed,
            tick,
            table,
            names,
            disabled: off,
            limit_ns,
            halt_poll_ns: None,
            exit_ns: [0; MOST_STATES],
            exits: [Exit::POLLING; MOST_STATES],
            not_used: Vec::new(),
        };
        for change in changes {
            policy.change(change)?;
        }
        let measured =
            changes.iter().rev().find_map(|c| if let Change::Measured(exits) = c { Some(exits) } else { None });
        policy.price(measured);
        Ok(policy)
    }

    /// What leaving each state costs: measured, else claimed.
    fn price(&mut self, measured: Option<&Exits>) {
        for (at, (state, name)) in self.table.states().iter().zip(&self.names).enumerate() {
            let claimed_ns = u64::try_from(state.exit_latency_ns).unwrap_or(0);
            self.exits[at] = match measured.and_then(|m| m.exit(name, claimed_ns)) {
                _ if state.is_polling => Exit::POLLING,
                Some(exit) => exit,
                None => Exit::claimed(claimed_ns),
            };
            self.exit_ns[at] = signed(self.exits[at].usual_ns);
            self.not_used.extend(measured.and_then(|m| m.other_claim(name, claimed_ns)));
        }
    }

    /// Its governor, right after it was enabled.
    pub(super) fn governor(&self) -> Governor {
        Governor::new(self.kind, self.release, self.table, self.tick).with_window(self.halt_poll_ns)
    }

    fn change(&mut self, change: &Change) -> Result<(), ReplayError> {
        match change {
            Change::MaxLatency(limit) => {
                self.limit_ns = match limit {
                    LatencyLimit::Poll => 0,
                    // Kernels keep whole microseconds.
                    LatencyLimit::AtMostNs(ns) => signed(ns / 1000 * 1000),
                    LatencyLimit::None => NO_LIMIT_NS,
                };
            }
            Change::MaxState(deepest) => {
                let kept = self.table.states().get(..=*deepest).unwrap_or(self.table.states());
                self.table = Table::new(kept).map_err(|e| ReplayError::Table(e.to_string()))?;
                self.names.truncate(self.table.n());
            }
            Change::Disable(name) => {
                let at = self.state(name)?;
                self.disabled = self.disabled.and(Disabled::of([at]));
            }
            Change::Enable(name) => {
                let at = self.state(name)?;
                self.disabled = Disabled::of((0..MOST_STATES).filter(|i| *i != at && self.disabled.has(*i)));
            }
            Change::HaltPoll(ns) => self.halt_poll_ns = Some(*ns),
            Change::Governor(_) | Change::Kernel(_) | Change::Hz(_) | Change::Table(_) | Change::Measured(_) => {}
        }
        Ok(())
    }

    fn state(&self, name: &str) -> Result<usize, ReplayError> {
        let found = self.names.iter().position(|n| n.eq_ignore_ascii_case(name));
        found.ok_or_else(|| ReplayError::NoState { asked: name.into(), known: self.names.join(", ") })
    }
}

/// States by index; a hole in the indices is no table.
fn table_of(rows: &[TableState]) -> Result<(Table, Vec<String>, Disabled), ReplayError> {
    let bad = |why: String| ReplayError::Table(why);
    let (mut states, mut names, mut off) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (at, row) in rows.iter().enumerate() {
        if usize::try_from(row.index) != Ok(at) {
            return Err(bad(format!("state {} stands at place {at}", row.index)));
        }
        let (Some(latency), Some(residency)) = (row.exit_latency_ns, row.target_residency_ns) else {
            return Err(bad(format!("latency or residency of {} is unknown", row.name)));
        };
        states.push(State {
            exit_latency_ns: signed(latency),
            target_residency_ns: signed(residency),
            is_polling: row.is_polling,
        });
        names.push(row.name.clone());
        if row.is_enabled == Some(false) {
            off.insert(at);
        }
    }
    let table = Table::new(&states).map_err(|e| bad(e.to_string()))?;
    Ok((table, names, Disabled::of(off)))
}

/// The strictest of the limits that hold for all of these CPUs; what cannot be read is none.
fn limit_ns(header: &Header, cpus: &str) -> i64 {
    let mine = CpuSet::parse(cpus).unwrap_or_default();
    let holds = |whose: &str| {
        whose == "all" || CpuSet::parse(whose).is_ok_and(|theirs| mine.iter().all(|cpu| theirs.contains(cpu)))
    };
    let of = |words: &String| match LatencyLimit::parse(words) {
        Ok(LatencyLimit::Poll) => 0,
        Ok(LatencyLimit::AtMostNs(ns)) => signed(ns),
        _ => NO_LIMIT_NS,
    };
    header.limits.iter().filter(|(whose, _)| holds(whose)).map(|(_, words)| of(words)).min().unwrap_or(NO_LIMIT_NS)
}

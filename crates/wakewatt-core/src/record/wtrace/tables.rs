//! The idle states of a recording's header by CPU: looked up once per block of pairs, so the lists are parsed once.
//!
//! A header is at most 1 MiB, and a hostile one can name 40,000 tables in it. What no machine has is refused before a
//! pair is read: a CPU in two tables, more states than so many kinds of CPU could have.

use super::header::{Header, StateTable};
use crate::cpuset::CpuSet;
use std::collections::HashMap;

/// The kernel keeps 16 bytes of a name; copies of it are made for every CPU.
const MOST_NAME_BYTES: usize = 64;

/// A pair has a byte for its state.
const MAX_STATES: usize = 256;
/// Ten states for each of a few hundred kinds of CPU; machines have one to three kinds.
const MAX_STATES_IN_ALL: usize = 4096;

/// Which table a CPU has.
#[derive(Clone, Debug, Default)]
pub struct Tables<'a> {
    tables: &'a [StateTable],
    of: HashMap<u32, usize>,
}

impl<'a> Tables<'a> {
    /// Of this header; in words what no recording of a machine says. CPUs of a list that is none have no table.
    pub fn of(header: &'a Header) -> Result<Tables<'a>, String> {
        let mut found = Tables { tables: &header.tables, of: HashMap::new() };
        let mut n_states = 0;
        for (at, table) in header.tables.iter().enumerate() {
            n_states += table.states.len();
            if table.states.iter().any(|state| state.name.len() > MOST_NAME_BYTES) {
                return Err("the name of an idle state is longer than the kernel's 16 bytes could be".into());
            }
            if table.states.len() > MAX_STATES || n_states > MAX_STATES_IN_ALL {
                return Err("it names more idle states than any machine has".into());
            }
            for cpu in CpuSet::parse(&table.cpus).unwrap_or_default().iter() {
                // The first CPU met twice ends it, so the work is bounded by the CPUs there can be.
                if found.of.insert(cpu, at).is_some() {
                    return Err(format!("CPU {cpu} has two tables of idle states"));
                }
            }
        }
        Ok(found)
    }

    /// Number of the CPU's table, and the table.
    pub fn on(&self, cpu: u32) -> Option<(usize, &'a StateTable)> {
        let at = *self.of.get(&cpu)?;
        Some((at, self.tables.get(at)?))
    }

    /// The name of a state on a CPU.
    pub fn state_name(&self, cpu: u32, state: u8) -> String {
        self.name_in(self.of.get(&cpu).copied(), state)
    }

    /// The name of a state in a table.
    pub(super) fn name_in(&self, table: Option<usize>, state: u8) -> String {
        let table = table.and_then(|at| self.tables.get(at));
        let found = table.and_then(|t| t.states.iter().find(|s| s.index == u32::from(state)));
        found.map_or_else(|| format!("state{state}"), |s| s.name.clone())
    }
}

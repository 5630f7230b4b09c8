//! Replay: recorded idle time under another governor, kernel, idle table, limit or tick.
//!
//! Three things at once, CPU by CPU and stay by stay, in memory that does not grow with the recording: does the model decide as the kernel did
//! (`same.rs`), what was (`tally.rs`), and what would have been (`predict.rs`). The first says how far the last may be
//! trusted, and stands before it in every result.

mod change;
mod exact;
mod lane;
mod policy;
mod predict;
mod same;
mod tally;
pub mod sweep;
mod told;

pub use change::{Change, KEYS};
pub use policy::{Policy, ReplayError};
pub use same::{Agreement, WARM_UP};
pub use tally::{StateSums, Tally};
pub use told::{CpuReplay, PolicyTold, RebuiltShare, Replayed, Side, StateTold};

use crate::idle::Kind;
use lane::Lane;
use std::collections::BTreeMap;
use wakewatt_core::record::wtrace::{Header, Mark, Tables};
use wakewatt_core::samples::idle_choice::IdleChoice;
use wakewatt_core::samples::idle_pair::IdlePair;

/// A replay that is fed a recording.
#[derive(Debug)]
pub struct Replay<'a> {
    tables: Tables<'a>,
    /// By table: as recorded, and as asked.
    policies: Vec<(Policy, Policy)>,
    lanes: BTreeMap<u32, Lane>,
    has_asked_governor: bool,
    /// Governors that took over while it was recorded.
    switches: Vec<Kind>,
    /// Settings that changed while it was recorded: from there on it is not followed.
    changed: Vec<String>,
    n_after_change: u64,
    n_without_table: u64,
}

impl<'a> Replay<'a> {
    /// Of this recording, with these things asked otherwise. `corrections` say what the recording could not: they hold for both sides.
    pub fn new(header: &'a Header, changes: &[Change], corrections: &[Change]) -> Result<Replay<'a>, ReplayError> {
        let tables = Tables::of(header).map_err(ReplayError::Table)?;
        let both = |table| {
            let recorded = Policy::of(header, table, corrections)?;
            let asked = Policy::of(header, table, &[corrections, changes].concat())?;
            Ok((recorded, asked))
        };
        let policies = header.tables.iter().map(both).collect::<Result<Vec<_>, ReplayError>>()?;
        if policies.is_empty() {
            return Err(ReplayError::Table("the recording has none".into()));
        }
        Ok(Replay {
            tables,
            policies,
            lanes: BTreeMap::new(),
            has_asked_governor: changes.iter().any(|c| matches!(c, Change::Governor(_))),
            switches: Vec::new(),
            changed: Vec::new(),
            n_after_change: 0,
            n_without_table: 0,
        })
    }

    /// Stays of one CPU.
    pub fn pairs(&mut self, pairs: &[IdlePair]) {
        let Some(first) = pairs.first() else { return };
        if !self.changed.is_empty() {
            self.n_after_change += pairs.len() as u64;
            return;
        }
        match self.lane(first.cpu) {
            Some(lane) => pairs.iter().for_each(|pair| lane.pair(pair)),
            None => self.n_without_table += pairs.len() as u64,
        }
    }

    /// What the governor of one CPU was asked and answered; before the stays that came of it.
    pub fn choices(&mut self, choices: &[IdleChoice]) {
        let Some(first) = choices.first() else { return };
        if !self.changed.is_empty() {
            return;
        }
        if let Some(lane) = self.lane(first.cpu) {
            choices.iter().for_each(|choice| lane.choice(choice));
        }
    }

    /// None of a CPU without a table.
    fn lane(&mut self, cpu: u32) -> Option<&mut Lane> {
        let (recorded, asked) = self.tables.on(cpu).and_then(|(at, _)| self.policies.get(at))?;
        Some(self.lanes.entry(cpu).or_insert_with(|| Lane::new(recorded.clone(), asked.clone())))
    }

    /// A remark.
    pub fn mark(&mut self, mark: &Mark) {
        match mark {
            Mark::WindowClosed { .. } => self.lanes.values_mut().for_each(Lane::close),
            Mark::SettingChanged { what, value, .. } => match Kind::of_name(value).filter(|_| what == "governor") {
                Some(kind) => self.switch(kind),
                None => self.changed.push(format!("{what} to {value}")),
            },
            _ => {}
        }
    }

    fn switch(&mut self, kind: Kind) {
        self.switches.push(kind);
        for (recorded, asked) in &mut self.policies {
            recorded.kind = kind;
            if !self.has_asked_governor {
                asked.kind = kind;
            }
        }
        self.lanes.values_mut().for_each(|lane| lane.switch(kind, self.has_asked_governor));
    }

    /// What came of it.
    pub fn finish(mut self) -> Replayed {
        self.lanes.values_mut().for_each(Lane::close);
        let mut replayed = told::told(&self.policies, &self.lanes);
        let remarks = &mut replayed.remarks;
        if !self.switches.is_empty() {
            let names: Vec<&str> = self.switches.iter().map(|kind| kind.name()).collect();
            remarks.push(format!(
                "While it was recorded the governor became {}; the policy shown is the last.",
                names.join(", then ")
            ));
        }
        if !self.changed.is_empty() {
            let what = self.changed.join("; ");
            remarks.push(format!("Not followed beyond a change of settings ({what}): {} stays.", self.n_after_change));
        }
        if self.n_without_table > 0 {
            remarks.push(format!("{} stays of CPUs without an idle table are left out.", self.n_without_table));
        }
        replayed
    }
}

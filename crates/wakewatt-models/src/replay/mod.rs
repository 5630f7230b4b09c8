//! Replay: recorded idle time under another governor, kernel, idle table, limit or tick.
//!
//! Three things at once, CPU by CPU and stay by stay, in memory that does not grow with the recording: does the model decide as the kernel did
//! (`same.rs`), what was (`tally.rs`), and what would have been (`predict.rs`). The first says how far the last may be
//! trusted, and stands before it in every result. An upgrade (`upgrade.rs`) is a replay under two kernels, an objective
//! (`slo/`) and a sweep (`sweep.rs`) are replays under every limit.

mod change;
mod exact;
mod exits;
mod lane;
mod policy;
mod predict;
pub mod rows;
mod same;
pub mod slo;
mod tally;
pub mod sweep;
mod telling;
mod upgrade;
mod window;
pub mod words;

pub use change::{Change, KEYS};
pub use exits::Exits;
pub use policy::{Policy, ReplayError};
pub use same::{Agreement, WARM_UP};
pub use tally::{StateSums, Tally};
pub use upgrade::{CpuUpgrade, Move, Upgrade};
pub use wakewatt_core::samples::replayed::{
    CpuReplay, ExitBasis, Followed, PolicyTold, RebuiltShare, Recording, Replayed, Side, StateTold,
};

use crate::idle::Kind;
use crate::kernel::Kernel;
use lane::{Lane, Three};
use std::collections::BTreeMap;
use wakewatt_core::record::wtrace::{Header, Mark, Tables};
use wakewatt_core::samples::idle_choice::IdleChoice;
use wakewatt_core::samples::idle_pair::IdlePair;

/// What a header says of the recording and its machine.
fn recording_of(header: &Header) -> Recording {
    Recording {
        boot: header.boot.clone(),
        kernel: header.kernel.clone(),
        arch: header.arch.clone(),
        driver: header.driver.clone(),
        n_cpus: header.n_cpus,
        created_at_s: header.created_at_s,
    }
}

/// A replay that is fed a recording.
#[derive(Debug)]
pub struct Replay<'a> {
    tables: Tables<'a>,
    /// By table.
    policies: Vec<Three>,
    lanes: BTreeMap<u32, Lane>,
    has_asked_governor: bool,
    is_upgrade: bool,
    windows: window::Windows,
    /// Governors that took over while it was recorded.
    switches: Vec<Kind>,
    /// Settings that changed while it was recorded: from there on it is not followed.
    changed: Vec<String>,
    n_after_change: u64,
    n_without_table: u64,
    recording: Recording,
    /// What was asked, in words.
    setting: String,
}

impl<'a> Replay<'a> {
    /// Of this recording, with these things asked otherwise. `corrections` say what the recording could not: they hold for both sides.
    pub fn new(header: &'a Header, changes: &[Change], corrections: &[Change]) -> Result<Replay<'a>, ReplayError> {
        Replay::with(header, (&[], changes), corrections, changes)
    }

    /// Under the governors of two kernels, the same things asked of both; `old` is none for the recorded kernel.
    pub fn upgrade(
        header: &'a Header,
        (old, new): (Option<Kernel>, Kernel),
        changes: &[Change],
        corrections: &[Change],
    ) -> Result<Replay<'a>, ReplayError> {
        let before: Vec<Change> = changes.iter().cloned().chain(old.map(Change::Kernel)).collect();
        let after: Vec<Change> = changes.iter().cloned().chain([Change::Kernel(new)]).collect();
        let replay = Replay::with(header, (&before, &after), corrections, changes)?;
        Ok(Replay { is_upgrade: true, ..replay })
    }

    fn with(
        header: &'a Header,
        (base, asked): (&[Change], &[Change]),
        corrections: &[Change],
        changes: &[Change],
    ) -> Result<Replay<'a>, ReplayError> {
        let tables = Tables::of(header).map_err(ReplayError::Table)?;
        let three = |(at, table)| {
            Ok(Three {
                table: at,
                recorded: Policy::of(header, table, corrections)?,
                base: Policy::of(header, table, &[corrections, base].concat())?,
                asked: Policy::of(header, table, &[corrections, asked].concat())?,
            })
        };
        let policies = header.tables.iter().enumerate().map(three).collect::<Result<Vec<_>, ReplayError>>()?;
        if policies.is_empty() {
            return Err(ReplayError::Table("the recording has none".into()));
        }
        Ok(Replay {
            tables,
            policies,
            lanes: BTreeMap::new(),
            has_asked_governor: changes.iter().any(|c| matches!(c, Change::Governor(_))),
            is_upgrade: false,
            windows: window::Windows::default(),
            switches: Vec::new(),
            changed: Vec::new(),
            n_after_change: 0,
            n_without_table: 0,
            recording: recording_of(header),
            setting: asked.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        })
    }

    /// Stays of one CPU.
    pub fn pairs(&mut self, pairs: &[IdlePair]) {
        let Some(first) = pairs.first() else { return };
        if !self.changed.is_empty() {
            self.n_after_change += pairs.len() as u64;
            return;
        }
        if let Some(last) = pairs.last() {
            self.windows.seen(last.enter_at_ns.saturating_add(last.duration_ns));
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
        let policies = self.tables.on(cpu).and_then(|(at, _)| self.policies.get(at))?;
        let (is_upgrade, has_asked) = (self.is_upgrade, self.has_asked_governor);
        Some(self.lanes.entry(cpu).or_insert_with(|| Lane::new(policies.clone(), is_upgrade, has_asked)))
    }

    /// A remark.
    pub fn mark(&mut self, mark: &Mark) {
        if self.changed.is_empty() {
            self.windows.mark(mark);
        }
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
        for three in &mut self.policies {
            three.recorded.kind = kind;
            if !self.is_upgrade || !self.has_asked_governor {
                three.base.kind = kind;
            }
            if !self.has_asked_governor {
                three.asked.kind = kind;
            }
        }
        self.lanes.values_mut().for_each(|lane| lane.switch(kind));
    }

    /// What came of it.
    pub fn finish(mut self) -> Replayed {
        self.lanes.values_mut().for_each(Lane::close);
        self.replayed()
    }

    fn replayed(&self) -> Replayed {
        let mut replayed = telling::replayed(
            &self.policies,
            &self.lanes,
            (self.windows.length_ns(), u64::from(self.recording.n_cpus)),
            self.n_outside(),
        );
        replayed.recording = self.recording.clone();
        replayed.setting.clone_from(&self.setting);
        self.remark(&mut replayed.remarks);
        replayed
    }

    /// Recorded stays that no CPU was given.
    fn n_outside(&self) -> u64 {
        self.n_after_change.saturating_add(self.n_without_table)
    }

    /// What an upgrade will change, and the new kernel beside what was recorded; without two kernels ([`Replay::upgrade`]) no decision is
    /// compared.
    pub fn finish_upgrade(mut self) -> (Upgrade, Replayed) {
        self.lanes.values_mut().for_each(Lane::close);
        let mut upgrade = telling::upgrade(&self.policies, &self.lanes, self.n_outside());
        self.remark(&mut upgrade.remarks);
        (upgrade, self.replayed())
    }

    fn remark(&self, remarks: &mut Vec<String>) {
        if !self.switches.is_empty() {
            let names: Vec<&str> = self.switches.iter().map(|kind| kind.name()).collect();
            remarks.push(format!(
                "While it was recorded the governor became {}; the policy shown is the last.",
                names.join(", then ")
            ));
        }
        if self.switches.is_empty() && self.lanes.values().any(|lane| lane.has_taken_over) {
            remarks.push(
                "While it was recorded another governor decided for a time, as its choices say: it was followed."
                    .into(),
            );
        }
        if !self.changed.is_empty() {
            let what = self.changed.join("; ");
            remarks.push(format!("Not followed beyond a change of settings ({what}): {} stays.", self.n_after_change));
        }
        if self.n_without_table > 0 {
            remarks.push(format!("{} stays of CPUs without an idle table are left out.", self.n_without_table));
        }
    }
}

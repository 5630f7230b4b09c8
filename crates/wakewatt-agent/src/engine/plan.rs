//! What an agent is asked to do: which machine it reads, how often, what it traces, keeps, pushes and gives up.

use crate::confined::{Beside, Confine};
use crate::history::Limits;
use crate::measured::MeasuredExits;
use crate::otlp::Outbox;
use crate::trouble::Teller;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wakewatt_core::samples::payers::PayerKind;
use wakewatt_core::watch::Sources;
use wakewatt_lab::watch::WatchedMachine;

/// Which machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Machine {
    /// The one the agent runs on.
    Here,
    /// A tree that holds sys/ and proc/.
    Tree(PathBuf),
    /// A recorded host, which has one moment.
    Recorded(PathBuf),
}

impl Machine {
    pub(super) fn tree(&self) -> Option<&Path> {
        match self {
            Machine::Here => None,
            Machine::Tree(place) | Machine::Recorded(place) => Some(place),
        }
    }

    pub(super) fn watched(&self) -> WatchedMachine<'_> {
        match self {
            Machine::Here => WatchedMachine::Here,
            Machine::Tree(folder) => WatchedMachine::Tree(folder),
            Machine::Recorded(file) => WatchedMachine::Recorded(file),
        }
    }
}

/// Who pays, and how many of them have series of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedPayers {
    /// Cgroups, pods or containers.
    pub by: PayerKind,
    /// As many as have a name; all others are one.
    pub n_places: usize,
}

/// What is read, and how often.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Which machine.
    pub machine: Machine,
    /// What reading may disturb.
    pub sources: Sources,
    /// From reading to reading while nobody asks; none: as often as is of use.
    pub interval: Option<Duration>,
    /// Wake-up latency by eBPF?
    pub is_traced: bool,
    /// Who pays for wake-ups, by name?
    pub payers: Option<NamedPayers>,
    /// A series for each CPU?
    pub is_per_cpu: bool,
    /// What leaving idle states was measured to take; refused where that was on another machine.
    pub measured: Option<MeasuredExits>,
    /// The version that the page names.
    pub version: &'static str,
    /// Where the past is kept, and how much of it.
    pub history: Option<(PathBuf, Limits)>,
    /// What is given up after the start; none for a single page.
    pub confine: Option<Confine>,
    /// What is needed then beside the machine.
    pub beside: Beside,
    /// Where pages are left to be pushed.
    pub outbox: Option<Outbox>,
    /// What else can go wrong, to be told on every page.
    pub tellers: Vec<Teller>,
}

/// Of moments that are kept, pushed, or have wake-ups in them.
const USUAL: Duration = Duration::from_secs(10);
/// Where a reading serves nobody else: settings are looked at so often.
const ONLY_ASKED: Duration = Duration::from_secs(60);

impl Plan {
    /// Does a reading serve nobody but who asks for it?
    pub(super) fn is_only_asked(&self) -> bool {
        self.history.is_none() && self.outbox.is_none() && !self.is_traced
    }

    /// From reading to reading while nobody asks.
    pub(super) fn interval(&self) -> Duration {
        self.interval.unwrap_or(if self.is_only_asked() { ONLY_ASKED } else { USUAL })
    }

    /// One of a machine, with nothing else asked for.
    pub fn of(machine: Machine, sources: Sources, version: &'static str) -> Plan {
        Plan {
            machine,
            sources,
            interval: None,
            is_traced: false,
            payers: None,
            is_per_cpu: false,
            measured: None,
            version,
            history: None,
            confine: None,
            beside: Beside::default(),
            outbox: None,
            tellers: Vec::new(),
        }
    }
}

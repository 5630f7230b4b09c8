//! What a recording says about the machine, and the remarks between its pairs.

use crate::facts::idle::TableRow;
use serde::{Deserialize, Serialize};

/// The first block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Header {
    /// Version of the program that wrote it.
    pub wakewatt: String,
    /// When the recording began, in seconds since 1970.
    pub created_at_s: u64,
    /// Name of the boot, from a keyed hash of the kernel's boot id: times of one boot can be compared.
    pub boot: Option<String>,
    /// `uname -r`: governor rules differ between stable releases.
    pub kernel: String,
    /// `uname -v`, where some distributions write the release that their name for it hides.
    pub kernel_build: Option<String>,
    /// Architecture of the machine: x86_64, aarch64.
    pub arch: String,
    /// cpuidle driver; none without one.
    pub driver: Option<String>,
    /// cpuidle governor at the start.
    pub governor: Option<String>,
    /// Length of a tick; none where it cannot be told.
    pub tick_ns: Option<u64>,
    /// Times are kept in multiples of this, a power of two; none for exact nanoseconds.
    pub unit_ns: Option<u64>,
    /// How many CPUs were recorded.
    pub n_cpus: u32,
    /// Idle states by groups of CPUs.
    pub tables: Vec<StateTable>,
    /// Latency limits in force at the start: CPUs and words.
    pub limits: Vec<(String, String)>,
    /// How the governor's inputs were had.
    pub sources: Vec<String>,
    /// Which of them are missing, and why.
    pub gaps: Vec<String>,
    /// Length of a recording window.
    pub window_ns: u64,
    /// One window of so many was recorded.
    pub every_window: u64,
}

/// Idle states of some CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateTable {
    /// In kernel list notation.
    pub cpus: String,
    /// The idle states by index.
    pub states: Vec<TableState>,
}

/// One idle state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TableState {
    /// Index of the state.
    pub index: u32,
    /// Name of the state, as the driver calls it.
    pub name: String,
    /// Exit latency that driver or firmware claims.
    pub exit_latency_ns: Option<u64>,
    /// Target residency that driver or firmware claims.
    pub target_residency_ns: Option<u64>,
    /// Does the CPU spin in it?
    pub is_polling: bool,
    /// May the governor choose it?
    pub is_enabled: Option<bool>,
}

impl From<&TableRow> for TableState {
    fn from(row: &TableRow) -> TableState {
        TableState {
            index: row.index,
            name: row.name.clone(),
            exit_latency_ns: row.exit_latency_ns,
            target_residency_ns: row.target_residency_ns,
            is_polling: row.is_polling(),
            is_enabled: row.is_enabled,
        }
    }
}

/// A remark between pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", tag = "mark")]
pub enum Mark {
    /// Recording began, or went on after a pause.
    WindowOpened {
        /// When, on CLOCK_MONOTONIC.
        at_ns: u64,
    },
    /// It paused or ended.
    WindowClosed {
        /// When, on CLOCK_MONOTONIC.
        at_ns: u64,
        /// Records lost in the window.
        n_lost: u64,
    },
    /// A setting that governors look at was found changed.
    SettingChanged {
        /// When, on CLOCK_MONOTONIC.
        at_ns: u64,
        /// `governor`, `latency limit`, `disabled states`.
        what: String,
        /// CPUs in kernel list notation; none for the whole machine.
        cpus: Option<String>,
        /// The new value in words.
        value: String,
    },
    /// The file was continued.
    Resumed {
        /// When, in seconds since 1970.
        at_s: u64,
        /// Of the same boot as the header's: only then do times go on.
        is_same_boot: bool,
    },
    /// Recording stopped before tracing did.
    Stopped {
        /// Why: size reached, disk full.
        why: String,
    },
}

impl Header {
    /// The first thing in which another header describes another machine or set-up; none when a recording may go on.
    pub fn differs_from(&self, other: &Header) -> Option<String> {
        let say = |what: &str, a: &dyn std::fmt::Debug, b: &dyn std::fmt::Debug| {
            Some(format!("{what}: {a:?} there, {b:?} here"))
        };
        if self.kernel != other.kernel {
            return say("kernel", &self.kernel, &other.kernel);
        }
        if self.driver != other.driver {
            return say("idle driver", &self.driver, &other.driver);
        }
        if self.n_cpus != other.n_cpus {
            return say("number of CPUs", &self.n_cpus, &other.n_cpus);
        }
        // What may be chosen can change while recording; what there is cannot.
        let bare = |header: &Header| {
            let mut tables = header.tables.clone();
            tables.iter_mut().flat_map(|t| &mut t.states).for_each(|s| s.is_enabled = None);
            tables
        };
        (bare(self) != bare(other)).then(|| "the idle states differ".into())
    }

    /// Settings in which another header of the same machine differs: what to write down when a recording goes on, or
    /// when they changed meanwhile.
    pub fn settings_changed(&self, now: &Header, at_ns: u64) -> Vec<Mark> {
        let mark = |what: &str, cpus: Option<String>, value: String| Mark::SettingChanged {
            at_ns,
            what: what.into(),
            cpus,
            value,
        };
        let mut marks = Vec::new();
        if self.governor != now.governor {
            marks.push(mark("governor", None, now.governor.clone().unwrap_or_else(|| "none".into())));
        }
        for (cpus, limit) in now.limits.iter().filter(|l| !self.limits.contains(l)) {
            marks.push(mark("latency limit", Some(cpus.clone()), limit.clone()));
        }
        for table in now.tables.iter().filter(|t| !self.tables.contains(t)) {
            let disabled = table.states.iter().filter(|s| s.is_enabled == Some(false)).map(|s| s.name.as_str());
            let disabled: Vec<&str> = disabled.collect();
            let value = if disabled.is_empty() { "none".into() } else { disabled.join(" ") };
            marks.push(mark("disabled states", Some(table.cpus.clone()), value));
        }
        marks
    }
}

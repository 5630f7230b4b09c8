//! What a recording says about the machine, and the remarks between its pairs.

use serde::{Deserialize, Serialize};

/// The first block.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Header {
    /// Version of the program that wrote it.
    pub wakewatt: String,
    /// Seconds since 1970.
    pub created_at_s: u64,
    /// `uname -r`: governor rules differ between stable releases.
    pub kernel: String,
    /// x86_64, aarch64.
    pub arch: String,
    /// cpuidle driver; none without one.
    pub driver: Option<String>,
    /// cpuidle governor at the start.
    pub governor: Option<String>,
    /// Length of a tick; none where it cannot be told.
    pub tick_ns: Option<u64>,
    /// CPUs recorded.
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StateTable {
    /// In kernel list notation.
    pub cpus: String,
    /// By index.
    pub states: Vec<TableState>,
}

/// One idle state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TableState {
    /// Index.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Claimed exit latency.
    pub exit_latency_ns: Option<u64>,
    /// Claimed target residency.
    pub target_residency_ns: Option<u64>,
    /// Spins.
    pub is_polling: bool,
    /// May the governor choose it?
    pub is_enabled: Option<bool>,
}

/// A remark between pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", tag = "mark")]
pub enum Mark {
    /// Recording began.
    WindowOpened {
        /// CLOCK_MONOTONIC.
        at_ns: u64,
    },
    /// It paused or ended.
    WindowClosed {
        /// CLOCK_MONOTONIC.
        at_ns: u64,
        /// Records lost in the window.
        n_lost: u64,
    },
    /// A setting that governors look at was found changed.
    SettingChanged {
        /// CLOCK_MONOTONIC.
        at_ns: u64,
        /// `governor`, `latency limit`, `disabled states`.
        what: String,
        /// CPUs in kernel list notation; none for the whole machine.
        cpus: Option<String>,
        /// The new value in words.
        value: String,
    },
    /// The file was continued; times before and after need not be of the same boot.
    Resumed {
        /// Seconds since 1970.
        at_s: u64,
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
        if self.governor != other.governor {
            return say("idle governor", &self.governor, &other.governor);
        }
        if self.n_cpus != other.n_cpus {
            return say("number of CPUs", &self.n_cpus, &other.n_cpus);
        }
        (self.tables != other.tables).then(|| "the idle states differ".into())
    }

    /// The name of a state on a CPU.
    pub fn state_name(&self, cpu: u32, state: u8) -> String {
        let has = |t: &&StateTable| crate::cpuset::CpuSet::parse(&t.cpus).is_ok_and(|set| set.contains(cpu));
        let found = self.tables.iter().find(has).and_then(|t| t.states.iter().find(|s| s.index == u32::from(state)));
        found.map_or_else(|| format!("state{state}"), |s| s.name.clone())
    }
}

//! What is compared between nodes, and from which numbers each comes.
//!
//! A measure is a ratio of two numbers of the same window, so that a busier node is not a dearer one. What counts as load
//! is work per CPU where work is known, because CPU use is itself what a badly set node has more of.

use serde::Serialize;
use std::fmt;
use wakewatt_core::units::{rough_ns, three_digits};

/// A number of a node in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Samples that the store has of the node.
    Seen,
    /// CPUs that are online.
    Cpus,
    /// CPU seconds per second, idle, waiting and stolen time left out.
    Busy,
    /// Those of them in the kernel and its interrupts.
    System,
    /// Load average of a minute.
    Load,
    /// Mean clock as the kernel last saw it, in hertz.
    Clock,
    /// Cycles per second, counted.
    Cycles,
    /// Watts of the processors, or what the user's query gives.
    Watts,
    /// Pieces of work per second.
    Work,
    /// 90th percentile of the latency, in seconds.
    P90,
    /// 99th percentile of the latency, in seconds.
    P99,
}

impl Quantity {
    /// All.
    pub const ALL: [Quantity; 11] = [
        Quantity::Seen,
        Quantity::Cpus,
        Quantity::Busy,
        Quantity::System,
        Quantity::Load,
        Quantity::Clock,
        Quantity::Cycles,
        Quantity::Watts,
        Quantity::Work,
        Quantity::P90,
        Quantity::P99,
    ];
}

/// What nodes are compared in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// CPU seconds per piece of work.
    CpuPerWork,
    /// Cycles per piece of work.
    CyclesPerWork,
    /// Joules per piece of work.
    JoulesPerWork,
    /// 90th percentile of the latency.
    P90,
    /// 99th percentile of the latency.
    P99,
    /// Load average over busy CPUs.
    LoadPerBusyCpu,
    /// Share of busy time in the kernel.
    SystemShare,
}

impl Measure {
    /// All, in the order of what they say about a node.
    pub const ALL: [Measure; 7] = [
        Measure::CpuPerWork,
        Measure::CyclesPerWork,
        Measure::JoulesPerWork,
        Measure::P90,
        Measure::P99,
        Measure::LoadPerBusyCpu,
        Measure::SystemShare,
    ];

    /// For people, as the head of a column.
    pub fn title(self) -> &'static str {
        match self {
            Measure::CpuPerWork => "CPU time per request",
            Measure::CyclesPerWork => "cycles per request",
            Measure::JoulesPerWork => "energy per request",
            Measure::P90 => "p90",
            Measure::P99 => "p99",
            Measure::LoadPerBusyCpu => "load average per busy CPU",
            Measure::SystemShare => "system share of CPU time",
        }
    }

    /// In JSON and CSV, with the unit of its value.
    pub fn id(self) -> &'static str {
        match self {
            Measure::CpuPerWork => "cpu_per_work_s",
            Measure::CyclesPerWork => "cycles_per_work",
            Measure::JoulesPerWork => "joules_per_work_j",
            Measure::P90 => "p90_s",
            Measure::P99 => "p99_s",
            Measure::LoadPerBusyCpu => "load_per_busy_cpu",
            Measure::SystemShare => "system_share_ratio",
        }
    }

    /// A value in the unit that people say it in.
    pub fn show(self, value: f64) -> String {
        match self {
            Measure::CpuPerWork | Measure::P90 | Measure::P99 => rough_ns(value * 1e9),
            Measure::CyclesPerWork => format!("{} M", three_digits(value / 1e6)),
            Measure::JoulesPerWork => format!("{} J", three_digits(value)),
            Measure::LoadPerBusyCpu => three_digits(value),
            Measure::SystemShare => format!("{:.1} %", value * 100.0),
        }
    }

    /// Does it say what work costs, so that a node that has more of it costs its owner?
    pub fn is_cost(self) -> bool {
        matches!(self, Measure::CpuPerWork | Measure::CyclesPerWork | Measure::JoulesPerWork)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title())
    }
}

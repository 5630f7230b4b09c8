//! A plan: a question, the settings to compare and what to measure under them, as TOML; some are shipped, users write theirs.
//!
//! Everything that decides what a result means is declared here before anything runs: the primary metric, the looks, the
//! margin within which a difference does not matter, what rejects a block. Unknown keys, knobs and kinds are refused with
//! the nearest known name. The schema is published as docs/ref/schema/experiment-file.v1.json.

mod file;
mod parse;
#[cfg(test)]
mod tests;

pub use file::PlanFile;
pub use parse::parse;

use crate::noise::Limits;
use wakewatt_core::nearest::nearest;
use wakewatt_core::samples::experiment::Better;
use wakewatt_core::units::LatencyLimit;
use wakewatt_tune::request::Request;

/// The plans that come with wakewatt: name and text.
pub const SHIPPED: &[(&str, &str)] = &[
    ("idle", include_str!("../../plans/idle.toml")),
    ("k0-shop", include_str!("../../plans/k0-shop.toml")),
    ("k3-disk", include_str!("../../plans/k3-disk.toml")),
    ("k4-governors", include_str!("../../plans/k4-governors.toml")),
    ("fit", include_str!("../../plans/fit.toml")),
    ("smt", include_str!("../../plans/smt.toml")),
    ("numa", include_str!("../../plans/numa.toml")),
    ("observer", include_str!("../../plans/observer.toml")),
];

/// A plan, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub name: String,
    /// What it is to answer.
    pub question: String,
    /// The primary metric; the first one of the first workload if not named.
    pub primary: Option<String>,
    /// The primary metric where a power meter works, such as work per energy.
    pub primary_with_meter: Option<String>,
    /// The arms; the first is the baseline.
    pub arms: Vec<PlanArm>,
    /// What is measured in each block, in order.
    pub workloads: Vec<PlanWorkload>,
    pub budget_ns: u64,
    /// Discarded at the start of each block.
    pub settle_ns: u64,
    /// Counted in each block, per workload.
    pub measure_ns: u64,
    /// The looks: after so many counted rounds.
    pub looks: Vec<usize>,
    /// Where switching is instant, the primary metric is measured in so short measurements; none for whole ones only.
    pub short_ns: Option<u64>,
    /// Every so many rounds the baseline is held twice; 0 for never.
    pub again_every: usize,
    /// 1.05: differences within 5 % do not matter.
    pub margin_ratio: f64,
    /// Of the order.
    pub seed: Option<u64>,
    /// Is an arm that cannot be set here an error?
    pub is_strict: bool,
    /// What rejects a block.
    pub limits: Limits,
}

impl Plan {
    /// The metric that the looks decide by, with and without a power meter that works.
    pub fn primary_where(&self, has_meter: bool) -> Option<&str> {
        let with_meter = self.primary_with_meter.as_deref().filter(|_| has_meter);
        with_meter.or(self.primary.as_deref())
    }
}

/// One arm as asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanArm {
    /// Short.
    pub name: String,
    /// For people.
    pub title: String,
    /// The settings, without a limit on the whole machine.
    pub requests: Vec<Request>,
    /// Held on the whole machine.
    pub limit: Option<ArmLimit>,
    /// A command that enters it and one that leaves it.
    pub command: Option<(Vec<String>, Vec<String>)>,
    /// Runs while the arm does.
    pub beside: Option<Vec<String>>,
    /// What to know of it.
    pub notes: Vec<String>,
    /// Is it switched like the others and changes nothing? What it shows is this host's false effects.
    pub is_control: bool,
}

impl PlanArm {
    /// The machine as found, by this name.
    pub fn new(name: &str, title: &str) -> PlanArm {
        PlanArm { name: name.into(), title: title.into(), ..PlanArm::default() }
    }
}

/// A latency limit that an arm holds on the whole machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArmLimit {
    /// This one.
    At(LatencyLimit),
    /// That of the shallowest state that sleeps on the host it runs on, so that only that one and polling remain.
    Shallowest,
}

/// What is measured.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanWorkload {
    /// In front of its metrics, where two of one kind are measured.
    pub name: Option<String>,
    /// Counted in each block, if not as the plan says.
    pub measure_ns: u64,
    pub kind: PlanKind,
}

/// The kinds with their options.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanKind {
    /// Wake-ups by another CPU and by a timer.
    Wakeup {
        /// The CPU that is woken.
        cpu: Option<u32>,
        /// The CPU that wakes it.
        from_cpu: Option<u32>,
        /// Pauses all alike instead of random ones.
        is_fixed: bool,
    },
    Network {
        /// The responder; loopback when none.
        peer: Option<String>,
        /// TCP instead of UDP.
        is_tcp: bool,
        /// The CPU of the requester.
        cpu: Option<u32>,
    },
    /// Reads.
    Disk {
        /// File, device, or the folder in which one is made.
        path: Option<String>,
        /// io_uring instead of pread.
        is_uring: bool,
        /// Bytes per read.
        block_bytes: u64,
        /// Reads under way.
        depth: u32,
        /// One after the other instead of anywhere.
        is_sequential: bool,
        /// Of a file that is made.
        size_bytes: u64,
    },
    /// Transactions at shares of the maximum.
    Steps {
        /// 1.0 for 100 %; 0 is active idle.
        shares: Vec<f64>,
        /// Service time of a transaction.
        service_ns: Option<u64>,
    },
    /// An online shop.
    Shop {
        /// How many clients, level by level.
        clients: Vec<u32>,
    },
    /// Nothing: the machine left alone, and its counters.
    Alone,
    /// A command of the user's, run to its end in each block.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
        /// What counts in its output.
        metrics: Vec<CommandMetric>,
    },
}

impl PlanKind {
    /// Its word in a plan.
    pub fn word(&self) -> &'static str {
        match self {
            PlanKind::Wakeup { .. } => "wakeup",
            PlanKind::Network { .. } => "network",
            PlanKind::Disk { .. } => "disk",
            PlanKind::Steps { .. } => "steps",
            PlanKind::Shop { .. } => "shop",
            PlanKind::Alone => "alone",
            PlanKind::Command { .. } => "command",
        }
    }
}

/// A number in a command's output.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandMetric {
    /// `score`.
    pub id: String,
    /// With one group, the number.
    pub regex: String,
    /// Which way is better.
    pub better: Better,
}

/// What stands in a plan for the program that is named when it is run.
const AGENT: &str = "beside = \"AGENT\"";

/// A plan whose place for a program is filled with this one; as it is where it has no such place and none is named.
pub fn with_agent(text: &str, argv: &[String]) -> Result<String, String> {
    match (text.contains(AGENT), argv.is_empty()) {
        (true, true) => Err("it asks about a program: name it behind --, such as -- prometheus-node-exporter".into()),
        (false, false) => Err("it has no place for a program (beside = \"AGENT\"), so nothing goes behind --".into()),
        (false, true) => Ok(text.into()),
        (true, false) => {
            // A JSON array of strings is one of TOML, too.
            let words = serde_json::to_string(argv).map_err(|e| e.to_string())?;
            Ok(text.replace(AGENT, &format!("beside = {words}")))
        }
    }
}

/// The text of a shipped plan.
pub fn shipped(name: &str) -> Result<&'static str, String> {
    SHIPPED.iter().find(|(n, _)| *n == name).map(|(_, text)| *text).ok_or_else(|| {
        let all: Vec<&str> = SHIPPED.iter().map(|(n, _)| *n).collect();
        let hint = nearest(name, all.iter().copied()).map_or(String::new(), |near| format!("; did you mean {near}?"));
        format!("{name}: no such plan, and no such file; there are {}{hint}", all.join(", "))
    })
}

//! A plan as its file has it: the published schema, and what serde reads. Meaning is given in `parse`.

use serde::Deserialize;

/// A plan of an experiment, as written in its TOML file.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlanFile {
    /// Version of the format: always 1.
    pub format: u32,
    /// Name of the plan.
    pub name: String,
    /// What it is to answer.
    pub question: String,
    /// The primary metric (`wakeup.eventfd.p50`): the one the looks decide by. The first one measured if not given.
    pub primary: Option<String>,
    /// The primary metric where a power meter works (`steps.50.per-joule`); without one `primary` decides. Declared like it,
    /// before anything runs.
    pub primary_with_meter: Option<String>,
    /// The arm that the others are compared with; the first if not given.
    pub baseline: Option<String>,
    /// Time for everything: `30min`, `8h`.
    pub budget: Option<String>,
    /// Held before each block is measured: `1s`.
    pub settle: Option<String>,
    /// Measured in each block: `2s`.
    pub measure: Option<String>,
    /// One look after exactly so many rounds.
    pub blocks: Option<usize>,
    /// Looks after so many counted rounds: `[8, 12, 20, 32]`.
    pub looks: Option<Vec<usize>>,
    /// How long one measurement of the primary metric takes where switching is instant (latency limits, idle states) and the
    /// workload allows it (wake-ups, round trips, reads): `200ms`; 150ms if not given. There are hundreds of rounds then, and
    /// whole ones follow for the other metrics. `off` for whole measurements only.
    pub interleave: Option<String>,
    /// In every so many rounds the baseline is held twice, to see this host's own noise; 0 for never.
    /// Left out: every round where a look is at 8 rounds or fewer, else every second.
    pub again_every: Option<usize>,
    /// Differences within so many percent do not matter: 5.
    pub margin_percent: Option<f64>,
    /// Seed of the order; from the clock if not given.
    pub seed: Option<u64>,
    /// Refuse the whole plan where an arm cannot be set.
    pub strict: Option<bool>,
    /// What discards a measurement. Without limits noise discards nothing and widens the interval.
    pub reject: Option<RejectFile>,
    /// The settings to compare.
    pub arm: Vec<ArmFile>,
    /// What is measured under each.
    pub workload: Vec<WorkloadFile>,
}

/// Above what a block does not count.
#[derive(Clone, Debug, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RejectFile {
    /// Percent of the measured CPUs' time that the hypervisor takes; no limit if not given.
    pub steal_percent: Option<f64>,
    /// Percent of the measured CPUs' time that other processes use; no limit if not given. Of `steps` and `shop` it is each level's own count;
    /// what a `command` uses itself cannot be told from others' work. In a plan with one of these three the other workloads of a
    /// block are not judged by it.
    pub others_percent: Option<f64>,
    /// Thermal throttling; off by default, because an arm that throttles by its own doing pays for it.
    pub throttling: Option<bool>,
}

/// One arm. With nothing but a name it is the machine as found.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ArmFile {
    /// Short name of the arm: `performance`.
    pub name: String,
    /// Name of the arm for people.
    pub title: Option<String>,
    /// A profile of tune, shipped or a file.
    pub profile: Option<String>,
    /// Settings as tune takes them: `freq.governor@cpus:0-3=performance`.
    pub set: Option<Vec<String>>,
    /// Held on the whole machine: `5us`, `poll`, or `shallowest`: the exit latency of the shallowest idle state that sleeps.
    pub max_latency: Option<String>,
    /// Run to enter it: a line for the shell, or a list of words.
    pub command: Option<Words>,
    /// Run to leave it; must do no harm when run twice.
    pub undo_command: Option<Words>,
    /// A program that runs while the arm does, in the foreground: an agent to be audited. It ends with the arm.
    pub beside: Option<Words>,
    /// An A/A control: switched like the others, and nothing changes. What it shows is this host's false effects.
    pub control: Option<bool>,
}

/// A command to run: a line for a shell, or program and arguments.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Words {
    /// One line, which is given to `sh -c`.
    Line(String),
    /// Program and arguments, one by one; no shell.
    List(Vec<String>),
}

impl Words {
    /// Program and arguments.
    pub fn argv(&self) -> Vec<String> {
        match self {
            Words::Line(line) => vec!["sh".into(), "-c".into(), line.clone()],
            Words::List(words) => words.clone(),
        }
    }
}

/// One workload; which options it takes depends on its kind.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct WorkloadFile {
    /// `wakeup`, `network`, `disk`, `steps`, `shop`, `command`, `alone`.
    pub kind: String,
    /// In front of its metrics' names, where two of one kind are measured.
    pub name: Option<String>,
    /// Measured in each block, if not as the plan says.
    pub measure: Option<String>,
    /// wakeup, network: the CPU that is woken, or that asks.
    pub cpu: Option<u32>,
    /// wakeup: the CPU that wakes it.
    pub from_cpu: Option<u32>,
    /// wakeup: pauses between wake-ups, `random` (exponential, the same for all arms of a round) or `fixed`; random if not given.
    pub pauses: Option<String>,
    /// network: a responder (`wakewatt respond`), `10.0.0.2:7117`; loopback if not given.
    pub peer: Option<String>,
    /// network: `udp` or `tcp`.
    pub transport: Option<String>,
    /// disk: a file or device to read, or a folder in which a file is made.
    pub path: Option<String>,
    /// disk: `psync` or `io_uring`.
    pub engine: Option<String>,
    /// disk: bytes per read, `4k`.
    pub block: Option<String>,
    /// disk: reads under way.
    pub depth: Option<u32>,
    /// disk: one after the other.
    pub sequential: Option<bool>,
    /// disk: size of the file that is made, `1G`.
    pub size: Option<String>,
    /// steps: percent of the maximum, level by level; 0 is active idle.
    pub levels: Option<Vec<f64>>,
    /// steps: service time of a transaction, `500us`.
    pub service: Option<String>,
    /// shop: clients, level by level.
    pub clients: Option<Vec<u32>>,
    /// command: a line for the shell, or a list of words.
    pub command: Option<Words>,
    /// command: numbers in its output.
    pub metric: Option<Vec<CommandMetricFile>>,
}

/// A number in a command's output; the last match counts.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CommandMetricFile {
    /// Name of the metric: `score`.
    pub name: String,
    /// An expression with one group: `score: ([0-9.]+)`.
    pub regex: String,
    /// Which way is better: `higher` or `lower`.
    pub better: String,
}

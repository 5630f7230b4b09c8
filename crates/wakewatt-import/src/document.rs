//! What was understood of the texts and what was not: the document of `import`.

use serde::Serialize;

/// What came of the texts.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document {
    /// Every text, in the order given.
    pub files: Vec<FileRead>,
    /// How many files of a kernel the texts stand for.
    pub n_facts: usize,
    /// Where texts contradict each other: the first is kept.
    pub conflicts: Vec<Conflict>,
    /// Figures that a tool had made of counters: shares, watts, rates. Measured by that tool, where the text was made.
    pub derived: Vec<Derived>,
    /// Wake-ups that recorded events show, by idle state.
    pub wakeups: Vec<Wakeups>,
    /// What has to be known when the above is read.
    pub remarks: Vec<String>,
}

/// One text that was given.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileRead {
    /// Its name as given, or inside the archive or folder that was given.
    pub file: String,
    /// How many lines that are not blank it has.
    pub n_lines: usize,
    /// How many of them were understood.
    pub n_understood: usize,
    /// How many are known and hold nothing that is used here.
    pub n_unused: usize,
    /// What was found in it.
    pub formats: Vec<Found>,
    /// The lines that were not understood; the first of them, where there are many.
    pub not_understood: Vec<Left>,
    /// How many lines were not understood.
    pub n_not_understood: usize,
}

/// One tool's output within a text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Found {
    /// Stable word: cpupower-idle, turbostat …
    pub format: String,
    /// What people call this format.
    pub title: String,
    /// First of its lines.
    pub from_line: u32,
    /// Last of its lines.
    pub to_line: u32,
    /// How many lines were understood.
    pub n_understood: usize,
    /// How many facts, figures or events came of them.
    pub n_taken: usize,
}

/// A line that was not understood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Left {
    /// Its number, from 1.
    pub line: u32,
    /// The line, as much of it as fits.
    pub text: String,
    /// Why it was left.
    pub why: String,
}

/// A line and what it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Said {
    /// The text it stands in.
    pub file: String,
    /// Its number, from 1.
    pub line: u32,
    /// The line, as much of it as fits.
    pub text: String,
    /// The value it gives.
    pub says: String,
}

/// Two lines that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conflict {
    /// The kernel's file that both are about.
    pub path: String,
    /// The line that is kept, because it came first.
    pub kept: Said,
    /// The line that says otherwise.
    pub other: Said,
}

/// A figure that a tool had made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Derived {
    /// The tool's word for it: `C6%`, `PkgWatt`.
    pub what: String,
    /// Of which part of the machine: all CPUs, CPU 3, package 0.
    pub of: String,
    /// What it is in: %, W, MHz, J, C, a count.
    pub unit: String,
    /// How many readings there are.
    pub n: usize,
    /// Mean of the readings.
    pub mean: f64,
    /// The least reading.
    pub min: f64,
    /// The greatest reading.
    pub max: f64,
    /// The text it stands in.
    pub file: String,
    /// Line of the first reading.
    pub line: u32,
}

/// Wake-ups of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Wakeups {
    /// Where a latency ends: `exit`, when the CPU left the idle state, or `running`, when the task ran.
    pub until: &'static str,
    /// Name of the idle state the CPU was in when the task was woken; none where it was in none, or where the events do not say.
    pub state: Option<String>,
    /// By whom it was woken: another CPU, an interrupt.
    pub by: String,
    /// The task that was woken; none for all together.
    pub task: Option<String>,
    /// The CPU; none for all together.
    pub cpu: Option<u32>,
    /// How many there were.
    pub n: u64,
    /// The shortest, in nanoseconds.
    pub min_ns: u64,
    /// The median; of an even number the mean of the two in the middle.
    pub median_ns: f64,
    /// Nine of ten took at most this long; none with fewer than a hundred.
    pub p90_ns: Option<u64>,
    /// 99 of 100 took at most this long; none with fewer than a thousand.
    pub p99_ns: Option<u64>,
    /// The longest wake-up, in nanoseconds.
    pub max_ns: u64,
    /// Are median and quantiles those of the very values? Else they are interpolated in buckets an eighth wide, because there
    /// were too many values to keep.
    pub is_exact: bool,
}

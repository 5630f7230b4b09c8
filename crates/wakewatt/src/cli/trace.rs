//! The command line of `trace`.

use clap::{Args, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use wakewatt_core::units::parse_ns;

/// Arguments of `trace`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TraceArgs {
    /// What to do with a recorded file instead of tracing.
    #[command(subcommand)]
    pub file: Option<TraceFile>,
    /// Trace this long; 10s when not given, with a command until it ends
    #[arg(long = "for", value_name = "TIME", value_parser = parse_ns)]
    pub for_ns: Option<u64>,
    /// Only wake-ups of this process and its threads, not its children; may be repeated
    #[arg(long, value_name = "PID", conflicts_with_all = ["cgroup", "command"])]
    pub pid: Vec<u32>,
    /// Only wake-ups in this cgroup (version 2) and below: a path under /sys/fs/cgroup
    #[arg(long, value_name = "CGROUP", conflicts_with = "command")]
    pub cgroup: Option<PathBuf>,
    /// Add up who pays also by this
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = By::Process)]
    pub by: By,
    /// Also write who woke whom to this file: folded stacks for flame graphs, in nanoseconds lost
    #[arg(long, value_name = "FILE")]
    pub stacks: Option<PathBuf>,
    /// Length of a window: a longer trace is shown window by window
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_ns)]
    pub window: u64,
    /// Also show every CPU
    #[arg(long)]
    pub by_cpu: bool,
    /// Also read the hardware's residency registers, where there are any; wakes every CPU twice
    #[arg(long)]
    pub hardware: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// Also write an HTML page
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Keep names in the page and in --stacks (do not share such a file)
    #[arg(long)]
    pub unmasked: bool,
    #[command(flatten)]
    pub recording: RecordArgs,
    /// Attach programs that do nothing, to measure what being attached costs
    #[arg(long, hide = true)]
    pub empty: bool,
    /// A command to run and trace, with its children; after --
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What wake-ups out of idle are added up by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// Processes alone
    #[default]
    Process,
    /// Cgroups (version 2)
    Cgroup,
    /// Kubernetes pods
    Pod,
    /// Containers
    Container,
}

/// Where recorded idle intervals go.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Also record every idle interval, with the governor's inputs, to this file; - for standard output
    #[arg(long, value_name = "FILE.wtrace")]
    pub record: Option<PathBuf>,
    /// Record one window (--window) of every this many (1: without a pause)
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "record", value_parser = clap::value_parser!(u64).range(1..))]
    pub record_every: u64,
    /// Stop recording at this size, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, requires = "record", value_parser = clap::value_parser!(u64).range(1..))]
    pub record_mib: u64,
    /// Continue a recording that was cut off or ended
    #[arg(long, requires = "record")]
    pub resume: bool,
    /// Also record what the idle governor's own functions were told and answered (fentry or kprobes; some microseconds a stay)
    #[arg(long, requires = "record")]
    pub exact: bool,
    /// Overwrite the file
    #[arg(long, requires = "record", conflicts_with = "resume")]
    pub force: bool,
}

/// What can be done with a recorded file.
#[derive(Debug, Subcommand)]
pub enum TraceFile {
    /// Say what a recording holds
    #[command(before_help = "Example:\n  wakewatt trace info idle.wtrace")]
    Info(InfoArgs),
    /// Write a recording as a Parquet table, one row per idle interval
    #[command(before_help = "Example:\n  wakewatt trace export idle.wtrace -o idle.parquet")]
    Export(ExportArgs),
}

/// Arguments of `trace info`.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// The recording
    #[arg(value_name = "FILE.wtrace")]
    pub file: PathBuf,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `trace export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The recording
    #[arg(value_name = "FILE.wtrace")]
    pub file: PathBuf,
    /// The table to write
    #[arg(short, long, value_name = "FILE.parquet")]
    pub output: PathBuf,
    /// Overwrite it
    #[arg(long)]
    pub force: bool,
}

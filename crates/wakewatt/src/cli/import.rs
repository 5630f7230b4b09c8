//! The command line of `import`.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `import`.
#[derive(Debug, Args)]
#[command(
    after_help = "Told by content, never by name: cpupower, turbostat, dmidecode, lscpu, numactl, numastat, the\nkernel's log, corefreq-cli, perf script, perf sched, trace-cmd report, tuned-adm, pepc --yaml,\nx86_energy_perf_policy, metrics of node_exporter and Kepler, files of /proc and /sys, sosreport,\nsupportconfig, must-gather; also packed with gzip or xz. docs/import.md says what is read of each.\nEnds with 4 when nothing was understood."
)]
pub struct ImportArgs {
    /// What other tools printed on one host: text, a pasted terminal, an archive, a folder; - for standard input
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,
    /// Of an archive or a folder of several hosts (must-gather), the one whose name holds this
    #[arg(long, value_name = "NAME")]
    pub from_host: Option<String>,
    /// Keep the host for inspect, explain, compare and doctor --host
    #[arg(short, long, value_name = "HOST")]
    pub output: Option<PathBuf>,
    /// Keep the idle intervals of recorded events for replay
    #[arg(long, value_name = "FILE")]
    pub wtrace: Option<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// Name every line that was not understood, not the first ten of each text
    #[arg(long)]
    pub all: bool,
    /// Keep serial numbers, addresses and names in the .host file (do not share such a file)
    #[arg(long, requires = "output")]
    pub unmasked: bool,
}

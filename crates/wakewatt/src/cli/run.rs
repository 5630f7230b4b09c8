//! The command line of `run`.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// One copy per memory node that has CPUs, each bound to that node's CPUs and memory
    #[arg(long, required = true)]
    pub per_node: bool,
    /// First run one copy that is not bound, and show how the bound ones scale against it
    #[arg(long)]
    pub compare: bool,
    /// What counts as work done: the number in the first group of this expression, last match of each copy's output
    #[arg(long, value_name = "REGEX", requires = "compare")]
    pub metric: Option<String>,
    /// Write each copy's output to DIR/nodeN.out and nodeN.err instead of printing it with the node in front
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// One JSON document; the copies' output then goes to standard error, or to --output
    #[arg(long)]
    pub json: bool,
    /// The command, after --; {node}, {cpus} and {n} become the copy's node, its CPUs and the number of copies
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

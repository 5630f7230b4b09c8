//! The command line of `fleet collect` and `fleet tables`.

use super::bmcs::BmcsArgs;
use super::kubernetes::KubernetesArgs;
use super::ssh::SshArgs;
use clap::Args;
use std::path::PathBuf;
use wakewatt_carry::collect::What;
use wakewatt_core::units::parse_ns;
use wakewatt_words::say;

/// Arguments of `fleet collect`.
#[derive(Debug, Args)]
pub struct CollectArgs {
    #[command(flatten)]
    pub ssh: SshArgs,
    #[command(flatten)]
    pub kubernetes: KubernetesArgs,
    #[command(flatten)]
    pub bmcs: BmcsArgs,
    /// The folder for all files, made if it is not there
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub output: PathBuf,
    /// NODE.host: what each node says of itself; also when nothing else is asked for
    #[arg(long)]
    pub capture: bool,
    /// NODE.run: "measure wakeup", or doctor (--quick --read-only: at most a minute, changes nothing)
    #[arg(long, value_name = "COMMAND", value_parser = parse_run)]
    pub run: Option<What>,
    /// NODE.wtrace: idle intervals of this long (root)
    #[arg(long, value_name = "TIME", value_parser = parse_ns)]
    pub trace: Option<u64>,
    /// Largest recording of a node, in MiB; there it ends, whole
    #[arg(long, value_name = "MIB", default_value_t = 64, requires = "trace", value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub trace_mib: u64,
    /// Nodes at once; each answer is held in memory until it is written
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub parallel: u16,
    /// How much longer an answer may take than what it measures
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_ns)]
    pub timeout: u64,
    /// Call nodes by numbers, in files and index, and keep no words of theirs; who is who goes to DIR.names.json, for you alone
    #[arg(long, conflicts_with = "bmc")]
    pub mask: bool,
    /// Go on with the collection in the folder: what is whole there is not asked for again
    #[arg(long)]
    pub resume: bool,
    /// Also write facts.parquet and measures.parquet into the folder, as `fleet tables` does
    #[arg(long)]
    pub parquet: bool,
    /// The index as one JSON document instead of text
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `fleet tables`.
#[derive(Debug, Args)]
pub struct TablesArgs {
    /// NODE.host, NODE.run and NODE.wtrace files, as `fleet collect` and `capture` make them
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Where facts.parquet and measures.parquet go; the same folder when not given
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    pub output: Option<PathBuf>,
}

fn parse_run(text: &str) -> Result<What, String> {
    match text {
        "measure wakeup" => Ok(What::Wakeup),
        "doctor" | "doctor --quick --read-only" => Ok(What::Doctor),
        _ => Err(say!("give \"measure wakeup\" or doctor")),
    }
}

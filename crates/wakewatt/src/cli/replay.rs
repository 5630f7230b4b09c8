//! The command line of `replay`.

use clap::Args;
use std::path::PathBuf;
use wakewatt_models::replay::Change;

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The recording, of `trace --record`
    #[arg(value_name = "FILE.wtrace")]
    pub file: PathBuf,
    /// Ask this otherwise than recorded; may be repeated: governor=NAME, kernel=VERSION, max-latency=TIME, max-state=INDEX,
    /// disable=STATE, enable=STATE, hz=NUMBER, guest-halt-poll=TIME, table=NAME:LATENCY/RESIDENCY,...
    #[arg(long, value_name = "KEY=VALUE", value_parser = Change::parse)]
    pub set: Vec<Change>,
    /// The idle states of this recorded host (its first CPU's) instead of the recording's
    #[arg(long, value_name = "FILE.host")]
    pub table: Option<PathBuf>,
    /// What the recording does not say, or says wrongly, of the machine it was made on: the same keys
    #[arg(long, value_name = "KEY=VALUE", value_parser = Change::parse)]
    pub recorded: Vec<Change>,
    /// Every latency limit that means something there: latency against energy, and the knee
    #[arg(long)]
    pub sweep: bool,
    /// Also every CPU
    #[arg(long, conflicts_with = "sweep")]
    pub by_cpu: bool,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

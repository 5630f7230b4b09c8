//! The command line of `simulate`.

use clap::Args;
use std::path::PathBuf;
use wakewatt_core::cost::PerKwh;
use wakewatt_core::units::parse_ns;
use wakewatt_sim::study::Sweep;

/// Arguments of `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// The server, its work and the settings to compare (TOML); or the name of a shipped one
    #[arg(value_name = "SERVER.toml", required_unless_present_any = ["example", "examples"])]
    pub file: Option<PathBuf>,
    /// Print a shipped server file, to begin with or to look at a case
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "examples"])]
    pub example: Option<String>,
    /// List the shipped server files
    #[arg(long, conflicts_with = "file")]
    pub examples: bool,
    /// Another value for a field; may be repeated: machine.idle.max_latency=5us, workload.arrivals.per_s=9000
    #[arg(long, value_name = "FIELD=VALUE")]
    pub set: Vec<String>,
    /// Only this setting of the file; may be repeated
    #[arg(long, value_name = "NAME")]
    pub setting: Vec<String>,
    /// Every one of these values for a field; may be repeated, then all combinations: FIELD=A,B,C or FIELD=FROM..TO/STEP
    #[arg(long, value_name = "FIELD=VALUES", value_parser = Sweep::parse)]
    pub sweep: Vec<Sweep>,
    /// Take the arrivals from a recording of idle time (`trace --record`), or their rates from a run of `load`, in place of the file's
    #[arg(long, value_name = "FILE.wtrace|RUN")]
    pub arrivals: Option<PathBuf>,
    /// Simulated time that counts, per replication
    #[arg(long, value_name = "TIME", value_parser = parse_ns)]
    pub duration: Option<u64>,
    /// Replications with different random numbers
    #[arg(long, value_name = "N")]
    pub replications: Option<u32>,
    /// Seed of the random numbers
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Threads to run on; the numbers do not depend on it [default: one per CPU]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Keep it as a run file, which `report` draws and `compare` reads beside measured ones
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Every number as a Parquet table, the one that `report --parquet` makes of a saved run
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// Title of the saved run, such as that of a measured one it is to be compared with
    #[arg(long, value_name = "TEXT", requires = "save")]
    pub title: Option<String>,
    /// Write it as one HTML page, with the frontier of a sweep as a chart
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also idle states, and the time series
    #[arg(long)]
    pub details: bool,
    /// Also what the modelled watts would cost: 0.30/kWh, 0.30EUR/kWh. It stays modelled
    #[arg(long, value_name = "AMOUNT/kWh", value_parser = str::parse::<PerKwh>, conflicts_with_all = ["json", "csv"])]
    pub price: Option<PerKwh>,
    /// And what they would emit: 350g/kWh
    #[arg(long, value_name = "GRAMS/kWh", value_parser = PerKwh::emission, conflicts_with_all = ["json", "csv"])]
    pub co2: Option<PerKwh>,
    /// One JSON document
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// One line per point, comma-separated
    #[arg(long)]
    pub csv: bool,
}

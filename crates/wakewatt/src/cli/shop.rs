//! The command line of `load shop`.

use super::meter::MeterArgs;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use wakewatt_core::cpuset::CpuSet;
use wakewatt_core::units::parse_ns;
use wakewatt_words::say;

/// Arguments of `load shop`.
#[derive(Debug, Args)]
pub struct ShopArgs {
    /// Numbers of clients, one level each
    #[arg(long, value_name = "N", default_value = "500,1000,2000", value_delimiter = ',', conflicts_with = "rate",
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub clients: Vec<u32>,
    /// Instead of clients, requests per second that come whatever the server does, one level each
    #[arg(long, value_name = "PER_SECOND", value_delimiter = ',', value_parser = parse_rate)]
    pub rate: Vec<f64>,
    /// The list of levels so often, one after the other: values over time, with a mark where settings were changed meanwhile
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    /// Mean think time of a client between an answer and its next request (exponential)
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_ns, conflicts_with = "rate")]
    pub think: u64,
    /// Record 10 s per level instead of 60 s: for a first look, not to be quoted
    #[arg(long, conflicts_with = "spec_like")]
    pub quick: bool,
    /// Record 240 s per level with ramps of 30 s, as SPECpower does (no SPEC result)
    #[arg(long)]
    pub spec_like: bool,
    /// Record this long per level
    #[arg(long, value_name = "TIME", value_parser = parse_ns)]
    pub duration: Option<u64>,
    /// Let clients come in over this time before each level is recorded
    #[arg(long, value_name = "TIME", value_parser = parse_ns)]
    pub ramp: Option<u64>,
    /// An answer that takes longer is a failure
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = parse_ns)]
    pub timeout: u64,
    /// Products in the catalogue
    #[arg(long, value_name = "N", default_value = "10000", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub products: u32,
    /// Keep the data in this PostgreSQL (its own schema, dropped at the end); SQLite inside the server when not given. To
    /// another host TLS is required, with --ca or the distribution's authorities, unless the string says sslmode=disable
    #[arg(long, value_name = "postgres://USER@HOST/DB", conflicts_with_all = ["folder", "in_memory", "url"])]
    pub database: Option<String>,
    /// A file whose first line is the database's password, readable by nobody else; PGPASSWORD when not given
    #[arg(long, value_name = "FILE", requires = "database")]
    pub database_password_file: Option<PathBuf>,
    /// Folder for SQLite's files, which vanish with the server; /var/tmp when not given
    #[arg(long = "in", value_name = "FOLDER", conflicts_with_all = ["in_memory", "url"])]
    pub folder: Option<PathBuf>,
    /// SQLite's files in memory (/dev/shm): no disk at all
    #[arg(long, conflicts_with_all = ["durable", "url"])]
    pub in_memory: bool,
    /// Sync every order to the disk before it is confirmed
    #[arg(long, conflicts_with = "url")]
    pub durable: bool,
    /// Web threads of the server; one per CPU of it when not given
    #[arg(long, value_name = "N", conflicts_with = "url", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub workers: Option<u32>,
    /// CPUs of the server; those left over by the clients when not given
    #[arg(long, value_name = "CPUS", value_parser = CpuSet::parse, conflicts_with = "url")]
    pub cpus: Option<CpuSet>,
    /// CPUs of the clients; the last quarter of the cores when not given
    #[arg(long, value_name = "CPUS", value_parser = CpuSet::parse)]
    pub client_cpus: Option<CpuSet>,
    /// Ask this server instead of starting one: a shop of your own, or one of `--listen`
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// What to ask for, as a TOML file (see below)
    #[arg(long, value_name = "FILE", requires = "url")]
    pub mix: Option<PathBuf>,
    /// Only open the shop on this address, until interrupted; whoever reaches it may use it
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["url", "rate", "client_cpus", "json", "save"])]
    pub listen: Option<SocketAddr>,
    #[command(flatten)]
    pub meters: MeterArgs,
    /// Repeat think times, pages and catalogue
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Keep facts and load in this run file, for report and compare
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| "give requests per second, such as 200".to_string())?;
    if (0.01..=1e6).contains(&rate) { Ok(rate) } else { Err(say!("give 0.01 to 1000000 requests per second")) }
}
